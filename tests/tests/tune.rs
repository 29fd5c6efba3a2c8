//! `colltune compare` and `colltune tune`: which jobs they run, and how they end.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_tests::{Mpi, colltune, folder, on_each_library, program, target_folder, tool};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A line whose jobs note that they ran; see `tests/mpi/trial.c`.
struct Line {
    mpi: Mpi,
    scratch: tempfile::TempDir,
    calls: u32,
    fails_at: u32,
    waits_at: u32,
    /// Whether its default sleeps in each call.
    is_slow: bool,
}

impl Line {
    fn new(mpi: Mpi, calls: u32) -> Line {
        let scratch = folder();
        std::fs::create_dir(scratch.path().join("db")).unwrap();
        Line {
            mpi,
            scratch,
            calls,
            fails_at: 0,
            waits_at: 0,
            is_slow: false,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn words(&self) -> Vec<OsString> {
        let mut words = vec![OsString::from(self.mpi.launcher())];
        if self.mpi.is_openmpi() {
            words.extend(
                ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"].map(OsString::from),
            );
        }
        words.extend(["-n", "2"].map(OsString::from));
        if self.is_slow {
            let tool = tool(self.mpi, "slow_tool");
            let preload = format!("LD_PRELOAD={}", tool.display());
            words.extend(["env", &preload, "SLOW=asleep"].map(OsString::from));
        }
        words.push(program(self.mpi, "trial").into());
        words.push(self.path("log").into());
        let numbers = [self.calls, self.fails_at, self.waits_at];
        words.extend(numbers.map(|number| number.to_string().into()));
        words.push(self.path("pipe").into());
        words
    }

    /// The command with these options on this line, ended after some minutes with the exit code 124.
    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["--foreground", "-k", "5", "600"])
            .arg(colltune());
        command.arg(options[0]).arg("--db").arg(self.path("db"));
        command.args(&options[1..]).arg("--").args(self.words());
        command
            .env("COLLTUNE_LIB", target_folder())
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .envs(self.mpi.variables())
            .env_remove("COLLTUNE_MODE")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, options: &[&str]) -> Said {
        Said::of(self.command(options).output().expect("timeout starts"))
    }

