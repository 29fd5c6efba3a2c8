//! `colltune publish`: what was learned, for everybody's jobs: versions in a site folder, tried by some jobs first, taken
//! back, or switched off.
//!
//! ```text
//! $ colltune publish --db ./hydra.db /site/colltune --canary 5%   # jobs take it from there by a module file
//! $ colltune publish /site/colltune --promote
//! $ colltune publish /site/colltune --rollback
//! $ colltune publish /site/colltune --off --reason "allreduce hangs"
//! ```

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use colltune_core::library::{Abi, Product};
use colltune_core::site::SiteState;
use colltune_db::site::{About, ForJobs, MODULES, SiteFolder, Tables, VersionListed, publish};
use colltune_db::{DataKey, Database, generation};
use serde::Serialize;

use super::export;
use crate::export::modules::{self, Module};
use colltune_launch::shim;
use colltune_output::failure::usage;
use colltune_output::progress;
use colltune_output::{print, table};

/// Does what is asked for, and says what is in force then.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let path = std::path::absolute(&args.site)
        .with_context(|| format!("make {} absolute", args.site.display()))?;
    let (site, done) = match args.action() {
        Action::Publish => published(args, &path)?,
        Action::Promote => changed(&path, SiteFolder::promote)?,
        Action::Rollback => changed(&path, |site| site.roll_back(args.to))?,
        Action::Off => {
            let site = SiteFolder::open(&path)?;
            site.switch_off(args.reason.as_deref().unwrap_or_default())?;
            let done = "switched off: new jobs run untuned from now on, running ones once they compare a choice with the default\n";
            (site, done.to_owned())
        }
        Action::On => {
            let site = SiteFolder::open(&path)?;
            let done = match site.switch_on()? {
                true => "switched on: new jobs are tuned; those that fell back stay untuned\n",
                false => "it was not switched off\n",
            };
            (site, done.to_owned())
        }
        Action::List => (SiteFolder::open(&path)?, String::new()),
    };
    let report = Report::of(&site)?;
    match args.json {
        true => print(&(serde_json::to_string(&report).context("write JSON")? + "\n")),
        false if args.list => print(&report.text()),
        false => print(&(done + &report.sentence())),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune publish --db ./hydra.db /site/colltune
      A new version for all jobs, with module files in /site/colltune/modulefiles. The folder is
      made.
  colltune publish --db ./hydra.db /site/colltune --canary 5%
      For one in twenty jobs; the others keep the version before. Which ones is drawn by the job's
      name, so all steps of a job take the same one.
  colltune publish /site/colltune --promote
      What was on trial is for all jobs.
  colltune publish /site/colltune --rollback
      What is on trial is so no more; else the version before the one in force is in force again.
  colltune publish /site/colltune --off --reason \"allreduce hangs on n17\"
      New jobs run untuned, running ones once they compare a choice with the default, after 800
      calls or more. `touch /site/colltune/OFF` does the same.
  colltune publish /site/colltune --list

Jobs need to read the folder and nothing more: `module use /site/colltune/modulefiles; module load
colltune/openmpi`, or `colltune run --db /site/colltune -- mpirun ...`. What is in
SITE/colltune.toml goes before the settings of every version: programs_allow, programs_deny,
switch_poll_interval and the others. Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub struct Args {
    /// The site folder, which all nodes see
    #[arg(value_name = "SITE")]
    site: PathBuf,
    /// The tuning database of which what is in force is published
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Only for this share of the jobs, as in 5% or 0.05
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "action")]
    canary: Option<f64>,
    /// Put what is on trial in force for all jobs
    #[arg(long, group = "action")]
    promote: bool,
    /// End a trial, or put the version before in force
    #[arg(long, group = "action")]
    rollback: bool,
    /// The version to put in force instead
    #[arg(long, value_name = "N", requires = "rollback")]
    to: Option<u64>,
    /// Switch off: new and running jobs run untuned
    #[arg(long, group = "action")]
    off: bool,
    /// What jobs are told about that
    #[arg(long, value_name = "TEXT", requires = "off")]
    reason: Option<String>,
    /// Switch on again
    #[arg(long, group = "action")]
    on: bool,
    /// Show the versions, which is in force, what is on trial, and the switch
    #[arg(long, group = "action")]
    list: bool,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Publish,
    Promote,
    Rollback,
    Off,
    On,
    List,
}

