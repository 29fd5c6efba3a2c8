//! Which algorithm a collective really ran: who sent what to whom, and how a sum was rounded.

use std::time::Duration;

use colltune_core::collective::Collective;
use colltune_core::library::Product;
use serde_json::Value;

use crate::job::{Job, job};
use crate::library::Mpi;

/// What each case may take, beside what a job has anyway.
const EACH: Duration = Duration::from_secs(5);

/// What one collective call looked like from outside. Equal algorithms give equal fingerprints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint {
    /// Per rank [peer, bytes, how often], sorted; of alltoallv [peer, bytes] in order.
    pub messages: String,
    /// The digest of a sum's bits; empty for collectives that do not add.
    pub result_bits: String,
}

/// Runs each case, a collective with so many bytes, once in one job on `n_ranks` ranks, without the shim, and looks.
#[track_caller]
pub fn fingerprints(
    mpi: Mpi,
    n_ranks: u32,
    cases: &[(Collective, u64)],
    variables: &[(String, String)],
) -> Vec<Fingerprint> {
    let with_variables = |job: Job, (name, value): &(String, String)| job.env(name, value);
    let job = variables.iter().fold(job(n_ranks).mpi(mpi), with_variables);
    fingerprints_of(job, cases, 0)
}

/// One case in any job, after `warmup` calls that are not looked at.
#[track_caller]
pub fn fingerprint_of(
    job: Job,
    collective: Collective,
    message_bytes: u64,
    warmup: u32,
) -> Fingerprint {
    fingerprints_of(job, &[(collective, message_bytes)], warmup).remove(0)
}

/// Several cases in any job, one after another, each after `warmup` calls that are not looked at.
#[track_caller]
pub fn fingerprints_of(job: Job, cases: &[(Collective, u64)], warmup: u32) -> Vec<Fingerprint> {
    let options = cases.iter().map(|(collective, bytes)| {
        let element = if collective.is_reduction() {
            "double"
        } else {
            "byte"
        };
        format!("--collective {collective} --bytes {bytes} --type {element} --warmup {warmup}")
    });
    let options = options.collect::<Vec<_>>().join(" --then ");
    let arguments: Vec<&str> = options.split(' ').collect();
    // Debian's file of parameters keeps the monitoring out with `pml = ^ucx`.
    let job = match job.library().product() {
        Product::OpenMpi => job.env("OMPI_MCA_pml_monitoring_enable", "1"),
        // With shared memory of its own MPICH shows no messages.
        Product::Mpich if job.library() != Mpi::Mpich => job.env("MPIR_CVAR_NOLOCAL", "1"),
        _ => job,
    };
    let outcome = job
        .more_time(EACH * cases.len() as u32)
        .run("collective_fingerprint", &arguments);
    let mut lines: Vec<Value> = outcome
        .stdout
        .lines()
        .map_while(|line| serde_json::from_str(line).ok())
        .collect();
    lines.resize(cases.len(), Value::Null);
    // The first case that is not right tells more than how the job ended.
    for ((collective, bytes), line) in cases.iter().zip(&lines) {
        let is_its_own = line["collective"] == collective.name() && line["bytes"] == *bytes;
        let what = if outcome.timed_out {
            "hangs"
        } else {
            "is not right"
        };
        outcome.claim(
            is_its_own && line["right"] == true,
            &format!("{collective} with {bytes} bytes {what}"),
        );
    }
    outcome.succeeds().claim(
        outcome.stdout.lines().count() == cases.len(),
        "there are more lines than cases",
    );
    let cases = cases.iter().zip(&lines);
    cases
        .map(|((collective, _), line)| of_line(*collective, line))
        .collect()
}

fn of_line(collective: Collective, line: &Value) -> Fingerprint {
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
