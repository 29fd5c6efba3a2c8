//! What blocks take against what is expected of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::rows::Block;
use crate::statistics::{mean, median};

/// Ranks that are compared: the median of fewer says nothing about one of them.
pub const RANKS_MIN: usize = 3;
/// By rank: its inflation in each step in which it had blocks to compare.
pub type Inflation = BTreeMap<u32, BTreeMap<u64, f64>>;

pub fn steps_of(inflation: &Inflation) -> BTreeSet<u64> {
    inflation
        .values()
        .flat_map(|steps| steps.keys().copied())
        .collect()
}

/// What blocks of a kind have in common in a step.
type BlockKind = (u64, u32, bool, u32);

/// How the blocks of a kind stand for their rank, and its steps: the mean sees a rank that is stopped again and again,
/// the median does not mind a time slice that is lost, which falls on few blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Mean,
    Median,
}

impl Pace {
    pub const BOTH: [Pace; 2] = [Pace::Mean, Pace::Median];

    fn of(self, times: &[f64]) -> f64 {
        match self {
            Pace::Mean => mean(times),
            Pace::Median => median(times),
        }
    }
}

/// Blocks' times against those of the median rank.
pub fn inflation(blocks: &[Block], pace: Pace) -> Inflation {
    let mut of_kind: BTreeMap<BlockKind, BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for block in blocks {
        let kind = (block.step, block.level, block.near_shock, block.iterations);
        let by_rank = of_kind.entry(kind).or_default();
        by_rank
            .entry(block.rank)
            .or_default()
            .push(block.compute as f64);
    }
    let mut sums: BTreeMap<(u32, u64), (f64, f64)> = BTreeMap::new();
    for ((step, ..), by_rank) in of_kind {
        if by_rank.len() < RANKS_MIN {
            continue;
        }
        let paces: Vec<f64> = by_rank.values().map(|times| pace.of(times)).collect();
        let usual = median(&paces);
        for ((rank, times), pace) in by_rank.iter().zip(paces) {
            let (measured, expected) = sums.entry((*rank, step)).or_default();
            *measured += times.len() as f64 * pace;
            *expected += times.len() as f64 * usual;
        }
    }
    let mut inflation = Inflation::new();
    for ((rank, step), (measured, expected)) in sums {
        if expected > 0.0 {
            let steps = inflation.entry(rank).or_default();
            steps.insert(step, measured / expected);
        }
    }
    inflation
}

/// The steps from one to another.
pub fn within(inflation: &Inflation, [first, last]: [u64; 2]) -> Inflation {
    let part = |steps: &BTreeMap<u64, f64>| {
        let steps = steps.range(first..=last);
        steps.map(|(&step, &x)| (step, x)).collect()
    };
    inflation
        .iter()
        .map(|(&rank, steps)| (rank, part(steps)))
        .collect()
}
