//! Waiting against working, by rank, phase and level, and what to do about it.

mod share;

mod advice;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::FolderError;
use crate::folder::Folder;
use crate::rows::{self, Block, PhaseTime, Round};
use crate::statistics::imbalance;
use crate::text::{percent, table, time};
use crate::windows::{Meeting, Run};

pub use advice::Advice;
pub use share::Share;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfRank {
    pub rank: u32,
    pub node: Option<u32>,
    #[serde(flatten)]
    pub share: Share,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfStep {
    pub step: u64,
    #[serde(flatten)]
    pub share: Share,
}

/// Time of all ranks in a phase, and the largest rank's over their mean, step by step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfPhase {
    pub phase: String,
    pub time: i64,
    pub imbalance: f64,
}

/// `balance` is the mean over the largest rank's time of blocks of the level, the load balance ratio.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfLevel {
    pub level: u32,
    pub blocks_per_step: f64,
    pub time: i64,
    pub balance: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub ranks: Vec<OfRank>,
    pub steps: Vec<OfStep>,
    pub total: Share,
    pub windows: usize,
    pub has_rounds: bool,
    pub phases: Vec<OfPhase>,
    pub levels: Vec<OfLevel>,
    pub advice: Vec<Advice>,
    pub warnings: Vec<String>,
}

/// Sums up what telemetry says of all steps.
///
/// Errors: no windows.
pub fn summary(folder: &Folder) -> Result<Summary, FolderError> {
    folder.analysed(|| of_folder(folder))
}

fn of_folder(folder: &Folder) -> Result<Summary, FolderError> {
    let run = Run::read(folder, &(0..=u64::MAX))?;
    let blocks = rows::blocks(folder);
    let phases = rows::phases(folder).unwrap_or_default();
    let mut summary = of_run(&run);
    summary.phases = of_phases(&phases);
    summary.levels = of_levels(&blocks);
    summary.advice = advice::advice(&summary.total, &run, &blocks);
    summary.warnings = folder.warnings();
    Ok(summary)
}

fn of_run(run: &Run) -> Summary {
    let node_of = run.node_of();
    let mut by_rank: BTreeMap<u32, Share> = BTreeMap::new();
    let mut by_step: BTreeMap<u64, Share> = BTreeMap::new();
    let mut total = Share::default();
    for meeting in &run.meetings {
        let last_arrival = meeting.straggler().arrive;
        let late = late(meeting, run.rounds.get(&(meeting.step, meeting.window)));
        for window in &meeting.ranks {
            let mut share = Share::of(window, last_arrival);
            share.late = late.get(&window.rank).copied().unwrap_or(0).min(share.wait);
            by_rank.entry(window.rank).or_default().add(&share);
            by_step.entry(meeting.step).or_default().add(&share);
            total.add(&share);
        }
    }
    let of_rank = |(rank, share)| OfRank {
        rank,
        node: node_of.get(&rank).copied(),
        share,
    };
    Summary {
        ranks: by_rank.into_iter().map(of_rank).collect(),
        steps: by_step
            .into_iter()
            .map(|(step, share)| OfStep { step, share })
            .collect(),
        total,
        windows: run.meetings.len(),
        has_rounds: !run.rounds.is_empty(),
        phases: Vec::new(),
        levels: Vec::new(),
        advice: Vec::new(),
        warnings: Vec::new(),
    }
}

/// By rank: how long it waited for partners that had not posted yet.
fn late(meeting: &Meeting, rounds: Option<&Vec<Round>>) -> BTreeMap<u32, i64> {
    let Some(rounds) = rounds else {
        return BTreeMap::new();
    };
    let posted: BTreeMap<(u32, u32), i64> = rounds
        .iter()
        .map(|round| ((round.rank, round.round), round.posted))
        .collect();
    let mut late: BTreeMap<u32, i64> = meeting.ranks.iter().map(|w| (w.rank, 0)).collect();
    for round in rounds {
        let partner = round
            .last_from
            .and_then(|from| posted.get(&(from, round.round)));
        if let Some(posted) = partner {
            let late_ns = (posted - round.served).clamp(0, (round.last - round.served).max(0));
            *late.entry(round.rank).or_default() += late_ns;
        }
    }
    late
}

fn of_phases(phases: &[PhaseTime]) -> Vec<OfPhase> {
    let mut by_phase: BTreeMap<&str, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for row in phases {
        let steps = by_phase.entry(&row.phase).or_default();
        steps.entry(row.step).or_default().push(row.time as f64);
    }
    let mut found: Vec<OfPhase> = by_phase
        .into_iter()
        .map(|(phase, steps)| {
            let sum = |of: fn(&Vec<f64>) -> f64| steps.values().map(of).sum::<f64>();
            let mean = sum(|ranks| crate::statistics::mean(ranks));
            let largest = sum(|ranks| ranks.iter().copied().fold(0.0, f64::max));
            OfPhase {
                phase: phase.to_owned(),
                time: sum(|ranks| ranks.iter().sum()) as i64,
                imbalance: if mean > 0.0 { largest / mean } else { 1.0 },
            }
        })
        .filter(|phase| phase.time > 0)
        .collect();
    found.sort_by_key(|phase| -phase.time);
    found
}