    /// Which jobs ran, in order.
    fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// What a command printed, and its exit code.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Said {
    fn of(output: Output) -> Said {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    #[track_caller]
    fn exits(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for part in parts {
            let holds = self.stdout.contains(part) || self.stderr.contains(part);
            assert!(holds, "{part:?} is missing: {self:#?}");
        }
    }
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo starts").success());
}

on_each_library! {
    fn a_comparison_runs_both_sides_equally_often_in_drawn_order_and_says_every_time(mpi: Mpi) {
        let line = Line::new(mpi, 20);
        let said = line.run(&["compare", "-n", "3", "--seed", "5", "--json"]);
        said.exits(0, &[]);
        let found: Value = serde_json::from_str(&said.stdout).expect("nothing but JSON on stdout");
        let pairs = found["pairs"].as_array().unwrap();
        assert_eq!((found["schema"].as_u64(), pairs.len()), (Some(1), 3));
        let log = line.log();
        assert_eq!(log.len(), 7, "{log:?}");
        // One job first that only looks where the time goes.
        assert_eq!(log[0], "with");
        for (pair, ran) in pairs.iter().zip(log[1..].chunks(2)) {
            assert_eq!(pair["first"], *ran[0]);
            assert_ne!(ran[0], ran[1]);
            assert!(pair["without_s"].as_f64().unwrap() > 0.0 && pair["with_s"].as_f64().unwrap() > 0.0);
        }
        let ratio = |name: &str| found["ratio"][name].as_f64().unwrap();
        assert!(ratio("low") < ratio("value") && ratio("value") < ratio("high"));
        assert!(["faster", "slower", "no_difference"].contains(&found["verdict"].as_str().unwrap()));
        assert!(found["detectable"].as_f64().unwrap() > 1.0);
        for side in ["account_without", "account_with"] {
            assert!(found[side]["collectives_s"].as_f64().unwrap() > 0.0, "{found}");
        }
    }

    fn runs_are_prepared_and_warmed_up_and_go_on_until_the_interval_is_narrow(mpi: Mpi) {
        let line = Line::new(mpi, 20);
        let prepared = line.path("prepared");
        let prepare = format!("echo x >> {}", prepared.display());
        // The interval of one pair has no end.
        let options = ["compare", "-n", "1", "--warmup", "2", "--until", "100%", "--json", "--prepare", &prepare];
        let said = line.run(&options);
        said.exits(0, &[]);
        let found: Value = serde_json::from_str(&said.stdout).unwrap();
        let pairs = found["pairs"].as_array().unwrap().len();
        // Two pairs may be far apart, too.
        let half = |name: &str| found["ratio"][name].as_f64().unwrap();
        assert!((half("high") - half("low")) / (2.0 * half("value")) <= 1.0 && pairs >= 2);
        let log = line.log();
        assert_eq!(log.len(), 2 + 1 + 2 * pairs, "{log:?}");
        assert_eq!(log[..2], ["without", "without"]);
        let n_prepared = std::fs::read_to_string(&prepared).unwrap().lines().count();
        assert_eq!(n_prepared, log.len(), "once before each run");
        let said = line.run(&["compare", "-n", "2", "--prepare", "echo no mesh >&2; exit 3"]);
        said.exits(1, &["prepare a run by `echo no mesh >&2; exit 3`", "exit code 3", "no mesh"]);
        let said = line.run(&["compare", "-n", "2", "--prepare", "sleep 60", "--timeout", "1s"]);
        said.exits(124, &["what prepares it ran for more than 1s"]);
        assert_eq!(line.log().len(), log.len(), "nothing ran unprepared");
    }

    fn what_trying_variants_costs_is_compared_too_and_leaves_its_records(mpi: Mpi) {
        let runs_recorded = |options: &[&str]| {
            let line = Line::new(mpi, 20);
            let said = line.run(&[&["compare", "-n", "2", "--json"], options].concat());
            said.exits(0, &[]);
            let found: Value = serde_json::from_str(&said.stdout).expect("nothing but JSON on stdout");
            let left = std::fs::read_dir(line.path("db").join("incoming")).unwrap();
            let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let recorded = |name: &String| name.ends_with(".0.trace");
            (found["mode"].clone(), names.filter(recorded).count())
        };
        // One job beside the pairs only looks where the time goes, and records.
        assert_eq!(runs_recorded(&[]), (Value::from("exploit"), 1));
        assert_eq!(runs_recorded(&["--mode", "explore"]), (Value::from("explore"), 3));
        assert_eq!(runs_recorded(&["--mode", "off"]), (Value::from("off"), 1));
    }

    fn a_program_without_collectives_is_told_that_nothing_can_be_gained(mpi: Mpi) {
        let line = Line::new(mpi, 0);
        let said = line.run(&["tune"]);
        said.exits(0, &["nothing to tune", "Run the program as before"]);
        assert!((1..=3).contains(&line.log().len()), "{:?}", line.log());
        // A program that asks about levers gets their arms, too.
        let levers = r#"{"schema":2,"levers":[{"program":"trial","library":"LIBRARY","lever":"order","class":0,"nodes":1,"ppn":2,
            "ranks":2,"best":"a","epochs":9,"is_settled":true,"arms":[{"name":"a","probability":1.0,"gain":[1.0,1.0,1.0]}]}]}"#;
        let levers = levers.replace("LIBRARY", &mpi.library().to_string());
        std::fs::write(line.path("db").join("levers.json"), &levers).unwrap();
        let said = line.run(&["tune", "--json"]);
        let told: Value = serde_json::from_str(&said.stdout).expect("nothing but JSON on stdout");
        let levers: Value = serde_json::from_str(&levers).unwrap();
        assert_eq!((&told["end"], &told["asked"]), (&"nothing_to_gain".into(), &levers["levers"]), "{said:?}");
    }
}

/// Jobs that cannot be learned from: the first one ends the tuning, without a verdict.
#[test]
fn a_first_job_that_leaves_nothing_to_learn_from_ends_a_tuning() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let line = Line::new(mpi, 20);
    let tuned = |prefix: &[&str], words: &[&str]| {
        let command = line.command(&["tune"]);
        let mut whole = Command::new("env");
        whole.args(prefix).arg(command.get_program());
        let own = command.get_args().take_while(|word| *word != "--");
        whole.args(own).arg("--").args(words).stdin(Stdio::null());
        let variables = command.get_envs();
        whole.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        let said = Said::of(whole.output().expect("env starts"));
        said.exits(1, &[]);
        for verdict in ["SLOWER", "aster", "no difference", "nothing to tune"] {
            assert!(!said.stdout.contains(verdict), "{verdict}: {said:#?}");
        }
        said
    };
    let launcher = mpi.launcher();
    let words = [&launcher, "--oversubscribe", "-n", "2"];
    // Seen beforehand, and only by what the job left.
    let said = tuned(&[], &[&words[..], &["true"]].concat());
    said.exits(1, &["needs an MPI library that can be seen"]);
    let ran = line.path("ran");
    let script = format!("echo >> {}", ran.display());
    let said = tuned(&[], &[&words[..], &["sh", "-c", &script]].concat());
    said.exits(1, &["no rank of the first job ran the tuner", "doctor"]);
    let n_ran = std::fs::read_to_string(&ran).unwrap().lines().count();
    assert_eq!(n_ran, 2, "one job of two processes");
    // Records have no room.
    if !colltune_tests::is_root() {
        return;
    }
    let small = "mount -t tmpfs -o size=400k tmpfs \"$0\" && exec \"$@\"";
    let db = line.path("db").to_string_lossy().into_owned();
    let trial = program(mpi, "trial").to_string_lossy().into_owned();
    let log = line.path("log").to_string_lossy().into_owned();
    let program = [&words[..], &[&trial, &log, "20", "0", "0", "none"]].concat();
    let said = tuned(&["unshare", "-m", "sh", "-c", small, &db], &program);
    said.exits(1, &["failed to write traces to", "--strict refuses"]);
}

