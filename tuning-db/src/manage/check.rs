//! What is wrong with a database, whom it stops, and the remedy.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde::Serialize;

use crate::database::{Database, DbError, LOCK};
use crate::dropped::Dropped;
use crate::evidence::Store;
use crate::folder::Folder;
use crate::generation::{self, Generation};
use crate::manage::list;
use crate::owners::Owners;
use crate::partition;
use crate::runs;
use crate::share::{Shared, Trainers};
use crate::table::Table;
use crate::users;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Fine,
    /// Worth knowing; nothing stops.
    Note,
    /// Something does not work, or a user can do more than he should.
    Fault,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub level: Level,
    pub says: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checked {
    pub findings: Vec<Finding>,
}

impl Checked {
    fn add(&mut self, level: Level, says: impl Into<String>) {
        let says = says.into();
        // One file is read for each library, and again for what hangs on it.
        let is_told = |told: &Finding| says.starts_with(&told.says);
        if !self.findings.iter().any(is_told) {
            self.findings.push(Finding { level, says });
        }
    }

    fn judge<T>(&mut self, result: Result<T, impl std::fmt::Display>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(Level::Fault, format!("failed to {error}"));
                None
            }
        }
    }

    pub fn has_faults(&self) -> bool {
        self.findings.iter().any(|one| one.level == Level::Fault)
    }
}

/// Looks at everything and changes nothing.
///
/// Errors: `Io` for a database that cannot be opened at all.
pub fn check(db: &Database) -> Result<Checked, DbError> {
    let mut checked = Checked::default();
    let root = db.folder(db.root())?;
    let shared = rights(db, &root, &mut checked);
    if let Some(settings) = checked.judge(db.settings()) {
        let machine = db.machine(&settings);
        checked.add(Level::Fine, format!("it serves the machine {machine}"));
    }
    let mut warnings = Vec::new();
    checked.judge(Owners::of(db, &mut warnings));
    checked.judge(Dropped::of(db));
    let keys = checked.judge(db.keys()).unwrap_or_default();
    for key in &keys {
        library(db, key, &mut warnings, &mut checked);
    }
    runs::times(db, &mut warnings);
    waiting(db, &mut checked);
    if let Some(refused) = checked
        .judge(list::refused(db))
        .filter(|all| !all.is_empty())
    {
        let n = refused.len();
        checked.add(
            Level::Note,
            format!(
                "{n} files are in quarantine (`colltune db show --quarantine` says why, `restore` brings them back, \
                 `prune` removes them)"
            ),
        );
    }
    warnings.sort_unstable();
    for warning in warnings {
        checked.add(Level::Fault, warning);
    }
    if shared.is_none() && !checked.has_faults() {
        checked.add(Level::Fine, "whatever it holds can be read");
    }
    Ok(checked)
}

/// Who may do what, and where that is not as `init` makes it.
fn rights(db: &Database, root: &Folder, checked: &mut Checked) -> Option<Shared> {
    let found = checked.judge(
        root.metadata()
            .map_err(|error| format!("look at it: {error}")),
    )?;
    let owner = users::user(found.uid());
    if found.mode() & 0o002 != 0 {
        checked.add(
            Level::Fault,
            format!(
                "everybody on the machine may write to {}: `colltune db init --shared GROUP {0}` says who may",
                db.root().display()
            ),
        );
    }
    let shared = Shared::of(root).ok().flatten();
    let Some(shared) = shared else {
        checked.add(Level::Fine, format!("it is {owner}'s alone"));
        return None;
    };
    let group = users::group_name(shared.group).unwrap_or_else(|| shared.group.to_string());
    let trainers = match shared.trainers {
        Trainers::Owner => format!("{owner} trains"),
        Trainers::Members => "every member trains".to_owned(),
    };
    checked.add(
        Level::Fine,
        format!("it is for group {group}: members record and exploit, {trainers}"),
    );
    let mut wrong = Vec::new();
    differing(root, shared, 0, &mut wrong);
    if !wrong.is_empty() {
        let first = wrong.iter().take(3).map(String::as_str);
        let first: Vec<&str> = first.collect();
        checked.add(
            Level::Fault,
            format!(
                "{} folders and files have other rights than their group needs: {}{} (`colltune db init --shared \
                 {group} {}` by {owner} sets them)",
                wrong.len(),
                first.join("; "),
                if wrong.len() > 3 { "; ..." } else { "" },
                db.root().display()
            ),
        );
    }
    Some(shared)
}

