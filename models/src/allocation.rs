//! The probabilities with which sampled calls draw the variants: top-two Thompson sampling.
//!
//! Of each posterior draw the cheapest variant gets a half, the second the other. So variants that may be the best
//! are measured, and their closest rivals; dominated ones are not. Draws have a seed, so the same evidence gives the
//! same probabilities. Exploring ends where nothing worth the trouble is left to gain. Source: Russo, COLT 2016; the
//! second of the same draw stands in for drawing again.

use std::collections::BTreeSet;

/// The least probability of the default in cells that are explored: every gain is measured against it.
pub const DEFAULT_SHARE: f64 = 0.10;
/// All that exploring keeps of a settled cell, so that changes are seen.
pub const SETTLED_SHARE: f64 = 0.01;
/// What variants with too few samples share at the least, and those that a prior disfavours.
const UNSEEN_SHARE: f64 = 0.25;
const DISFAVOURED_SHARE: f64 = 0.02;
/// Less than this is no probability: it would only lengthen the file.
const SHARE_LEAST: f64 = 0.004;
/// Probabilities are whole numbers of these in one.
const PARTS: u32 = 1_000_000;

/// One cell as its allocation sees it; places count the default as 0.
pub struct Race<'a> {
    /// Posterior draws of the costs, by place.
    pub draws: &'a [Vec<f64>],
    /// The places that may be drawn, but the default.
    pub drawable: &'a [usize],
    /// Those of them that have too few samples to be judged by them.
    pub unseen: &'a BTreeSet<usize>,
    pub dominated: &'a BTreeSet<usize>,
    /// Places that only a prior speaks against.
    pub disfavoured: &'a [usize],
    pub best: usize,
    pub exploring: Exploring,
    pub explore_total: f64,
}

/// How much a cell is explored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exploring {
    /// Something worth finding may be there: draws decide.
    Open,
    /// Little is left: all but the best share `explore_total`.
    Narrow,
    /// Nothing is left.
    Settled,
}

/// What is expected to be gained by knowing the truth rather than running `best`, beyond `least`: a share of its cost.
pub fn expected_loss(draws: &[Vec<f64>], drawable: &[usize], best: usize, least: f64) -> f64 {
    let loss = |costs: &Vec<f64>| {
        let fastest = drawable
            .iter()
            .map(|&place| costs[place])
            .fold(costs[0], f64::min);
        (1.0 - fastest / costs[best].max(fastest) - least).max(0.0)
    };
    draws.iter().map(loss).sum::<f64>() / draws.len().max(1) as f64
}

/// The probability of each place; they sum to 1 as whole millionths.
pub fn allocate(race: &Race) -> Vec<f64> {
    let n = race.draws.first().map_or(
        1 + race
            .drawable
            .iter()
            .chain(race.disfavoured)
            .copied()
            .max()
            .unwrap_or(0),
        Vec::len,
    );
    let mut shares = vec![0.0; n];
    if race.explore_total <= 0.0 {
        shares[race.best] = 1.0;
        return shares;
    }
    match race.exploring {
        Exploring::Settled => {
            shares[0] = SETTLED_SHARE.min(race.explore_total);
            shares[race.best] += 1.0 - shares[0];
        }
        Exploring::Open => open(race, &mut shares),
        Exploring::Narrow => {
            open(race, &mut shares);
            let others = 1.0 - shares[race.best];
            let allowed = race.explore_total.min(others);
            if others > 0.0 {
                shares
                    .iter_mut()
                    .for_each(|share| *share *= allowed / others);
            }
            shares[race.best] = 1.0 - allowed;
        }
    }
    whole(&shares)
}

fn open(race: &Race, shares: &mut [f64]) {
    let running = |place: &usize| !race.dominated.contains(place);
    let drawn: Vec<usize> = std::iter::once(0)
        .chain(race.drawable.iter().copied().filter(running))
        .collect();
    for costs in race.draws {
        let mut order: [Option<usize>; 2] = [None; 2];
        for &place in &drawn {
            let below =
                |other: Option<usize>| other.is_none_or(|other| costs[place] < costs[other]);
            if below(order[0]) {
                order = [Some(place), order[0]];
            } else if below(order[1]) {
                order[1] = Some(place);
            }
        }
        let first = order[0].unwrap_or(0);
        shares[first] += 0.5;
        shares[order[1].unwrap_or(first)] += 0.5;
    }
    if race.draws.is_empty() {
        drawn.iter().for_each(|&place| shares[place] = 1.0);
    }
    normalise(shares);
    shares
        .iter_mut()
        .filter(|share| **share < SHARE_LEAST)
        .for_each(|share| *share = 0.0);
    let unseen: Vec<usize> = drawn
        .iter()
        .copied()
        .filter(|place| race.unseen.contains(place))
        .collect();
    let floor = UNSEEN_SHARE / drawn.len().max(1) as f64;
    unseen
        .iter()
        .for_each(|&place| shares[place] = shares[place].max(floor));
    normalise(shares);
    if !race.disfavoured.is_empty() {
        let each = (DISFAVOURED_SHARE / race.disfavoured.len() as f64).min(0.005);
        race.disfavoured
            .iter()
            .filter(|place| running(place))
            .for_each(|&place| shares[place] = shares[place].max(each));
        normalise(shares);
    }
    if shares[0] < DEFAULT_SHARE {
        let others = 1.0 - shares[0];
        shares
            .iter_mut()
            .skip(1)
            .for_each(|share| *share *= (1.0 - DEFAULT_SHARE) / others);
        shares[0] = DEFAULT_SHARE;
    }
}

fn normalise(shares: &mut [f64]) {
    let total: f64 = shares.iter().sum();
    if total > 0.0 {
        shares.iter_mut().for_each(|share| *share /= total);
    }
}

/// Rounds to whole millionths that sum to one million, the largest taking what is left over.
pub(crate) fn whole(shares: &[f64]) -> Vec<f64> {
    let mut parts: Vec<u32> = shares
        .iter()
        .map(|share| (share * f64::from(PARTS)).floor() as u32)
        .collect();
    let sum: u32 = parts.iter().sum();
    if let Some(largest) = (0..parts.len()).max_by_key(|&place| parts[place]) {
        parts[largest] += PARTS - sum.min(PARTS);
    }
    parts
        .into_iter()
        .map(|part| f64::from(part) / f64::from(PARTS))
        .collect()
}
