//! `colltune run` and its neighbours, where something is not as they would have it.

use std::path::Path;
use std::process::Command;

use colltune_tests::{
    Job, Mpi, colltune, colltune_bench, colltune_lab, folder, job, on_each_library, program,
    said_by, said_by_colltune as command, sanitized, skip, target_folder, traces, write_to_run,
};

/// A job that `colltune run` starts with these options.
fn started(mpi: Mpi, options: &[&str]) -> Job {
    started_on(2, mpi, options)
}

fn started_on(n_ranks: u32, mpi: Mpi, options: &[&str]) -> Job {
    let command = colltune();
    let mut words = vec![command.to_str().expect("a path in UTF-8"), "run"];
    words.extend(options);
    words.push("--");
    let job = job(n_ranks).mpi(mpi).prefix(&words);
    job.env("COLLTUNE_LIB", target_folder())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo starts").success());
}

on_each_library! {
    /// What one command writes into a file, another reads from its standard output.
    fn what_reports_tells_programs_and_a_dash_is_standard_output(mpi: Mpi) {
        let (db, scratch) = (folder(), folder());
        let place = text(db.path());
        started(mpi, &["--db", place]).run("left", &[]).succeeds();
        let trained = command(&["train", "--json", "--db", place]);
        let trained: serde_json::Value = serde_json::from_slice(&trained.stdout).expect("JSON");
        assert_eq!((&trained["traces"], &trained["libraries"][0]["generation"]), (&2.into(), &1.into()), "{trained}");
        let out = scratch.path().join("tables");
        let own = if mpi == Mpi::Mpich { "mpich" } else { "openmpi" };
        let tables = |to: &str| command(&["export", "--db", place, "--format", own, "-o", to]);
        assert!(tables(text(&out)).status.success());
        let printed = tables("-");
        match std::fs::read(out.join("rules.conf")) {
            Ok(rules) => assert_eq!(printed.stdout, rules),
            // MPICH reads two files.
            Err(_) => assert_eq!((mpi, printed.status.code()), (Mpi::Mpich, Some(2)), "{printed:?}"),
        }
        let page = command(&["report", "--db", place, "-o", "-"]);
        assert!(page.stdout.starts_with(b"<!"), "{page:?}");
        let drawn = command(&["trace", "--db", place, "-o", "-"]);
        let drawn: serde_json::Value = serde_json::from_slice(&drawn.stdout).expect("JSON");
        assert!(!drawn["traceEvents"].as_array().expect("events").is_empty());
        let answer = command(&["query", "--db", place, "-o", "-", "SELECT count(*) AS n FROM calls"]);
        assert!(answer.stdout.starts_with(b"PAR1"), "{answer:?}");
        // Nothing of this was left beside.
        let left = std::fs::read_dir(&out).expect("a folder").flatten();
        assert!(left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().starts_with('.')));
    }

    fn a_database_that_cannot_be_used_costs_the_tuning_and_not_the_job(mpi: Mpi) {
        let broken = folder();
        std::fs::write(broken.path().join("colltune.toml"), "explore_total = 7\n").unwrap();
        let piped = folder();
        pipe(&piped.path().join("colltune.toml"));
        let scratch = folder();
        let no_folder = scratch.path().join("file");
        std::fs::write(&no_folder, "").unwrap();
        let other = folder();
        std::fs::write(other.path().join("thesis.tex"), "").unwrap();
        // One exit code of the program's own is enough: Open MPI's launcher sleeps for two seconds after each.
        for (db, said, code) in [
            (broken.path(), "explore_total", 3),
            (piped.path(), "a pipe", 0),
            (&no_folder, "it is no folder, but a file", 0),
            (other.path(), "holds other things", 0),
        ] {
            let outcome = started(mpi, &["--db", text(db)]).run("ends", &["exit", &code.to_string()]);
            outcome.exits(code).prints("sum 2\n").says(&["failed to", said, "untuned", "--strict"]);
            let outcome = started(mpi, &["--strict", "--db", text(db)]).run("ends", &["exit", "3"]);
            outcome.exits(1).prints("").says(&["failed to", said]);
        }
    }

    /// Each process is a world of one, whose results are right, and not what was asked for.
    /// A program that a tuned one starts may have no MPI: tuning was not asked for it.
    fn what_is_asked_of_a_strict_job_is_not_asked_of_the_programs_that_it_starts(mpi: Mpi) {
        let db = folder();
        let unset = "test -z \"${COLLTUNE_STRICT+set}\" && test -n \"${COLLTUNE_DB+set}\"";
        let outcome = started(mpi, &["--strict", "--db", text(db.path())]).run("ends", &["shell", unset]);
        outcome.succeeds();
    }

    fn a_program_of_another_library_than_its_launcher_is_named(mpi: Mpi) {
        let Some(other) = mpi.other().installed() else { return };
        let program = program(other, "frequent");
        let words = [text(&program), "20", "8"];
        let db = folder();
        let named = "was built for";
        let untuned = "2 processes each started as a world of one";
        let run = |n_ranks: u32, options: &[&str]| {
            let options = [&["--db", text(db.path())], options].concat();
            started_on(n_ranks, mpi, &options).run(words[0], &words[1..])
        };
        let outcome = run(2, &[]);
        outcome.claim(outcome.code == Some(0), "the job is harmed");
        outcome.claim(outcome.stderr.contains(named) && outcome.stderr.contains(untuned), "nobody says so");
        let outcome = run(2, &["--strict"]);
        outcome.claim(outcome.code == Some(1), "it is not refused");
        outcome.claim(outcome.stderr.contains(untuned) && outcome.stderr.contains("--strict refuses"), "nobody says why");
        // One process is a world.
        let outcome = run(1, &["--strict"]);
        outcome.succeeds().prints("ok\n");
        outcome.claim(!outcome.stderr.contains("world of one: "), "it is no fault");
        let launcher = mpi.launcher();
        let line = ["doctor", "--no-self-test", "--", &launcher, "-n", "2", words[0]];
        let said = String::from_utf8_lossy(&command(&line).stdout).into_owned();
        assert!(said.contains(named), "{said}");
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

/// What a command says on stderr that is given these variables, and its exit code.
fn said_with(variables: &[(&str, &str)], words: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(colltune())
        .args(words)
        .env_remove("COLLTUNE_DB")
        .envs(variables.iter().copied())
        .output()
        .expect("colltune starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (said, output.status.code())
}

/// The same of both streams.
fn all_said_with(variables: &[(&str, &str)], words: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(colltune())
        .args(words)
        .env_remove("COLLTUNE_DB")
        .envs(variables.iter().copied())
        .output()
        .expect("it starts");
    let streams = [&output.stdout, &output.stderr];
    let said = streams.map(|stream| String::from_utf8_lossy(stream).into_owned());
    (said.concat(), output.status.code())
}

#[test]
fn a_job_is_told_of_variables_that_do_not_exist_and_a_strict_one_is_refused_for_any_that_is_wrong()
{
    let db = folder();
    let run = |strict: bool, name: &str, value: &str| {
        let words = ["run", "--db", text(db.path()), "--strict", "--", "true"];
        let words = words.iter().filter(|word| strict || **word != "--strict");
        said_with(&[(name, value)], &words.copied().collect::<Vec<_>>())
    };
    let unknown =
        "COLLTUNE_HANDSHAK: colltune has no such variable; did you mean COLLTUNE_HANDSHAKE?";
    for (name, value, named) in [
        ("COLLTUNE_HANDSHAK", "trust", unknown),
        ("COLLTUNE_MODE", "exploid", "COLLTUNE_MODE: failed to"),
        (
            "COLLTUNE_EXPLORE_BUDGET",
            "many",
            "COLLTUNE_EXPLORE_BUDGET: failed to",
        ),
    ] {
        let (said, code) = run(true, name, value);
        assert!(said.contains(named) && code == Some(2), "{code:?}: {said}");
        let (said, code) = run(false, name, value);
        // The shim says the rest.
        assert_eq!(said.contains(named), named == unknown, "{said}");
        assert_eq!(code, Some(0), "{said}");
    }
    // An empty one is none; what is refused then is a program without MPI.
    let (said, code) = run(true, "COLLTUNE_MODE", "");
    assert!(code == Some(1) && !said.contains("COLLTUNE_MODE"), "{said}");
    assert!(said.contains("needs an MPI library"), "{said}");
    let (said, code) = run(false, "COLLTUNE_MODE", "");
    assert!(code == Some(0), "{said}");
}

#[test]
fn what_cannot_be_a_database_is_named_and_lines_that_are_proposed_can_be_pasted() {
    let there = folder();
    let (file, missing) = (there.path().join("file"), there.path().join("my db"));
    std::fs::write(&file, "").unwrap();
    let status = |db: &Path| said_with(&[], &["status", "--db", text(db)]);
    let (said, code) = status(&file);
    assert!(
        said.contains("it is no folder") && code == Some(1),
        "{code:?}: {said}"
    );
    let (said, _) = status(&missing);
    assert!(
        said.contains(&format!("--db '{}' --", missing.display())),
        "{said}"
    );
    let (said, _) = status(there.path());
    assert!(said.contains("it holds other things"), "{said}");
    let db = folder();
    let path = text(db.path());
    std::fs::create_dir(db.path().join("incoming")).unwrap();
    let into_itself = ["export", "--db", path, "--format", "openmpi", "-o", path];
    let (said, code) = said_with(&[], &into_itself);
    assert!(
        said.contains("into the database itself") && code == Some(2),
        "{said}"
    );
    std::fs::write(db.path().join("colltune.toml"), "mode\n").unwrap();
    let (said, code) = status(db.path());
    let untuned = "run untuned: failed to read colltune.toml, line 1";
    assert!(
        said.contains(untuned) && code == Some(0),
        "{code:?}: {said}"
    );
    let (said, _) = said_with(&[], &["explain", text(&file)]);
    assert!(said.contains("name the folder"), "{said}");
    // As if it were not set.
    let (said, code) = said_with(&[("COLLTUNE_DB", "")], &["run", "--", "true"]);
    assert_eq!(code, Some(0), "{said}");
    let (said, code) = said_with(&[("COLLTUNE_DB", "")], &["status"]);
    assert!(said.contains("not provided") && code == Some(2), "{said}");
}

#[test]
fn the_doctor_says_which_limits_are_in_force() {
    let db = folder();
    let decided = "memory_per_rank_max = \"16MiB\"\nmismatch_timeout = \"5s\"\n";
    std::fs::write(db.path().join("colltune.toml"), decided).unwrap();
    let doctor = |arguments: &[&str]| {
        let output = Command::new(colltune())
            .args(["doctor", "--no-self-test"])
            .args(arguments)
            .env_remove("COLLTUNE_DB")
            .env("COLLTUNE_WAIT_WARNING_AFTER", "2m")
            .output()
            .expect("colltune starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let usual = doctor(&[]);
    let limits =
        "ok    limits: memory_per_rank_max 64MiB, mismatch_timeout 60s, wait_warning_after 120s";
    assert!(usual.contains(limits), "{usual}");
    let of_database = doctor(&["--db", text(db.path())]);
    let limits =
        "ok    limits: memory_per_rank_max 16MiB, mismatch_timeout 5s, wait_warning_after 120s";
    assert!(of_database.contains(limits), "{of_database}");
    // A former name of a key sets the same.
    let former = decided.replace("mismatch_timeout", "alone_after");
    std::fs::write(db.path().join("colltune.toml"), former).unwrap();
    let of_former = doctor(&["--db", text(db.path())]);
    let renamed = "the setting alone_after is called mismatch_timeout now";
    assert!(
        of_former.contains(limits) && of_former.contains(renamed),
        "{of_former}"
    );
    assert!(!of_database.contains(renamed), "{of_database}");
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
        &["doctor", "--no-self-test", "--json"],
        &["completions", "zsh"],
        &["train", "--db", text(db.path())],
    ] {
        let mut line = Command::new("sh");
        let quiet = "exec 3>&1; { sleep 0.2; timeout 60 \"$@\"; echo $? >&3; } | :";
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

/// Errors are said whatever is asked for; the rest is as loud, and as colourful, as it is wanted.
#[test]
fn what_is_said_is_as_colourful_and_as_much_as_is_asked_for() {
    let said = |arguments: &[&str]| {
        let output = command(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    for (color, has) in [("always", true), ("never", false), ("auto", false)] {
        let (checks, _) = said(&["doctor", "--no-self-test", "--color", color]);
        assert_eq!(checks.contains('\u{1b}'), has, "{color}: {checks}");
        let (_, failure) = said(&["--color", color, "status", "--db", "/nowhere"]);
        assert_eq!(failure.contains('\u{1b}'), has, "{color}: {failure}");
        // What the arguments' reader says.
        let (_, usage) = said(&["variants", "--collective", "none", "--color", color]);
        assert_eq!(usage.contains('\u{1b}'), has, "{color}: {usage}");
        let (help, _) = said(&["--color", color, "variants", "--help"]);
        assert_eq!(help.contains('\u{1b}'), has, "{color}: {help}");
    }
    // A program without MPI is started, with a warning.
    let (_, usual) = said(&["run", "--", "/bin/true"]);
    assert!(usual.contains("without the tuner"), "{usual}");
    assert!(!usual.contains("starts /bin/true"), "{usual}");
    let (_, quiet) = said(&["-q", "run", "--", "/bin/true"]);
    assert_eq!(quiet, "");
    let (_, verbose) = said(&["run", "-v", "--", "/bin/true"]);
    assert!(verbose.contains("without the tuner"), "{verbose}");
    assert!(verbose.contains("starts /bin/true"), "{verbose}");
    let (_, quiet) = said(&["-q", "status", "--db", "/nowhere"]);
    assert!(quiet.starts_with("colltune: failed to "), "{quiet}");
    let (_, verbose) = said(&["train", "-v", "--db", "/nowhere"]);
    let lines: Vec<_> = verbose.lines().collect();
    assert!(lines[0].starts_with("colltune: failed to "), "{verbose}");
    assert_eq!(command(&["-q", "-v", "variants"]).status.code(), Some(2));
}

#[test]
fn every_closed_set_is_in_the_help_and_a_wrong_name_is_answered_with_it() {
    for (line, name) in [
        (&["run", "--mode"][..], "exploit"),
        (&["run", "--mpi"], "intel"),
        (&["variants", "--mpi"], "mvapich"),
        (&["status", "--collective"], "reduce_scatter_block"),
        (&["lab", "simulate", "--collective"], "allreduce"),
        (&["lab", "placement", "bench", "--policies"], "lpt-swap"),
        (
            &["lab", "placement", "bench", "--distributions"],
            "power-law",
        ),
        (&["lab", "telemetry", "matrix", "--kind"], "ghost"),
        (&["bench"], "tuned-cluster"),
    ] {
        let (program, line) = match line[0] {
            "lab" => (colltune_lab(), &line[1..]),
            "bench" => (colltune_bench(), &line[1..]),
            _ => (colltune(), line),
        };
        let command = |words: &[&str]| said_by(&program, words);
        let subcommand = line.split_last().map_or(line, |(_, subcommand)| subcommand);
        let help = command(&[subcommand, &["--help"]].concat());
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        assert!(
            help.contains("[possible values: ") || help.contains("Possible values:"),
            "{line:?}: {help}"
        );
        assert!(help.contains(name), "{line:?}: {help}");
        let wrong = command(&[line, &["no-such-name"]].concat());
        let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert_eq!(wrong.status.code(), Some(2), "{line:?}: {said}");
        assert!(said.contains("no-such-name"), "{line:?}: {said}");
    }
    // A version of a library is named as freely as before.
    assert!(
        command(&["variants", "--mpi", "openmpi-5.0.11"])
            .status
            .success()
    );
}

/// Benches stay where they were built; for a subcommand of another program the error names that program.
#[test]
fn benches_are_not_installed_and_subcommands_of_other_programs_are_named() {
    for (program, words, line) in [
        (colltune(), "-q bench --list", "colltune-bench"),
        (colltune(), "emulate run --mesh t", "colltune-lab emulate"),
        (colltune(), "emulate study cplx", "colltune-bench study"),
        (colltune(), "placement comm", "colltune-bench comm"),
        (colltune(), "simulate", "colltune-lab simulate"),
        (colltune(), "telemetry path t", "colltune-lab telemetry"),
        (
            colltune_lab(),
            "emulate validate",
            "colltune-bench validate",
        ),
        (colltune_lab(), "tune -- ls", "colltune tune"),
    ] {
        let output = said_by(&program, &words.split(' ').collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("that is `{line}`")),
            "{words}: {said}"
        );
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/install");
    let installs = std::fs::read_to_string(script).expect("a script of ours");
    assert!(installs.contains("colltune-lab") && !installs.contains("colltune-bench"));
}

#[test]
fn a_wrong_line_with_words_of_any_bytes_is_answered() {
    use std::os::unix::ffi::OsStrExt as _;
    let word = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    let output = std::process::Command::new(colltune())
        .args(["no-such".as_ref(), word])
        .output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no-such"), "{said}");
}

#[test]
fn a_bench_without_a_name_asks() {
    let output = said_by(&colltune_bench(), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("colltune-bench --list"), "{said}");
    // On a terminal, to which nothing is answered.
    let line = text(&colltune_bench()).to_owned();
    let on_a_terminal =
        "command -v script >/dev/null || exit 77; echo | timeout 60 script -qec \"$1\" /dev/null";
    let asked = Command::new("sh")
        .args(["-c", on_a_terminal, "sh", &line])
        .output()
        .expect("sh starts");
    if asked.status.code() == Some(77) {
        skip::<()>("`script` is missing (util-linux)");
        return;
    }
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(said.contains("which of these?"), "{said}");
    assert!(said.contains("no benchmark was named"), "{said}");
    assert_eq!(asked.status.code(), Some(2), "{said}");
}

#[test]
fn the_doctor_names_a_launcher_of_an_unknown_major_version() {
    let scratch = folder();
    let launcher = scratch.path().join("mpirun");
    write_to_run("#!/bin/sh\necho 'mpirun (Open MPI) 6.0.0'\n", &launcher);
    let output = Command::new(colltune())
        .args(["doctor", "--no-self-test"])
        .env("PATH", scratch.path())
        .output()
        .expect("colltune starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("tune Open MPI 6.0: this colltune knows it up to version 5"),
        "{said}"
    );
}

#[test]
fn a_strict_run_refuses_a_program_without_mpi_before_it_starts() {
    let scratch = folder();
    let db = scratch.path().join("db");
    let started = scratch.path().join("started");
    let line = ["touch", text(&started)];
    let run = |options: &[&str]| {
        let words = [&["run", "--db", text(&db)], options, &["--"], &line[..]].concat();
        said_with(&[], &words)
    };
    let (said, code) = run(&["--strict"]);
    assert!(
        code == Some(1) && said.contains("would run untuned"),
        "{code:?}: {said}"
    );
    assert!(!started.exists(), "it was started");
    // Who wants nothing tuned is not refused.
    for options in [&["--strict", "--mode", "off"][..], &[]] {
        let (said, code) = run(options);
        assert!(code == Some(0) && started.exists(), "{code:?}: {said}");
        std::fs::remove_file(&started).unwrap();
    }
}

#[test]
fn a_line_without_the_dashes_before_it_is_answered_with_the_line_that_was_meant() {
    for words in [["run", "--db", "db"], ["tune", "--db", "db"]] {
        let line = [&words[..], &["mpirun", "-n", "2", "./solver"]].concat();
        let (said, code) = said_with(&[], &line);
        let meant = format!("colltune {} --db db -- mpirun -n 2 ./solver", words[0]);
        assert!(code == Some(2) && said.contains(&meant), "{code:?}: {said}");
    }
    // Another word that there is not is no line.
    let (said, code) = said_with(&[], &["run", "--db", "db", "solver"]);
    assert!(code == Some(2) && !said.contains("behind `--`"), "{said}");
}

#[test]
fn a_line_without_mpi_is_told_so_once() {
    let line = ["doctor", "--no-self-test", "--", "/bin/true"];
    let (said, _) = all_said_with(&[], &line);
    let told = said.matches("found no MPI library in /bin/true").count();
    assert_eq!(told, 1, "{said}");
}

#[test]
fn pruning_says_what_it_would_remove_and_waits_for_a_word() {
    let scratch = folder();
    let db = text(scratch.path());
    assert!(command(&["db", "init", db]).status.success());
    let quarantine = scratch.path().join("quarantine");
    std::fs::create_dir(&quarantine).unwrap();
    let refused = ["a.0.trace", "a.0.trace.reason"].map(|name| quarantine.join(name));
    refused
        .iter()
        .for_each(|file| std::fs::write(file, "").unwrap());
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 86_400);
    let reason = std::fs::File::options()
        .write(true)
        .open(&refused[1])
        .unwrap();
    reason.set_modified(old).unwrap();
    let prune =
        |options: &[&str]| all_said_with(&[], &[&["db", "prune", "--db", db], options].concat());
    let (said, code) = prune(&[]);
    assert!(
        code == Some(2) && said.contains("nothing was removed"),
        "{code:?}: {said}"
    );
    assert!(
        said.contains("1 refused file would go") && said.contains("--yes"),
        "{said}"
    );
    let (said, code) = prune(&["--quarantine", "60d"]);
    assert!(
        code == Some(0) && said.contains("0 refused files for good"),
        "{said}"
    );
    assert!(refused[0].exists());
    let (said, code) = prune(&["--yes"]);
    assert!(
        code == Some(0) && said.contains("1 refused file for good"),
        "{said}"
    );
    assert!(!refused[0].exists());
    // Where there is nothing to lose no flag is needed.
    assert_eq!(prune(&[]).1, Some(0));
}

#[test]
fn the_doctor_fails_where_root_cannot_start_a_job() {
    if !rustix::process::geteuid().is_root() {
        skip::<()>("this is not root");
        return;
    }
    let allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    let with = |value: &str, more: &[&str]| {
        let variables = allowed.map(|name| (name, value));
        all_said_with(&variables, &[&["doctor", "--no-self-test"], more].concat())
    };
    let (said, code) = with("", &[]);
    if !said.contains("starts jobs of Open MPI") && !said.contains("starts jobs of openmpi") {
        skip::<()>("Open MPI is not in PATH");
        return;
    }
    assert_eq!(code, Some(1), "{said}");
    let named = |line: &str| line.starts_with("fail") && line.contains("starts no job of root's");
    assert!(said.lines().any(named), "{said}");
    for (said, _) in [
        with("1", &[]),
        with("", &["--", "mpirun", "--allow-run-as-root", "true"]),
    ] {
        assert!(!said.contains("no job of root's"), "{said}");
    }
}

#[test]
fn the_doctor_names_a_command_for_all_that_is_not_well() {
    let db = folder();
    std::fs::write(db.path().join("colltune.toml"), "explore_total = 7\n").unwrap();
    let output = Command::new("timeout")
        .arg("60")
        .arg(colltune())
        .args([
            "doctor",
            "--json",
            "--no-self-test",
            "--db",
            text(db.path()),
            "--",
            "mpirun",
            "/bin/true",
        ])
        .env("COLLTUNE_LIB", "/nowhere")
        .env("COLLTUNE_HANDSHAK", "trust")
        .env("OMPI_MCA_coll_tuned_priority", "7")
        .output()
        .expect("timeout starts");
    assert_eq!(output.status.code(), Some(1));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = found["checks"].as_array().expect("checks");
    let unwell: Vec<_> = checks.iter().filter(|one| one["verdict"] != "ok").collect();
    for part in [
        "shim for",
        "COLLTUNE_HANDSHAK:",
        "OMPI_MCA_coll",
        "database",
        "line: ",
    ] {
        let is_of = |one: &&&serde_json::Value| {
            one["found"]
                .as_str()
                .is_some_and(|text| text.contains(part))
        };
        let one = unwell
            .iter()
            .find(is_of)
            .unwrap_or_else(|| panic!("{part}: {found:#}"));
        let remedy = one["remedy"].as_str().expect("a remedy");
        assert!(
            remedy.contains('`') || remedy.contains("colltune.toml"),
            "{one}"
        );
    }
    assert!(
        checks
            .iter()
            .all(|one| (one["verdict"] == "ok") == one["remedy"].is_null()),
        "{found:#}"
    );
}

#[test]
fn benches_and_demonstrations_remove_nothing_that_they_have_not_made() {
    let place = folder();
    let precious = place.path().join("thesis.tex");
    std::fs::write(&precious, "all of it").expect("written");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let bench = text(&colltune_bench()).to_owned();
    let demos = ["amr/demo", "poisson-cg/demo"].map(|demo| text(&examples.join(demo)).to_owned());
    let lines = demos.map(|demo| vec![demo]).into_iter();
    let bench = vec![bench, "overhead".into(), "--quick".into(), "--out".into()];
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

/// `srun` starts programs of any library, and a Python script does not tell which it is going to load.
#[test]
fn a_line_whose_library_nobody_tells_is_refused_before_anything_is_made_and_the_library_can_be_told()
 {
    let folder = folder();
    let db = folder.path().join("new");
    let calibrate = command(&["calibrate", "--db", text(&db), "--", "srun", "-n", "2"]);
    let said = String::from_utf8_lossy(&calibrate.stderr);
    assert_eq!(calibrate.status.code(), Some(2), "{said}");
    assert!(said.contains("say it with --mpi"), "{said}");
    assert!(!db.exists(), "a database was made");
    let srun = folder.path().join("srun");
    std::fs::write(&srun, "#!/bin/sh\nexit 1\n").expect("write a launcher");
    let makes_it_run = Command::new("chmod").arg("755").arg(&srun).status();
    assert!(makes_it_run.expect("chmod starts").success());
    let told = |told: &[&str]| {
        let mut doctor = Command::new(colltune());
        doctor.args(["doctor", "--no-self-test"]).args(told);
        doctor.args(["--", text(&srun), "-n", "2", "python3", "solver.py"]);
        let checks = doctor.output().expect("colltune starts").stdout;
        String::from_utf8_lossy(&checks).into_owned()
    };
    let said = told(&[]);
    assert!(said.contains("say it with --mpi openmpi"), "{said}");
    let said = told(&["--mpi", "openmpi"]);
    assert!(said.contains("line: python3 runs on openmpi"), "{said}");
    let health = said_by(&colltune_lab(), &["telemetry", "health"]);
    let said = String::from_utf8_lossy(&health.stderr);
    assert_eq!(health.status.code(), Some(2), "{said}");
    assert!(said.contains("--db or COLLTUNE_DB"), "{said}");
}
