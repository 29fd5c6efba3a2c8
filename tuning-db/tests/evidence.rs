//! What a database keeps of its runs: for how long, in how many files, and what it keeps apart.

mod runs;

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

use colltune_db::evidence::{Said, Store};
use colltune_db::test_support::{LIBRARY, Run};
use colltune_db::train::LibraryReport;
use colltune_db::{DataKey, Database, Generation, TrainOptions, partition, train};
use parquet::file::reader::SerializedFileReader;
use runs::{database, small, trained};

fn counted(report: &LibraryReport) -> (u64, u64, u64) {
    (report.runs, report.records, report.calls)
}

fn said(db: &Database, key: impl Into<DataKey>) -> Said {
    let (key, mut warnings) = (key.into(), Vec::new());
    let store = Store::open(db, &key, &mut warnings).unwrap();
    let said = store.read(key.library, &mut warnings);
    assert_eq!(warnings, Vec::<String>::new());
    said
}

fn raw(db: &Database) -> usize {
    partition::list(&db.data(LIBRARY)).unwrap().len()
}

#[test]
fn raw_records_go_after_their_time_and_what_they_said_stays() {
    let (_folder, db) = database("keep_raw = \"30d\"\n");
    small("a").write(&db.incoming()).unwrap();
    trained(&db);
    let before = said(&db, LIBRARY);
    assert_eq!(raw(&db), 1);
    let path = partition::list(&db.data(LIBRARY)).unwrap().remove(0);
    let file = fs::File::options().write(true).open(&path).unwrap();
    let day = Duration::from_secs(86_400);
    file.set_modified(SystemTime::now() - 29 * day).unwrap();
    assert_eq!(trained(&db).libraries[0].partitions_removed, 0);
    file.set_modified(SystemTime::now() - 31 * day).unwrap();
    let report = trained(&db);
    assert_eq!((report.libraries[0].partitions_removed, raw(&db)), (1, 0));
    assert!(!report.libraries[0].published, "nothing is new");
    assert_eq!(said(&db, LIBRARY).evidence, before.evidence);
    small("b").write(&db.incoming()).unwrap();
    assert_eq!(counted(&trained(&db).libraries[0]), (2, 1200, 600));
}

#[test]
fn where_evidence_cannot_be_written_nothing_is_lost() {
    let (_folder, db) = database("keep_raw = \"0\"\n");
    small("a").write(&db.incoming()).unwrap();
    fs::create_dir_all(db.library(LIBRARY)).unwrap();
    fs::write(db.evidence(LIBRARY), "in the way").unwrap();
    train(&db, TrainOptions::default(), &|_| {}).unwrap_err();
    fs::remove_file(db.evidence(LIBRARY)).unwrap();
    assert_eq!(counted(&trained(&db).libraries[0]), (1, 600, 300));
    assert_eq!(raw(&db), 0);
}

#[test]
fn traces_that_come_late_are_counted_once_whether_or_not_the_first_are_still_there() {
    for (settings, calls) in [("", 300), ("keep_raw = \"0\"\n", 600)] {
        let (_folder, db) = database(settings);
        let paths = small("a").write(&db.incoming()).unwrap();
        let copies: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        fs::remove_file(&paths[1]).unwrap();
        assert_eq!(counted(&trained(&db).libraries[0]), (1, 300, 300));
        // The other rank's, and the first again.
        for (path, bytes) in paths.iter().zip(&copies) {
            fs::write(path, bytes).unwrap();
        }
        // Together they are the same calls; apart, where the first are gone, each is a call of its own.
        assert_eq!(
            counted(&trained(&db).libraries[0]),
            (1, 600, calls),
            "{settings}"
        );
        for (path, bytes) in paths.iter().zip(&copies) {
            fs::write(path, bytes).unwrap();
        }
        let report = trained(&db);
        assert!(!report.libraries[0].published, "{settings}");
        assert_eq!(counted(&report.libraries[0]), (1, 600, calls), "{settings}");
    }
}

