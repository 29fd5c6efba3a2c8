//! What one rank alone does, and is entitled to, does not part it from the others.

use std::time::Duration;

use colltune_tests::{LoggedCall, Mpi, folder, job, on_each_library, read_log, tool};

const RANKS: u32 = 3;
/// So that set-ups, draws and reviews lie among them.
const ROUNDS: &str = "60";

/// Runs some of the program's ways, one after another, in each mode.
fn passes(mpi: Mpi, ways: &[&str]) {
    let arguments = [&[ROUNDS][..], ways].concat();
    for mode in ["explore", "record", "exploit"] {
        // Elsewhere nothing is drawn.
        let seeds = if mode == "explore" { 1..4 } else { 1..2 };
        for seed in seeds {
            let db = folder();
            let outcome = job(RANKS)
                .mpi(mpi)
                .preload()
                .db(db.path())
                .mode(mode)
                .seed(seed)
                // The account is the process's: what earlier ways spend would thin out later draws.
                .env("COLLTUNE_EXPLORE_BUDGET", "1")
                .run("one_rank", &arguments);
            let mut printed = String::new();
            for way in ways {
                let line = format!("{way}: ok\n");
                let what = if outcome.timed_out {
                    "hangs"
                } else {
                    "is not right"
                };
                outcome.claim(outcome.stdout.contains(&line), &format!("{way} {what}"));
                printed.push_str(&format!("{way}\n{line}"));
            }
            outcome.succeeds().prints(&printed).is_silent();
        }
    }
}

on_each_library! {
    fn what_is_legal_or_harmless_on_one_rank_alone_passes(mpi: Mpi) {
        let mut ways = vec![
            // A type above 2 GiB is a call like any other.
            "huge_type",
            // What the library refuses has not taken place.
            "refused",
            // One buffer on the root, and then the right call, as MPICH's own test has it.
            "aliased",
            // Nothing into place, where the library lets it pass.
            "nothing",
        ];
        if mpi.is_openmpi() {
            // One buffer for both sides, which the other library does not let pass.
            ways.push("one_buffer");
        }
        passes(mpi, &ways);
    }

    /// A library whose checks are off lets that pass, so it is a call like any other: no rank runs something else,
    /// and its cell goes on learning.
    fn one_buffer_for_both_sides_parts_nobody_whether_the_library_looks_at_it_or_not(mpi: Mpi) {
        for checks in ["0", "1"] {
            let (db, log) = (folder(), folder());
            let tuned = job(RANKS).mpi(mpi).preload().db(db.path()).mode("explore").seed(3);
            let tuned = tuned
                .log(log.path())
                .env("OMPI_MCA_mpi_param_check", checks)
                .env("MPIR_CVAR_ERROR_CHECKING", checks)
                .env("COLLTUNE_EXPLORE_BUDGET", "1");
            let outcome = tuned.run("one_rank", &["200", "unchecked"]);
            outcome.claim(!outcome.timed_out, "it hangs");
            outcome.succeeds().prints("unchecked\nunchecked: ok\n").is_silent();
            for collective in ["allreduce", "reduce"] {
                let of_rank = |calls: Vec<LoggedCall>| {
                    let calls = calls.into_iter().filter(|call| call.collective == collective && call.bytes == 8);
                    calls.map(|call| (call.index, call.variant, call.sampled)).collect::<Vec<_>>()
                };
                let ranks: Vec<_> = read_log(log.path(), RANKS).into_iter().map(of_rank).collect();
                outcome.claim(ranks.iter().all(|calls| *calls == ranks[0]), "the ranks ran different variants");
                let (early, late) = ranks[0].split_at(ranks[0].len() / 2);
                let samples = [early, late].map(|calls| calls.iter().filter(|call| call.2).count());
                outcome.claim(samples[0] > 0 && samples[1] > 0, &format!("{collective}: {samples:?} samples"));
            }
        }
    }

    /// A minute by the shim's clock, which goes faster here.
    fn arguments_that_the_others_variant_cannot_take_end_the_job_with_rank_call_and_reason(mpi: Mpi) {
        let tuned = job(RANKS).mpi(mpi).preload().preload_tool(tool(mpi, "fast_clock"));
        let tuned = tuned.env("COLLTUNE_SETUP_AFTER", "1").force("allgather=p2p:ring");
        let outcome = tuned.deadline(Duration::from_secs(60)).run("one_rank", &["3", "less"]);
        outcome.ends().claim(outcome.code != Some(0), "it went on");
        outcome.says(&[
            "rank 0 cannot go on in allgather, call 1 on communicator",
            "the other ranks run p2p:ring, which cannot take the arguments of this rank",
        ]);
    }
}
