//! What a call costs the program: the time in it and the time to the next call, agreed by all ranks.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::collective::Collective;
use colltune_core::record::{CallClass, Record};
use colltune_tests::{Mpi, Trace, folder, job, on_each_library, read_log, traces};

/// The blocking allreduces of a trace, by the number of the call.
fn allreduces(trace: &Trace) -> BTreeMap<u64, Record> {
    let records = trace.records.iter();
    let records = records.filter(|record| record.collective == Collective::Allreduce);
    records.map(|record| (record.call, *record)).collect()
}

/// Two ranks in `imbalanced`, of which every call is sampled.
fn solver(mpi: Mpi, compute_us: &str, pattern: &str) -> [BTreeMap<u64, Record>; 2] {
    let db = folder();
    let run = job(2).mpi(mpi).preload().db(db.path()).mode("record");
    let outcome = run
        .env("COLLTUNE_SETUP_AFTER", "1")
        .run("imbalanced", &[compute_us, pattern, "70"]);
    outcome.succeeds().is_silent();
    let traces = traces(db.path());
    assert_eq!(traces.len(), 2, "both ranks record");
    [0, 1].map(|rank| allreduces(&traces[rank]))
}

on_each_library! {
    fn what_ranks_agree_on_is_the_mean_the_longest_and_the_work_of_all_of_them(mpi: Mpi) {
        let [first, second] = solver(mpi, "20", "random");
        assert_eq!(first.len(), 140, "every call is sampled");
        let mut agreed = 0;
        for (sample, (call, one)) in (1..).zip(&first) {
            let other = &second[call];
            assert_eq!(one.agreed, other.agreed, "call {call}");
            // Reviews come at 8, 16, ... 64 and 128; what came later is this rank's own.
            let Some(times) = one.agreed else {
                assert!(sample > 128, "sample {sample} has come to a review");
                continue;
            };
            agreed += 1;
            let mean = |of: fn(&Record) -> u64| (of(one) + of(other)) / 2;
            assert_eq!(times.time_ns, mean(|record| record.duration_ns));
            assert_eq!(times.slowest_ns, one.duration_ns.max(other.duration_ns));
            let end = |record: &Record| record.start_ns + record.duration_ns;
            let work_ns = end(one).max(end(other)) - one.start_ns.max(other.start_ns);
            assert_eq!(times.work_ns, work_ns, "from the last arrival to the last departure");
            let is_last = sample % 64 == 0 || sample < 64 && sample % 8 == 0;
            assert_eq!(times.shift_ns.is_none(), is_last, "sample {sample}: behind it there is a review");
            let of_both = |of: fn(&Record) -> Option<u64>| of(one).zip(of(other)).map(|(one, other)| (one + other) / 2);
            assert_eq!(times.shift_ns, of_both(|record| record.shift_ns));
            let after_ns = [times.after_ns, one.after_ns, other.after_ns];
            assert_eq!(after_ns, [None; 3], "sample {sample}: the next call is one of the same cell");
            let class = CallClass { rounds: true, element_bytes: 8, ..CallClass::default() };
            assert_eq!(one.class, class, "a sum of doubles");
        }
        assert_eq!(agreed, 128);
    }

    fn time_and_shift_are_the_way_to_the_next_call(mpi: Mpi) {
        let compute_us = 300;
        for records in solver(mpi, &compute_us.to_string(), "balanced") {
            let mut computed = 0;
            let pairs = records.iter().zip(records.iter().skip(1));
            for ((call, one), (next_call, next)) in pairs {
                assert_eq!(call + 1, *next_call);
                let Some(shift_ns) = one.shift_ns else { continue };
                // A reading of the clock is rounded to the nanosecond three times.
                let end_ns = one.start_ns + one.duration_ns + shift_ns;
                assert!(end_ns <= next.start_ns + 3, "call {call}: a shift ends where the next call begins");
                // The barrier before the loop is the communicator's first call, so the second dot product's number is even.
                if call % 2 == 0 {
                    computed += 1;
                    assert!(shift_ns >= compute_us * 990, "call {call}: {shift_ns} ns, with {compute_us} us of compute");
                }
            }
            assert!(computed > 50, "{computed}");
        }
    }

    fn the_time_in_a_next_call_of_another_cell_follows(mpi: Mpi) {
        let db = folder();
        let run = job(2).mpi(mpi).preload().db(db.path()).mode("record").env("COLLTUNE_SETUP_AFTER", "1");
        run.run("alternating", &["40"]).succeeds().prints("ok\n").is_silent();
        for trace in traces(db.path()) {
            let mut told = 0;
            for (one, next) in trace.records.iter().zip(trace.records.iter().skip(1)) {
                let Some(after_ns) = one.after_ns else { continue };
                told += 1;
                let end_ns = one.start_ns + one.duration_ns + one.shift_ns.expect("it is over, too") + after_ns;
                assert_eq!(one.call + 1, next.call);
                // A reading of the clock is rounded to the nanosecond a few times.
                let next_end_ns = next.start_ns + next.duration_ns;
                assert!(next_end_ns.abs_diff(end_ns) <= 5, "call {}: {after_ns} ns in the next one", one.call);
            }
            assert!(told > 60, "{told}");
        }
    }

    fn the_time_in_a_next_call_in_which_ranks_agree_on_a_schedule_is_not_told(mpi: Mpi) {
        let db = folder();
        let run = job(2).mpi(mpi).preload().db(db.path()).mode("record").env("COLLTUNE_SETUP_AFTER", "1");
        let run = run.force("bcast=p2p:binomial");
        run.run("alternating", &["3"]).succeeds().prints("ok\n").is_silent();
        for trace in traces(db.path()) {
            let records = allreduces(&trace);
            assert_eq!((records[&0].after_ns, records[&2].after_ns.is_some()), (None, true), "they agree in call 1");
        }
    }

    fn a_call_that_passes_through_ends_a_shift_and_many_threads_have_none(mpi: Mpi) {
        let db = folder();
        let run = job(2).mpi(mpi).preload().db(db.path()).mode("record").env("COLLTUNE_SETUP_AFTER", "1");
        run.run("shifts", &["single"]).succeeds().prints("ok\n").is_silent();
        for trace in traces(db.path()) {
            let records = allreduces(&trace);
            let (first, second) = (&records[&0], &records[&1]);
            let between_ns = second.start_ns - first.start_ns - first.duration_ns;
            let shift_ns = first.shift_ns.expect("another call follows");
            assert!(shift_ns + 40_000_000 * 99 / 100 <= between_ns, "40 ms follow a nonblocking barrier: {shift_ns} of {between_ns}");
            assert_eq!(first.after_ns, None, "the barrier is nonblocking");
            let last = records.values().last().expect("there are some");
            assert!(last.shift_ns.is_some(), "MPI_Finalize ends the last one");
            assert_eq!(last.after_ns, None, "it is no collective");
        }
        let db = folder();
        let run = job(2).mpi(mpi).preload().db(db.path()).mode("record").env("COLLTUNE_SETUP_AFTER", "1");
        run.run("shifts", &["multiple"]).succeeds().prints("ok\n").is_silent();
        for trace in traces(db.path()) {
            assert!(trace.records.len() > 2 && trace.records.iter().all(|record| record.shift_ns.is_none()));
        }
    }

    /// No rank leaves a barrier before the last one has come to it.
    fn who_waits_in_a_next_collective_that_is_not_sampled_is_timed_until_the_last_one_comes(mpi: Mpi) {
        let db = folder();
        let run = job(2).mpi(mpi).preload().db(db.path()).mode("record").env("COLLTUNE_SETUP_AFTER", "2");
        run.run("shifts", &["single"]).succeeds().prints("ok\n").is_silent();
        let ranks: Vec<Record> = traces(db.path()).iter().map(|trace| allreduces(trace)[&2]).collect();
        for (one, other) in [(&ranks[0], &ranks[1]), (&ranks[1], &ranks[0])] {
            let comes_ns = |record: &Record| record.start_ns + record.duration_ns + record.shift_ns.unwrap();
            let after_ns = one.after_ns.expect("the barrier follows");
            assert!(comes_ns(one) + after_ns + 6 >= comes_ns(other), "{one:?} {other:?}");
        }
    }

    /// What takes a hundred times as long as the default is tried on two communicators of a job, and on none that come
    /// later; what is slow, but not so slow, once on each.
    fn what_is_hopeless_is_tried_on_few_communicators_of_a_job(mpi: Mpi) {
        let (db, log) = (folder(), folder());
        let explore = job(2).mpi(mpi).preload().db(db.path()).log(log.path()).mode("explore").seed(4);
        let explore = explore.env("COLLTUNE_FAMILIES", "native,p2p,node").env("COLLTUNE_SETUP_AFTER", "1");
        let explore = explore.env("COLLTUNE_EXPLORE_BUDGET", "1").env("COLLTUNE_SAMPLES_PER_CELL", "100000");
        explore.run("slow_op", &["16", "60", "131072", "200"]).succeeds().prints("ok\n");
        let calls = &read_log(log.path(), 2)[0];
        let mut comms: Vec<u64> = calls.iter().filter_map(|call| call.comm).collect();
        comms.dedup();
        assert_eq!(comms.len(), 16);
        // On how many of the first and of the last eight communicators a variant ran.
        let mut ran: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for (place, comm) in comms.iter().enumerate() {
            let here = calls.iter().filter(|call| call.comm == Some(*comm));
            let here: BTreeSet<&str> = here.map(|call| &call.variant[..]).collect();
            for variant in here {
                ran.entry(variant).or_default()[place / 8] += 1;
            }
        }
        let tried_again = ran.values().filter(|[first, last]| *first > 0 && *last > 4).count();
        let hopeless = ran.values().filter(|[first, last]| *first > 0 && *last == 0).count();
        assert!(hopeless >= 2 && tried_again > hopeless, "{ran:?}");
    }
}