#[test]
fn the_third_run_that_fails_ends_a_comparison_with_its_code_and_its_words() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let line = Line {
        fails_at: 3,
        ..Line::new(mpi, 1)
    };
    let said = line.run(&["compare"]);
    said.exits(
        1,
        &[
            "failed to finish a run",
            "exit code 7",
            "the mesh is tangled",
        ],
    );
    assert_eq!(line.log().len(), 3);
    assert!(said.stdout.is_empty(), "{said:?}");
    // A tuning alike; what was done before counts. One job shows by so many calls that there is something to gain.
    let line = Line {
        fails_at: 3,
        ..Line::new(mpi, 100_000)
    };
    let said = line.run(&["tune", "--no-calibration", "--anyway"]);
    said.exits(
        1,
        &["that tries variants", "exit code 7", "the mesh is tangled"],
    );
    assert_eq!(line.log().len(), 3);
}

#[test]
fn a_run_that_takes_too_long_is_ended_and_a_missing_launcher_is_named() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let line = Line {
        waits_at: 1,
        ..Line::new(mpi, 1)
    };
    pipe(&line.path("pipe"));
    let said = line.run(&["compare", "--timeout", "2s"]);
    said.exits(124, &["--timeout"]);
    assert_eq!(line.log().len(), 1);
    for command in ["compare", "tune"] {
        let output = Command::new(colltune())
            .args([command, "--db"])
            .arg(line.path("db"))
            .args(["--", "mpirun.nowhere", "-n", "2", "./solver"])
            .output();
        Said::of(output.unwrap()).exits(1, &["mpirun.nowhere", "no such program"]);
    }
}

#[test]
fn a_budget_that_is_too_short_says_so_and_nothing_is_lost() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let line = Line::new(mpi, 50);
    line.run(&["tune", "--no-calibration", "--anyway", "--budget", "1s"])
        .exits(3, &["too short", "give --budget", "is kept"]);
    assert_eq!(line.log().len(), 1);
    line.run(&["tune", "--no-calibration", "--anyway", "--budget", "1s"])
        .exits(3, &["Going on where it was", "too short"]);
    assert_eq!(line.log().len(), 1, "what is known is not measured again");
}

#[test]
fn so_many_jobs_as_are_allowed_end_with_a_comparison() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let line = Line::new(mpi, 300);
    let tune = |most: usize, batch: u32| {
        let before = line.log().len();
        let bounds = format!("--batch {batch} --max-jobs {most}");
        let options: Vec<&str> = ["tune", "--no-calibration", "--anyway"]
            .into_iter()
            .chain(bounds.split(' '))
            .collect();
        let said = line.run(&options);
        let n_jobs = line.log().len() - before;
        assert!(n_jobs <= most, "{n_jobs} jobs of {most}: {said:?}");
        (said, n_jobs)
    };
    // Three jobs on each side, one that explores, and at least one that looks.
    let (said, n_jobs) = tune(7, 1);
    said.exits(3, &["--max-jobs 7 is too few: 7 jobs", "is kept"]);
    assert!((1..=3).contains(&n_jobs), "{n_jobs}");
    let (said, n_jobs) = tune(12, 1);
    said.exits(0, &["not stable yet", "3 runs each", "It cost"]);
    assert!(n_jobs >= 7, "{n_jobs}");
    // The same line again has as many, and begins anew; six of a batch want a second job with the default among them.
    let (said, n_jobs) = tune(14, 6);
    said.exits(0, &["not stable yet", "It cost"]);
    assert!(n_jobs >= 6, "{n_jobs}");
}

