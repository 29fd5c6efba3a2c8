//! `colltune trace`: what a job recorded and when the mini-app's phases were, as trace events.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use colltune_tests::{colltune as command, folder, job, on_each_library, seen_in_viewers, traces};
use serde_json::Value;

fn succeeds(arguments: &[&str]) -> String {
    let mut command = Command::new(command());
    command.env_remove("COLLTUNE_DB");
    let output = command.args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("a name in UTF-8")
}

/// A slice of the time line: begin and length in nanoseconds, and what it is.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    begin: u64,
    time: u64,
    event: Value,
}

/// The slices of each rank, by the names that processes and threads have in the file.
fn tracks(text: &str) -> BTreeMap<String, Vec<Slice>> {
    let file: Value = serde_json::from_str(text).expect("JSON");
    let events = file["traceEvents"].as_array().expect("events");
    let mut names: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let mut tracks: BTreeMap<String, Vec<Slice>> = BTreeMap::new();
    let number = |event: &Value, name: &str| event[name].as_u64().expect("a number");
    let ns = |event: &Value, name: &str| {
        let us = event[name].as_f64().expect("microseconds");
        (us * 1000.0).round() as u64
    };
    for event in events {
        let track = (number(event, "pid"), number(event, "tid"));
        let named = event["name"].as_str().expect("every event has a name");
        match event["ph"].as_str().expect("every event has a phase") {
            "M" if named == "thread_name" => {
                let name = event["args"]["name"].as_str().expect("a name").to_owned();
                tracks.insert(name.clone(), Vec::new());
                names.insert(track, name);
            }
            "M" => {}
            "X" => {
                let name = names.get(&track).expect("a track has a name first");
                tracks.get_mut(name).expect("named").push(Slice {
                    begin: ns(event, "ts"),
                    time: ns(event, "dur"),
                    event: event.clone(),
                });
            }
            other => panic!("an event of the kind {other:?}"),
        }
    }
    tracks
}

/// Slices of a track lie behind or within each other, as viewers want it.
fn nest(slices: &[Slice]) {
    let mut open: Vec<u64> = Vec::new();
    let mut last = 0;
    for slice in slices {
        assert!(slice.begin >= last, "{slice:?}");
        last = slice.begin;
        while open.last().is_some_and(|end| *end <= slice.begin) {
            open.pop();
        }
        let end = slice.begin + slice.time;
        assert!(open.last().is_none_or(|outer| end <= *outer), "{slice:?}");
        open.push(end);
    }
}

/// Perfetto and the Firefox profiler show the tracks of a time line, each with its slices and their times.
fn are_seen(file: &Path, text: &str) {
    let Some(seen) = seen_in_viewers(file) else {
        return;
    };
    assert_eq!(seen["perfetto"]["problems"], serde_json::json!([]));
    let ours: BTreeMap<String, (u64, u64)> = tracks(text)
        .into_iter()
        .map(|(name, slices)| {
            let time = slices.iter().map(|slice| slice.time).sum();
            (name, (slices.len() as u64, time))
        })
        .collect();
    for viewer in ["perfetto", "firefox"] {
        let theirs = seen[viewer]["tracks"].as_array().expect("tracks");
        let shown: BTreeMap<String, (u64, u64)> = theirs
            .iter()
            .map(|track| {
                let name = track["thread"].as_str().expect("a name").to_owned();
                let time = track["dur_ns"].as_f64().expect("a time");
                let slices = track["slices"].as_u64().expect("a number");
                (name, (slices, time.round() as u64))
            })
            .collect();
        assert_eq!(
            shown.keys().collect::<Vec<_>>(),
            ours.keys().collect::<Vec<_>>()
        );
        for (name, (slices, time)) in &shown {
            // Viewers keep whole nanoseconds of microseconds in floating point: one may be lost in each slice.
            let near = ours[name].1.abs_diff(*time) <= 1 + slices + ours[name].1 / 1_000_000;
            assert!(
                *slices == ours[name].0 && near,
                "{viewer}, {name}: {shown:?}, {ours:?}"
            );
        }
    }
}

