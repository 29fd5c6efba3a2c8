//! On evidence of made runs, without the records that it was reduced from.

use std::collections::BTreeSet;
use std::fs;

use super::*;
use crate::database::Database;
use crate::evidence::{Fresh, Standing, Store};
use crate::reduce::{Names, Row};
use crate::test_support::LIBRARY;
use colltune_core::collective::Collective;
use colltune_core::record::Manner;
use colltune_models::evidence::{Evidence, Moments, Shape};

const SHAPE: Shape = Shape {
    collective: Collective::Allreduce,
    message_bytes: 8,
    nodes: 4,
    ppn: 2,
    n_ranks: 8,
};

fn database() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::create_or_open(folder.path()).unwrap();
    (folder, db)
}

fn run(number: u64, nodes: u32) -> Run {
    Run {
        job: format!("job-{number}"),
        held: "0@0-100".to_owned(),
        started_unix_ms: 1_600_000_000_000 + number,
        content: number,
        records: 100,
        nodes,
        ..Run::default()
    }
}

fn store(db: &Database) -> Store {
    let mut warnings = Vec::new();
    let store = Store::open(db, &LIBRARY.into(), &mut warnings).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    store
}

/// What a training does with runs that it has just reduced, two rows each; returns what it warns of.
fn train(
    db: &Database,
    runs: impl IntoIterator<Item = Run>,
) -> Result<Vec<String>, crate::DbError> {
    let names = Names::new(LIBRARY);
    let row = |variant| Row {
        manner: Manner::Blocking,
        evidence: Evidence {
            calls: 50,
            level_ns: 1e4,
            time: Moments {
                n: 50,
                mean: 1.0,
                m2: 0.5,
            },
            ..Evidence::nothing(0, SHAPE, variant)
        },
        seconds: 1e-3,
    };
    let fresh = runs.into_iter().map(|run| Fresh {
        run,
        rows: vec![row(0), row(1)],
    });
    let mut store = store(db);
    store.publish(db, &LIBRARY.into(), &names, fresh.collect())?;
    let mut warnings = Vec::new();
    store.compact(db, &LIBRARY.into(), &mut warnings)?;
    Ok(warnings)
}

fn counting(db: &Database) -> BTreeSet<String> {
    let store = store(db);
    let runs: BTreeSet<String> = store.runs().map(|run| run.job.clone()).collect();
    // What counts has rows, and what has none does not count.
    let said = store.read(LIBRARY, &mut Vec::new());
    assert_eq!(said.evidence.len(), 2 * runs.len());
    assert_eq!(said.jobs.iter().cloned().collect::<BTreeSet<_>>(), runs);
    runs
}

#[test]
fn what_an_earlier_version_took_of_a_running_job_does_not_count() {
    let (_folder, db) = database();
    let early = Run {
        provisional: true,
        ..run(1, 4)
    };
    train(&db, [early, run(2, 4)]).unwrap();
    assert_eq!(counting(&db), ["job-2".to_owned()].into());
    assert!(!store(&db).covered().contains_key("job-1"));
}

