//! Bugs of the shim's end the job with a sentence that names rank and call, in whatever function of MPI's they are;
//! and calls that come late, when main's thread-locals are gone, are none.

use colltune_tests::{Job, Mpi, job, on_each_library, tool};

/// A library whose answers are impossible makes the shim panic; the job ends and says where.
#[track_caller]
fn panics_in(call: &str, mpi: Mpi, with: impl FnOnce(Job) -> Job) {
    let lied_to = job(2)
        .mpi(mpi)
        .preload()
        .preload_tool(tool(mpi, "lying_rank"));
    let outcome = with(lied_to).run("lied_to", &[]);
    outcome.ends();
    outcome.claim(outcome.code != Some(0), "the job went on");
    let named = |line: &&str| {
        line.contains("colltune: rank ") && line.contains(&format!("panicked in {call}: "))
    };
    outcome.claim(
        outcome.stderr.lines().any(|line| named(&line)),
        "nobody names rank and call",
    );
}

on_each_library! {
    fn a_panic_in_a_collective_names_rank_and_call(mpi: Mpi) {
        panics_in("MPI_Allreduce", mpi, |job| job.force("allreduce=p2p:recursive_doubling"));
    }

    fn a_panic_in_mpi_init_names_rank_and_call(mpi: Mpi) {
        let force = "allreduce=p2p:recursive_doubling";
        // A launcher that can be asked, or a rank 0 that can be met, would find the wrong rank missing.
        let unserved = ["nameless", "placeless"].map(|name| tool(mpi, name));
        panics_in("MPI_Init", mpi, |job| {
            let job = unserved.into_iter().fold(job, Job::preload_tool);
            job.force(force).env("COLLTUNE_HANDSHAKE", "trust").env("TOOL_LIES", "1")
        });
    }

    fn calls_when_mains_thread_locals_are_gone_are_right(mpi: Mpi) {
        for force in ["bcast=native:binomial", "alltoall=native:pairwise", "bcast=node:shm;alltoall=p2p:bruck:radix=2"] {
            let outcome = job(3).mpi(mpi).preload().force(force).run("at_exit", &[]);
            outcome.succeeds().prints("ok\n");
        }
    }
}