fn of_levels(blocks: &[Block]) -> Vec<OfLevel> {
    let n_steps = blocks
        .iter()
        .map(|block| block.step)
        .collect::<std::collections::BTreeSet<_>>()
        .len();
    let mut levels: BTreeMap<u32, (u64, BTreeMap<u32, i64>)> = BTreeMap::new();
    let ranks: std::collections::BTreeSet<u32> = blocks.iter().map(|block| block.rank).collect();
    for block in blocks {
        let (n, by_rank) = levels.entry(block.level).or_default();
        *n += 1;
        *by_rank.entry(block.rank).or_default() += block.compute;
    }
    let of_level = |(level, (n, by_rank)): (u32, (u64, BTreeMap<u32, i64>))| {
        let times: Vec<f64> = ranks
            .iter()
            .map(|rank| by_rank.get(rank).copied().unwrap_or(0) as f64)
            .collect();
        OfLevel {
            level,
            blocks_per_step: n as f64 / n_steps.max(1) as f64,
            time: by_rank.values().sum(),
            balance: 1.0 / imbalance(&times),
        }
    };
    levels.into_iter().map(of_level).collect()
}

impl Summary {
    pub fn text(&self) -> String {
        let total = self.total;
        let mut text = format!(
            "{} ranks, {} steps, {} windows between collectives, {} in all\n\n",
            self.ranks.len(),
            self.steps.len(),
            self.windows,
            time(total.whole() as f64 / self.ranks.len().max(1) as f64)
        );
        let cells = |name: String, share: &Share| {
            let of = |ns: i64| percent(ns as f64 / share.whole().max(1) as f64);
            let late = match self.has_rounds {
                true => of(share.late),
                false => "-".into(),
            };
            vec![
                name,
                of(share.work),
                of(share.other),
                of(share.wait),
                late,
                of(share.sync),
                of(share.call),
                of(share.off),
            ]
        };
        let header = [
            "rank",
            "work",
            "other",
            "wait",
            "of it late",
            "sync",
            "call",
            "off processor",
        ];
        let mut rows = vec![cells("all".into(), &total)];
        let ranks = self.ranks.iter().take(MOST_RANKS);
        rows.extend(ranks.map(|of| cells(of.rank.to_string(), &of.share)));
        text += &table(&header, &rows);
        if self.ranks.len() > MOST_RANKS {
            text += &format!("... {} more in --json\n", self.ranks.len() - MOST_RANKS);
        }
        if !self.phases.is_empty() {
            let whole: i64 = self.phases.iter().map(|phase| phase.time).sum();
            let rows = self.phases.iter().map(|phase| {
                vec![
                    phase.phase.clone(),
                    percent(phase.time as f64 / whole.max(1) as f64),
                    format!("{:.2}", phase.imbalance),
                ]
            });
            text += "\n";
            text += &table(&["phase", "share", "max/mean"], &rows.collect::<Vec<_>>());
        }
        if !self.levels.is_empty() {
            let rows = self.levels.iter().map(|level| {
                vec![
                    level.level.to_string(),
                    format!("{:.1}", level.blocks_per_step),
                    time(level.time as f64),
                    percent(level.balance),
                ]
            });
            text += "\n";
            let header = ["level", "blocks a step", "time", "mean/max (LBR)"];
            text += &table(&header, &rows.collect::<Vec<_>>());
        }
        if !self.advice.is_empty() {
            text += "\n";
        }
        for advice in &self.advice {
            text += &format!("- {}.\n", advice.text);
        }
        text
    }
}

/// Ranks in the table for a terminal.
const MOST_RANKS: usize = 32;

#[cfg(test)]
mod tests {
    use super::advice::{left_by_lpt_swap, uneven_blocks};
    use super::*;
    use crate::windows::tests::window;

    #[test]
    fn what_a_rank_does_adds_up_and_the_last_one_waits_for_nobody() {
        let mut early = window(0, 0, 400, 1100);
        (early.compute, early.wait, early.cpu) = (250, 100, 200);
        let mut last = window(1, 0, 1000, 1100);
        (last.compute, last.cpu) = (1000, 1000);
        let round = |rank: u32, posted, served, last, from| Round {
            step: 1,
            rank,
            posted,
            served,
            last,
            last_from: Some(from),
            ..Round::default()
        };
        let rounds = vec![round(0, 50, 200, 300, 1), round(1, 270, 280, 280, 0)];
        let summary = of_run(&Run::of(vec![early, last], rounds, Vec::new()));
        let [early, last] = &summary.ranks[..] else {
            panic!()
        };
        let expected = Share {
            work: 250,
            other: 50,
            wait: 100,
            late: 70,
            sync: 600,
            call: 100,
            off: 100,
        };
        assert_eq!(early.share, expected);
        assert_eq!(early.share.whole(), 1100);
        assert_eq!(
            (last.share.sync, last.share.call, last.share.whole()),
            (0, 100, 1100)
        );
        assert_eq!(summary.total.whole(), 2200);
    }

    #[test]
    fn a_better_placement_of_the_same_blocks_is_foretold() {
        let block = |rank, block, compute| Block {
            step: 1,
            rank,
            block,
            compute,
            ..Block::default()
        };
        let blocks = [
            block(0, 0, 40),
            block(0, 1, 40),
            block(1, 2, 10),
            block(1, 3, 10),
        ];
        assert_eq!(uneven_blocks(&blocks), 0.375);
        assert_eq!(left_by_lpt_swap(&blocks), Some(0.0));
        let levels = of_levels(&blocks);
        assert_eq!((levels[0].blocks_per_step, levels[0].balance), (4.0, 0.625));
    }
}
