//! Ingest with real files: what is taken, what is refused, what a crash leaves.

mod runs;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use colltune_core::record::RECORD_BYTES;
use colltune_db::test_support::{LIBRARY, Run};
use colltune_db::{Database, DbError, Generation, TrainOptions, partition, train};
use runs::{database, small, trained};

/// Every (job, rank, comm, call) in the data set; panics on one that is there twice.
fn records(db: &Database) -> usize {
    let mut seen = BTreeSet::new();
    for path in partition::list(&db.data(LIBRARY)).unwrap() {
        let (held, columns) = partition::read(&path).unwrap();
        let mut row = 0;
        for held in held {
            for _ in 0..held.count {
                let call = (columns.comm[row], columns.call[row]);
                let is_new = seen.insert((held.job.clone(), held.rank, call));
                assert!(is_new, "a record is there twice");
                row += 1;
            }
        }
        assert_eq!(columns.call.len(), row);
    }
    seen.len()
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_training_publishes_and_another_without_news_does_not() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    let report = trained(&db);
    assert_eq!((report.ingest.traces, report.ingest.records), (2, 600));
    assert_eq!(
        (
            report.libraries[0].generation,
            report.libraries[0].published
        ),
        (1, true)
    );
    assert_eq!(names(&db.incoming()), BTreeSet::new());
    let generation = Generation::load(&db, LIBRARY).unwrap();
    assert_eq!(generation.number, 1);
    assert_eq!(
        generation.cells.len(),
        db.settings().unwrap().space.cells().count()
    );
    assert!(
        generation
            .cells
            .iter()
            .all(|cell| !cell.variants.is_empty())
    );
    assert_eq!(
        generation
            .cells
            .iter()
            .map(|cell| cell.samples())
            .sum::<u64>(),
        300
    );
    assert!(!trained(&db).libraries[0].published);
    let forced = train(
        &db,
        TrainOptions {
            force: true,
            ..TrainOptions::default()
        },
        &|_| {},
    )
    .unwrap();
    assert_eq!(
        (
            forced.libraries[0].generation,
            forced.libraries[0].published
        ),
        (2, true)
    );
    small("b").write(&db.incoming()).unwrap();
    assert_eq!(trained(&db).libraries[0].runs, 2);
    assert_eq!(fs::read_to_string(db.current(LIBRARY)).unwrap(), "000003\n");
    // Another tuning space is something new as well.
    fs::write(
        db.settings_path(),
        "machine = \"testing\"\n[[space]]\ncollective = \"bcast\"\nbytes = [0, 100, \"inf\"]\n",
    )
    .unwrap();
    assert_eq!(trained(&db).libraries[0].generation, 4);
}

