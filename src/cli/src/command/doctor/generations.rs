//! What a database has of each library: recorded, trained, readable, refused.

use std::ffi::OsStr;

use colltune_db::{Database, Generation};

use super::findings::Findings;

/// A line for each library, and one where traces were refused.
pub fn check(report: &mut Findings, db: &Database) {
    match db.keys() {
        Err(error) => report.fail(
            format_args!("failed to {error}"),
            format_args!("`colltune db check --db {}` says more", db.in_shell()),
        ),
        Ok(libraries) => {
            libraries
                .into_iter()
                .for_each(|library| match Generation::load(db, &library) {
                    Ok(generation) if generation.number == 0 => {
                        report.warn(
                            format_args!("{library}: recorded, not trained"),
                            format_args!("`colltune train --db {}` learns from it", db.in_shell()),
                        );
                    }
                    Ok(generation) => report.ok(format!(
                        "{library}: generation {} is readable",
                        generation.number
                    )),
                    Err(error) => report.fail(
                        format_args!("{library}: failed to {error}"),
                        format_args!(
                            "`colltune train --force --db {}` publishes a new one",
                            db.in_shell()
                        ),
                    ),
                })
        }
    }
    let refused = std::fs::read_dir(db.quarantine()).map_or(0, |entries| {
        entries
            .flatten()
            .filter(|entry| entry.path().extension() == Some(OsStr::new("reason")))
            .count()
    });
    if refused > 0 {
        report.warn(
            format_args!("{refused} refused traces in {}", db.quarantine().display()),
            format_args!(
                "`colltune db show --quarantine --db {0}` says why, `colltune db restore` brings them back",
                db.root().display()
            ),
        );
    }
}