on_each_library! {
    fn every_record_of_a_job_is_a_slice_of_its_rank_before_and_after_a_training(mpi: Mpi) {
        let db = folder();
        let app = mpi.mini_app();
        let line = "--nx 4 --ny 4 --nz 4 --num_vars 3 --num_refine 1 --num_tsteps 100 --stages_per_ts 3 --checksum_freq 1 --report_perf 0";
        let run = job(2).mpi(mpi).preload().db(db.path()).mode("explore").seed(4);
        run.run(&app.to_string_lossy(), &line.split_whitespace().collect::<Vec<_>>()).succeeds().is_silent();
        let recorded = traces(db.path());
        let file = db.path().join("trace.json");
        let draw = || {
            let said = succeeds(&["trace", "--db", path(db.path()), "-o", path(&file)]);
            assert!(said.contains("of 2 ranks"), "{said}");
            std::fs::read_to_string(&file).expect("the file")
        };
        let text = draw();
        let tracks = tracks(&text);
        assert_eq!(tracks.keys().collect::<Vec<_>>(), ["rank 0", "rank 1"]);
        let first = recorded.iter().filter_map(|trace| trace.records.first()).map(|record| record.start_ns).min();
        for (trace, slices) in recorded.iter().zip(tracks.values()) {
            nest(slices);
            assert!(slices.len() >= 8 && slices.len() == trace.records.len(), "{} slices", slices.len());
            for (record, Slice { begin, time, event }) in trace.records.iter().zip(slices) {
                assert_eq!((Some(record.start_ns - begin), record.duration_ns), (first, *time));
                assert_eq!(event["name"], format!("{}:{}", record.collective.name(), trace.variant(record)));
                assert_eq!((&event["args"]["bytes"], &event["args"]["call"]), (&record.message_bytes.into(), &record.call.into()));
                assert_eq!(event["args"]["communicator"], format!("{:x}", record.comm));
                assert_eq!(event["cat"], "blocking");
            }
        }
        succeeds(&["train", "--db", path(db.path())]);
        assert_eq!(traces(db.path()).len(), 0, "they are in a partition");
        assert_eq!(draw(), text);
        let counted = ["query", "--db", path(db.path()), "--csv", "SELECT count(*) AS n FROM records"];
        let slices = self::tracks(&text).values().map(Vec::len).sum::<usize>();
        assert_eq!(succeeds(&counted), format!("n\n{slices}\n"));
        are_seen(&file, &text);
        // Packed, it is the same.
        let packed = db.path().join("trace.json.gz");
        succeeds(&["trace", "--db", path(db.path()), "--job", &recorded[0].header.job, "-o", path(&packed)]);
        let unpacked = Command::new("gzip").arg("-dc").arg(&packed).output().expect("gzip");
        assert_eq!(String::from_utf8_lossy(&unpacked.stdout), text);
    }

    fn phases_of_the_mini_app_lie_on_the_tracks_of_their_ranks(mpi: Mpi) {
        let place = folder();
        let telemetry = place.path().join("telemetry");
        let line = format!(
            "--nx 4 --ny 4 --nz 4 --num_vars 3 --num_refine 2 --num_tsteps 6 --stages_per_ts 3 --refine_freq 2 --stencil 27 \
             --report_perf 0 --object 2 0 .2 .3 .4 .05 .04 .02 .15 .15 .15 0 0 0 --telemetry {} --telemetry_spans",
            telemetry.display()
        );
        let run = job(3).mpi(mpi).run(&mpi.mini_app().to_string_lossy(), &line.split_whitespace().collect::<Vec<_>>());
        run.succeeds().is_silent();
        let file = place.path().join("phases.json");
        succeeds(&["trace", "--telemetry", path(&telemetry), "-o", path(&file)]);
        let tracks = tracks(&std::fs::read_to_string(&file).expect("the file"));
        assert_eq!(tracks.keys().collect::<Vec<_>>(), ["rank 0", "rank 1", "rank 2"]);
        let end = |slice: &Slice| slice.begin + slice.time;
        let last = tracks.values().flatten().map(end).max().expect("slices");
        for slices in tracks.values() {
            nest(slices);
            for phase in ["compute", "wait", "allreduce", "refine"] {
                assert!(slices.iter().any(|slice| slice.event["name"] == phase), "{phase}");
            }
            let steps: Vec<u64> = slices.iter().filter_map(|slice| slice.event["args"]["step"].as_u64()).collect();
            assert!(steps.is_sorted() && steps.last() == Some(&6), "{steps:?}");
            assert_eq!(steps.len(), slices.len());
        }
        are_seen(&file, &std::fs::read_to_string(&file).expect("the file"));
        assert!(last < 60_000_000_000, "{last} ns from the first of all meetings");
        // Without the stretches, collectives and what lies between them are known.
        std::fs::remove_file(telemetry.join("spans.0000.parquet")).expect("it was there");
        succeeds(&["trace", "--telemetry", path(&telemetry), "-o", path(&file)]);
        for slices in self::tracks(&std::fs::read_to_string(&file).expect("the file")).values() {
            nest(slices);
            let named = |name: &str| slices.iter().filter(|slice| slice.event["name"] == name).count();
            assert!(named("allreduce") > 3 && named("between collectives") * 2 == slices.len());
            assert!(slices.windows(2).all(|pair| pair[0].begin + pair[0].time == pair[1].begin || pair[1].event["name"] != "allreduce"));
        }
    }
}

#[test]
fn what_cannot_be_drawn_is_told_in_a_sentence_and_leaves_no_file() {
    let place = folder();
    let file = place.path().join("trace.json");
    let fails = |arguments: &[&str], code: i32, says: &str| {
        let mut command = Command::new(command());
        command.env_remove("COLLTUNE_DB");
        let more = ["-o", path(&file)];
        let output = command.arg("trace").args(arguments).args(more).output();
        let output = output.expect("it starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let found = (output.status.code(), text.contains(says), file.exists());
        assert_eq!(found, (Some(code), true, false), "{arguments:?}: {text}");
    };
    let db = path(place.path());
    fails(&[], 2, "give --db DIR or --telemetry FOLDER");
    fails(&["--db", db], 1, "raw records of none");
    fails(&["--db", db, "--job", "x"], 2, "\"x\"");
    fails(&["--telemetry", db], 1, "no telemetry with windows");
    fails(&["--telemetry", "/no/such/folder"], 1, "/no/such/folder");
    for table in ["windows", "ranks"] {
        let file = place.path().join(format!("{table}.0000.parquet"));
        std::fs::write(file, "PAR1").expect("written");
    }
    fails(&["--telemetry", db], 1, "ranks.0000.parquet");
}
