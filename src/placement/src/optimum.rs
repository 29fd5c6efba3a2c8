//! The best makespan of small problems by dynamic programming over subsets: a yardstick.
//!
//! For each subset of the blocks, the fewest ranks that hold it below a ceiling, and then the least load
//! of the last of them, follow from those of the subsets with one block less. That takes `2^n` words of
//! four bytes and `n` times as many steps, whatever the costs are: where integer programming may end
//! without a proof, this does not.
//! Source: Held & Karp, J. SIAM 10(1), 1962, whose recursion over subsets this is, for bin packing.

/// The most blocks that are considered: 64 MiB.
pub const BLOCKS_MAX: usize = 24;

/// The best makespan of `costs` on `ranks`, given that of some placement.
///
/// `None` for more than [`BLOCKS_MAX`] blocks, costs that are no whole numbers, or a sum from 2^16 on.
pub fn optimum(costs: &[f64], ranks: u32, known: f64) -> Option<f64> {
    let is_whole = costs.iter().all(|cost| cost.fract() == 0.0 && *cost >= 0.0);
    let total: f64 = costs.iter().sum();
    if costs.len() > BLOCKS_MAX || !is_whole || total >= 65_536.0 || ranks == 0 {
        return None;
    }
    let whole: Vec<u32> = costs.iter().map(|&cost| cost as u32).collect();
    let largest = whole.iter().copied().max().unwrap_or(0);
    let mut best = known.min(total) as u32;
    while best > largest && ranks_needed(&whole, best - 1) <= ranks {
        best -= 1;
    }
    Some(f64::from(best))
}

/// The fewest ranks on which no load exceeds `ceiling`, which is not below the largest cost.
fn ranks_needed(costs: &[u32], ceiling: u32) -> u32 {
    // Full ranks in the upper half of a word, the load of the one that is being filled in the lower:
    // the smaller word is the better one.
    let mut best = vec![0u32; 1 << costs.len()];
    for subset in 1..best.len() {
        let mut least = u32::MAX;
        let mut rest = subset;
        while rest != 0 {
            let last = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let without = best[subset & !(1 << last)];
            let load = (without & 0xffff) + costs[last];
            let with = match load <= ceiling {
                true => without + costs[last],
                false => (without & 0xffff_0000) + 0x1_0000 + costs[last],
            };
            least = least.min(with);
        }
        best[subset] = least;
    }
    let all = best[best.len() - 1];
    (all >> 16) + u32::from(all & 0xffff > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    fn by_trying_all(costs: &[f64], loads: &mut [f64]) -> f64 {
        let Some((&first, rest)) = costs.split_first() else {
            return loads.iter().copied().fold(0.0, f64::max);
        };
        let mut best = f64::INFINITY;
        for rank in 0..loads.len() {
            loads[rank] += first;
            best = best.min(by_trying_all(rest, loads));
            loads[rank] -= first;
        }
        best
    }

    #[test]
    fn it_is_the_best_of_all_placements() {
        let mut random = Random::new(12);
        for case in 0..600 {
            let (n, ranks) = (random.below(9), 1 + random.below(4));
            let costs: Vec<f64> = (0..n).map(|_| random.below(25) as f64).collect();
            let best = by_trying_all(&costs, &mut vec![0.0; ranks]);
            let worst: f64 = costs.iter().sum();
            for known in [best, best + 3.0, worst, f64::INFINITY] {
                let found = optimum(&costs, ranks as u32, known);
                assert_eq!(found, Some(best), "case {case}: {costs:?} on {ranks}");
            }
        }
    }

    #[test]
    fn what_it_cannot_hold_is_refused() {
        assert_eq!(optimum(&[1.0; 25], 2, 99.0), None);
        assert_eq!(optimum(&[0.5], 2, 99.0), None);
        assert_eq!(optimum(&[65_536.0], 2, 99_999.0), None);
        assert_eq!(optimum(&[1.0], 0, 1.0), None);
        assert_eq!(optimum(&[], 2, 0.0), Some(0.0));
    }
}