#[test]
fn the_newest_runs_count_and_which_older_ones_do_depends_on_no_training() {
    const RUNS: u64 = 1000;
    let (_a, once) = database();
    let (_b, often) = database();
    let (_c, backwards) = database();
    train(&once, (0..RUNS).map(|number| run(number, 4))).unwrap();
    for first in (0..RUNS).step_by(50) {
        train(&often, (first..first + 50).map(|number| run(number, 4))).unwrap();
        let last = RUNS - first;
        train(&backwards, (last - 50..last).map(|number| run(number, 4))).unwrap();
    }
    let count = counting(&once);
    let newest = RUNS - WHOLE as u64..RUNS;
    assert!(
        newest
            .into_iter()
            .all(|number| count.contains(&format!("job-{number}")))
    );
    let expected = thinning::expected(RUNS as usize, WHOLE);
    let few = (count.len() as f64 - expected).abs() < 4.0 * expected.sqrt();
    assert!(
        few && count.len() < 500,
        "{} of {RUNS}, {expected}",
        count.len()
    );
    assert_eq!(counting(&often), count);
    assert_eq!(counting(&backwards), count);
    // All are known, and the rows of what no longer counts are gone from all but the newest files.
    for db in [&once, &often] {
        assert_eq!(store(db).all_runs().count() as u64, RUNS);
    }
    let rows = |store: &Store| {
        let runs = store.files.iter();
        runs.map(|file| file.kept_and_spare())
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let (kept, spare) = rows(&store(&often));
    assert!(kept == count.len() && spare <= kept, "{spare} of {kept}");
}

#[test]
fn what_is_rare_stays_and_many_kinds_share_what_a_training_reads() {
    let (_folder, db) = database();
    train(&db, (0..5).map(|number| run(number, 2))).unwrap();
    train(&db, (5..600).map(|number| run(number, 4))).unwrap();
    let count = counting(&db);
    let rare = (0..5).filter(|number| count.contains(&format!("job-{number}")));
    assert_eq!(rare.count(), 5);
    assert_eq!(whole(&[400, 5]), WHOLE);
    let many = [1000; 100];
    let left: f64 = many
        .iter()
        .map(|&n| thinning::expected(n, whole(&many)))
        .sum();
    assert!(left <= RUNS_MAX && whole(&many) >= 2, "{left}");
    assert_eq!(whole(&[1000; 10_000]), 1);
}

#[test]
fn a_file_of_which_all_may_go_is_not_opened() {
    let (_folder, db) = database();
    // By their names and ages these are gone.
    let old = (0..4000).map(|number| run(number, 4));
    let newer = 4000..4600;
    let gone = |run: &Run| {
        let word = mix(check_word(run.job.as_bytes()), 2);
        !thinning::stays(word, 600, WHOLE)
    };
    train(&db, old.filter(gone).take(100)).unwrap();
    let path = crate::partition::list(&db.evidence(LIBRARY))
        .unwrap()
        .remove(0);
    // Its rows cannot be read; its footer is whole.
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len() - 8;
    let footer = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    bytes[4..end - footer].fill(0xff);
    fs::write(&path, bytes).unwrap();
    train(&db, newer.map(|number| run(number, 4))).unwrap();
    counting(&db);
    assert!(!path.exists());
    let store = store(&db);
    let thinned = |(_, standing): &(&Run, Standing)| *standing == Standing::Thinned;
    assert!(store.all_runs().filter(thinned).count() >= 100);
    assert_eq!(store.all_runs().count(), 700);
}

#[test]
fn a_compaction_that_is_stopped_loses_nothing_and_is_finished_by_the_next() {
    use crate::write::interruption;
    let expected = {
        let (_folder, db) = database();
        train(&db, (0..1000).map(|number| run(number, 4))).unwrap();
        counting(&db)
    };
    for steps in 0.. {
        let (_folder, db) = database();
        for first in (0..800).step_by(50) {
            train(&db, (first..first + 50).map(|number| run(number, 4))).unwrap();
        }
        interruption::after(steps);
        let stopped = train(&db, (800..1000).map(|number| run(number, 4)));
        interruption::after(u32::MAX);
        if store(&db).all_runs().count() == 1000 {
            assert_eq!(counting(&db), expected, "step {steps}");
        }
        train(&db, (800..1000).map(|number| run(number, 4))).unwrap();
        assert_eq!(counting(&db), expected, "step {steps}");
        let store = store(&db);
        assert_eq!(store.all_runs().count(), 1000, "step {steps}");
        let files = store.files.len();
        assert!(files <= 17, "step {steps}: {files} files");
        if stopped.is_ok_and(|warnings| warnings.is_empty()) {
            assert!(steps > 5, "the steps of a compaction: {steps}");
            return;
        }
    }
}