#[test]
fn many_trainings_leave_few_files_that_say_what_one_training_says() {
    let run = |number: u64| Run {
        calls: 60,
        seed: number,
        ..small(&format!("job{number}"))
    };
    let (_folder, one) = database("");
    let (_other, many) = database("keep_raw = \"0\"\n");
    for number in 0..40 {
        run(number).write(&one.incoming()).unwrap();
        run(number).write(&many.incoming()).unwrap();
        trained(&many);
    }
    trained(&one);
    let files = partition::list(&many.evidence(LIBRARY)).unwrap().len();
    assert!(files <= 17, "{files} files");
    let (one, many) = (said(&one, LIBRARY), said(&many, LIBRARY));
    assert_eq!((one.n_runs(), many.n_runs()), (40, 40));
    assert_eq!(one.evidence, many.evidence);
}

#[test]
fn two_transports_in_one_batch_are_two_data_sets() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    let tcp = Run {
        transport: "ob1+tcp,vader".to_owned(),
        ..small("b")
    };
    tcp.write(&db.incoming()).unwrap();
    let report = trained(&db);
    let key: DataKey = format!("{LIBRARY}@ob1+tcp,vader").parse().unwrap();
    assert_eq!(db.keys().unwrap(), [DataKey::from(LIBRARY), key.clone()]);
    for library in &report.libraries {
        assert_eq!(counted(library), (1, 600, 300), "{}", library.library);
    }
    let jobs = |key: &DataKey| {
        said(&db, key)
            .runs
            .iter()
            .map(|run| run.job.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (jobs(&LIBRARY.into()), jobs(&key)),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
    assert_eq!(Generation::load(&db, &key).unwrap().number, 1);
    assert_eq!(db.libraries().unwrap(), [LIBRARY]);
}

#[test]
fn traces_that_name_no_possible_transport_are_refused() {
    let (_folder, db) = database("");
    let spoilt = Run {
        transport: "../../etc".to_owned(),
        ..small("a")
    };
    spoilt.write(&db.incoming()).unwrap();
    assert_eq!(trained(&db).ingest.quarantined.len(), 2);
    assert_eq!(db.keys().unwrap(), []);
}

#[test]
fn runs_on_different_settings_of_the_library_are_learned_from_and_somebody_is_told() {
    let (_folder, db) = database("");
    for (job, settings) in [("a", ""), ("b", "OMPI_MCA_coll_hcoll_enable=0")] {
        let run = Run {
            context: vec![("settings".to_owned(), settings.to_owned())],
            ..small(job)
        };
        run.write(&db.incoming()).unwrap();
    }
    let report = trained(&db);
    assert_eq!(counted(&report.libraries[0]), (2, 1200, 600));
    let warned = report
        .ingest
        .warnings
        .iter()
        .filter(|text| text.contains("hcoll"));
    assert_eq!(warned.count(), 1, "{report:?}");
}

#[test]
fn a_generation_says_whose_the_librarys_own_choice_was_in_the_last_run_that_tells() {
    let (_folder, db) = database("");
    let of = || {
        let generation = Generation::load(&db, LIBRARY).unwrap();
        generation.meta.expect("it is trained").component
    };
    for (job, seed, told, component) in [
        ("a", 1, "", ""),
        ("b", 2, "han", "han"),
        ("c", 3, "", "han"),
    ] {
        let run = Run {
            seed,
            context: vec![("component".to_owned(), told.to_owned())],
            ..small(job)
        };
        run.write(&db.incoming()).unwrap();
        trained(&db);
        assert_eq!(of(), component, "{job}");
    }
}

#[test]
fn whatever_shapes_a_training_makes_another_one_and_nothing_else_does() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    assert!(trained(&db).libraries[0].published);
    assert!(!trained(&db).libraries[0].published);
    let settings = [
        "families = [\"native\"]\n",
        "families = [\"native\"]\nhopeless_factor = 3.0\n",
        "families = [\"native\"]\nhopeless_factor = 3.0\nreproducible = \"strict\"\n",
    ];
    for text in settings {
        fs::write(db.settings_path(), format!("machine = \"testing\"\n{text}")).unwrap();
        assert!(trained(&db).libraries[0].published, "{text}");
        assert!(!trained(&db).libraries[0].published, "{text}");
    }
    fs::write(db.calibration(LIBRARY), "schema = 1\n").unwrap();
    assert!(trained(&db).libraries[0].published, "the calibration");
    assert!(!trained(&db).libraries[0].published);
}