impl Args {
    fn action(&self) -> Action {
        let asked = [
            (self.promote, Action::Promote),
            (self.rollback, Action::Rollback),
            (self.off, Action::Off),
            (self.on, Action::On),
            (self.list, Action::List),
        ];
        let asked = asked.into_iter().find(|(is_asked, _)| *is_asked);
        asked.map_or(Action::Publish, |(_, action)| action)
    }
}

fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    number
        .ok()
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| "it is a share between 0 and 1, as in 5% or 0.05".to_owned())
}

/// Publishes a version with tables and module files.
fn published(args: &Args, path: &Path) -> anyhow::Result<(SiteFolder, String)> {
    let Some(db) = &args.db else {
        return Err(usage(
            "publish: say what, with --db DIR, or what to do, with --promote, --rollback, --off, --on or --list",
        ));
    };
    let tables = export::of_every(db)?;
    let jobs = args.canary.map_or(ForJobs::All, ForJobs::Share);
    let db = Database::open(db)?;
    let (site, version) = publish(path, &db, &tables, jobs)?;
    let mut done = match jobs {
        ForJobs::All => format!("version {version} is published\n"),
        ForJobs::Share(share) => {
            format!(
                "version {version} is published, for {} of the jobs\n",
                percent(share)
            )
        }
    };
    done += &write_modules(&site, &generation::trained(&db)?, &tables)?;
    Ok((site, done))
}

/// Writes the module files, those of libraries that are new among them; says what could not be.
fn write_modules(
    site: &SiteFolder,
    trained: &[DataKey],
    tables: &[Tables],
) -> anyhow::Result<String> {
    let path = site.path();
    if !modules::can_name(path) {
        progress::hint(format_args!(
            "{} has characters that module files read otherwise, so there are none",
            path.display()
        ));
        return Ok(String::new());
    }
    let keys = tables.iter().map(|one| &one.key);
    let mut abis: Vec<Abi> = Vec::new();
    for abi in trained.iter().filter_map(abi_of) {
        if !abis.contains(&abi) {
            abis.push(abi);
        }
    }
    let mut written = Vec::new();
    for abi in abis {
        match shim::file(abi).map_err(|error| error.to_string()) {
            Ok(file) if modules::can_name(&file) => {
                written.push(modules::preload(path, abi, &file));
            }
            Ok(file) => progress::hint(format_args!(
                "no module preloads {}: module files read its name otherwise",
                file.display()
            )),
            Err(problem) => progress::hint(format_args!(
                "no module for jobs on {}: failed to {problem}",
                abi.name()
            )),
        }
    }
    written.extend(keys.filter_map(|key| modules::tables(path, key)));
    for module in &written {
        let Module {
            folder,
            name,
            lua,
            tcl,
        } = module;
        site.write_module(&[folder], &format!("{name}.lua"), lua)?;
        site.write_module(&[folder], name, tcl)?;
    }
    let names = written
        .iter()
        .map(|one| format!("{}/{}", one.folder, one.name));
    let names = names.collect::<Vec<_>>().join(", ");
    Ok(format!(
        "module use {}: {names}\n",
        path.join(MODULES).display()
    ))
}

/// The shim of a library's jobs; Intel MPI's are started by `colltune run`, which tells the library its algorithms.
fn abi_of(key: &DataKey) -> Option<Abi> {
    match key.library.product {
        Product::OpenMpi => Some(Abi::OpenMpi),
        Product::Mpich | Product::Cray | Product::Mvapich => Some(Abi::Mpich),
        Product::Intel => None,
    }
}

fn changed(
    path: &Path,
    change: impl FnOnce(&SiteFolder) -> Result<(SiteState, SiteState), colltune_db::DbError>,
) -> anyhow::Result<(SiteFolder, String)> {
    let site = SiteFolder::open(path)?;
    let (before, after) = change(&site)?;
    let trial = before.canary.map_or(String::new(), |canary| {
        format!("; version {} is on trial no more", canary.version)
    });
    let done = match before.current == after.current {
        true => format!("version {} stays in force{trial}\n", after.current),
        false => format!(
            "version {} is in force instead of {}{trial}\n",
            after.current, before.current
        ),
    };
    Ok((site, done))
}

