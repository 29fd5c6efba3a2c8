//! What one rank alone does, and is entitled to, does not part it from the others.

use std::time::Duration;

use colltune_tests::{Job, Mpi, folder, job, on_each_library};

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
}
