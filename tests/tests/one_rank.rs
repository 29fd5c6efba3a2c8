//! What one rank alone does, and is entitled to, does not part it from the others.

use std::time::Duration;

use colltune_tests::{Job, Mpi, folder, job, on_each_library, tool};

const RANKS: u32 = 3;
/// So that set-ups, draws and reviews lie among them.
const ROUNDS: &str = "60";

/// Runs one of the program's ways in each mode.
fn passes(mpi: Mpi, what: &str) {
    for mode in ["explore", "record", "exploit"] {
        for seed in 1..4 {
            let db = folder();
            let tuned = |job: Job| job.preload().db(db.path()).mode(mode).seed(seed);
            let outcome = tuned(job(RANKS).mpi(mpi))
                .deadline(Duration::from_secs(60))
                .run("one_rank", &[what, ROUNDS]);
            outcome.succeeds().prints("ok\n").is_silent();
        }
    }
}

on_each_library! {
    fn a_type_above_2_gib_on_one_rank_is_a_call_like_any_other(mpi: Mpi) {
        passes(mpi, "huge_type");
    }

    fn one_buffer_for_both_sides_passes_on_one_rank_where_the_library_lets_it(mpi: Mpi) {
        if matches!(mpi, Mpi::OpenMpi | Mpi::OpenMpi5) {
            passes(mpi, "one_buffer");
        }
    }

    fn what_the_library_refuses_on_one_rank_has_not_taken_place(mpi: Mpi) {
        passes(mpi, "refused");
    }

    fn one_buffer_on_the_root_and_then_the_right_call_as_mpichs_own_test_has_it(mpi: Mpi) {
        passes(mpi, "aliased");
    }

    fn nothing_into_place_passes_where_the_library_lets_it(mpi: Mpi) {
        passes(mpi, "nothing");
    }

    /// A minute by the shim's clock, which goes faster here.
    fn arguments_that_the_others_variant_cannot_take_end_the_job_with_rank_call_and_reason(mpi: Mpi) {
        let tuned = job(RANKS).mpi(mpi).preload().preload_tool(tool(mpi, "fast_clock"));
        let tuned = tuned.env("COLLTUNE_SETUP_AFTER", "1").force("allgather=p2p:ring");
        let outcome = tuned.deadline(Duration::from_secs(60)).run("one_rank", &["less", "3"]);
        outcome.ends().claim(outcome.code != Some(0), "it went on");
        outcome.says(&[
            "rank 0 cannot go on in allgather, call 1 on communicator",
            "the other ranks run p2p:ring, which cannot take the arguments of this rank",
        ]);
    }
}
