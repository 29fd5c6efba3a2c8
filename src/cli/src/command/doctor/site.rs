//! A site folder: whether jobs get the tables that are published there, and under which limits.

use std::path::Path;

use anyhow::anyhow;
use colltune_core::settings::Settings;
use colltune_db::Database;
use colltune_db::site::SiteFolder;
use colltune_files::{SETTINGS_BYTES_MAX, read_text};

use super::findings::Findings;
use super::variables::with_variables;
use super::{generations, limits};
use crate::command::publish;

/// Where tables come from, and whether jobs get them.
pub fn check(report: &mut Findings, path: &Path) {
    let found = SiteFolder::open(path).map_err(anyhow::Error::from);
    let site = match found.and_then(|site| publish::Report::of(&site)) {
        Ok(site) => site,
        Err(error) => {
            return report.fail(
                format_args!("failed to {error:#}"),
                format_args!(
                    "`colltune publish --db DIR {}` publishes anew",
                    path.display()
                ),
            );
        }
    };
    let is_well = site.is_on() && site.problems().next().is_none();
    for line in site.sentence().lines() {
        match is_well {
            true => report.ok(format!("site folder {line}")),
            false => report.warn(
                format_args!("site folder {line}"),
                format_args!("`colltune publish {} --on` or `--rollback`", path.display()),
            ),
        }
    }
    for problem in site.problems() {
        report.fail(
            format_args!("failed to {problem}; jobs run untuned"),
            format_args!(
                "`colltune publish {} --rollback` takes it back",
                path.display()
            ),
        );
    }
    match colltune_launch::database::open(path) {
        Ok(db) => {
            match settings_on_site(&db, path) {
                Ok(settings) => limits::tell(report, &settings),
                Err(error) => report.fail(
                    format_args!("failed to {error}; jobs run untuned"),
                    "mend that line of colltune.toml, or take it out",
                ),
            }
            generations::check(report, &db);
        }
        Err(error) => report.fail(
            format_args!("failed to {error:#}"),
            format_args!(
                "`colltune publish {} --rollback` takes it back",
                path.display()
            ),
        ),
    }
}

/// As a job reads them: a version's, what the site decides over them, and the variables over both.
fn settings_on_site(version: &Database, site: &Path) -> anyhow::Result<Settings> {
    let settings = version.settings()?;
    let file = site.join("colltune.toml");
    let settings = match read_text(&file, SETTINGS_BYTES_MAX) {
        Ok(text) => settings
            .with_toml(&text)
            .map_err(|error| anyhow!("{error} ({})", file.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => settings,
        Err(error) => return Err(anyhow!("read {}: {error}", file.display())),
    };
    Ok(with_variables(settings))
}
