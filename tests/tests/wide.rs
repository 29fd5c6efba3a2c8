//! Communicators of more ranks than the library is asked to translate: their members tell each other who they are.

use std::time::Duration;

use colltune_tests::{Job, LoggedCall, Mpi, folder, job, on_each_library, read_log, skip, tool};

/// One more than are translated.
const WIDE: u32 = 33;
const NO_OTHER_WORLD: &str = "Debian's MPICH cannot spawn";

fn tuned(n_ranks: u32, mpi: Mpi) -> Job {
    let job = job(n_ranks).mpi(mpi).preload();
    job.env("COLLTUNE_SETUP_AFTER", "1")
        .deadline(Duration::from_secs(180))
}

fn is_forced(call: &LoggedCall) -> bool {
    call.variant == "p2p:binomial"
}

on_each_library! {
    fn a_wide_communicator_in_another_order_is_tuned_and_no_library_translates_its_ranks(mpi: Mpi) {
        let log = folder();
        let wide = tuned(WIDE, mpi).preload_tool(tool(mpi, "no_translation")).log(log.path());
        let forced = wide.force("bcast=p2p:binomial;allgather=p2p:ring;allreduce=node:shm");
        forced.run("wide", &["turned"]).succeeds().prints("ok\n");
        for calls in read_log(log.path(), WIDE) {
            assert!(calls.iter().any(is_forced));
        }
    }

    /// No rank of the other world answers to what this one exchanges: MPICH's has no shim that is awake.
    fn ranks_of_another_world_are_asked_nothing(mpi: Mpi) {
        if !mpi.is_openmpi() {
            return skip(NO_OTHER_WORLD).unwrap_or(());
        }
        let children = (WIDE - 2).to_string();
        tuned(2, mpi).run("wide", &["joined", &children]).succeeds().prints("ok\n");
    }

    fn a_rank_that_has_met_another_world_sets_up_with_those_that_have_not(mpi: Mpi) {
        if !mpi.is_openmpi() {
            return skip(NO_OTHER_WORLD).unwrap_or(());
        }
        tuned(WIDE, mpi).run("wide", &["met", "1"]).succeeds().prints("ok\n");
    }
}