#[test]
fn whatever_lies_in_incoming_the_rest_goes_on() {
    let (_folder, db) = database("");
    let incoming = db.incoming();
    small("good").write(&incoming).unwrap();
    let good = fs::read(incoming.join("good.0.trace")).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(incoming.join(name), bytes).unwrap();
    put("empty.0.trace", b"");
    put("noise.0.trace", &[0x5a; 5000]);
    put("zeros.0.trace", &[0; 5000]);
    put("other.0.trace", &good); // says it is good.0
    put("README", b"hello");
    put("good.0.trace.gz", b"hello");
    put("cut.0.trace", &good[..100]);
    let mut liar = good.clone();
    liar[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    put("liar.0.trace", &liar);
    let foreign = Run {
        machine: "elsewhere".to_owned(),
        ..small("foreign")
    };
    foreign.write(&incoming).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", incoming.join("link.0.trace")).unwrap();
    fs::create_dir(incoming.join("folder.0.trace")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(incoming.join("pipe.0.trace"))
            .status()
            .unwrap()
            .success()
    );
    fs::File::create(incoming.join("huge.0.trace"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    put("secret.0.trace", &good);
    fs::set_permissions(
        incoming.join("secret.0.trace"),
        fs::Permissions::from_mode(0o0),
    )
    .unwrap();

    let report = trained(&db);
    assert_eq!(report.ingest.records, 600, "{report:?}");
    assert_eq!(names(&incoming), BTreeSet::new());
    let refused: BTreeSet<String> = report
        .ingest
        .quarantined
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    let expected = [
        "README",
        "cut.0.trace",
        "empty.0.trace",
        "folder.0.trace",
        "foreign.0.trace",
        "foreign.1.trace",
        "good.0.trace.gz",
        "huge.0.trace",
        "liar.0.trace",
        "link.0.trace",
        "noise.0.trace",
        "other.0.trace",
        "pipe.0.trace",
        "secret.0.trace",
        "zeros.0.trace",
    ];
    assert_eq!(refused, expected.map(str::to_owned).into());
    for name in expected {
        let reason = fs::read_to_string(db.quarantine().join(format!("{name}.reason"))).unwrap();
        assert!(
            reason.len() > 10 && reason.ends_with('\n'),
            "{name}: {reason}"
        );
    }
    let reason = fs::read_to_string(db.quarantine().join("foreign.0.trace.reason")).unwrap();
    assert!(
        reason.contains("elsewhere") && reason.contains("testing"),
        "{reason}"
    );
    // The same name again is kept beside the first.
    put("README", b"again");
    trained(&db);
    assert_eq!(
        fs::read(db.quarantine().join("README.1")).unwrap(),
        b"again"
    );
    assert_eq!(fs::read(db.quarantine().join("README")).unwrap(), b"hello");
}

#[test]
fn what_jobs_say_of_themselves_and_nobody_understands_stays_where_it_is() {
    let (_folder, db) = database("");
    let runs = ["one.run", "two.run.open"];
    for name in runs {
        fs::write(db.incoming().join(name), "{}").unwrap();
    }
    small("good").write(&db.incoming()).unwrap();
    let report = trained(&db);
    assert_eq!(report.ingest.records, 600);
    assert_eq!(report.ingest.quarantined, []);
    assert_eq!(names(&db.incoming()), runs.map(str::to_owned).into());
}

#[test]
fn names_that_are_no_text_are_refused_too() {
    use std::os::unix::ffi::OsStrExt;
    let (_folder, db) = database("");
    fs::write(
        db.incoming()
            .join(std::ffi::OsStr::from_bytes(b"\xff\xfe.0.trace")),
        "x",
    )
    .unwrap();
    small("good").write(&db.incoming()).unwrap();
    let report = trained(&db);
    assert_eq!(
        (report.ingest.records, report.ingest.quarantined.len()),
        (600, 1)
    );
}

#[test]
fn truncated_and_damaged_traces_keep_what_is_whole() {
    let (_folder, db) = database("");
    let paths = small("a").write(&db.incoming()).unwrap();
    let bytes = fs::read(&paths[0]).unwrap();
    // Cut inside a record, as a kill leaves it: 99 records are whole.
    let header = bytes.len() - 300 * RECORD_BYTES;
    fs::write(&paths[0], &bytes[..header + 99 * RECORD_BYTES + 10]).unwrap();
    // A flipped bit in the middle: all others count, the file is kept for inspection.
    let mut bytes = fs::read(&paths[1]).unwrap();
    bytes[header + 200 * RECORD_BYTES + 5] ^= 1;
    fs::write(&paths[1], &bytes).unwrap();
    let report = trained(&db);
    assert_eq!(report.ingest.records, 99 + 299);
    assert_eq!(records(&db), 398);
    assert_eq!(report.ingest.quarantined.len(), 1);
    assert!(
        report.ingest.quarantined[0]
            .1
            .contains("1 damaged record(s)"),
        "{report:?}"
    );
}

#[test]
fn running_jobs_are_left_alone_and_taken_once_they_have_ended() {
    let (_folder, db) = database("");
    let incoming = db.incoming();
    let (rank, whole) = small("a").traces().remove(0);
    let header = whole.len() - 300 * RECORD_BYTES;
    let open = incoming.join(format!("a.{rank}.trace.open"));
    let mut partial = whole[..header + 120 * RECORD_BYTES].to_vec();
    partial.resize(whole.len(), 0);
    fs::write(&open, &partial).unwrap();
    fs::write(incoming.join("b.0.trace.open"), b"").unwrap(); // has just begun
    let report = trained(&db);
    assert_eq!(
        (
            report.ingest.records,
            report.ingest.running,
            report.libraries.len()
        ),
        (0, 2, 0)
    );
    assert_eq!(
        fs::read(&open).unwrap(),
        partial,
        "a running job's trace is not touched"
    );
    // The job goes on and ends.
    fs::write(&open, &whole).unwrap();
    fs::rename(&open, incoming.join(format!("a.{rank}.trace"))).unwrap();
    let report = trained(&db);
    assert_eq!(
        (report.ingest.records, report.libraries[0].records),
        (300, 300)
    );
    assert_eq!((report.libraries[0].calls, records(&db)), (300, 300));
    assert_eq!(names(&incoming), ["b.0.trace.open".to_owned()].into());
}

#[test]
fn abandoned_traces_are_taken_once_they_are_stale() {
    let (_folder, db) = database("");
    let (rank, whole) = small("a").traces().remove(0);
    let open = db.incoming().join(format!("a.{rank}.trace.open"));
    fs::write(&open, &whole).unwrap();
    let written = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 3600);
    fs::File::options()
        .write(true)
        .open(&open)
        .unwrap()
        .set_modified(written)
        .unwrap();
    assert_eq!(trained(&db).ingest.records, 300);
    assert!(!open.exists());
}

#[test]
fn traces_that_come_back_after_a_crash_are_known() {
    let (_folder, db) = database("");
    let paths = small("a").write(&db.incoming()).unwrap();
    let copies: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    trained(&db);
    for (path, bytes) in paths.iter().zip(&copies) {
        fs::write(path, bytes).unwrap();
    }
    let report = trained(&db);
    assert_eq!((report.ingest.records, report.ingest.traces), (0, 0));
    assert!(!report.libraries[0].published);
    assert_eq!((records(&db), names(&db.incoming()).len()), (600, 0));
}

/// A child process that trains and dies at the step that the test names; run by the tests below.
#[test]
fn helper_that_trains() {
    let Some(folder) = std::env::var_os("COLLTUNE_TEST_DB") else {
        return;
    };
    let step: usize = std::env::var("COLLTUNE_TEST_STEP")
        .unwrap()
        .parse()
        .unwrap();
    let count = std::cell::Cell::new(0);
    let db = Database::open(folder).unwrap();
    let result = train(&db, TrainOptions::default(), &|_| {
        count.set(count.get() + 1);
        if count.get() == step {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
    });
    std::process::exit(match result {
        Ok(_) => 0,
        Err(error) => {
            eprintln!("REASON failed to {error}");
            7
        }
    });
}

fn child(db: &Database, step: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "helper_that_trains", "--nocapture"]);
    command
        .env("COLLTUNE_TEST_DB", db.root())
        .env("COLLTUNE_TEST_STEP", step.to_string());
    command
}

#[test]
fn a_training_that_is_killed_at_any_step_loses_and_doubles_nothing() {
    let mut step = 1;
    loop {
        let (_folder, db) = database("");
        small("a").write(&db.incoming()).unwrap();
        trained(&db);
        small("b").write(&db.incoming()).unwrap();
        let status = child(&db, step).output().unwrap().status;
        let generation = Generation::load(&db, LIBRARY).unwrap();
        assert!(generation.number == 1 || status.success(), "step {step}");
        let report = trained(&db);
        assert_eq!(records(&db), 1200, "step {step}");
        assert_eq!(report.libraries[0].records, 1200, "step {step}");
        assert_eq!(names(&db.incoming()).len(), 0);
        assert!(
            names(&db.data(LIBRARY))
                .iter()
                .chain(&names(&db.generations(LIBRARY)))
                .all(|name| !name.starts_with('.'))
        );
        if status.success() {
            break;
        }
        step += 1;
    }
    assert!(step > 5, "the steps of a training, less the last: {step}");
}

#[test]
fn of_two_trainings_at_once_one_is_told_who_holds_the_lock() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    let refused = std::cell::RefCell::new(String::new());
    let report = train(&db, TrainOptions::default(), &|_| {
        if refused.borrow().is_empty() {
            let output = child(&db, 0).output().unwrap();
            assert_eq!(output.status.code(), Some(7));
            *refused.borrow_mut() = String::from_utf8_lossy(&output.stderr).into_owned();
        }
    });
    assert_eq!(report.unwrap().ingest.records, 600);
    let refused = refused.into_inner();
    assert!(
        refused.contains(&format!("process {}", std::process::id())),
        "{refused}"
    );
}

