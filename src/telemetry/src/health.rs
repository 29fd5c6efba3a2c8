//! Fail-slow ranks, cores and nodes: who needs longer for the same blocks than the others.
//!
//! A block is expected to take what blocks of its level, class and iterations take in that step on the median rank, so
//! that neither refinement nor placement matters. A rank's inflation in a step is what its blocks took over what was
//! expected of them.

mod pace;

pub mod lateness;

pub mod links;

mod change;
mod judge;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::FolderError;
use crate::folder::Folder;
use crate::rows::{self, Place};
use crate::statistics::median;
use crate::text::{percent, table};
use crate::windows::Run;
use pace::RANKS_MIN;

pub use judge::Judged;
pub use links::Links;
pub use pace::{Inflation, Pace, inflation};

/// Steps that a verdict needs.
const STEPS_MIN: usize = 10;
/// Share of a node's ranks that are slow where the node is.
const NODE_SHARE: f64 = 0.75;

/// What is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspect {
    Node,
    /// One rank, which stayed on one core.
    Core,
    Rank,
    /// One rank in some of the steps.
    Transient,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub suspect: Suspect,
    pub host: Option<String>,
    pub ranks: Vec<u32>,
    pub core: Option<u32>,
    /// How many times as long as expected.
    pub factor: f64,
    pub steps: [u64; 2],
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfRank {
    pub rank: u32,
    pub host: Option<String>,
    #[serde(flatten)]
    pub judged: Judged,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    pub steps: usize,
    pub ranks: Vec<OfRank>,
    pub verdicts: Vec<Verdict>,
    /// Of the time, without and with what is slow at the others' pace: foretold from windows.
    pub saved: Option<f64>,
    /// Of messages between nodes, where rounds were recorded.
    pub links: Option<Links>,
    pub warnings: Vec<String>,
}

/// Looks for what is slow.
///
/// Errors: no blocks, or too few ranks or steps.
pub fn health(folder: &Folder) -> Result<Health, FolderError> {
    folder.analysed(|| of_folder(folder))
}

fn of_folder(folder: &Folder) -> Result<Health, FolderError> {
    folder.read(&rows::BLOCKS)?;
    let (blocks, places) = (rows::blocks(folder), rows::places(folder));
    let too_little = |reason: String| FolderError::TooLittle {
        folder: folder.path.clone(),
        reason,
    };
    let by_pace = Pace::BOTH.map(|pace| inflation(&blocks, pace));
    let inflation = &by_pace[0];
    if inflation.len() < RANKS_MIN {
        return Err(too_little(format!(
            "ranks are compared with each other, which takes {RANKS_MIN} at least with blocks of the same kind; {} have them",
            inflation.len()
        )));
    }
    let n_steps = pace::steps_of(inflation).len();
    if n_steps < STEPS_MIN {
        return Err(too_little(format!(
            "{n_steps} steps are too few for a verdict; it takes {STEPS_MIN}"
        )));
    }
    let mut health = of_inflation(&by_pace, &places);
    if let Ok(run) = Run::read(folder, &(0..=u64::MAX)) {
        health.saved = Some(saved(&run, &health.verdicts));
        health.links = links::links(&run);
    }
    health.warnings = folder.warnings();
    Ok(health)
}

fn of_inflation(by_pace: &[Inflation; 2], places: &[Place]) -> Health {
    let inflation = &by_pace[0];
    let [mean, median_of] = by_pace;
    let judged = judge::slowest([
        judge::judge(mean, Pace::Mean),
        judge::judge(median_of, Pace::Median),
    ]);
    let host_of: BTreeMap<u32, &str> = places.iter().map(|p| (p.rank, &*p.host)).collect();
    let host = |rank: u32| host_of.get(&rank).map(|host| (*host).to_owned());
    let steps = pace::steps_of(inflation);
    let whole = [
        steps.first().copied().unwrap_or(0),
        steps.last().copied().unwrap_or(0),
    ];
    let mut slow: BTreeSet<u32> = judged
        .iter()
        .filter(|(_, j)| j.is_slow)
        .map(|(&rank, _)| rank)
        .collect();
    let mut verdicts = Vec::new();
    for (node, ranks) in ranks_of_nodes(places, inflation) {
        let of_node: Vec<u32> = ranks.intersection(&slow).copied().collect();
        let factors: Vec<f64> = ranks.iter().map(|rank| judged[rank].inflation).collect();
        let factor = median(&factors);
        let share = of_node.len() as f64 / ranks.len() as f64;
        if ranks.len() > 1 && share >= NODE_SHARE && factor > judge::FACTOR {
            verdicts.push(Verdict {
                suspect: Suspect::Node,
                host: host(node),
                ranks: ranks.iter().copied().collect(),
                core: None,
                factor,
                steps: whole,
            });
            slow.retain(|rank| !ranks.contains(rank));
        }
    }
    for &rank in &slow {
        let core = only_core(places, rank);
        verdicts.push(Verdict {
            suspect: if core.is_some() {
                Suspect::Core
            } else {
                Suspect::Rank
            },
            host: host(rank),
            ranks: vec![rank],
            core,
            factor: judged[&rank].inflation,
            steps: whole,
        });
    }
    for (pace, inflation) in Pace::BOTH.into_iter().zip(by_pace) {
        // What is slow all the time, or found slow by the other pace, is known.
        let known: BTreeSet<u32> = verdicts.iter().flat_map(|v| v.ranks.clone()).collect();
        let others = inflation.iter().filter(|(rank, _)| !known.contains(rank));
        for (&rank, of_rank) in others {
            let spans = change::spans(of_rank).into_iter();
            let found = spans.filter_map(|span| {
                let judged = judge::judge(&pace::within(inflation, span), pace);
                let judged = *judged.get(&rank)?;
                let is_part =
                    span != whole && of_rank.range(span[0]..=span[1]).count() >= STEPS_MIN;
                (is_part && judged.is_slow).then(|| Verdict {
                    suspect: Suspect::Transient,
                    host: host(rank),
                    ranks: vec![rank],
                    core: None,
                    factor: judged.inflation,
                    steps: span,
                })
            });
            verdicts.extend(found);
        }
    }
    let of_rank = |(rank, judged)| OfRank {
        rank,
        host: host(rank),
        judged,
    };
    Health {
        steps: steps.len(),
        ranks: judged.into_iter().map(of_rank).collect(),
        verdicts,
        saved: None,
        links: None,
        warnings: Vec::new(),
    }
}

