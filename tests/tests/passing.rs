//! Nonblocking, persistent and neighbourhood collectives pass through: they are what they are without
//! the shim, are recorded from start to completion, and never enter a cell of blocking calls.

use std::collections::BTreeMap;
use std::process::Command;

use colltune_core::record::{Manner, Record};
use colltune_tests::{
    Job, Mpi, Trace, assert_ranks_agree, colltune, folder, job, on_each_library, on_nodes,
    read_log, skip, tool, traces,
};

const ROUNDS: u64 = 16;

fn exploring(mpi: Mpi, db: &std::path::Path) -> Job {
    job(2)
        .mpi(mpi)
        .preload()
        .db(db)
        .mode("explore")
        .seed(9)
        .env("COLLTUNE_SETUP_AFTER", "1")
}

/// The same behind a tool that sees the program's calls first; few calls are sampled.
fn job_behind(mpi: Mpi, tool: std::path::PathBuf, db: &std::path::Path) -> Job {
    job(2)
        .mpi(mpi)
        .preload_tool(tool)
        .preload()
        .db(db)
        .mode("explore")
        .seed(9)
        .env("COLLTUNE_SETUP_AFTER", "1")
        .env("COLLTUNE_SAMPLES_PER_CELL", "1")
}

/// How many records a trace holds of each manner, and of each collective in it.
fn count(trace: &Trace) -> BTreeMap<(Manner, &'static str), u64> {
    let mut counts = BTreeMap::new();
    for Record {
        manner, collective, ..
    } in &trace.records
    {
        *counts.entry((*manner, collective.name())).or_default() += 1;
    }
    counts
}

