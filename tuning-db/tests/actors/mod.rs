//! Users of a shared database, played by root: user and group numbers need no accounts.
#![allow(dead_code, reason = "each file of tests uses some of it")]

#[path = "../runs/mod.rs"]
mod runs;

pub use runs::{small, trained};

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use colltune_db::test_support::{LIBRARY, Run};
use colltune_db::{Database, partition};
use tempfile::TempDir;

/// The group that shares a database.
pub const GROUP: u32 = 20_100;
/// Members: who trains, who runs jobs, and who means ill.
pub const ALICE: u32 = 20_001;
pub const BOB: u32 = 20_002;
pub const MALLORY: u32 = 20_003;

/// Whether tests can play users; where they cannot, the test is counted as skipped.
pub fn can_play() -> bool {
    rustix::process::geteuid().is_root()
        || colltune_tests::skip("needs root, to play other users").unwrap_or(false)
}

/// A database as groups had them before there was anything better: root's, and all members write everywhere.
pub fn open_to_all() -> (TempDir, Database) {
    let (folder, db) = private();
    for path in [folder.path().to_owned(), db.incoming()] {
        std::os::unix::fs::chown(&path, Some(0), Some(GROUP)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o2775)).unwrap();
    }
    (folder, db)
}

/// A database of root's, into which others can look.
pub fn private() -> (TempDir, Database) {
    let (folder, db) = runs::database("");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    (folder, db)
}

/// Runs a line of shell as a member of the group, in the database.
pub fn shell(db: &Database, user: u32, script: &str) -> Output {
    Command::new("sh")
        .args(["-c", script])
        .current_dir(db.root())
        .uid(user)
        .gid(GROUP)
        .output()
        .unwrap()
}

/// As [`shell`], for what must work.
pub fn does(db: &Database, user: u32, script: &str) {
    let output = shell(db, user, script);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "user {user}: {script}: {said}");
}

/// Puts the traces of a small job into `incoming/`, as a user's job does.
pub fn records(db: &Database, user: u32, job: &str) {
    records_of(db, user, &small(job));
}

pub fn records_of(db: &Database, user: u32, run: &Run) {
    for (rank, bytes) in run.traces() {
        put(db, user, &format!("{}.{rank}.trace", run.job), &bytes);
    }
}

/// Puts a file of a user's into `incoming/`.
pub fn put(db: &Database, user: u32, name: &str, bytes: &[u8]) {
    let draft = tempfile::NamedTempFile::new().unwrap();
    fs::write(draft.path(), bytes).unwrap();
    fs::set_permissions(draft.path(), fs::Permissions::from_mode(0o644)).unwrap();
    does(
        db,
        user,
        &format!(
            "umask 022; cp '{}' 'incoming/{name}'",
            draft.path().display()
        ),
    );
}

/// The jobs in the data set, each with its records.
pub fn held(db: &Database) -> Vec<partition::Held> {
    let mut all = Vec::new();
    for path in partition::list(&db.data(LIBRARY)).unwrap() {
        all.extend(partition::held(&path).unwrap());
    }
    all.sort();
    all
}

pub fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

/// A user's file that no database may change, with its folder.
pub struct Precious {
    folder: TempDir,
}

const CONTENT: &str = "precious\n";

impl Precious {
    pub fn new() -> Precious {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let precious = Precious { folder };
        fs::write(precious.path(), CONTENT).unwrap();
        fs::set_permissions(precious.path(), fs::Permissions::from_mode(0o600)).unwrap();
        precious
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("file")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Nothing was written to it, and nothing beside it.
    pub fn is_intact(&self) {
        assert_eq!(fs::read_to_string(self.path()).unwrap(), CONTENT);
        assert_eq!(names(self.folder.path()), ["file".to_owned()].into());
    }
}
