//! What the page begins with: whose data these are, and three numbers.

use std::collections::{BTreeMap, HashMap, HashSet};

use colltune_core::account::{Exit, JobSummary};
use colltune_core::catalogue;
use colltune_core::context::DataKey;
use colltune_core::model::Source;
use colltune_db::evidence::Said;
use colltune_db::{Generation, ProgramVerdict, Verdicts};
use colltune_models::evidence::{Evidence, Shape};
use colltune_models::statistics::CellStatistics;
use colltune_statistics::weighted_geometric_mean;
use serde::Serialize;

/// Whose data these are.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    pub machine: String,
    /// `None` for a database without data.
    pub library: Option<String>,
    pub other_libraries: Vec<String>,
    pub generation: u64,
    /// When it was learned.
    pub created_unix_ms: Option<u64>,
    /// What was learned from.
    pub learned_runs: u64,
    pub records: u64,
    pub calls: u64,
    /// What the ledger knows of.
    pub runs: RunsByMode,
    pub first_unix_ms: Option<u64>,
    pub last_unix_ms: Option<u64>,
    pub cells_measured: u64,
    pub cells_predicted: u64,
    /// Measured cells in which another variant than the default is chosen.
    pub cells_tuned: u64,
    /// The default's time over that of what is chosen, in the geometric mean over measured cells by their share of the
    /// time.
    pub gain: f64,
    pub exploring: Exploring,
    /// What whole programs said last of the choices, the newest first.
    pub verdicts: Vec<ProgramVerdict>,
}

/// How many runs of each mode the ledger knows, and of those that have no end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunsByMode {
    pub all: u64,
    pub by_mode: BTreeMap<String, u64>,
    pub without_end: u64,
}

/// What exploring has cost so far, in node-seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Exploring {
    /// By how much the sampled calls took longer than with the default; less than nothing where they were faster.
    pub sampled: f64,
    /// Of the calls behind that number: the share whose run knows the default's time, too.
    pub known: f64,
    /// In which ranks agreed what to run, as the ledger knows.
    pub agreeing: f64,
    /// The whole time of the ledger's runs that explored.
    pub whole: f64,
}

impl Exploring {
    pub fn sum(&self) -> f64 {
        self.sampled + self.agreeing
    }

    /// Of the whole time of runs that explored; `None` where that is unknown.
    pub fn share(&self) -> Option<f64> {
        (self.whole > 0.0).then(|| self.sum() / self.whole)
    }
}

pub fn head(
    generation: Option<&Generation>,
    machine: String,
    keys: &[DataKey],
    said: &Said,
    runs: &[&JobSummary],
    verdicts: Verdicts,
) -> Head {
    let library = generation.map(|generation| generation.key.to_string());
    let meta = generation.and_then(|generation| generation.meta.as_ref());
    let cells = generation.map_or(&[][..], |generation| &generation.cells);
    let count = |wanted: fn(&CellStatistics) -> bool| {
        cells.iter().filter(|cell| wanted(cell)).count() as u64
    };
    let begins = runs.iter().map(|run| run.started_unix_ms);
    let begins = begins.chain(said.runs.iter().map(|run| run.started_unix_ms));
    let sum = |number: fn(&colltune_db::evidence::Run) -> u64| said.runs.iter().map(number).sum();
    Head {
        other_libraries: keys
            .iter()
            .map(DataKey::to_string)
            .filter(|key| Some(key) != library.as_ref())
            .collect(),
        machine,
        library,
        generation: generation.map_or(0, |generation| generation.number),
        created_unix_ms: meta.map(|meta| meta.created_unix_ms),
        learned_runs: said.n_runs() as u64,
        records: sum(|run| run.records),
        calls: sum(|run| run.calls),
        runs: by_mode(runs),
        first_unix_ms: begins.clone().min(),
        last_unix_ms: begins.max(),
        cells_measured: count(|cell| cell.source == Source::Measured),
        cells_predicted: count(|cell| cell.source == Source::Predicted),
        cells_tuned: count(is_tuned),
        gain: weighted_geometric_mean(
            cells
                .iter()
                .filter(|cell| cell.source == Source::Measured)
                .map(|cell| (cell.gain, cell.time_share)),
        ),
        exploring: exploring(said, runs),
        verdicts: newest(verdicts),
    }
}

/// The last verdict of each program with its arguments and layout, the newest first.
fn newest(all: Verdicts) -> Vec<ProgramVerdict> {
    let mut seen = HashSet::new();
    let mut found = all.verdicts;
    found.reverse();
    found.retain(|one| {
        let hash = match one.label.is_empty() {
            true => one.arguments_hash.clone(),
            false => one.label.clone(),
        };
        seen.insert((one.program.clone(), hash, one.nodes, one.ppn, one.ranks))
    });
    found
}

fn is_tuned(cell: &CellStatistics) -> bool {
    cell.source == Source::Measured && !catalogue::is_default(&cell.best)
}

fn by_mode(runs: &[&JobSummary]) -> RunsByMode {
    let mut counts = RunsByMode::default();
    for run in runs {
        counts.all += 1;
        *counts.by_mode.entry(run.mode.clone()).or_default() += 1;
        counts.without_end += u64::from(run.exit == Exit::Missing);
    }
    counts
}

/// The whole time of a row's calls, mean over the ranks: seconds.
pub fn seconds(row: &Evidence) -> f64 {
    row.level_ns * (row.calls as f64 * row.time.mean + row.stall_excess) / 1e9
}

fn exploring(said: &Said, runs: &[&JobSummary]) -> Exploring {
    let mut defaults: HashMap<(u32, Shape, u16), f64> = HashMap::new();
    for row in said.evidence.iter().filter(|row| row.variant == 0) {
        defaults.insert((row.run, row.shape, row.component), row.time.mean);
    }
    let mut found = Exploring::default();
    let (mut known, mut calls) = (0, 0);
    for row in said.evidence.iter().filter(|row| row.variant != 0) {
        calls += row.calls;
        if let Some(default) = defaults.get(&(row.run, row.shape, row.component)) {
            known += row.calls;
            let longer_ns = row.level_ns * row.calls as f64 * (row.time.mean - default);
            found.sampled += longer_ns / 1e9 * f64::from(row.shape.nodes);
        }
    }
    found.known = if calls > 0 {
        known as f64 / calls as f64
    } else {
        1.0
    };
    for run in runs.iter().filter(|run| run.mode == "explore") {
        found.agreeing += run.overhead_s.mean * run.nodes as f64;
        found.whole += run.wall_s * run.nodes as f64;
    }
    found
}
