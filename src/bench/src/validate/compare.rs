//! A real run and the emulated one, side by side.

use std::collections::BTreeMap;

use colltune_amr::telemetry::{Kind, Traffic};
use colltune_emulate::axes::Network;
use colltune_emulate::cost::Costs;
use colltune_emulate::machine::Machine;
use colltune_emulate::mesh::settings;
use colltune_emulate::noise::Noise;
use colltune_emulate::place::Placer;
use colltune_emulate::price::Choices;
use colltune_emulate::program::{History, Phase, needs_cells};
use colltune_emulate::run::{Emulated, Keep, Scenario, replicas, run};
use colltune_statistics::median;
use serde::Serialize;

use super::measure::{Problem, Sample};
use colltune_lab::emulate::recording::{Recorded, Sent};
use colltune_lab::emulate::seconds_of;

/// One problem under one policy.
#[derive(Serialize)]
pub struct Row {
    pub deck: String,
    /// On the test cluster, where a layout was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks_per_node: Option<u32>,
    pub policy: String,
    pub measured_s: Vec<f64>,
    /// Half the range of the totals over their median.
    pub noise: f64,
    pub emulated_s: f64,
    /// Emulated over measured, less one.
    pub error: f64,
    /// What telemetry and the emulated run do not agree on first.
    pub counts_differ: Option<String>,
    /// How many steps, ranks and kinds were compared.
    pub n_counts: usize,
    pub phases: Vec<PhaseRow>,
    /// By how much the total changes, as a share, with messages that each travel alone.
    pub alone: f64,
}

#[derive(Serialize)]
pub struct PhaseRow {
    pub name: &'static str,
    pub measured_s: f64,
    pub emulated_s: f64,
    /// Where it is more than 5 % of the total.
    pub error: Option<f64>,
}

/// What telemetry calls phases, and what they are here.
const GROUPS: [(&str, &[&str], &[Phase]); 4] = [
    (
        "compute",
        &["compute", "unpack", "sum", "pack", "copy"],
        &[
            Phase::Compute,
            Phase::Unpack,
            Phase::Sum,
            Phase::Pack,
            Phase::Copy,
            // Who is stopped in the midst of its work does not see it.
            Phase::Stopped,
        ],
    ),
    // Who has been waited for long enough and lacks a core waits on.
    (
        "wait",
        &["wait"],
        &[Phase::Transit, Phase::Late, Phase::Queue],
    ),
    (
        "collective",
        &["allreduce", "allgather", "agree"],
        &[Phase::Sync, Phase::Collective],
    ),
    (
        "rest",
        &["refine", "place", "migrate", "output", "other"],
        &[Phase::Refine, Phase::Place, Phase::Migrate, Phase::Other],
    ),
];

pub fn compare(
    problem: &Problem,
    policy: &str,
    samples: &[Sample],
    recording: Option<&Recorded>,
    costs: &Costs,
    machine: &Machine,
    n_ranks: usize,
) -> anyhow::Result<Row> {
    let words = problem.words(policy, std::path::Path::new("telemetry"));
    let placer = Placer::from_name(policy)?;
    let settings = settings(&words, n_ranks, n_ranks)?;
    let scenario = Scenario {
        settings: &settings,
        n_ranks,
        costs,
        machine,
        history: recording.map_or(History::Objects, |recording| {
            History::Recorded(&recording.mesh)
        }),
        placer: Some((policy.to_owned(), placer)),
        choices: Choices::default(),
        network: Network::Events,
        slow: None,
        noise: Some(Noise {
            costs: costs.noise,
            seed: 1,
        }),
        timer: Some(&seconds_of),
    };
    let total_s = |scenario: &Scenario| Ok(run(scenario, Keep::SUMS)?.outcome.total_s);
    let all = replicas(&scenario, REPLICAS, total_s, |total_s| *total_s)?;
    let scenario = Scenario {
        noise: all[all.len() / 2].0,
        ..scenario
    };
    let emulated = run(&scenario, Keep::TRAFFIC)?;
    let alone = Scenario {
        network: Network::Axes,
        ..scenario.clone()
    };
    let totals: Vec<f64> = samples.iter().map(|sample| sample.total).collect();
    let middle = median(&totals);
    let (least, most) = totals
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(a, b), &t| (a.min(t), b.max(t)));
    // Where cells decide, the mesh behind the last step is unknown.
    let last = emulated.traffic.len() as u64 - u64::from(needs_cells(&settings));
    let (n_counts, counts_differ) = counts(&emulated.traffic, &samples[0].sent, last);
    let predicted = emulated.outcome.total_s;
    Ok(Row {
        deck: problem.deck.clone(),
        ranks_per_node: None,
        policy: policy.to_owned(),
        noise: (most - least) / 2.0 / middle,
        emulated_s: predicted,
        error: predicted / middle - 1.0,
        counts_differ,
        n_counts,
        phases: phases(samples, &emulated, middle),
        alone: total_s(&alone)? / predicted - 1.0,
        measured_s: totals,
    })
}

/// As often is a run emulated, each time with other noise.
const REPLICAS: u64 = 5;

fn phases(samples: &[Sample], emulated: &Emulated, total: f64) -> Vec<PhaseRow> {
    let rows = GROUPS.iter().map(|(name, measured, ours)| {
        let of = |sample: &Sample| -> f64 {
            measured
                .iter()
                .filter_map(|phase| sample.phases.get(*phase))
                .sum()
        };
        let all: Vec<f64> = samples.iter().map(of).collect();
        let measured_s = median(&all);
        let emulated_s: f64 = ours
            .iter()
            .map(|&phase| emulated.outcome.phase_s(phase))
            .sum();
        PhaseRow {
            name,
            measured_s,
            emulated_s,
            error: (measured_s > 0.05 * total).then(|| emulated_s / measured_s - 1.0),
        }
    });
    rows.collect()
}

/// Compares every step up to `last`, rank and kind; says how many, and what differs first.
fn counts(emulated: &[Vec<Traffic>], sent: &Sent, last: u64) -> (usize, Option<String>) {
    let mut found: BTreeMap<(u64, u32, Kind), (u64, u64)> = BTreeMap::new();
    for (step, by_rank) in (1..=last).zip(emulated) {
        for (rank, traffic) in (0..).zip(by_rank) {
            for kind in Kind::ALL {
                if traffic.of(kind) != (0, 0) {
                    found.insert((step, rank, kind), traffic.of(kind));
                }
            }
        }
    }
    let measured: BTreeMap<_, _> = sent.iter().filter(|(key, _)| key.0 <= last).collect();
    let keys = measured.keys().copied().chain(found.keys());
    let mut keys: Vec<_> = keys.copied().collect();
    keys.sort();
    keys.dedup();
    let differs = keys.iter().find(|key| {
        let measured = measured.get(key).map_or((0, 0), |counts| **counts);
        found.get(key).copied().unwrap_or_default() != measured
    });
    let text = differs.map(|key| {
        let (step, rank, kind) = key;
        let measured = measured.get(key).map_or((0, 0), |counts| **counts);
        let ours = found.get(key).copied().unwrap_or_default();
        format!(
            "step {step} rank {rank} {}: {measured:?} here {ours:?}",
            kind.name()
        )
    });
    (keys.len(), text)
}
