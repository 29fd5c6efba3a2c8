//! `colltune run` and its neighbours, where something is not as they would have it.

use std::path::Path;
use std::process::{Command, Output};

use colltune_tests::{
    Job, Mpi, colltune, folder, job, on_each_library, sanitized, target_folder, traces,
};

/// A job that `colltune run` starts with these options.
fn started(mpi: Mpi, options: &[&str]) -> Job {
    let command = colltune();
    let mut words = vec![command.to_str().expect("a path in UTF-8"), "run"];
    words.extend(options);
    words.push("--");
    let job = job(2).mpi(mpi).prefix(&words);
    job.env("COLLTUNE_LIB", target_folder())
}

/// The command with these arguments, ended after a minute with the exit code 124.
fn command(arguments: &[&str]) -> Output {
    Command::new("timeout")
        .arg("60")
        .arg(colltune())
        .args(arguments)
        .output()
        .expect("timeout starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo starts").success());
}

on_each_library! {
    fn a_database_that_cannot_be_used_costs_the_tuning_and_not_the_job(mpi: Mpi) {
        let broken = folder();
        std::fs::write(broken.path().join("colltune.toml"), "explore_total = 7\n").unwrap();
        let piped = folder();
        pipe(&piped.path().join("colltune.toml"));
        let scratch = folder();
        let no_folder = scratch.path().join("file");
        std::fs::write(&no_folder, "").unwrap();
        for (db, said) in [(broken.path(), "explore_total"), (piped.path(), "a pipe"), (&no_folder, "make the folder")] {
            let outcome = started(mpi, &["--db", text(db)]).run("ends", &["exit", "3"]);
            outcome.exits(3).prints("sum 2\n").says(&["failed to", said, "untuned", "--strict"]);
            let outcome = started(mpi, &["--strict", "--db", text(db)]).run("ends", &["exit", "3"]);
            outcome.exits(1).prints("").says(&["failed to", said]);
        }
    }

    /// Its runtime ends a program in which another library was loaded before it.
    fn a_program_with_the_address_sanitizer_is_tuned(mpi: Mpi) {
        let Some(program) = sanitized(mpi, "left") else { return };
        let db = folder();
        // The libraries themselves leak.
        let job = started(mpi, &["--db", text(db.path())]).env("ASAN_OPTIONS", "detect_leaks=0");
        job.run(text(&program), &[]).succeeds().prints("ok\n").is_silent();
        assert_eq!(traces(db.path()).len(), 2);
    }
}

#[test]
fn files_of_a_database_that_are_none_are_refused_at_once() {
    for (file, arguments) in [
        ("colltune.toml", ["status", "--db"]),
        ("colltune.toml", ["train", "--db"]),
        ("openmpi-4.1.4/CURRENT", ["status", "--db"]),
        ("openmpi-4.1.4/CURRENT", ["doctor", "--db"]),
        (
            "openmpi-4.1.4/generations/000001/probabilities.json",
            ["status", "--db"],
        ),
    ] {
        let db = folder();
        let generation = db.path().join("openmpi-4.1.4/generations/000001");
        std::fs::create_dir_all(generation).unwrap();
        let current = db.path().join("openmpi-4.1.4/CURRENT");
        if file.ends_with(".json") {
            std::fs::write(current, "1\n").unwrap();
        }
        let place = db.path().join(file);
        pipe(&place);
        for kind in ["a pipe", "a device"] {
            let output = command(&[arguments[0], arguments[1], text(db.path())]);
            let said =
                String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{file}, {arguments:?}: {said}"
            );
            assert!(
                said.contains(kind) && said.contains(file),
                "{file}, {arguments:?}: {said}"
            );
            std::fs::remove_file(&place).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &place).unwrap();
        }
    }
}

#[test]
fn the_doctor_knows_every_variable_and_who_was_meant() {
    let doctor = |name: &str, value: &str| {
        let output = Command::new(colltune())
            .arg("doctor")
            .env("COLLTUNE_LIB", target_folder())
            .env("PATH", "/nowhere")
            .env(name, value)
            .output()
            .expect("colltune starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for variable in colltune_core::environment::VARIABLES {
        let said = doctor(variable.name, "trust");
        assert!(
            !said.contains("no such variable"),
            "{}: {said}",
            variable.name
        );
    }
    let said = doctor("COLLTUNE_HANDSHAK", "trust");
    assert!(said.contains("did you mean COLLTUNE_HANDSHAKE?"), "{said}");
}

#[test]
fn a_mistyped_variant_is_answered_with_a_few_that_were_meant() {
    let output = command(&[
        "run",
        "--mpi",
        "openmpi",
        "--force",
        "bcast=p2p:binary_tre",
        "--",
        "true",
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("are p2p:binary_tree") && said.len() < 500,
        "{said}"
    );
}

/// The reader of a pipe is gone before the first line is written, as behind `| head` later.
#[test]
fn a_closed_pipe_ends_what_prints_quietly_and_no_work() {
    let db = folder();
    for arguments in [
        &["doctor", "--no-self-test"][..],
        &["variants"],
        &["bench", "--list"],
        &["completions", "zsh"],
        &["train", "--db", text(db.path())],
    ] {
        let mut line = Command::new("sh");
        let quiet = "exec 3>&1; { sleep 1; timeout 60 \"$@\"; echo $? >&3; } | :";
        line.args(["-c", quiet, "sh"])
            .arg(colltune())
            .args(arguments);
        let closed = line.output().expect("sh starts");
        let open = command(arguments);
        let code = String::from_utf8_lossy(&closed.stdout).trim().to_owned();
        assert_eq!(
            Some(code),
            open.status.code().map(|code| code.to_string()),
            "{arguments:?}"
        );
        let said = String::from_utf8_lossy(&closed.stderr).into_owned();
        assert_eq!(said, String::from_utf8_lossy(&open.stderr), "{arguments:?}");
    }
}

#[test]
fn benches_and_demonstrations_remove_nothing_that_they_have_not_made() {
    let place = folder();
    let precious = place.path().join("thesis.tex");
    std::fs::write(&precious, "all of it").expect("written");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let bench = text(&colltune()).to_owned();
    let demos = ["amr/demo", "poisson-cg/demo"].map(|demo| text(&examples.join(demo)).to_owned());
    let lines = demos.map(|demo| vec![demo]).into_iter();
    let bench = vec![
        bench,
        "bench".into(),
        "overhead".into(),
        "--quick".into(),
        "--out".into(),
    ];
    for line in lines.chain([bench]) {
        let output = Command::new("timeout")
            .arg("60")
            .args(&line)
            .arg(place.path())
            .output();
        let output = output.expect("timeout starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{line:?}: {output:?}"
        );
        assert!(
            said.contains("name a new or an empty folder"),
            "{line:?}: {said}"
        );
        assert_eq!(
            std::fs::read_to_string(&precious).expect("it is there"),
            "all of it",
            "{line:?}"
        );
    }
}
