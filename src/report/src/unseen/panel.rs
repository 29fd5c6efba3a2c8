//! One size on one layout: the times of the default, of what was predicted, and of what is best.

use std::collections::BTreeMap;

use colltune_core::collective::Collective;
use colltune_core::space::Cell;
use colltune_core::variant::DEFAULT;
use colltune_db::Generation;
use colltune_db::calls::RecordedCall;
use colltune_statistics::{Interval, median_ratio_of_groups, quantile, sorted};
use serde::Serialize;

/// Points of a line.
const STEPS: usize = 100;

/// A cell with a prediction from before there were data.
pub(super) struct Foretold {
    pub cell: Cell,
    pub choice: String,
    pub generation: Option<u64>,
}

/// The times of calls of one size on one layout.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    pub collective: Collective,
    pub bytes: u64,
    pub nodes: u32,
    pub ppn: u32,
    pub n_ranks: u32,
    /// The generation that predicted it; `None` where its data were held out.
    pub generation: Option<u64>,
    /// What was predicted to be the best.
    pub choice: String,
    /// The default, the predicted choice where it is another, and the measured best where that is a third.
    pub lines: Vec<Distribution>,
    /// The default's median over the choice's, with an interval over runs; `None` where the choice is the default.
    pub ratio: Option<Interval>,
}

/// How the times of one variant are spread.
#[derive(Clone, Debug, Serialize)]
pub struct Distribution {
    pub role: &'static str,
    pub variant: String,
    pub calls: usize,
    pub runs: usize,
    pub median_ns: f64,
    /// The time below which 0, 1, ... 100 % of the calls are.
    pub percentiles_ns: Vec<f64>,
}

pub(super) fn panel(
    generation: &Generation,
    said: &Foretold,
    shape: &colltune_models::evidence::Shape,
    calls: &[&RecordedCall],
) -> Panel {
    let now = generation.cells.iter().find(|one| one.cell == said.cell);
    let best = now.map_or(DEFAULT, |now| now.best.as_str());
    let mut wanted = vec![("default", DEFAULT)];
    for (role, name) in [
        ("predicted choice", said.choice.as_str()),
        ("measured best", best),
    ] {
        if wanted.iter().all(|(_, other)| *other != name) {
            wanted.push((role, name));
        }
    }
    let runs_of = |name: &str| -> Vec<Vec<f64>> {
        let mut runs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for call in calls.iter().filter(|call| call.variant == name) {
            runs.entry(&call.job).or_default().push(call.time_ns);
        }
        runs.into_values().collect()
    };
    let (default, choice) = (runs_of(DEFAULT), runs_of(&said.choice));
    let is_compared = said.choice != DEFAULT && !default.is_empty() && !choice.is_empty();
    let lines = wanted.into_iter().filter_map(|(role, name)| {
        let runs = runs_of(name);
        let times = sorted(runs.concat());
        (!times.is_empty()).then(|| Distribution {
            role,
            variant: name.to_owned(),
            calls: times.len(),
            runs: runs.len(),
            median_ns: quantile(&times, 0.5),
            percentiles_ns: (0..=STEPS)
                .map(|step| quantile(&times, step as f64 / STEPS as f64))
                .collect(),
        })
    });
    Panel {
        collective: shape.collective,
        bytes: shape.message_bytes,
        nodes: shape.nodes,
        ppn: shape.ppn,
        n_ranks: shape.n_ranks,
        generation: said.generation,
        choice: said.choice.clone(),
        lines: lines.collect(),
        ratio: is_compared.then(|| median_ratio_of_groups(&default, &choice)),
    }
}