#[test]
fn an_interrupted_tuning_ends_its_job_and_goes_on_where_it_was() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    // One job with the default, then three that explore, a training, and the second of the second batch.
    let line = Line {
        waits_at: 6,
        ..Line::new(mpi, 300)
    };
    pipe(&line.path("pipe"));
    // What there is to gain is not the question here.
    let options = [
        "tune",
        "--no-calibration",
        "--anyway",
        "--batch",
        "3",
        "-n",
        "3",
    ];
    let mut command = line.command(&options);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The sixth job waits at the pipe, behind its line in the log.
    while line.log().len() < 6 && child.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(20));
    }
    interrupt(&child);
    let said = Said::of(child.wait_with_output().unwrap());
    said.exits(130, &["interrupted", "is kept", "run the same"]);
    assert_eq!(line.log().len(), 6);
    let said = line.run(&options);
    said.exits(
        0,
        &[
            "Going on where it was, after 5 jobs, 4 of which tried variants.",
            "what is chosen",
            "It cost",
        ],
    );
    // The job that was ended is run again, and nothing else is.
    assert!(!said.stderr.contains("After 3 jobs"), "{said:?}");
    assert!(line.log().len() >= 6 + 8 + 6);
}

/// The default takes ten milliseconds more than what else there is to choose.
#[test]
fn a_tuning_of_a_program_with_a_slow_default_says_what_it_gained_and_how_to_go_on() {
    const CHOSEN: &str = "native:recursive_doubling";
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let line = Line {
        is_slow: true,
        ..Line::new(mpi, 150)
    };
    // One alone, so that no choice changes between others that are equally fast.
    let natives = catalogue::variants(mpi.library(), Collective::Allreduce).into_iter();
    let natives = natives.map(|variant| variant.name.to_string());
    let others: Vec<String> = natives
        .filter(|name| name.starts_with("native:") && name != CHOSEN)
        .collect();
    let decided = format!("families = [\"native\"]\nexclude = {others:?}\n");
    std::fs::write(line.path("db").join("colltune.toml"), decided).unwrap();
    let said = line.run(&["tune", "--no-calibration", "-n", "3"]);
    said.exits(
        0,
        &[
            "what is chosen is stable",
            "With colltune the program is faster: speed-up ",
            "It cost",
            "Tables for jobs without colltune (",
            "From now on: colltune run --db ",
        ],
    );
    // The comparison is the end, and its jobs without colltune are the only ones.
    let log = line.log();
    let bare = log.iter().filter(|side| *side == "without").count();
    assert_eq!(bare, 3, "{log:?}");
}

/// The default takes ten milliseconds more in each call, and yet the program is slower with what is faster: it sleeps in one.
#[test]
fn a_program_that_is_slower_with_what_was_chosen_has_the_last_word() {
    const CHOSEN: &str = "native:recursive_doubling";
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let line = Line {
        is_slow: true,
        ..Line::new(mpi, 120)
    };
    let natives = catalogue::variants(mpi.library(), Collective::Allreduce).into_iter();
    let natives = natives.map(|variant| variant.name.to_string());
    let others: Vec<String> = natives
        .filter(|name| name.starts_with("native:") && name != CHOSEN)
        .collect();
    let decided = format!("families = [\"native\"]\nexclude = {others:?}\n");
    std::fs::write(line.path("db").join("colltune.toml"), decided).unwrap();
    let run = |options: &[&str]| {
        let mut command = line.command(options);
        Said::of(command.env("TRIAL_SLEEPS_IN", "exploit").output().unwrap())
    };
    let said = run(&["tune", "--no-calibration", "--batch", "5", "-n", "3"]);
    said.exits(
        0,
        &[
            "With colltune the program is SLOWER",
            "withdrawn: generation",
            "No tables were written.",
            "Run the program as before",
        ],
    );
    assert!(!said.stdout.contains("colltune run --db"), "{said:#?}");
    assert!(!line.path("db").join("tables").exists());
    // What is in force for it is the default again, and the report says what the program said.
    let told = Command::new(colltune())
        .args(["report", "--json", "--db"])
        .arg(line.path("db"))
        .output()
        .unwrap();
    let told: Value = serde_json::from_slice(&told.stdout).expect("nothing but JSON on stdout");
    let head = &told["head"];
    assert_eq!(head["cells_tuned"], 0, "{head}");
    let verdict = &head["verdicts"][0];
    assert!(verdict["high"].as_f64().unwrap() < 1.0, "{verdict}");
    assert_eq!(verdict["program"], "trial");
    assert_eq!(verdict["choices"][0]["variant"], CHOSEN);
    assert_eq!(head["runs"]["by_mode"]["bare"], 3, "{head}");
    // With nothing chosen the same program is as fast as without, and nothing more is taken back.
    let said = run(&["compare", "-n", "1", "--json"]);
    said.exits(0, &["\"vetoed\":[]"]);
}

/// Ctrl-C for the command behind `timeout`, which passes it on.
fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).expect("it runs");
}
