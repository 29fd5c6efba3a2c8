//! Which algorithm a collective really ran: who sent what to whom, and how a sum was rounded.

use colltune_core::collective::Collective;
use colltune_core::library::Product;
use serde_json::Value;

use crate::job::{Job, job};
use crate::library::Mpi;

/// What one collective call looked like from outside. Equal algorithms give equal fingerprints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint {
    /// Per rank [peer, bytes, how often], sorted; of alltoallv [peer, bytes] in order.
    pub messages: String,
    /// The digest of a sum's bits; empty for collectives that do not add.
    pub result_bits: String,
}

/// Runs `collective` once with `message_bytes` on `n_ranks` ranks, without the shim, and looks.
#[track_caller]
pub fn fingerprint(
    mpi: Mpi,
    n_ranks: u32,
    collective: Collective,
    message_bytes: u64,
    variables: &[(String, String)],
) -> Fingerprint {
    let with_variables = |job: Job, (name, value): &(String, String)| job.env(name, value);
    let job = variables.iter().fold(job(n_ranks).mpi(mpi), with_variables);
    fingerprint_of(job, collective, message_bytes, 0)
}

/// The same for any job, after `warmup` calls that are not looked at.
#[track_caller]
pub fn fingerprint_of(
    job: Job,
    collective: Collective,
    message_bytes: u64,
    warmup: u32,
) -> Fingerprint {
    let element = if collective.is_reduction() {
        "double"
    } else {
        "byte"
    };
    let (bytes, warmup) = (message_bytes.to_string(), warmup.to_string());
    let arguments = [
        "--collective",
        collective.name(),
        "--bytes",
        &bytes,
        "--type",
        element,
        "--warmup",
        &warmup,
    ];
    // Debian's file of parameters keeps the monitoring out with `pml = ^ucx`.
    let job = match job.library().product() {
        Product::OpenMpi => job.env("OMPI_MCA_pml_monitoring_enable", "1"),
        // With shared memory of its own MPICH shows no messages.
        Product::Mpich if job.library() != Mpi::Mpich => job.env("MPIR_CVAR_NOLOCAL", "1"),
        _ => job,
    };
    let outcome = job.run("collective_fingerprint", &arguments);
    outcome.succeeds();
    let line: Value = serde_json::from_str(outcome.stdout.trim()).unwrap_or_else(|error| {
        panic!(
            "failed to read {:?} of {}: {error}",
            outcome.stdout, outcome.command
        )
    });
    assert_eq!(line["right"], Value::Bool(true), "{}", outcome.command);
    // Alltoallv's algorithms send the same messages in another order.
    let messages = match collective {
        Collective::Alltoallv => &line["sends"],
        _ => &line["messages"],
    };
    Fingerprint {
        messages: messages.to_string(),
        result_bits: if collective.is_reduction() {
            line["result_bits"].to_string()
        } else {
            String::new()
        },
    }
}
