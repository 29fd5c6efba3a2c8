//! The libraries of PyPI: Open MPI 5.0, MPICH 5.0 through both of its binary interfaces, Intel MPI.
//! Their steering is real, and `default` stays what it is. Where they cannot be installed, tests are
//! counted as skipped.

use std::collections::BTreeSet;

use colltune_core::catalogue::{self, Steering};
use colltune_core::collective::Collective;
use colltune_tests::{Fingerprint, Mpi, facts, fingerprint_of, is_long, job, own_forcing};

const RANKS: u32 = 4;

/// Every native algorithm of the collectives, forced by the shim and by the user's own settings: the
/// same messages and the same rounding. Which algorithms can be told apart is counted.
fn natives_are_what_the_library_runs(
    mpi: Mpi,
    collectives: &[Collective],
    job_variables: &[(&str, &str)],
) {
    let job = || {
        let job = job(RANKS).mpi(mpi);
        job_variables
            .iter()
            .fold(job, |job, (name, value)| job.env(name, value))
    };
    for &collective in collectives {
        let mut seen: Vec<Fingerprint> = Vec::new();
        let mut algorithms = BTreeSet::new();
        for variant in catalogue::variants(mpi.library(), collective) {
            let applies = |bytes: u64| variant.applies(&facts(RANKS, collective, bytes));
            let Some(bytes) = [65_536, 4 << 20].into_iter().find(|bytes| applies(*bytes)) else {
                continue;
            };
            if variant.steering == Steering::None
                || !algorithms.insert(variant.name.algorithm.clone())
            {
                continue;
            }
            let force = format!("{collective}={}", variant.name);
            let ours = fingerprint_of(job().preload().force(&force), collective, bytes, 1);
            let own = fingerprint_of(own_forcing(job(), &variant), collective, bytes, 1);
            assert_eq!(ours, own, "{force} with {bytes} bytes");
            seen.push(ours);
        }
        let different: BTreeSet<_> = seen.iter().collect();
        assert!(
            different.len() >= 2 && 2 * different.len() >= seen.len(),
            "{collective}: {} fingerprints of {} variants show little",
            different.len(),
            seen.len()
        );
    }
}

fn collectives<'a>(short: &'a [Collective], long: &'a [Collective]) -> &'a [Collective] {
    if is_long() { long } else { short }
}

const MOVES_AND_SUMS: [Collective; 5] = [
    Collective::Allgather,
    Collective::Bcast,
    Collective::Allreduce,
    Collective::Reduce,
    Collective::Alltoall,
];

#[test]
fn open_mpi_5_runs_the_forced_algorithms_although_han_stands_above_them() {
    let Some(mpi) = Mpi::OpenMpi5.installed() else {
        return;
    };
    let short = [Collective::Allgather];
    natives_are_what_the_library_runs(mpi, collectives(&short, &MOVES_AND_SUMS), &[]);
}

#[test]
fn mpich_5_runs_the_forced_algorithms() {
    let Some(mpi) = Mpi::Mpich5.installed() else {
        return;
    };
    let error = [("MPIR_CVAR_COLLECTIVE_FALLBACK", "error")];
    let short = [Collective::Allreduce];
    natives_are_what_the_library_runs(mpi, collectives(&short, &MOVES_AND_SUMS), &error);
}
