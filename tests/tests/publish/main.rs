//! What an administrator publishes in a site folder, and what real jobs make of it.

#[path = "../exported_tables/database.rs"]
mod database;

mod winners;

mod jobs;
mod switch;
mod trouble;

mod modules;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use colltune_core::collective::Collective;
use colltune_core::space::Range;
use colltune_tests::{
    Job, LoggedCall, Mpi, Outcome, assert_ranks_agree, colltune, folder, job, read_log,
    target_folder,
};
use serde_json::Value;

const RANKS: u32 = 2;
/// Choices that any call takes, by which versions are distinguished.
const FIRST: &str = "p2p:ring";
const SECOND: &str = "p2p:recursive_doubling";

/// A site folder, and what it is published from.
struct Site {
    scratch: tempfile::TempDir,
    mpi: Mpi,
    /// The publisher's.
    umask: &'static str,
}

impl Site {
    fn new(mpi: Mpi) -> Site {
        let scratch = folder();
        Site {
            scratch,
            mpi,
            umask: "022",
        }
    }

    /// One with a version in force whose choice is [`FIRST`].
    fn published(mpi: Mpi) -> Site {
        let site = Site::new(mpi);
        site.publish(FIRST, &[]);
        site
    }

    fn path(&self) -> PathBuf {
        self.scratch.path().join("site")
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    /// Publishes a database in which `best` is the choice for allreduces below 1 MiB.
    fn publish(&self, best: &'static str, options: &[&str]) -> String {
        let choices = [(0, best), (1 << 20, "native:recursive_doubling")];
        let any = Range { lo: 1, hi: None };
        let winners: winners::Winners = &[(Collective::Allreduce, &choices)];
        let folder = folder();
        let db = database::database(self.mpi.library(), &[(any, winners)], folder.path());
        let db = db.to_string_lossy();
        self.tells(&[&["--db", &db], options].concat())
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let line = "umask \"$0\" && exec timeout -k 5 120 \"$@\"";
        command.args(["-c", line, self.umask]).arg(colltune());
        command.arg("publish").arg(self.path()).args(options);
        command
            .env_remove("COLLTUNE_DB")
            .env("COLLTUNE_LIB", target_folder());
        command
    }

    /// What `colltune publish` prints.
    #[track_caller]
    fn tells(&self, options: &[&str]) -> String {
        let output = self.command(options).output().expect("timeout starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{options:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn listed(&self) -> Value {
        serde_json::from_str(&self.tells(&["--list", "--json"])).unwrap()
    }

    /// A job that has the site folder for its database, as module files say it.
    fn job(&self) -> Job {
        let job = job(RANKS).mpi(self.mpi).preload();
        job.db(self.path()).mode("exploit").seed(1)
    }

    /// What the job's allreduces ran behind the set-up, and its outcome.
    #[track_caller]
    fn ran(&self, job: Job) -> (BTreeSet<String>, Outcome) {
        let (variants, outcome) = logged(job, |job| job.run("frequent", &["60", "1"]));
        outcome.succeeds().prints("ok\n");
        (variants, outcome)
    }

    #[track_caller]
    fn runs(&self, job: Job, expected: &str) {
        let (variants, outcome) = self.ran(job);
        outcome.is_silent();
        assert_eq!(variants, BTreeSet::from([expected.to_owned()]));
    }

    /// A job that runs as without the tuner, and says why in one sentence.
    #[track_caller]
    fn runs_untuned(&self, job: Job, parts: &[&str]) {
        let (variants, outcome) = self.ran(job);
        outcome.says(parts).says(&["untuned"]);
        assert!(variants.is_empty(), "{variants:?}");
    }
}

/// Runs a job; which variants its allreduces of 8 bytes ran that fell into a cell. All ranks ran the same.
#[track_caller]
fn logged(job: Job, run: impl FnOnce(Job) -> Outcome) -> (BTreeSet<String>, Outcome) {
    let log = folder();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(log.path(), open).unwrap();
    let outcome = run(job.log(log.path()));
    let calls = calls(log.path());
    let reduced = calls
        .into_iter()
        .filter(|call| call.collective == "allreduce" && call.bytes == 8);
    let variants = reduced.filter(|call| call.cell.is_some() && !call.sampled);
    (variants.map(|call| call.variant).collect(), outcome)
}

/// The calls of rank 0; none where nothing was logged.
fn calls(log: &Path) -> Vec<LoggedCall> {
    if !log.join("rank-0.jsonl").exists() {
        return Vec::new();
    }
    let mut log = read_log(log, RANKS);
    assert_ranks_agree(&log);
    log.swap_remove(0)
}
