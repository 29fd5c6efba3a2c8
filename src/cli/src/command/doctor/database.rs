//! A tuning database: whether it can be opened, serves this machine, and takes what jobs record.

use std::path::Path;

use colltune_core::settings::Predicting;
use colltune_db::{Database, in_shell};

use super::findings::Findings;
use super::{generations, limits};

/// Of a database that is no site folder: what its settings, its folders and its generations are like.
pub fn check(report: &mut Findings, path: &Path) {
    let shown = path.display();
    let db = match Database::open(path) {
        Ok(db) => db,
        Err(_) if !path.exists() => {
            return report.warn(
                format_args!("database {shown}: not there yet"),
                format_args!(
                    "`colltune run --db {} -- mpirun ...` makes it",
                    in_shell(path)
                ),
            );
        }
        Err(error) => {
            return report.fail(
                format_args!("failed to {error}"),
                format_args!("`colltune db check --db {}` says more", in_shell(path)),
            );
        }
    };
    match db.settings() {
        Err(error) => report.fail(
            format_args!("database {shown}: failed to {error}"),
            "mend that line of colltune.toml, or take it out",
        ),
        Ok(settings) => {
            let machine = db.machine(&settings);
            report.ok(format!("database {shown}: serves the machine {machine}"));
            limits::tell(report, &settings);
            for (former, today) in db.former_keys() {
                report.warn(
                    format_args!("database {shown}: the setting {former} is called {today} now"),
                    format_args!("write {today} into colltune.toml in its place"),
                );
            }
            if settings.predictor == Predicting::Xgboost {
                match colltune_xgboost::XgBoost::load() {
                    Ok(xgboost) => report.ok(format!("predictor: {}", xgboost.describe())),
                    Err(reason) => report.fail(
                        format_args!("predictor: no XGBoost: {reason}"),
                        "`apt-get install libxgboost0`, name the library by COLLTUNE_XGBOOST, or take `predictor` out of \
                         colltune.toml",
                    ),
                }
            }
        }
    }
    match writable(&db.incoming()) {
        Ok(()) => report.ok(format!("database {shown}: jobs can record here")),
        Err(error) => report.warn(
            format_args!("database {shown}: jobs cannot record here ({error}); --mode exploit still works"),
            format_args!(
                "`chmod u+rwx {0}`, or its owner makes it a group's by `colltune db init --shared GROUP {shown}`",
                db.incoming().display()
            ),
        ),
    }
    match free_bytes(path) {
        Some(free) if free < 64 << 20 => {
            report.fail(
                format_args!(
                    "database {shown}: {} MiB free; traces need room",
                    free >> 20
                ),
                format_args!("`colltune db prune --yes --db {shown}` removes what is old"),
            );
        }
        Some(free) => report.ok(format!("database {shown}: {} MiB free", free >> 20)),
        None => {}
    }
    generations::check(report, &db);
}

fn writable(folder: &Path) -> std::io::Result<()> {
    let file = folder.join(format!(".doctor-{}", std::process::id()));
    std::fs::write(&file, "")?;
    std::fs::remove_file(&file)
}

/// Bytes that are free for this user where `path` is.
fn free_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_space_of_a_folder_is_read() {
        assert!(free_bytes(&std::env::temp_dir()).is_some_and(|free| free > 0));
    }
}
