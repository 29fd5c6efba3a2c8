//! Jobs that srun starts: ranks find each other through Slurm's PMIx (Open MPI) or PMI-1 (MPICH), without `trust`.

use colltune_tests::{Mpi, Outcome, Slurm, folder, job, program, traces};

/// What one of the four ranks does before it becomes the program.
const RANK: &str = "[ \"$SLURM_PROCID\" = \"$1\" ] && eval \"$2\"; shift 2; exec \"$@\"";

/// The job of this test, two ranks on each of two nodes, where `rank` does something else; with the traces.
fn started(
    slurm: &Slurm,
    mpi: Mpi,
    handshake: &str,
    (rank, act): (&str, &str),
) -> (Outcome, usize) {
    let db = folder();
    let manager = if mpi.is_openmpi() {
        "--mpi=pmix"
    } else {
        "--mpi=pmi2"
    };
    let program = program(mpi, "first_receive").to_string_lossy().into_owned();
    let job = job(0)
        .mpi(mpi)
        .preload()
        .db(db.path())
        .mode("explore")
        .env("COLLTUNE_HANDSHAKE", handshake)
        .env("COLLTUNE_HANDSHAKE_TIMEOUT", "3s")
        .env("SLURM_CONF", slurm.configuration())
        // The nodes are one host, where Open MPI gives the shared memory of both the same names.
        .env("OMPI_MCA_btl", "self,tcp")
        // Slurm 22.05 lets a node out of a fence without data before the others are in it. Then a rank without the shim
        // is out of MPI_Init, and its message kills one in it that Open MPI 4.1 has not made ready to receive. So it
        // is without the shim, too, in one job of sixty; a fence round a ring waits for all.
        .env("SLURM_PMIX_FENCE", "ring");
    let line = [
        "srun",
        "-N2",
        "-n4",
        "--overcommit",
        manager,
        "sh",
        "-c",
        RANK,
        "sh",
        rank,
        act,
    ];
    let line = [&line[..], &[&program, "0", "1000000"]].concat();
    let outcome = job.run_command(&line);
    outcome.succeeds().prints("ok\n");
    (outcome, traces(db.path()).len())
}

#[test]
fn srun_is_asked_and_all_or_none_are_tuned() {
    let Some(slurm) = Slurm::start() else { return };
    for mpi in Mpi::ALL.into_iter().filter_map(Mpi::installed) {
        for (handshake, lacking) in [("", &["0", "1", "3"][..]), ("trust", &["2"])] {
            let (outcome, n_traces) = started(&slurm, mpi, handshake, ("", ""));
            outcome.claim(outcome.messages().is_empty(), "the shim says something");
            outcome.claim(n_traces > 0, "nothing was recorded");
            for missing in lacking {
                let (outcome, n_traces) =
                    started(&slurm, mpi, handshake, (missing, "unset LD_PRELOAD"));
                outcome.says(&[
                    &format!("rank {missing}"),
                    "runs without the shim",
                    "untuned",
                ]);
                outcome.claim(n_traces == 0, "something was recorded");
            }
        }
        let (outcome, n_traces) = started(&slurm, mpi, "", ("2", "export COLLTUNE_SEED=5"));
        outcome.says(&["rank 2", "another build or other settings", "untuned"]);
        outcome.claim(n_traces == 0, "something was recorded");
    }
}
