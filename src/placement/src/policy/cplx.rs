//! CPLX: contiguous where the load is even, LPT among the ranks where it is not.
//!
//! From the contiguous optimum, the X % of the ranks with the most extreme loads, half of them from
//! either end, pool their blocks and share them by LPT. `cplx:X` returns the best placement seen at any X' <= X. So
//! it starts contiguous, never gets worse as X grows, and at 100 is at least as good as LPT and as the contiguous
//! optimum. Source: Jain et al. 2025, section V-D; there the start is chunked CDP and a rule that stops early makes
//! the makespan rise and fall with X.
//!
//! What X' can reach at best is known before it is tried: the largest load that it leaves alone, or
//! the lower bound. The most promising one is tried first, and the search ends when no other can
//! do better; the X' that are considered grow sparser with the blocks, for a bounded time.

use super::{contiguous_optimal, lpt};
use crate::bound;
use crate::certificate::{self, ROUNDING};
use crate::error::PlacementError;
use crate::problem::{Machine, Problem};
use crate::sort::descending_order;

/// The best placement that pools at most `percent` of the ranks.
pub fn place(problem: &Problem, percent: u8) -> Vec<u32> {
    let pools = Pools::new(problem);
    let mut candidates: Vec<(f64, u8)> = considered(problem.n_blocks())
        .filter(|&x| 0 < x && x <= percent)
        .map(|x| (pools.at_best(x), x))
        .collect();
    candidates.sort_by(|a, b| a.partial_cmp(b).expect("loads are numbers"));
    let mut best = (pools.makespan(), None);
    for (at_best, x) in candidates {
        if at_best >= best.0 {
            break;
        }
        let (owners, makespan) = pools.shared(x, best.0);
        if makespan < best.0 {
            best = (makespan, owners);
        }
    }
    best.1.unwrap_or(pools.contiguous)
}

/// The placement of least modelled time among those of all X: picks X from what messages cost.
///
/// The time of a rank is its load and its messages, those it sends as those it gets, at the
/// machine's times; the time of a placement is that of the slowest rank.
/// Errors: there are no message times.
pub fn place_auto(problem: &Problem) -> Result<Vec<u32>, PlacementError> {
    let machine = problem.machine().ok_or(PlacementError::Needs {
        policy: "cplx",
        need: "the machine's message times",
    })?;
    let pools = Pools::new(problem);
    let time = |owners: &[u32]| slowest(problem, machine, owners);
    let mut best = (time(&pools.contiguous), pools.contiguous.clone());
    for x in considered(problem.n_blocks()).filter(|&x| x > 0) {
        // Messages only add to the loads.
        if pools.at_best(x) < best.0
            && let (Some(owners), _) = pools.shared(x, f64::INFINITY)
        {
            let time = time(&owners);
            if time < best.0 {
                best = (time, owners);
            }
        }
    }
    Ok(best.1)
}

/// The X' that are tried: a larger X considers all that a smaller one does.
fn considered(n_blocks: usize) -> impl Iterator<Item = u8> {
    let dense = n_blocks <= 10_000;
    (0..=100u8).filter(move |x| dense || x % 10 == 0 || matches!(x, 5 | 25 | 75))
}

/// The modelled time of the slowest rank.
fn slowest(problem: &Problem, machine: Machine, owners: &[u32]) -> f64 {
    let mut times = certificate::loads(problem, owners);
    let mut message = |a: u32, b: u32, bytes: u64| {
        if a != b {
            let link = match problem.node(a) == problem.node(b) {
                true => machine.same_node,
                false => machine.remote,
            };
            let time = link.latency + bytes as f64 * link.per_byte;
            times[a as usize] += time;
            times[b as usize] += time;
        }
    };
    match problem.graph() {
        Some(graph) => {
            for (block, &owner) in owners.iter().enumerate() {
                graph
                    .row(block)
                    .for_each(|(to, bytes)| message(owner, owners[to as usize], bytes));
            }
        }
        None => owners
            .windows(2)
            .for_each(|pair| message(pair[0], pair[1], 0)),
    }
    times.into_iter().fold(0.0, f64::max)
}

/// The contiguous optimum and what pooling some of its ranks needs.
struct Pools<'a> {
    problem: &'a Problem<'a>,
    contiguous: Vec<u32>,
    loads: Vec<f64>,
    /// The ranks from the most to the least loaded.
    ranks: Vec<u32>,
    /// The blocks from the largest to the smallest.
    blocks: Vec<u32>,
    bound: f64,
}

impl<'a> Pools<'a> {
    fn new(problem: &'a Problem<'a>) -> Self {
        let most = problem.limits().blocks_per_rank.unwrap_or(u32::MAX);
        let contiguous = contiguous_optimal::place(problem, most);
        let blocks = descending_order(problem.costs());
        let loads = certificate::loads(problem, &contiguous);
        let ranks = descending_order(&loads);
        let descending: Vec<f64> = blocks
            .iter()
            .map(|&b| problem.costs()[b as usize])
            .collect();
        let makespan = ranks.first().map_or(0.0, |&rank| loads[rank as usize]);
        Pools {
            problem,
            contiguous,
            bound: bound::lower_bound_of_sorted(&descending, problem.ranks(), makespan),
            loads,
            ranks,
            blocks,
        }
    }

    fn makespan(&self) -> f64 {
        self.loads[self.ranks[0] as usize]
    }

