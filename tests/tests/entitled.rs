//! What the standard lets a program do and hardly any program does: it ends as without the shim, with the same results.

use std::collections::BTreeSet;

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_tests::{Job, Mpi, folder, is_long, job, on_each_library, read_log, skip};

/// MPICH's ranks do not yield while they wait.
fn n_ranks(mpi: Mpi) -> u32 {
    if mpi.is_openmpi() { 3 } else { 2 }
}

/// The program is right without the shim and under each of `jobs`.
fn is_right(mpi: Mpi, way: &str, jobs: &[&dyn Fn(Job) -> Job]) {
    job(n_ranks(mpi))
        .mpi(mpi)
        .run("entitled", &[way])
        .succeeds()
        .prints("ok\n");
    for with in jobs {
        let tuned = with(job(n_ranks(mpi)).mpi(mpi).preload().seed(3)).run("entitled", &[way]);
        tuned.succeeds().prints("ok\n");
    }
}

/// What to force in one job each so that every variant that one node of so many ranks may run is run.
fn every_variant(mpi: Mpi, n_ranks: u32) -> Vec<String> {
    let columns = Collective::ALL.map(|collective| {
        let mut variants = catalogue::variants(mpi.library(), collective);
        variants.retain(|one| one.possible(n_ranks, 1, 1 << 20));
        // In short tests one of each algorithm.
        let mut seen = BTreeSet::new();
        variants.retain(|one| {
            let name = &one.name;
            is_long() || seen.insert((name.family, name.algorithm.clone()))
        });
        variants
    });
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let list = |place: usize| {
        let some = columns.iter().filter_map(|of| of.get(place));
        let parts: Vec<_> = some
            .map(|one| format!("{}={}", one.collective, one.name))
            .collect();
        parts.join(";")
    };
    // The first is the default.
    (1..longest).map(list).collect()
}

/// Of every family, from the first call on.
fn exploring(job: Job, db: &std::path::Path) -> Job {
    job.db(db)
        .mode("explore")
        .env("COLLTUNE_SETUP_AFTER", "1")
        .env("COLLTUNE_FAMILIES", "native,node,p2p")
        .env("COLLTUNE_EXPLORE_BUDGET", "1")
}