#[test]
fn a_full_disk_is_an_error_that_loses_nothing() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    trained(&db);
    small("b").write(&db.incoming()).unwrap();
    // A limit on the size of files fails writes as a full disk does: at the partition, at models
    // and at probabilities.json, by its size.
    let length = fs::metadata(db.generations(LIBRARY).join("000001/probabilities.json"))
        .unwrap()
        .len();
    for blocks in [1, 8, 40, length / 512 - 20] {
        let child = child(&db, 0);
        let mut limited = Command::new("sh");
        limited
            .arg("-c")
            .arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""))
            .arg("sh")
            .arg(child.get_program());
        limited.args(child.get_args());
        limited.envs(
            child
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        );
        let output = limited.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{blocks} blocks: {stderr}");
        assert!(
            stderr.contains("REASON failed to write"),
            "{blocks} blocks: {stderr}"
        );
        assert!(
            stderr.contains("File too large") || stderr.contains("Write incomplete"),
            "{blocks} blocks: {stderr}"
        );
        assert_eq!(Generation::load(&db, LIBRARY).unwrap().number, 1);
        assert!(
            names(&db.generations(LIBRARY))
                .iter()
                .all(|name| !name.starts_with('.'))
        );
    }
    let report = trained(&db);
    assert_eq!((report.libraries[0].records, records(&db)), (1200, 1200));
}

