//! What the variance of computing times comes from.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::OfStep;
use crate::rows::Block;
use crate::statistics::{mean, pearson};
use crate::text::{percent, table};

/// Shares of the variance of a rank's time in a step, as logarithms; each of what those before leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Variance {
    /// What the rank's blocks are expected to take, by level, class and iterations.
    pub work: f64,
    pub node: f64,
    pub rank: f64,
    pub step: f64,
    pub rest: f64,
}

type BlockKind = (u32, bool, u32);

fn kind(block: &Block) -> BlockKind {
    (block.level, block.near_shock, block.iterations)
}

/// The mean time of blocks by kind.
fn means(blocks: &[Block]) -> BTreeMap<BlockKind, f64> {
    let mut sums: BTreeMap<BlockKind, (f64, f64)> = BTreeMap::new();
    for block in blocks {
        let (n, time) = sums.entry(kind(block)).or_default();
        *n += 1.0;
        *time += block.compute as f64;
    }
    sums.into_iter()
        .map(|(kind, (n, time))| (kind, time / n))
        .collect()
}

/// How well kinds explain the times of blocks; `None` where all are of one kind.
pub(super) fn r_squared_of_blocks(blocks: &[Block]) -> Option<f64> {
    let means = means(blocks);
    let slow = means.values().copied().fold(0.0, f64::max);
    let fast = means.values().copied().fold(f64::INFINITY, f64::min);
    // Kinds that take the same time have nothing to explain.
    if means.len() < 2 || slow < 1.2 * fast {
        return None;
    }
    let measured: Vec<f64> = blocks
        .iter()
        .map(|b| (b.compute.max(1) as f64).ln())
        .collect();
    let expected: Vec<f64> = blocks
        .iter()
        .map(|b| means[&kind(b)].max(1.0).ln())
        .collect();
    pearson(&expected, &measured).map(|r| r * r)
}

pub(super) fn shares(
    cells: &BTreeMap<(u32, u64), OfStep>,
    blocks: &[Block],
    node_of: &BTreeMap<u32, u32>,
) -> Variance {
    let means = means(blocks);
    let mut expected: BTreeMap<(u32, u64), f64> = BTreeMap::new();
    for block in blocks {
        *expected.entry((block.rank, block.step)).or_default() += means[&kind(block)];
    }
    let used: Vec<(u32, u64, f64)> = cells
        .iter()
        .filter(|(_, cell)| cell.compute > 0.0)
        .map(|(&(rank, step), cell)| (rank, step, cell.compute.ln()))
        .collect();
    let mut left: Vec<f64> = used.iter().map(|(_, _, y)| *y).collect();
    centre(&mut left, |_| 0);
    let all = square(&left);
    if all <= 0.0 {
        return Variance::default();
    }
    let mut before = all;
    let mut explained = |left: &[f64]| {
        let now = square(left);
        let share = (before - now) / all;
        before = now;
        share
    };
    let x: Option<Vec<f64>> = used
        .iter()
        .map(|(rank, step, _)| expected.get(&(*rank, *step)).map(|x| x.max(1.0).ln()))
        .collect();
    if let Some(mut x) = x {
        centre(&mut x, |_| 0);
        let slope = x.iter().zip(&left).map(|(x, y)| x * y).sum::<f64>() / square(&x).max(1e-12);
        left.iter_mut().zip(&x).for_each(|(y, x)| *y -= slope * x);
    }
    let work = explained(&left);
    centre(&mut left, |i| {
        node_of.get(&used[i].0).copied().unwrap_or(0).into()
    });
    let node = explained(&left);
    centre(&mut left, |i| used[i].0.into());
    let rank = explained(&left);
    centre(&mut left, |i| used[i].1);
    let step = explained(&left);
    Variance {
        work,
        node,
        rank,
        step,
        rest: square(&left) / all,
    }
}

fn square(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// Takes the mean of each group from its values.
fn centre(values: &mut [f64], group: impl Fn(usize) -> u64) {
    let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for i in 0..values.len() {
        groups.entry(group(i)).or_default().push(i);
    }
    for members in groups.values() {
        let middle = mean(&members.iter().map(|&i| values[i]).collect::<Vec<_>>());
        members.iter().for_each(|&i| values[i] -= middle);
    }
}

impl Variance {
    pub fn text(&self) -> String {
        let row = |name: &str, share: f64| vec![name.to_owned(), percent(share)];
        let rows = [
            row("work (blocks by kind)", self.work),
            row("node", self.node),
            row("rank", self.rank),
            row("step", self.step),
            row("rest", self.rest),
        ];
        table(&["computing time varies by", "share"], &rows) + "\n"
    }
}
