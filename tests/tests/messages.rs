//! `colltune run --messages`: what is recorded is what the program does, and nothing else is touched.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use colltune_tests::{
    FORTRAN_INTERFACES, Job, Mpi, colltune, colltune_lab, folder, fortran, job, on_each_library,
    program, said_by, said_by_colltune, skip, target_folder,
};

/// By sender, partner and least size of a class: messages and bytes.
type Sent = BTreeMap<(u32, String, u64), (u64, u64)>;

/// The library that records, which must not be older than its sources.
fn library(mpi: Mpi) -> std::path::PathBuf {
    let file = target_folder()
        .join(mpi.abi().name())
        .join("libcolltune_messages.so");
    let changed = |path: &Path| {
        path.metadata()
            .and_then(|of| of.modified())
            .expect("the file is there")
    };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../messages/src");
    for source in std::fs::read_dir(sources).expect("sources").flatten() {
        let is_older = changed(&file) < changed(&source.path());
        assert!(
            !is_older,
            "{} is older than the sources: run `make build`",
            file.display()
        );
    }
    file
}

/// A job that `colltune run --messages` starts.
fn recorded(n_ranks: u32, mpi: Mpi, to: &Path, more: &[&str]) -> Job {
    library(mpi);
    let command = colltune();
    let begin = [
        &command.to_string_lossy(),
        "run",
        "--messages",
        &to.to_string_lossy(),
    ]
    .map(str::to_owned);
    let begin: Vec<&str> = begin
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .chain(["--"])
        .collect();
    job(n_ranks)
        .mpi(mpi)
        .prefix(&begin)
        .env("COLLTUNE_LIB", target_folder())
}