    /// How many ranks `x` percent pools from the upper and from the lower end.
    fn ends(&self, x: u8) -> (usize, usize) {
        let pooled = self.ranks.len() * usize::from(x) / 100;
        (pooled.div_ceil(2), pooled / 2)
    }

    /// The largest load that `x` percent leaves as it is.
    fn left_alone(&self, x: u8) -> f64 {
        let (upper, lower) = self.ends(x);
        match upper + lower < self.ranks.len() {
            true => self.loads[self.ranks[upper] as usize],
            false => 0.0,
        }
    }

    /// No placement of `x` percent has a smaller makespan, but for rounding.
    fn at_best(&self, x: u8) -> f64 {
        self.left_alone(x).max(self.bound * (1.0 - ROUNDING))
    }

    /// The owners with `x` percent pooled, and their makespan; `None` if that is clearly not below
    /// `known`.
    fn shared(&self, x: u8, known: f64) -> (Option<Vec<u32>>, f64) {
        let (upper, lower) = self.ends(x);
        let n = self.ranks.len();
        let mut pooled = vec![false; n];
        let members = self.ranks[..upper].iter().chain(&self.ranks[n - lower..]);
        members.for_each(|&rank| pooled[rank as usize] = true);
        let is_pooled = |block: &&u32| pooled[self.contiguous[**block as usize] as usize];
        let blocks: Vec<u32> = self.blocks.iter().filter(is_pooled).copied().collect();
        let mut owners = self.contiguous.clone();
        let bins = (upper + lower) as u32;
        let costs = self.problem.costs();
        if bins == 0 {
            return (None, self.makespan());
        }
        let makespan = lpt::assign(costs, &blocks, bins, |block, bin| {
            owners[block as usize] = bin
        });
        if makespan.max(self.left_alone(x)) > known * (1.0 + ROUNDING) {
            return (None, makespan);
        }
        let names = self.names(&blocks, bins, &pooled);
        for &block in &blocks {
            let owner = &mut owners[block as usize];
            *owner = names[*owner as usize];
        }
        let makespan = certificate::makespan(self.problem, &owners);
        (Some(owners), makespan)
    }

    /// Which rank each bin is: bins are alike, so each goes where its first block was, if it can.
    fn names(&self, blocks: &[u32], bins: u32, pooled: &[bool]) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let mut names = vec![NONE; bins as usize];
        let mut free = pooled.to_vec();
        for (&block, name) in blocks.iter().zip(&mut names) {
            let before = self.contiguous[block as usize];
            if std::mem::take(&mut free[before as usize]) {
                *name = before;
            }
        }
        let mut left = (0u32..)
            .zip(&free)
            .filter(|(_, free)| **free)
            .map(|(rank, _)| rank);
        for name in names.iter_mut().filter(|name| **name == NONE) {
            *name = left.next().expect("there are as many bins as pooled ranks");
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::makespan;
    use crate::generate::{Distribution, Random, costs};
    use crate::problem::Link;

    #[test]
    fn it_never_rises_starts_contiguous_and_ends_below_lpt() {
        let mut random = Random::new(4);
        for case in 0..60u64 {
            let ranks = 1 + random.below(60) as u32;
            let n = random.below(400);
            let draw: Vec<f64> = match case % 4 {
                0 => costs(Distribution::Exponential, case, n),
                1 => costs(Distribution::PowerLaw, case, n),
                2 => (0..n).map(|_| random.unit()).collect(),
                _ => (0..n)
                    .map(|_| 10f64.powf(18.0 * random.unit() - 9.0))
                    .collect(),
            };
            let problem = Problem::new(&draw, ranks).unwrap();
            let of = |owners: &[u32]| makespan(&problem, owners);
            assert_eq!(
                place(&problem, 0),
                contiguous_optimal::place(&problem, u32::MAX)
            );
            let spans: Vec<f64> = (0..=100).map(|x| of(&place(&problem, x))).collect();
            assert!(spans.is_sorted_by(|a, b| a >= b), "case {case}: {spans:?}");
            assert!(spans[100] <= of(&lpt::place(&problem)), "case {case}");
        }
    }

    #[test]
    fn it_never_rises_on_the_sparse_grid_either() {
        for distribution in Distribution::ALL {
            let draw = costs(distribution, 1, 12_000);
            let problem = Problem::new(&draw, 4_000).unwrap();
            let spans: Vec<f64> = (0..=100)
                .map(|x| makespan(&problem, &place(&problem, x)))
                .collect();
            assert!(spans.is_sorted_by(|a, b| a >= b), "{spans:?}");
            assert!(spans[100] <= makespan(&problem, &lpt::place(&problem)));
            assert!(spans[25] < spans[0], "{distribution}: it does something");
        }
    }

    #[test]
    fn dear_messages_keep_the_curve_together_and_free_ones_do_not() {
        let draw = costs(Distribution::Exponential, 2, 600);
        let problem = Problem::new(&draw, 64).unwrap();
        let with = |latency: f64| {
            let link = Link {
                latency,
                per_byte: 0.0,
            };
            let machine = Machine {
                same_node: link,
                remote: link,
            };
            let problem = problem.with_machine(machine).unwrap();
            place_auto(&problem).unwrap()
        };
        assert_eq!(with(1e6), contiguous_optimal::place(&problem, u32::MAX));
        let free = makespan(&problem, &with(0.0));
        assert_eq!(free, makespan(&problem, &place(&problem, 100)));
        assert!(place_auto(&problem).is_err());
    }
}