/// What a site folder is, for people and programs.
#[derive(Serialize)]
pub struct Report {
    site: PathBuf,
    in_force: u64,
    canary: Option<u64>,
    canary_share: Option<f64>,
    off: bool,
    reason: Option<String>,
    versions: Vec<VersionListed>,
}

impl Report {
    pub fn of(site: &SiteFolder) -> anyhow::Result<Report> {
        let state = site.state()?;
        let reason = site.is_off();
        Ok(Report {
            site: site.path().to_owned(),
            in_force: state.current,
            canary: state.canary.map(|canary| canary.version),
            canary_share: state.canary.map(|canary| canary.share),
            off: reason.is_some(),
            reason,
            versions: site.versions()?,
        })
    }

    /// Whether jobs are tuned.
    pub fn is_on(&self) -> bool {
        !self.off
    }

    /// Where a job's tables come from.
    pub fn sentence(&self) -> String {
        let site = self.site.display();
        let from = |number: u64| {
            let listed = self.versions.iter().find(|one| one.version == number);
            let about = listed.and_then(|one| one.about.as_ref());
            about.map_or(String::new(), |about| {
                format!(" ({}, from {})", when(about), about.database.display())
            })
        };
        let mut text = match self.in_force {
            0 => format!("{site}: no version is in force\n"),
            number => format!("{site}: version {number} is in force{}\n", from(number)),
        };
        if let Some((number, share)) = self.canary.zip(self.canary_share) {
            let share = percent(share);
            text += &format!(
                "{site}: version {number} is on trial in {share} of the jobs{}\n",
                from(number)
            );
        }
        if self.off {
            let reason = self.reason.as_deref().unwrap_or_default();
            let reason = match reason {
                "" => String::new(),
                reason => format!(": {reason}"),
            };
            text += &format!("{site}: switched off, jobs run untuned{reason}\n");
        }
        text
    }

    /// What is wrong with versions that jobs take.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        let taken = [Some(self.in_force), self.canary];
        let taken = self
            .versions
            .iter()
            .filter(move |one| taken.contains(&Some(one.version)));
        taken.filter_map(|one| one.problem.as_deref())
    }

    fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self.versions.iter().map(row).collect();
        let header = [
            "version",
            "jobs",
            "published",
            "by",
            "colltune",
            "from",
            "holds",
        ];
        let list = match rows.is_empty() {
            true => String::new(),
            false => table(&header, &rows),
        };
        list + &self.sentence()
    }
}

fn row(one: &VersionListed) -> Vec<String> {
    let jobs = match (one.in_force, one.canary) {
        (true, _) => "in force".to_owned(),
        (false, Some(share)) => percent(share),
        (false, None) => "none".to_owned(),
    };
    let mut row = vec![one.version.to_string(), jobs];
    match &one.about {
        Some(about) => row.extend([
            when(about),
            about.publisher.clone(),
            about.colltune_version.clone(),
            about.database.display().to_string(),
            held(about),
        ]),
        None => {
            let problem = one.problem.as_deref().unwrap_or_default();
            row.extend(["-", "-", "-", "-"].map(str::to_owned));
            row.push(format!("failed to {problem}"));
        }
    }
    row
}

fn held(about: &About) -> String {
    let libraries = about.libraries.iter();
    let names = libraries.map(|one| format!("{} generation {}", one.library, one.generation));
    names.collect::<Vec<_>>().join(", ")
}

fn when(about: &About) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(about.published_unix_ms);
    humantime::format_rfc3339_seconds(time).to_string()
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_percentage_or_a_number_below_one() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("12.5 %"), Ok(0.125));
        assert_eq!(share("0.05"), Ok(0.05));
        for text in ["0", "1", "5", "100%", "-1%", "x", "", "%", "nan"] {
            assert!(share(text).is_err(), "{text}");
        }
        assert_eq!(percent(0.05), "5 %");
        assert_eq!(percent(0.125), "12.5 %");
    }
}