/// What has other rights than it should have, below a folder.
fn differing(folder: &Folder, shared: Shared, depth: u32, wrong: &mut Vec<String>) {
    const DEPTH_MAX: u32 = 5;
    let Ok(names) = folder.names() else {
        wrong.push(format!("{}: it cannot be read", folder.path().display()));
        return;
    };
    for name in names {
        let path = folder.path().join(&name);
        let is_incoming = depth == 0 && name == "incoming";
        let Ok(found) = path.symlink_metadata() else {
            continue;
        };
        let mode = found.permissions().mode() & 0o7777;
        let wanted = match () {
            () if is_incoming => shared.incoming_mode(),
            () if depth == 0 && name == LOCK => shared.lock_mode(),
            () if found.is_dir() => shared.folder_mode(),
            () => shared.file_mode(),
        };
        // What lies in quarantine is what others made, and is as they made it.
        let is_quarantine = depth == 0 && name == "quarantine";
        if found.is_symlink() || mode != wanted || found.gid() != shared.group {
            wrong.push(format!(
                "{} has mode {mode:o} of group {}, not {wanted:o} of {}",
                path.display(),
                found.gid(),
                shared.group
            ));
        }
        if found.is_dir() && !is_incoming && !is_quarantine && depth < DEPTH_MAX {
            match folder.inside(&name) {
                Ok(inside) => differing(&inside, shared, depth + 1, wrong),
                Err(error) => wrong.push(format!("{}: {error}", path.display())),
            }
        }
    }
}

/// Whether all that is there of a library can be read.
fn library(
    db: &Database,
    key: &colltune_core::context::DataKey,
    warnings: &mut Vec<String>,
    checked: &mut Checked,
) {
    let mut raw = 0;
    for path in checked
        .judge(partition::list(&db.data(key)))
        .unwrap_or_default()
    {
        raw += 1;
        if let Err(error) = partition::read(&path) {
            let way_out = "remove it: what was learned from it stays";
            checked.add(Level::Fault, format!("failed to {error} ({way_out})"));
        }
    }
    let Some(store) = checked.judge(Store::open(db, key, warnings)) else {
        return;
    };
    for (path, _) in store.files() {
        whole(path, checked);
    }
    let (runs, counting) = (store.all_runs().count(), store.runs().count());
    let train = format!("`colltune train --db {}` makes the next one", db.in_shell());
    let current = generation::current(db, key).unwrap_or_else(|error| {
        checked.add(Level::Fault, format!("failed to {error} ({train})"));
        0
    });
    let numbers = checked
        .judge(generation::numbers(db, key))
        .unwrap_or_default();
    let mut readable = Vec::new();
    for &number in &numbers {
        match Generation::load_number(db, key.clone(), number) {
            Ok(_) => readable.push(number),
            Err(error) if current == number => {
                let before = readable.last().map_or(String::new(), |before| {
                    format!(", `colltune db rollback --to {before}` takes the one before")
                });
                checked.add(Level::Fault, format!("failed to {error} ({train}{before})"));
            }
            Err(error) => checked.add(Level::Note, format!("failed to {error}")),
        }
    }
    if current > 0 {
        let says = format!(
            "{key}: {counting} of {runs} runs count, {raw} raw partitions, generation {current} in force, {} can be read",
            readable.len()
        );
        checked.add(Level::Fine, says);
        if !numbers.contains(&current) {
            let says = format!("{key}: generation {current} is not there ({train})");
            checked.add(Level::Fault, says);
        }
    }
}

/// Whether every column of a table can be read.
fn whole(path: &Path, checked: &mut Checked) {
    let table = Table::open(path).and_then(|table| table.ints("run").map(|_| ()));
    if let Err(error) = table {
        checked.add(
            Level::Fault,
            format!("failed to read {}: {error}", path.display()),
        );
    }
}

/// What waits in `incoming/` that no training will take.
fn waiting(db: &Database, checked: &mut Checked) {
    if !db.incoming().exists() {
        checked.add(Level::Note, "incoming/ is not there: the next job makes it");
        return;
    }
    let Some(incoming) = checked.judge(db.folder(&db.incoming())) else {
        return;
    };
    let names = incoming.names().unwrap_or_default();
    let is_unreadable = |name: &&std::ffi::OsString| {
        let read = incoming.read(OsStr::new(name));
        read.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let unreadable = names.iter().filter(is_unreadable).count();
    checked.add(
        Level::Fine,
        format!(
            "{} files wait for the next training",
            names.len() - unreadable
        ),
    );
    if unreadable > 0 {
        checked.add(
            Level::Note,
            format!("{unreadable} files of incoming/ cannot be read by who asks now"),
        );
    }
}