/// Ranks by node, under the first rank of each.
fn ranks_of_nodes(places: &[Place], inflation: &Inflation) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut by_node: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for place in places
        .iter()
        .filter(|place| inflation.contains_key(&place.rank))
    {
        by_node.entry(place.node).or_default().insert(place.rank);
    }
    // One node cannot be compared with others.
    if by_node.len() < 2 {
        return BTreeMap::new();
    }
    by_node
        .into_values()
        .filter_map(|ranks| Some((*ranks.first()?, ranks)))
        .collect()
}

/// The core of a rank that was found on one only.
fn only_core(places: &[Place], rank: u32) -> Option<u32> {
    let of_rank: Vec<u32> = places
        .iter()
        .filter(|p| p.rank == rank)
        .map(|p| p.core)
        .collect();
    let first = *of_rank.first()?;
    // Seen once, it may have been anywhere in between.
    (of_rank.len() > 1 && of_rank.iter().all(|core| *core == first)).then_some(first)
}

/// The share of the time that would be saved if slow ranks kept the pace of the others.
fn saved(run: &Run, verdicts: &[Verdict]) -> f64 {
    let (mut now, mut then) = (0.0, 0.0);
    for meeting in &run.meetings {
        let work = |excess: bool| {
            let of_rank = meeting.ranks.iter().map(|window| {
                let mut slow = verdicts.iter().filter(|verdict| {
                    verdict.ranks.contains(&window.rank)
                        && (verdict.steps[0]..=verdict.steps[1]).contains(&meeting.step)
                });
                let factor = slow
                    .next()
                    .filter(|_| !excess)
                    .map_or(1.0, |verdict| verdict.factor);
                let busy = window.arrive - window.begin - window.wait;
                busy as f64 - window.compute as f64 * (1.0 - 1.0 / factor)
            });
            of_rank.fold(0.0, f64::max)
        };
        now += meeting.wall() as f64;
        then += work(true) - work(false);
    }
    if now > 0.0 {
        (then / now).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

impl Health {
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} ranks compared over {} steps\n",
            self.ranks.len(),
            self.steps
        );
        if self.verdicts.is_empty() {
            text += "Nothing is slow.\n";
        }
        for verdict in &self.verdicts {
            text += &format!("{}\n", verdict.text());
        }
        if let Some(saved) = self.saved.filter(|_| !self.verdicts.is_empty()) {
            text += &format!(
                "At the others' pace the run would take {} less time.\n",
                percent(saved)
            );
        }
        let mut ranks: Vec<&OfRank> = self.ranks.iter().collect();
        ranks.sort_by(|a, b| b.judged.inflation.total_cmp(&a.judged.inflation));
        let rows = ranks.iter().take(10).map(|of| {
            vec![
                of.rank.to_string(),
                of.host.clone().unwrap_or_default(),
                format!("{:.3}", of.judged.inflation),
                format!("{:.3}", of.judged.low),
                format!("{:.1}", of.judged.deviations),
            ]
        });
        text += "\n";
        let header = [
            "rank",
            "host",
            "times as long",
            "at least (95 %)",
            "deviations",
        ];
        text += &table(&header, &rows.collect::<Vec<_>>());
        if let Some(links) = &self.links {
            text += "\n";
            text += &links.text();
        }
        text
    }
}

impl Verdict {
    pub fn text(&self) -> String {
        let ranks: Vec<String> = self.ranks.iter().map(u32::to_string).collect();
        let (ranks, host) = (ranks.join(", "), self.host.as_deref().unwrap_or("unknown"));
        let factor = format!("{:.2} times as long as expected", self.factor);
        let [first, last] = self.steps;
        match self.suspect {
            Suspect::Node => format!("node slow: {host} (ranks {ranks}) needs {factor}"),
            Suspect::Core => format!(
                "core slow: core {} of {host} (rank {ranks}) needs {factor}",
                self.core.unwrap_or(0)
            ),
            Suspect::Rank => format!("rank slow: rank {ranks} on {host} needs {factor}"),
            Suspect::Transient => format!(
                "rank slow for a while: rank {ranks} on {host} needs {factor} in steps {first} to {last}"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