#[test]
fn a_read_only_database_is_an_error_that_names_the_file() {
    let (folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    // Even root cannot write where a folder stands in the way.
    fs::create_dir(db.lock_path()).unwrap();
    let error = train(&db, TrainOptions::default(), &|_| {})
        .unwrap_err()
        .to_string();
    assert!(error.contains("train.lock"), "{error}");
    fs::remove_dir(db.lock_path()).unwrap();
    fs::write(folder.path().join(LIBRARY.to_string()), "in the way").unwrap();
    assert!(matches!(
        train(&db, TrainOptions::default(), &|_| {}),
        Err(DbError::Io { .. })
    ));
    assert_eq!(names(&db.incoming()).len(), 2);
}

#[test]
fn broken_generations_are_errors_that_name_the_file_and_are_replaced_by_the_next_training() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    trained(&db);
    let folder = db.generations(LIBRARY).join("000001");
    let text = fs::read_to_string(folder.join("probabilities.json")).unwrap();
    fs::write(folder.join("probabilities.json"), &text[..text.len() / 2]).unwrap();
    let error = Generation::load(&db, LIBRARY).unwrap_err().to_string();
    assert!(error.contains("000001/probabilities.json"), "{error}");
    fs::write(db.current(LIBRARY), "xyz").unwrap();
    assert!(
        Generation::load(&db, LIBRARY)
            .unwrap_err()
            .to_string()
            .contains("xyz")
    );
    let report = trained(&db);
    assert_eq!(
        (report.libraries[0].generation, report.ingest.warnings.len()),
        (2, 1)
    );
    assert_eq!(Generation::load(&db, LIBRARY).unwrap().number, 2);
}

#[test]
fn a_damaged_partition_neither_stops_a_training_nor_takes_what_was_learned() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    trained(&db);
    let path = partition::list(&db.data(LIBRARY)).unwrap().remove(0);
    let whole = fs::read(&path).unwrap();
    // Nothing of it, its footer alone, and a footer whose columns end early.
    let torn = [
        b"PAR1 no more".to_vec(),
        whole[whole.len() / 2..].to_vec(),
        {
            let mut zeroed = whole.clone();
            zeroed[8..whole.len() / 2].fill(0);
            zeroed
        },
    ];
    for (bytes, job) in torn.into_iter().zip(["b", "c", "d"]) {
        fs::write(&path, bytes).unwrap();
        small(job).write(&db.incoming()).unwrap();
        trained(&db);
    }
    let report = trained(&db);
    assert_eq!(
        (report.libraries[0].runs, report.libraries[0].records),
        (4, 2400)
    );
    fs::write(&path, "PAR1 no more").unwrap();
    let warnings = trained(&db).ingest.warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("parquet"), "{warnings:?}");
    // Whoever loses evidence whose raw records are there loses nothing either.
    fs::write(&path, whole).unwrap();
    for evidence in partition::list(&db.evidence(LIBRARY)).unwrap() {
        fs::write(&evidence, "PAR1").unwrap();
    }
    let report = trained(&db);
    assert_eq!(
        (report.libraries[0].runs, report.libraries[0].records),
        (4, 2400)
    );
}
