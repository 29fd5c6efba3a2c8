//! How a user makes a library run one of its algorithms, and on which calls it would.

use colltune_core::catalogue::{Facts, Steering, Variant};
use colltune_core::collective::Collective;

use crate::job::Job;

/// The settings by which a user makes the library itself run a variant.
pub fn own_forcing(job: Job, variant: &Variant) -> Job {
    let name = variant.collective.name();
    match variant.steering {
        Steering::OpenMpi { algorithm, .. } => job
            .env("OMPI_MCA_coll_tuned_use_dynamic_rules", "1")
            .env(
                &format!("OMPI_MCA_coll_tuned_{name}_algorithm"),
                algorithm.to_string(),
            )
            .env(
                &format!("OMPI_MCA_coll_tuned_{name}_algorithm_segmentsize"),
                variant.name.segsize.unwrap_or(0).to_string(),
            ),
        Steering::Mpich { algorithm } => job
            .env(
                &format!("MPIR_CVAR_{}_INTRA_ALGORITHM", name.to_uppercase()),
                algorithm,
            )
            .env(
                &format!("MPIR_CVAR_{}_DEVICE_COLLECTIVE", name.to_uppercase()),
                "0",
            ),
        Steering::Intel { preset } => job.env(
            &format!("I_MPI_ADJUST_{}", name.to_uppercase()),
            preset.to_string(),
        ),
        Steering::None => job,
    }
}

/// The facts of a call as `fingerprint` makes them, on one node; sums are of doubles.
pub fn facts(n_ranks: u32, collective: Collective, bytes: u64) -> Facts {
    Facts {
        n_ranks,
        nodes: 1,
        message_bytes: bytes,
        count: collective.is_reduction().then_some(bytes / 8),
        commutative: true,
        builtin_op: true,
        in_place: false,
        ranks_by_node: true,
        equal_blocks: true,
        plain_elements: true,
    }
}
