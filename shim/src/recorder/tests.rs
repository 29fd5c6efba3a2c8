//! Traces that are written, removed, full and slow, by times that the tests choose.

use super::*;
use colltune_core::collective::Collective;
use colltune_core::record::{CallClass, Manner};

const SECOND_NS: u64 = 1_000_000_000;

fn recorder(name: &str, rest_max: Duration) -> Recorder {
    let header = Header {
        job: format!("{name}{}", std::process::id()),
        rank: 0,
        world_ranks: 1,
        library: "openmpi-4.1.4".to_owned(),
        machine: "test".to_owned(),
        host: "here".to_owned(),
        clock: 0,
        generation: 0,
        colltune_version: "test".to_owned(),
        started_unix_ms: 0,
        capacity: 100,
        variants: vec![(Collective::Barrier, "default".to_owned())],
        context: Vec::new(),
        transport: String::new(),
    };
    Recorder::create(&std::env::temp_dir(), &header, rest_max).unwrap()
}

fn record(recorder: &Recorder, calls: std::ops::Range<u64>) {
    for call in calls {
        recorder.write(|| Record {
            comm: 1,
            call,
            message_bytes: 0,
            start_ns: call,
            duration_ns: 1,
            shift_ns: None,
            after_ns: None,
            agreed: None,
            nodes: 1,
            ppn: 1,
            n_ranks: 1,
            variant: 0,
            collective: Collective::Barrier,
            drawn: false,
            probability: None,
            manner: Manner::Blocking,
            class: CallClass::default(),
        });
    }
}

/// The calls that a file has records of.
fn calls(path: &Path) -> Vec<u64> {
    let (_, records) = colltune_core::record::read(&std::fs::read(path).unwrap()).unwrap();
    records.iter().map(|record| record.call).collect()
}

fn finished(recorder: &Recorder) -> Vec<u64> {
    recorder.finish().unwrap();
    let calls = calls(&recorder.final_path);
    std::fs::remove_file(&recorder.final_path).unwrap();
    calls
}

#[test]
fn a_thread_that_counted_before_another_one_wrote_more_writes_nothing() {
    let recorder = recorder("threads", Duration::MAX);
    record(&recorder, 0..3);
    recorder.keep(|| 1);
    let mut output = recorder.output.lock().unwrap();
    let written = recorder.write_back(&mut output, 1, Extent::All);
    assert!(written.is_ok(), "it had seen one record");
    assert_eq!(recorder.written.load(Ordering::Relaxed), 3);
    drop(output);
    assert_eq!(finished(&recorder), [0, 1, 2]);
}

#[test]
fn a_trace_that_was_removed_is_begun_again_at_the_next_write_and_at_the_end() {
    let recorder = recorder("removed", Duration::MAX);
    record(&recorder, 0..3);
    recorder.keep(|| 1);
    std::fs::remove_file(&recorder.open_path).unwrap();
    record(&recorder, 3..5);
    recorder.keep(|| 1);
    assert_eq!(calls(&recorder.open_path), [0, 1, 2, 3, 4]);
    std::fs::remove_file(&recorder.open_path).unwrap();
    record(&recorder, 5..6);
    assert_eq!(finished(&recorder), [0, 1, 2, 3, 4, 5]);
}

/// A training may look at the file when nothing but its new name is missing, or move it.
#[test]
fn a_trace_that_was_moved_is_written_whole_at_the_end() {
    let recorder = recorder("moved", Duration::MAX);
    let elsewhere = recorder.open_path.with_extension("elsewhere");
    record(&recorder, 0..3);
    recorder.keep(|| 1);
    std::fs::rename(&recorder.open_path, &elsewhere).unwrap();
    record(&recorder, 3..5);
    assert_eq!(finished(&recorder), [0, 1, 2, 3, 4]);
    std::fs::remove_file(elsewhere).unwrap();
}

#[test]
fn behind_a_slow_write_it_rests_for_a_while_and_never_for_long() {
    let recorder = recorder("slow", Duration::from_secs(900));
    let times = std::cell::Cell::new((0, 0));
    let keep_for = |begun_ns, took_ns| {
        times.set((begun_ns, took_ns));
        recorder.keep(|| {
            let (now_ns, took_ns) = times.get();
            times.set((now_ns + took_ns, 0));
            now_ns
        });
        recorder.written.load(Ordering::Relaxed)
    };
    let mut made = 0..1;
    let mut one_more = || {
        record(&recorder, made.clone());
        made = made.end..made.end + 1;
    };
    one_more();
    assert_eq!(keep_for(SECOND_NS, SECOND_NS / 40), 1, "25 ms");
    one_more();
    assert_eq!(keep_for(70 * SECOND_NS, 0), 1, "it rests for 75 s");
    assert_eq!(keep_for(80 * SECOND_NS, 10 * SECOND_NS), 2, "10 s");
    one_more();
    assert!(!recorder.is_due(980 * SECOND_NS));
    assert_eq!(keep_for(980 * SECOND_NS, 0), 2, "it rests for 15 minutes");
    assert!(recorder.is_due(991 * SECOND_NS), "without a review, too");
    assert_eq!(keep_for(991 * SECOND_NS, 0), 3);
    assert_eq!(finished(&recorder), [0, 1, 2]);
}

#[test]
fn a_full_trace_is_touched_so_that_it_does_not_look_abandoned() {
    let recorder = recorder("full", Duration::MAX);
    record(&recorder, 0..3);
    recorder.keep(|| 1);
    let file = std::fs::File::options()
        .write(true)
        .open(&recorder.open_path)
        .unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    recorder.keep(|| 1);
    let modified = file.metadata().unwrap().modified().unwrap();
    assert!(modified > std::time::UNIX_EPOCH);
    assert_eq!(finished(&recorder), [0, 1, 2]);
}
