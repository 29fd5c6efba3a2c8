//! What `emulate run` tells, as a table, as JSON and as CSV.

use colltune_emulate::outcome::Outcome;
use serde::Serialize;

use crate::output::{csv, table};

#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) schema: u32,
    pub(super) machine: &'a str,
    /// What the machine's numbers are: measured, or assumed and why.
    pub(super) source: &'a str,
    pub(super) costs: &'a str,
    /// By whose rules collectives run that nothing was chosen for.
    pub(super) defaults: &'static str,
    pub(super) mesh: &'a str,
    pub(super) seed: Option<u64>,
    pub(super) ranks: usize,
    pub(super) network: &'static str,
    pub(super) runs: Vec<Run>,
}

/// The run in the middle of its replicas, by its total.
#[derive(Serialize)]
pub(super) struct Run {
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    pub(super) replicas: Replicas,
    /// Where only some epochs were gone through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sample: Option<Sample>,
}

/// Totals of all replicas.
#[derive(Serialize)]
pub(super) struct Replicas {
    pub(super) n: u64,
    /// Of the one that is told: with it, that run can be repeated alone.
    pub(super) seed: Option<u64>,
    pub(super) min_s: f64,
    pub(super) max_s: f64,
}

#[derive(Serialize)]
pub(super) struct Sample {
    pub(super) n_sampled: usize,
    pub(super) n_epochs: usize,
    /// Of the total.
    pub(super) standard_error_s: f64,
}

/// One number of one run.
#[derive(Serialize)]
struct Value<'a> {
    policy: &'a str,
    collective: &'a str,
    ranks: usize,
    what: String,
    value: f64,
}

impl Report<'_> {
    /// A number a line: what it is ends with its unit, `_s` for seconds.
    pub(super) fn in_csv(&self) -> anyhow::Result<String> {
        let values = self.runs.iter().flat_map(|run| {
            let Run {
                outcome, replicas, ..
            } = run;
            let phases = outcome.phases_s.iter();
            let phases = phases.map(|(name, seconds)| (format!("{name}_s"), *seconds));
            let sums = [
                ("total_s", outcome.total_s),
                ("min_s", replicas.min_s),
                ("max_s", replicas.max_s),
                ("makespan_over_mean", outcome.makespan_over_mean),
                ("wait_share", outcome.sync_share),
                ("messages_same_rank", outcome.messages.same_rank as f64),
                ("messages_same_node", outcome.messages.same_node as f64),
                ("messages_remote", outcome.messages.remote as f64),
                ("moved_blocks", outcome.moved_blocks as f64),
            ];
            let error = run.sample.as_ref().map(|sample| sample.standard_error_s);
            let error = error.map(|error_s| ("standard_error_s", error_s));
            let sums = sums.into_iter().chain(error);
            let sums = sums.map(|(what, value)| (what.to_owned(), value));
            sums.chain(phases).map(move |(what, value)| Value {
                policy: &outcome.policy,
                collective: &outcome.collective,
                ranks: outcome.ranks,
                what,
                value,
            })
        });
        csv(&values.collect::<Vec<_>>())
    }

    pub(super) fn in_columns(&self) -> String {
        let mut text = format!(
            "{} on {} ranks of {} ({}); costs: {}; default: {}\n",
            self.mesh, self.ranks, self.machine, self.source, self.costs, self.defaults
        );
        let Some(first) = self.runs.first() else {
            return text;
        };
        let (replicas, sample) = (first.replicas.n > 1, &first.sample);
        if let Some(sample) = sample {
            text += &format!(
                "{} of {} epochs gone through\n",
                sample.n_sampled, sample.n_epochs
            );
        }
        if replicas {
            text += &format!(
                "{} replicas with other noise: the one in the middle\n",
                first.replicas.n
            );
        }
        let names = first.outcome.phases_s.iter().map(|(name, _)| name.as_str());
        let header: Vec<&str> = ["policy", "total s"]
            .into_iter()
            .chain(replicas.then_some(["min s", "max s"]).into_iter().flatten())
            .chain(sample.is_some().then_some("error s"))
            .chain(["max/mean", "wait %"])
            .chain(names)
            .chain(["remote", "moved"])
            .collect();
        let rows = self.runs.iter().map(|run| {
            let outcome = &run.outcome;
            let seconds = |seconds: f64| format!("{seconds:.4}");
            let mut row = vec![outcome.policy.clone(), seconds(outcome.total_s)];
            if replicas {
                row.extend([run.replicas.min_s, run.replicas.max_s].map(seconds));
            }
            row.extend(run.sample.iter().map(|s| seconds(s.standard_error_s)));
            row.push(format!("{:.3}", outcome.makespan_over_mean));
            row.push(format!("{:.1}", 100.0 * outcome.sync_share));
            row.extend(outcome.phases_s.iter().map(|(_, value)| seconds(*value)));
            row.push(outcome.messages.remote.to_string());
            row.push(outcome.moved_blocks.to_string());
            row
        });
        text += &table(&header, &rows.collect::<Vec<_>>());
        text
    }
}
