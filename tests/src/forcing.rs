//! How a user makes a library run one of its algorithms.

use colltune_core::catalogue::{Steering, Variant};

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
