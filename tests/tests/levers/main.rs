//! `--lever`: a program's own options, drawn, learned, chosen and compared by the command.

mod asked;

mod nonblocking;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use colltune_tests::{Mpi, colltune, folder, program, target_folder};
use serde_json::Value;

struct Line {
    mpi: Mpi,
    program: &'static str,
    scratch: tempfile::TempDir,
}

impl Line {
    /// With the file to which its jobs add their arms; `None` where there is no Open MPI.
    fn new() -> Option<(Line, String)> {
        let line = Line::of(Mpi::OpenMpi.installed()?, "paused");
        let log = line.path("log").display().to_string();
        Some((line, log))
    }

    fn of(mpi: Mpi, program: &'static str) -> Line {
        Line {
            mpi,
            program,
            scratch: folder(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn run(&self, options: &[&str], last: &[&str]) -> Output {
        self.run_with(&[], options, last)
    }

    fn run_with(&self, variables: &[(&str, &str)], options: &[&str], last: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "300"]).arg(colltune());
        command.arg(options[0]).arg("--db").arg(self.path("db"));
        command
            .args(&options[1..])
            .arg("--")
            .arg(self.mpi.launcher());
        if self.mpi.is_openmpi() {
            command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
        }
        command
            .args(["-n", "2"])
            .arg(program(self.mpi, self.program));
        command.args(last);
        command
            .env("COLLTUNE_LIB", target_folder())
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .envs(self.mpi.variables())
            .envs(variables.iter().copied())
            .stdin(Stdio::null());
        command.output().expect("timeout starts")
    }

    /// The database's jobs.
    fn ledger(&self) -> Vec<Value> {
        let mut command = Command::new(colltune());
        command
            .args(["query", "--json", "--db"])
            .arg(self.path("db"));
        let output = command
            .arg("SELECT mode, levers, wall_s FROM runs")
            .output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Arms of the jobs that ran, in order.
    fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[track_caller]
fn exits(output: &Output, code: i32, parts: &[&str]) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
}

/// One arm makes the program sleep for a second, the other for none.
#[test]
fn the_fast_arm_is_learned_kept_in_the_ledger_run_and_compared() {
    let Some((line, log)) = Line::new() else {
        return;
    };
    let last = ["{pause}", &*log, "{braces}"];
    let lever = ["--lever", "pause=1000,0"];
    let tuned = line.run(
        &["tune", "--no-calibration", "-n", "3", lever[0], lever[1]],
        &last,
    );
    exits(
        &tuned,
        0,
        &[
            "Lever pause: 0 is chosen, ",
            "neither",
            "From now on: mpirun",
            "{braces}",
        ],
    );
    let ran = line.log();
    assert_eq!(ran[0], "1000", "the first arm is what runs today");
    let ledger = line.ledger();
    for job in &ledger {
        let arms = job["levers"].as_str().expect("a text");
        assert!(["pause=0", "pause=1000"].contains(&arms), "{job}");
        assert!(job["wall_s"].is_number(), "{job}");
    }
    assert_eq!(ledger.iter().filter(|job| job["mode"] == "bare").count(), 6);
    let exploits = line.run(&["run", "--mode", "exploit", lever[0], lever[1]], &last);
    exits(&exploits, 0, &["lever pause: 0 (chosen)"]);
    assert_eq!(line.log().last().unwrap(), "0");
    // Arms are known by name: another order, and one more.
    let other = ["run", "--mode", "exploit", "--lever", "pause=3000,1000,0"];
    exits(&line.run(&other, &last), 0, &["lever pause: "]);
    let compared = line.run(&["compare", "-n", "3", "--lever", "pause=0"], &last);
    exits(
        &compared,
        0,
        &["With the arm 0 of pause instead of 1000 the program is faster"],
    );
}

#[test]
fn a_job_that_fails_says_nothing_of_its_arm_and_a_lever_that_changes_nothing_is_refused() {
    let Some((line, log)) = Line::new() else {
        return;
    };
    let last = ["{pause}", &*log, "0"];
    let tuned = line.run(&["tune", "--no-calibration", "--lever", "pause=0,1"], &last);
    exits(&tuned, 1, &["exit code 7", "with pause=0"]);
    let ledger = line.ledger();
    assert!(ledger.iter().all(|job| job["levers"] == ""), "{ledger:?}");
    for (options, part) in [
        (
            &["tune", "--lever", "pase=0,1"][..],
            "write {pase} where its arm belongs",
        ),
        (&["tune", "--lever", "pause=0"], "nothing to choose"),
        (&["tune", "--lever", "pause=0,0"], "the arm 0 stands twice"),
        (&["run", "--lever", "pause"], "NAME=ARM"),
        (
            &["run", "--lever", "pause=1", "--lever", "pause=2"],
            "stands twice",
        ),
        (&["compare", "--lever", "pause=1"], "pause=FIRST,1"),
    ] {
        exits(&line.run(options, &last), 2, &[part]);
    }
}
