//! Small partitions of raw records become one, and nothing that is learned from them changes.

mod runs;

use std::fs;

use colltune_db::evidence::{Said, Store};
use colltune_db::job::recorded_jobs;
use colltune_db::test_support::{LIBRARY, Run};
use colltune_db::{Database, partition};
use runs::{database, small, trained};

fn said(db: &Database) -> Said {
    let mut warnings = Vec::new();
    let store = Store::open(db, &LIBRARY.into(), &mut warnings).unwrap();
    let said = store.read(LIBRARY, &mut warnings);
    assert_eq!(warnings, Vec::<String>::new());
    said
}

/// How many calls each rank of each job recorded, as those see it who draw them.
fn recorded(db: &Database) -> Vec<(String, u32, usize)> {
    let jobs = recorded_jobs(db, &mut Vec::new()).unwrap();
    let of_job = jobs.iter().flat_map(|job| {
        job.ranks().map(|rank| {
            let read = job.read(db, rank).unwrap();
            (
                job.job.clone(),
                rank,
                read.map_or(0, |read| read.calls.len()),
            )
        })
    });
    of_job.collect()
}

#[test]
fn joined_partitions_say_what_the_small_ones_said_also_while_both_are_there() {
    let (folder, db) = database("");
    let data = db.data(LIBRARY);
    let aside = folder.path().join("aside");
    for number in 0..17 {
        let run = Run {
            calls: 20,
            ..small(&format!("job{number}"))
        };
        run.write(&db.incoming()).unwrap();
        trained(&db);
        if number == 15 {
            fs::create_dir(&aside).unwrap();
            for path in partition::list(&data).unwrap() {
                fs::copy(&path, aside.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    let (evidence, calls) = (said(&db).evidence, recorded(&db));
    assert_eq!(calls.len(), 34);
    assert!(calls.iter().all(|(.., calls)| *calls == 20));
    assert_eq!(partition::list(&data).unwrap().len(), 1);
    // As after a crash, and without what was reduced before.
    for entry in fs::read_dir(&aside).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, data.join(path.file_name().unwrap())).unwrap();
    }
    assert_eq!(partition::list(&data).unwrap().len(), 17);
    assert_eq!(recorded(&db), calls);
    fs::remove_dir_all(db.evidence(LIBRARY)).unwrap();
    let report = trained(&db);
    let of_library = &report.libraries[0];
    assert_eq!((of_library.runs, of_library.records), (17, 17 * 40));
    assert_eq!(said(&db).evidence, evidence);
    assert_eq!(partition::list(&data).unwrap().len(), 1);
}