#[test]
fn clocks_that_jump_and_impossible_times_leave_a_sound_model() {
    let (_folder, db) = database("");
    const HOUR_NS: u64 = 3_600_000_000_000;
    let jumping = Run {
        spoil: Some(|number, record| {
            record.start_ns = match number % 3 {
                0 => u64::MAX - number,
                1 => 0,
                _ => record.start_ns,
            };
            record.duration_ns = match number % 5 {
                0 => 0,
                1 => 2 * HOUR_NS,
                _ => record.duration_ns,
            };
        }),
        ..small("a")
    };
    jumping.write(&db.incoming()).unwrap();
    small("b").write(&db.incoming()).unwrap();
    let report = trained(&db);
    assert_eq!(counted(&report.libraries[0]), (2, 1200, 600));
    let said = said(&db, LIBRARY);
    assert_eq!(said.evidence.iter().map(|one| one.calls).sum::<u64>(), 600);
    assert_eq!(said.unknown, 0);
    let generation = Generation::load(&db, LIBRARY).unwrap();
    assert_eq!(generation.model.check(LIBRARY), Ok(()));
}

#[test]
fn what_cannot_be_quarantined_is_left_with_a_warning_and_the_rest_goes_on() {
    let (_folder, db) = database("");
    small("a").write(&db.incoming()).unwrap();
    fs::write(db.incoming().join("README"), "hello").unwrap();
    // As root no permission stands in the way; a file does.
    fs::write(db.quarantine(), "in the way").unwrap();
    let report = trained(&db);
    assert_eq!(counted(&report.libraries[0]), (1, 600, 300));
    assert!(
        report
            .ingest
            .warnings
            .iter()
            .any(|text| text.contains("README")),
        "{report:?}"
    );
    assert!(db.incoming().join("README").exists());
}

#[test]
fn names_that_this_catalogue_lacks_are_kept_for_one_that_has_them() {
    let (_folder, db) = database("");
    let later = Run {
        rename: Some(("native:ring", "native:quantum")),
        ..small("a")
    };
    later.write(&db.incoming()).unwrap();
    small("b").write(&db.incoming()).unwrap();
    trained(&db);
    let mut rows = Vec::new();
    for path in partition::list(&db.evidence(LIBRARY)).unwrap() {
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        let text = reader.into_iter().map(|row| row.unwrap().to_string());
        rows.extend(text);
    }
    assert!(
        rows.iter().any(|row| row.contains("\"native:quantum\"")),
        "{}",
        rows[0]
    );
    assert!(said(&db, LIBRARY).unknown > 0);
}

#[test]
fn a_database_of_the_first_layout_is_taken_over_and_nothing_is_lost() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/layout-1");
    let (_folder, db) = database("keep_raw = \"inf\"\n");
    // The machine that wrote it was called so.
    fs::write(db.settings_path(), "machine = \"vm\"\n").unwrap();
    fs::create_dir_all(db.data(LIBRARY)).unwrap();
    for (from, to) in [("data", db.data(LIBRARY)), ("incoming", db.incoming())] {
        for entry in fs::read_dir(golden.join(from)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    let report = trained(&db);
    // Three runs in a partition, and the fourth in traces of the first two versions.
    assert_eq!(counted(&report.libraries[0]), (4, 480, 240));
    assert_eq!(report.ingest.warnings, Vec::<String>::new());
    assert_eq!(report.ingest.quarantined, []);
    let said = said(&db, LIBRARY);
    let jobs: BTreeSet<&str> = said.runs.iter().map(|run| run.job.as_str()).collect();
    let expected = ["synthetic-0", "synthetic-1", "synthetic-2", "synthetic-3"];
    assert_eq!(jobs, expected.into());
    // Three calls ran variants that this version has no longer; they stay in the files.
    let known = said.evidence.iter().map(|one| one.calls).sum::<u64>();
    assert_eq!((known, said.unknown), (237, 3));
    assert!(
        said.evidence.iter().all(|one| one.shift.n == 0),
        "nobody timed what follows"
    );
    assert!(
        !trained(&db).libraries[0].published,
        "it is taken over once"
    );
}
