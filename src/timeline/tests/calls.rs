//! The time line of a job's records: from traces and from partitions, on one clock and on several.

use std::collections::BTreeMap;

use colltune_core::record::{Manner, Record, read};
use colltune_db::Database;
use colltune_db::job::recorded_jobs;
use colltune_db::partition::{self, Piece};
use colltune_db::test_support::{LIBRARY, Run};
use colltune_timeline::calls;
use serde_json::Value;
use tempfile::TempDir;

fn database() -> (TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("colltune.toml"),
        "machine = \"testing\"\n",
    )
    .unwrap();
    let db = Database::create_or_open(folder.path()).unwrap();
    (folder, db)
}

fn drawn(db: &Database, name: Option<&str>) -> (Value, Vec<String>) {
    let mut warnings = Vec::new();
    let job = calls::find(db, name, &mut warnings).unwrap();
    let mut out = Vec::new();
    let drawn = calls::draw(db, &job, &mut out).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    (serde_json::from_slice(&out).unwrap(), drawn.notes)
}

/// Begin and length of each slice in nanoseconds, by track.
fn tracks(file: &Value) -> BTreeMap<(u64, u64), Vec<(u64, u64)>> {
    let mut tracks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let ns = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as u64;
    for event in file["traceEvents"].as_array().unwrap() {
        if event["ph"] == "X" {
            let track = (
                event["pid"].as_u64().unwrap(),
                event["tid"].as_u64().unwrap(),
            );
            tracks
                .entry(track)
                .or_default()
                .push((ns(&event["ts"]), ns(&event["dur"])));
        }
    }
    for slices in tracks.values() {
        for pair in slices.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
    }
    tracks
}

fn records(run: &Run, rank: usize) -> Vec<Record> {
    read(&run.traces()[rank].1).unwrap().1
}

/// Half of each trace in a partition, the rest where the job left it.
fn split(db: &Database, run: &Run) {
    let pieces = run.traces().into_iter().map(|(_, bytes)| {
        let (header, mut records) = read(&bytes).unwrap();
        records.truncate(run.calls as usize / 2);
        Piece {
            owner: None,
            header,
            first: 0,
            records,
        }
    });
    partition::publish(db, &LIBRARY.into(), &pieces.collect::<Vec<_>>()).unwrap();
    run.write(&db.incoming()).unwrap();
}

#[test]
fn every_record_is_a_slice_of_its_rank_wherever_it_lies() {
    let (_folder, db) = database();
    let run = Run {
        calls: 500,
        ..Run::new("nightly", 3)
    };
    split(&db, &run);
    let (file, notes) = drawn(&db, None);
    assert_eq!(
        (&file["otherData"]["job"], notes.len()),
        (&"nightly".into(), 4),
        "{notes:?}"
    );
    let tracks = tracks(&file);
    assert_eq!(
        tracks.keys().copied().collect::<Vec<_>>(),
        [(1, 0), (2, 1), (3, 2), (4, 3)]
    );
    for (rank, slices) in tracks.values().enumerate() {
        let recorded = records(&run, rank);
        assert_eq!(slices.len(), recorded.len());
        for (slice, record) in slices.iter().zip(&recorded) {
            // Other hosts' clocks are converted: by next to nothing, here.
            let tolerance = if rank == 0 {
                0
            } else {
                3 + record.duration_ns / 10_000
            };
            assert!(
                slice.1.abs_diff(record.duration_ns) <= tolerance,
                "{slice:?} {record:?}"
            );
        }
    }
    let events = file["traceEvents"].as_array().unwrap();
    let named = |name: &str| -> Vec<&str> {
        let events = events.iter().filter(|event| event["name"] == name);
        events
            .filter_map(|event| event["args"]["name"].as_str())
            .collect()
    };
    assert_eq!(named("process_name"), ["node0", "node1", "node2", "node3"]);
    assert_eq!(
        named("thread_name"),
        ["rank 0", "rank 1", "rank 2", "rank 3"]
    );
    let first = events.iter().find(|event| event["ph"] == "X").unwrap();
    let record = records(&run, 0)[0];
    assert_eq!(first["args"]["bytes"], record.message_bytes);
    assert_eq!(
        (&first["args"]["communicator"], &first["args"]["call"]),
        (&"7".into(), &0.into())
    );
    let name = first["name"].as_str().unwrap();
    assert!(
        name.starts_with(&format!("{}:", record.collective.name())),
        "{name}"
    );
}

#[test]
fn what_overlaps_on_a_rank_has_a_track_of_its_own() {
    let (_folder, db) = database();
    let run = Run {
        calls: 40,
        recording_ranks: 1,
        nodes: 1,
        // Every fourth call is a nonblocking one that lasts over the next two.
        spoil: Some(|call, record| {
            if call % 4 == 0 {
                record.manner = Manner::Nonblocking;
                record.duration_ns += 2_000_000;
            }
        }),
        ..Run::new("overlap", 5)
    };
    run.write(&db.incoming()).unwrap();
    let (file, _) = drawn(&db, Some("overlap"));
    let tracks = tracks(&file);
    assert!(tracks.len() > 2, "{:?}", tracks.keys());
    assert_eq!(tracks[&(1, 0)].len(), 30);
    assert_eq!(tracks.values().map(Vec::len).sum::<usize>(), 40);
}

#[test]
fn the_last_job_is_drawn_unless_another_is_asked_for_and_what_is_not_there_is_said() {
    let (_folder, db) = database();
    let none = calls::find(&db, None, &mut Vec::new())
        .unwrap_err()
        .to_string();
    assert!(none.contains("raw records of none"), "{none}");
    for (name, seed) in [("b", 7), ("a", 9), ("c", 8)] {
        let run = Run {
            calls: 5,
            ..Run::new(name, seed)
        };
        run.write(&db.incoming()).unwrap();
    }
    let found = |name| calls::find(&db, name, &mut Vec::new()).map(|job| job.job);
    assert_eq!(
        (found(None).unwrap(), found(Some("c")).unwrap()),
        ("a".to_owned(), "c".to_owned())
    );
    let error = found(Some("d")).unwrap_err().to_string();
    assert!(
        error.contains("\"d\"") && error.contains("a, b, c"),
        "{error}"
    );
    // Half a file is not a job.
    let path = db.data(LIBRARY).join("1-2.parquet");
    std::fs::create_dir_all(db.data(LIBRARY)).unwrap();
    std::fs::write(path, "PAR1half").unwrap();
    let mut warnings = Vec::new();
    assert_eq!(recorded_jobs(&db, &mut warnings).unwrap().len(), 3);
    assert!(warnings[0].contains("1-2.parquet"), "{warnings:?}");
}