/// Runs the command, which must succeed; what it printed.
#[track_caller]
fn run(arguments: &[&str]) -> String {
    let output = Command::new(colltune())
        .args(arguments)
        .output()
        .expect("the command starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

on_each_library! {
    fn every_call_is_recorded_in_its_manner_on_every_recording_rank(mpi: Mpi) {
        job(2).mpi(mpi).run("passing", &["16"]).succeeds().prints("ok\n").is_silent();
        let db = folder();
        exploring(mpi, db.path()).run("passing", &["16"]).succeeds().prints("ok\n").is_silent();
        let traces = traces(db.path());
        assert_eq!(traces.len(), 2);
        for trace in &traces {
            let counts = count(trace);
            let of = |manner| {
                counts.iter().filter(|((other, _), _)| *other == manner).map(|(_, n)| *n).collect::<Vec<_>>()
            };
            // Every collective of the two groups in every manner, in every round, once.
            for (manner, collectives) in [
                (Manner::Nonblocking, 17),
                (Manner::Persistent, 17),
                (Manner::Neighborhood, 5),
                (Manner::NeighborhoodNonblocking, 5),
                (Manner::NeighborhoodPersistent, 5),
            ] {
                assert_eq!(of(manner), vec![ROUNDS; collectives], "{manner:?}: {counts:?}");
            }
            // The program's verdict is its one blocking call.
            assert_eq!(of(Manner::Blocking), [1], "{counts:?}");
            let passed = || trace.records.iter().filter(|record| record.manner != Manner::Blocking);
            assert!(passed().all(|record| trace.variant(record) == "default" && !record.drawn));
            assert!(passed().all(|record| record.duration_ns < 60_000_000_000 && record.n_ranks == 2 && record.nodes == 1));
            // A block of 24 numbers of 8 bytes; no size where counts are a rank's own.
            let sizes: std::collections::BTreeSet<_> = passed().map(|record| record.message_bytes).collect();
            assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [0, 192, 384]);
        }
        let mut identities: Vec<_> = traces[0].records.iter().map(|record| (record.comm, record.manner, record.call)).collect();
        let others: Vec<_> = traces[1].records.iter().map(|record| (record.comm, record.manner, record.call)).collect();
        assert!(identities.iter().all(|identity| others.contains(identity)), "both ranks recorded the same calls");
        identities.sort_unstable();
        identities.dedup();
        assert!(identities.len() > 17 * ROUNDS as usize);
    }

    fn requests_of_several_threads_are_kept_apart(mpi: Mpi) {
        let db = folder();
        let job = exploring(mpi, db.path()).env("COLLTUNE_RECORDS_PER_RUN", "20000");
        job.run("passing", &["16", "threads"]).succeeds().prints("ok\n").is_silent();
        for trace in traces(db.path()) {
            let n = |manner| trace.records.iter().filter(|record| record.manner == manner).count();
            assert_eq!(n(Manner::Nonblocking), 3 * 17 * ROUNDS as usize);
            assert_eq!(n(Manner::NeighborhoodPersistent), 3 * 5 * ROUNDS as usize);
        }
    }

    fn they_are_counted_and_nothing_is_learned_from_them(mpi: Mpi) {
        let db = folder();
        exploring(mpi, db.path()).run("passing", &["16"]).succeeds();
        let path = db.path().to_string_lossy();
        run(&["train", "--db", &path]);
        let status: serde_json::Value =
            serde_json::from_str(&run(&["status", "--db", &path, "--json"])).expect("status is JSON");
        let samples = status["cells"].as_array().into_iter().flatten().flat_map(|cell| cell["variants"].as_array().into_iter().flatten());
        let samples: u64 = samples.filter_map(|variant| variant["samples"].as_u64()).sum();
        assert_eq!(samples, 1, "the program's one blocking call");
        let passed = status["passed"].as_array().expect("calls passed through");
        let records: u64 = passed.iter().filter_map(|passed| passed["records"].as_u64()).sum();
        assert_eq!(records, 2 * (2 * 17 + 3 * 5) * ROUNDS);
        assert!(passed.iter().all(|passed| passed["manner"] != "blocking" && passed["median_ns"].as_u64() > Some(0)));
        let table = run(&["status", "--db", &path]);
        assert!(table.contains("recorded, and left to the library") && table.contains("neighborhood persistent"), "{table}");
    }

    fn nothing_is_recorded_where_nothing_is_to_be(mpi: Mpi) {
        for mode in ["exploit", "off"] {
            let db = folder();
            let outcome = exploring(mpi, db.path()).mode(mode).run("passing", &["8"]);
            outcome.succeeds().prints("ok\n").is_silent();
            assert!(traces(db.path()).is_empty());
        }
        // They take an eighth of a trace, and that it is full changes nothing else.
        let db = folder();
        let outcome = exploring(mpi, db.path()).env("COLLTUNE_RECORDS_PER_RUN", "40").run("passing", &["8"]);
        outcome.succeeds().prints("ok\n").is_silent();
        for trace in traces(db.path()) {
            let of = |blocking| trace.records.iter().filter(|record| (record.manner == Manner::Blocking) == blocking).count();
            assert_eq!((of(false), of(true)), (5, 1));
        }
    }

    /// Which is wrong, but goes well without the shim. What needs a communicator of ours waits until all ranks
    /// have begun the same calls.
    fn a_call_begun_before_a_barrier_on_one_rank_and_behind_it_on_others_ends(mpi: Mpi) {
        job(3).mpi(mpi).run("misordered", &[]).succeeds().prints("ok\n");
        let native = if mpi.is_openmpi() { "native:bruck" } else { "native:dissemination" };
        for (job, variant) in [
            (job(3).mpi(mpi).preload(), native),
            (on_nodes(mpi, "ABB"), "node:shm+default"),
        ] {
            let log = folder();
            // Exploiting, in which no rank records.
            let outcome = job
                .db(log.path())
                .mode("exploit")
                .force(&format!("barrier={variant}"))
                .env("COLLTUNE_SETUP_AFTER", "1")
                .log(log.path())
                .run("misordered", &[]);
            outcome.succeeds().prints("ok\n").is_silent();
            let log = read_log(log.path(), 3);
            assert_ranks_agree(&log);
            let barriers = log[0].iter().filter(|call| call.collective == "barrier");
            let variants: Vec<_> = barriers.map(|call| call.variant.as_str()).collect();
            // A communicator of ours is in the way in Open MPI's native variants, and between nodes in all.
            let misordered = if mpi.is_openmpi() || variant != native { "default" } else { variant };
            assert_eq!(variants, [misordered, misordered, misordered, variant]);
        }
    }

    /// Open MPI 5.0 has it, and from PyPI none of Fortran's: a tool plays the library.
    fn an_agreement_that_is_begun_is_counted_from_every_language(mpi: Mpi) {
        if !mpi.is_openmpi() {
            let _: Option<()> = skip("MPICH has no MPIX_Comm_iagree");
            return;
        }
        let library = || tool(mpi, "agreeing_tool");
        for language in ["C", "mpif.h", "mpi_f08"] {
            job(3).mpi(mpi).preload_tool(library()).run("misordered", &[language]).succeeds().prints("ok\n");
            let log = folder();
            let outcome = job(3)
                .mpi(mpi)
                .preload()
                .preload_tool(library())
                .db(log.path())
                .mode("exploit")
                .force("barrier=native:bruck")
                .env("COLLTUNE_SETUP_AFTER", "1")
                .log(log.path())
                .run("misordered", &[language]);
            outcome.succeeds().prints("ok\n").is_silent();
            let log = read_log(log.path(), 3);
            let barriers = log[0].iter().filter(|call| call.collective == "barrier");
            let variants: Vec<_> = barriers.map(|call| call.variant.as_str()).collect();
            assert_eq!(variants, ["default", "default", "default", "native:bruck"], "{language}");
        }
    }

    /// A handle that is used again must not be taken for the request that had it before.
    fn what_is_completed_out_of_sight_is_not_recorded(mpi: Mpi) {
        for way in ["program", "tool"] {
            let db = folder();
            // The first call is sampled and completed out of sight; the second one is not sampled.
            let job = exploring(mpi, db.path()).env("COLLTUNE_SAMPLES_PER_CELL", "1");
            let job = if way == "tool" {
                let tool = tool(mpi, "waiting_tool");
                job_behind(mpi, tool, db.path())
            } else {
                job
            };
            job.run("unseen", &["20", way]).succeeds().prints("ok\n").is_silent();
            for trace in traces(db.path()) {
                let counts = count(&trace);
                assert_eq!(counts.keys().filter(|(manner, _)| *manner != Manner::Blocking).count(), 0, "{way}: {counts:?}");
                assert_eq!(trace.records.len(), 1, "{way}: the program's verdict is a blocking call");
            }
        }
    }
}
