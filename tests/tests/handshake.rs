//! All or none: unless every rank carries the shim with the same settings, all run untuned, with
//! one warning, and nothing is left behind that the program could receive.
//!
//! The handshake is the shim's only wait. It lies inside MPI_Init, and a rank without the shim is
//! out of its own by then: it may have a rendezvous message under way to a rank that still waits.

use std::time::Duration;

use colltune_tests::{Job, Part, folder, job, on_each_library, part, traces};

const DEADLINE: &str = "2s";

fn asking(mpi: colltune_tests::Mpi, db: &std::path::Path) -> Job {
    job(0)
        .mpi(mpi)
        .preload()
        .db(db)
        .mode("explore")
        .env("COLLTUNE_HANDSHAKE_TIMEOUT", DEADLINE)
}

/// One rank of the program that takes whatever arrives; messages of a size that is sent by rendezvous.
fn rank() -> Part {
    part(1, "first_receive", &["0", "1000000"])
}

on_each_library! {
    fn the_shim_missing_on_one_rank_leaves_the_job_as_it_is(mpi: Mpi) {
        let without = |missing: u32| [0, 1, 2].map(|place| if place == missing { rank().without_shim() } else { rank() });
        for missing in [0, 1, 2] {
            let db = folder();
            let outcome = asking(mpi, db.path()).run_parts(&without(missing));
            outcome.succeeds().prints("ok\n").says(&["runs without the shim", "untuned"]);
            outcome.claim(traces(db.path()).is_empty(), "something was recorded");
            outcome.claim(outcome.took < Duration::from_secs(20), "the deadline is 2 s");
        }
    }

    fn other_settings_on_one_rank_are_named(mpi: Mpi) {
        for place in [0, 1] {
            let db = folder();
            let ranks = [0, 1].map(|at| if at == place { rank().env("COLLTUNE_SEED", "5") } else { rank() });
            let outcome = asking(mpi, db.path()).run_parts(&ranks);
            outcome.succeeds().prints("ok\n").says(&["rank 1", "other settings", "untuned"]);
        }
    }

    fn a_rank_that_is_off_counts_as_without_the_shim(mpi: Mpi) {
        let db = folder();
        let outcome = asking(mpi, db.path()).run_parts(&[rank(), rank().env("COLLTUNE_MODE", "off")]);
        outcome.succeeds().prints("ok\n").says(&["untuned"]);
    }

    fn the_exit_code_stays_the_programs_own_when_a_rank_lacks_the_shim(mpi: Mpi) {
        let db = folder();
        let parts = |missing: Part| [part(1, "first_receive", &["7", "8"]), missing];
        let bare = job(0).mpi(mpi).run_parts(&parts(part(1, "first_receive", &["7", "8"])));
        let outcome = asking(mpi, db.path()).run_parts(&parts(part(1, "first_receive", &["7", "8"]).without_shim()));
        outcome.exits(bare.code.unwrap_or(-1)).prints(&bare.stdout).says(&["untuned"]);
    }

    /// Ranks that a script starts: shells and helpers come and go under the preload.
    fn ranks_inside_a_shell_script_are_tuned(mpi: Mpi) {
        let db = folder();
        let program = colltune_tests::program(mpi, "first_receive");
        let script = format!("true; echo $(echo 1) >/dev/null; {} 0 1000000; code=$?; ls / >/dev/null; exit $code", program.display());
        let outcome = asking(mpi, db.path()).run_parts(&[part(1, "/bin/sh", &["-c", &script]), rank()]);
        outcome.succeeds().prints("ok\n").is_silent();
        outcome.claim(traces(db.path()).len() == 2, "both ranks record");
    }

    /// `trust` skips the check where a launcher has no name service.
    fn trust_skips_the_check(mpi: Mpi) {
        let db = folder();
        let outcome = asking(mpi, db.path()).env("COLLTUNE_HANDSHAKE", "trust").run_parts(&[rank(), rank()]);
        outcome.succeeds().prints("ok\n").is_silent();
        outcome.claim(traces(db.path()).len() == 2, "both ranks record");
    }
}
