//! What jobs left out of the calls that a variant might have run, by what they said of themselves.

use std::collections::BTreeMap;

use colltune_core::account::{JobSummary, Refused};
use colltune_core::collective::Collective;
use colltune_core::variant::VariantName;
use colltune_output::aligned;
use serde::Serialize;

/// One cause, over all jobs.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    jobs: u64,
    #[serde(flatten)]
    refused: Refused,
}

/// What jobs say that may concern a variant of these collectives, by the number of calls.
pub fn left_out(runs: &[JobSummary], name: &str, collectives: &[Collective]) -> Vec<LeftOut> {
    let family = name.parse::<VariantName>().map(|name| name.family);
    let may_concern = |one: &&Refused| {
        let of_family = (one.known().zip(family.as_ref().ok()))
            .is_none_or(|(cause, family)| cause.concerns(*family));
        of_family && one.collective.is_none_or(|of| collectives.contains(&of))
    };
    let mut all = BTreeMap::new();
    for one in runs.iter().flat_map(|run| &run.refused).filter(may_concern) {
        let key = (one.cause.clone(), one.reason.clone(), one.collective);
        let LeftOut { jobs, refused } = all.entry(key).or_insert_with(|| LeftOut {
            jobs: 0,
            refused: Refused {
                calls: 0,
                ..one.clone()
            },
        });
        *jobs += 1;
        refused.calls = refused.calls.saturating_add(one.calls);
    }
    let mut all: Vec<LeftOut> = all.into_values().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.refused.calls));
    all
}

/// The same as a table; nothing where jobs say nothing.
pub fn table(all: &[LeftOut], n_jobs: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let head = ["jobs", "calls and causes"].map(str::to_owned).to_vec();
    let row = |one: &LeftOut| vec![one.jobs.to_string(), one.refused.sentence()];
    let rows: Vec<_> = std::iter::once(head).chain(all.iter().map(row)).collect();
    let table = aligned(&rows, |column| column != 0);
    format!("left out by the newest {n_jobs} jobs, for whatever cell:\n{table}")
}