on_each_library! {
    /// The library's own algorithms run there, too: a rank in place has its operands copied aside.
    fn each_rank_is_in_place_or_not_as_it_likes(mpi: Mpi) {
        let (db, log) = (folder(), folder());
        let native = "native:recursive_halving";
        is_right(mpi, "in-place", &[
            &|job| exploring(job, db.path()),
            &|job| job.force(&format!("reduce_scatter={native}")).log(log.path()),
            &|job| job.force("reduce_scatter=p2p:pairwise,scan=p2p:linear,exscan=p2p:linear"),
        ]);
        for calls in read_log(log.path(), n_ranks(mpi)) {
            let scatters: Vec<_> = calls.iter().filter(|call| call.collective == "reduce_scatter").collect();
            assert!(scatters.len() >= 40 && scatters.iter().all(|call| call.variant == native));
        }
    }

    /// Callbacks on MPI_COMM_SELF come first in MPI_Finalize, before anybody waits for anybody.
    fn callbacks_of_finalize_may_be_waited_for_before_it(mpi: Mpi) {
        let (exploring_db, recording_db, summary) = (folder(), folder(), folder());
        is_right(mpi, "farewell", &[
            &|job| exploring(job, exploring_db.path()),
            &|job| job.db(recording_db.path()).mode("record"),
            &|job| job.env("COLLTUNE_SUMMARY", summary.path().join("jobs")).mode("off"),
        ]);
        // What was to be kept was kept, on all ways.
        let jobs = std::fs::read_to_string(summary.path().join("jobs")).expect("a summary was written");
        assert_eq!(jobs.lines().count(), 1);
        for db in [&exploring_db, &recording_db] {
            let incoming = std::fs::read_dir(db.path().join("incoming")).expect("traces were written");
            let names: Vec<_> = incoming.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            assert!(names.iter().any(|name| name.ends_with(".trace")), "{names:?}");
            assert!(names.iter().any(|name| name.ends_with(".run")), "{names:?}");
        }
    }

    fn an_error_handler_may_call_what_other_ranks_call(mpi: Mpi) {
        let db = folder();
        is_right(mpi, "handler", &[
            &|job| exploring(job, db.path()),
            &|job| job.force("bcast=p2p:binomial,allreduce=p2p:recursive_doubling"),
        ]);
    }

    /// No rank waits for ever: a sentence says which rank has what.
    fn a_rank_alone_with_arguments_that_a_variant_cannot_take_ends_the_job(mpi: Mpi) {
        job(n_ranks(mpi)).mpi(mpi).run("entitled", &["alone"]).succeeds();
        let job = job(n_ranks(mpi)).mpi(mpi).preload().force("allgatherv=p2p:ring");
        let outcome = job.env("COLLTUNE_MISMATCH_TIMEOUT", "1s").run("entitled", &["alone"]);
        outcome.ends().claim(outcome.code != Some(0), "the job went on");
        outcome.says(&["rank 1 cannot go on in allgatherv, call 20 ", "p2p:ring, which cannot take the arguments"]);
    }

    /// Some of the library's own algorithms look at a rank's own type, of which no other rank knows.
    fn ranks_may_describe_the_same_data_by_different_types(mpi: Mpi) {
        if mpi.is_openmpi() {
            let _: Option<()> = skip("Open MPI's own choice hangs there");
            return;
        }
        let (db, native) = (folder(), folder());
        is_right(mpi, "own-types", &[
            &|job| exploring(job, db.path()),
            &|job| exploring(job, native.path()).env("COLLTUNE_FAMILIES", "native"),
        ]);
    }

    /// Nor is anything behind a buffer touched.
    fn what_is_sent_may_lie_in_memory_that_cannot_be_written_to(mpi: Mpi) {
        let db = folder();
        let explored = |job: Job, size: &[&str]| {
            job.run("entitled", &[&["read-only"], size].concat()).succeeds().prints("ok\n");
        };
        // MPICH's own choice writes into the buffer of a root that is not the first rank, whatever the length.
        let by_default: &[&str] = if mpi.is_openmpi() { &[] } else { &["no-bcast"] };
        explored(job(n_ranks(mpi)).mpi(mpi), by_default);
        explored(exploring(job(n_ranks(mpi)).mpi(mpi).preload().seed(3), db.path()), by_default);
        // From four ranks on algorithms that end in an allgather are others than a tree.
        for list in every_variant(mpi, 4) {
            let forced = job(4).mpi(mpi).preload().force(&list).env("COLLTUNE_SETUP_AFTER", "1");
            // Messages shorter than a segment get the library's own choice.
            let bcast = list.split(';').find_map(|one| one.strip_prefix("bcast="));
            let is_ours = |name: &str| !name.starts_with("native") && !name.contains("segsize=");
            let size = if bcast.is_some_and(is_ours) { &[] } else { by_default };
            explored(forced, size);
        }
    }

    /// Decisions do not depend on it.
    fn every_rank_may_round_another_way(mpi: Mpi) {
        let db = folder();
        is_right(mpi, "rounds", &[
            &|job| exploring(job, db.path()),
            &|job| job.db(db.path()).mode("exploit"),
        ]);
    }

    fn elements_with_holes_are_combined_and_dealt_out(mpi: Mpi) {
        for force in ["", "reduce_scatter_block=p2p:pairwise"] {
            let tuned = job(4).mpi(mpi).preload().force(force).run("entitled", &["holes"]);
            tuned.succeeds().prints("ok\n");
        }
    }

    /// Its descriptor 2 is its own file, into which the tuner must not write.
    fn a_program_may_have_data_where_its_messages_went(mpi: Mpi) {
        let (db, data) = (folder(), folder());
        let file = data.path().join("data");
        let job = job(n_ranks(mpi)).mpi(mpi).preload();
        let job = exploring(job, db.path()).env("COLLTUNE_SUMMARY", "true");
        job.run("entitled", &["data", &file.to_string_lossy()]).succeeds().prints("ok\n");
        assert_eq!(std::fs::read_to_string(&file).expect("rank 0 wrote it"), "data\n");
    }

    fn communicators_may_be_freed_by_what_frees_others(mpi: Mpi) {
        let db = folder();
        is_right(mpi, "chains", &[
            &|job| exploring(job, db.path()),
            &|job| job.force("allreduce=node:shm"),
        ]);
    }

    /// Of what is noted while it is freed nothing is dropped then.
    fn a_free_that_is_refused_may_be_left_and_made_again(mpi: Mpi) {
        let db = folder();
        is_right(mpi, "refused", &[
            &|job| exploring(job, db.path()),
            &|job| job.force("allreduce=node:shm"),
        ]);
    }

    fn every_trap_of_the_processor_may_be_on(mpi: Mpi) {
        let db = folder();
        is_right(mpi, "inexact", &[
            &|job| exploring(job, db.path()),
            &|job| job.db(db.path()).mode("exploit"),
            &|job| job.force("allreduce=node:shm"),
        ]);
    }
}