/// The rows of all files: cells of each line.
fn rows(folder: &Path, n_ranks: u32) -> Vec<Vec<String>> {
    let lines = (0..n_ranks).flat_map(|rank| {
        let text = std::fs::read_to_string(folder.join(format!("rank-{rank}.csv")))
            .expect("a file for each rank");
        let lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines
    });
    lines
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

fn sent(folder: &Path, n_ranks: u32) -> Sent {
    let rows = rows(folder, n_ranks)
        .into_iter()
        .filter(|row| row[2] == "sent");
    rows.map(|row| {
        let key = (number(&row[0]) as u32, row[3].clone(), number(&row[4]));
        (key, (number(&row[5]), number(&row[6])))
    })
    .collect()
}

/// Calls of a function on a rank, and whether they were timed.
fn calls(folder: &Path, n_ranks: u32, rank: u32, function: &str) -> (u64, bool) {
    let rows = rows(folder, n_ranks);
    let row = rows
        .iter()
        .find(|row| row[0] == rank.to_string() && row[2] == function);
    row.map_or((0, false), |row| (number(&row[5]), !row[7].is_empty()))
}

/// What `messages all` sends on three ranks.
fn all() -> Sent {
    let mut sent = Sent::new();
    let mut add = |from: u32, to: u32, messages: u64, bytes: u64| {
        let class = if bytes == 0 { 0 } else { 1 << bytes.ilog2() };
        let entry = sent.entry((from, to.to_string(), class)).or_default();
        *entry = (entry.0 + messages, entry.1 + messages * bytes);
    };
    for rank in 0..3 {
        let right = (rank + 1) % 3;
        for bytes in [8, 16, 32, 64, 0, 256, 512, 1024, 2048, 4096, 32768] {
            add(rank, right, 1, bytes);
        }
        add(rank, right, 5, 8192);
        add(rank, rank, 1, 1 << 18);
        for first in [0, 2].into_iter().filter(|first| *first != rank) {
            add(rank, first, 10, 4);
        }
    }
    add(0, 2, 1, 1 << 16);
    add(0, 2, 1, 1 << 17);
    add(1, 0, 4, 120);
    sent
}

fn lab(question: &str, folder: &Path, more: &[&str]) -> Output {
    let folder = folder.to_string_lossy();
    let words = [&["telemetry", question, &folder], more].concat();
    said_by(&colltune_lab(), &words)
}

fn json(question: &str, folder: &Path) -> serde_json::Value {
    let output = lab(question, folder, &["--json"]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// How something fails: the exit code, and these parts of what it says.
#[track_caller]
fn refuses(output: &Output, code: i32, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    parts
        .iter()
        .for_each(|part| assert!(said.contains(part), "no {part:?} in {said}"));
}

on_each_library! {
    fn messages_are_counted_by_partner_and_size_beside_the_tuner_and_without_it(mpi: Mpi) {
        let place = folder();
        let db = place.path().join("db");
        for more in [&["--mode", "off"][..], &["--db", &db.to_string_lossy()]] {
            let to = place.path().join(more[0]);
            recorded(3, mpi, &to, more).run("messages", &["all"]).succeeds().prints("").is_silent();
            assert_eq!(sent(&to, 3), all(), "{more:?}");
            for (function, of_rank_0) in [
                ("MPI_Send", (14, true)),
                ("MPI_Recv", (22, true)),
                ("MPI_Probe", (1, true)),
                ("MPI_Mrecv", (2, true)),
                ("MPI_Waitall", (10, true)),
                ("MPI_Isend", (2, false)),
                ("MPI_Startall", (3, false)),
            ] {
                assert_eq!(calls(&to, 3, 0, function), of_rank_0, "{function}");
            }
            let (summary, matrix) = (json("summary", &to), json("matrix", &to));
            let (messages, bytes) = all().values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            assert_eq!((&summary["total"]["messages"], &summary["total"]["bytes"]), (&messages.into(), &bytes.into()));
            let cells = matrix["cells"].as_array().expect("cells");
            let in_cells: f64 = cells.iter().filter_map(|cell| cell["bytes"].as_f64()).sum();
            assert_eq!((in_cells, &matrix["n_ranks"]), (bytes as f64, &3.into()));
            assert_eq!((&matrix["warnings"], &matrix["steps"]), (&serde_json::json!([]), &serde_json::Value::Null));
        }
        assert!(db.join("incoming").exists(), "the tuner was there");
        assert!(!place.path().join("--mode/db").exists());
    }

    fn several_threads_lose_no_message(mpi: Mpi) {
        let place = folder();
        recorded(2, mpi, place.path(), &["--mode", "off"]).run("messages", &["threads"]).succeeds();
        let of = |rank: u32, to: &str| ((rank, to.to_owned(), 4), (2000, 8000));
        assert_eq!(sent(place.path(), 2), [of(0, "1"), of(1, "0")].into());
        assert_eq!(calls(place.path(), 2, 0, "MPI_Recv"), (2000, true));
    }

    fn processes_outside_of_the_world_have_a_row_of_their_own(mpi: Mpi) {
        if !mpi.is_openmpi() {
            return skip("Debian's MPICH cannot spawn").unwrap_or(());
        }
        let place = folder();
        recorded(2, mpi, place.path(), &["--mode", "off"]).run("messages", &["spawned"]).succeeds();
        assert_eq!(sent(place.path(), 2), [((0, "outside".to_owned(), 8), (1, 12))].into());
    }

    fn fortran_programs_are_seen_in_every_interface(mpi: Mpi) {
        for interface in FORTRAN_INTERFACES {
            let place = folder();
            let file = place.path().join("program");
            let Some(()) = fortran(mpi, "messages", &[format!("-D{interface}")], &file) else { return };
            let to = place.path().join("m");
            recorded(3, mpi, &to, &["--mode", "off"]).run(&file.to_string_lossy(), &[]).succeeds();
            let mut wanted = Sent::new();
            for rank in 0..3 {
                for (class, messages) in [(8, 1), (32, 1), (256, 1), (1024, 3)] {
                    wanted.insert((rank, ((rank + 1) % 3).to_string(), class), (messages, messages * class));
                }
            }
            wanted.insert((0, "0".to_owned(), 4096), (2, 8192));
            wanted.insert((0, "2".to_owned(), 4096), (2, 8192));
            assert_eq!(sent(&to, 3), wanted, "{interface}");
            assert_eq!(calls(&to, 3, 1, "MPI_Waitall"), (4, true), "{interface}");
        }
    }

    fn a_recording_needs_a_folder_of_its_own_and_an_mpi_program(mpi: Mpi) {
        let place = folder();
        let to = place.path().join("m");
        let launcher = mpi.launcher();
        let (file, named) = (program(mpi, "messages"), to.to_string_lossy().into_owned());
        let run = |folder: &str, program: &str| said_by_colltune(&["run", "--messages", folder, "--", &launcher, "-n", "1", program]);
        refuses(&run(&named, "true"), 1, &["no program of the line needs an MPI library", "--mpi"]);
        refuses(&run("/proc/m", &file.to_string_lossy()), 1, &["record messages in /proc/m"]);
        assert!(!to.exists());
        let silent = recorded(2, mpi, &to, &["--mode", "off"]).run("messages", &["none"]);
        silent.succeeds().says(&["no point-to-point call of rank 0 was seen"]);
        refuses(&run(&named, &file.to_string_lossy()), 2, &["holds a recording already", "another folder"]);
        refuses(&lab("matrix", &to, &[]), 1, &["no rank sent another one a message"]);
        // A second job of one `colltune run` finds the first one's files.
        let both = format!("\"$@\" none && \"$@\" none; echo \"$(ls {named}2)\"");
        let begin = [colltune().to_string_lossy().into_owned(), "run".into(), "--mpi".into(), mpi.abi().name().into(),
            "--messages".into(), format!("{named}2"), "--".into(), "sh".into(), "-c".into(), both, "sh".into()];
        let begin: Vec<&str> = begin.iter().map(String::as_str).collect();
        let twice = job(1).mpi(mpi).prefix(&begin).env("COLLTUNE_LIB", target_folder()).run("messages", &[]);
        twice.succeeds().prints("rank-0.csv\n");
        twice.claim(twice.stderr.contains("rank-0.csv: it is there already"), "the second job does not say so");
    }

    fn nothing_of_it_is_in_other_jobs_and_it_lives_in_processes_without_mpi(mpi: Mpi) {
        let place = folder();
        let preloaded = |to: &Path, more: &[&str]| {
            let maps = ["-c", "grep -c libcolltune_messages /proc/self/maps; true"];
            let outcome = recorded(1, mpi, to, more).run("/bin/sh", &maps);
            outcome.succeeds();
            outcome.stdout.trim() != "0"
        };
        let told = ["--mpi", mpi.abi().name()];
        assert!(preloaded(&place.path().join("with"), &told));
        assert_eq!(std::fs::read_dir(place.path().join("with")).expect("made").count(), 0, "no rank, no file");
        let without = said_by_colltune(&["run", told[0], told[1], "--", "grep", "-c", "libcolltune_messages", "/proc/self/maps"]);
        assert_eq!(String::from_utf8_lossy(&without.stdout), "0\n");
        // What it is preloaded into without being asked for anything.
        let idle = job(2).mpi(mpi).preload_tool(library(mpi)).run("messages", &["threads"]);
        idle.succeeds().is_silent();
        let needs = Command::new("nm").args(["-D", "--undefined-only"]).arg(library(mpi)).output().expect("nm starts");
        let needs = String::from_utf8_lossy(&needs.stdout).into_owned();
        assert!(!needs.contains("MPI_") && !needs.contains("ompi_"), "{needs}");
    }
}

#[test]
fn folders_without_a_recording_damaged_files_and_mixed_jobs_are_named() {
    let place = folder();
    refuses(
        &lab("matrix", place.path(), &[]),
        1,
        &["there is no telemetry", "colltune run --messages FOLDER"],
    );
    let file = place.path().join("rank-0.csv");
    let header = "rank,ranks,what,partner,bytes_min,count,bytes,time_ns,longest_ns";
    std::fs::write(&file, "something else\n").expect("ours");
    refuses(
        &lab("summary", place.path(), &[]),
        1,
        &["rank-0.csv", "first line"],
    );
    let write = |rank: u32, ranks: u32, run: &str| {
        let text =
            format!("{header}\n{rank},{ranks},run,{run},,,,5,\n{rank},{ranks},sent,0,1,1,1,,\n");
        std::fs::write(place.path().join(format!("rank-{rank}.csv")), text).expect("ours");
    };
    write(0, 3, "1-1");
    write(1, 3, "2-1");
    refuses(
        &lab("matrix", place.path(), &[]),
        1,
        &["different jobs", "run 1-1", "run 2-1"],
    );
    write(1, 3, "1-1");
    let matrix = json("matrix", place.path());
    assert!(
        matrix["warnings"][0]
            .as_str()
            .is_some_and(|said| said.contains("1 of 3 ranks left no file"))
    );
    refuses(
        &lab("matrix", place.path(), &["--step", "3"]),
        2,
        &["--kind or --step"],
    );
}
