//! What no placement can beat: lower bounds of the makespan.

use crate::problem::Problem;

/// A lower bound of the makespan of any placement of `costs` on `ranks`.
///
/// The largest of: the mean load, the largest cost, for each k the sum of the k+1 smallest of the
/// k * ranks + 1 largest costs (some rank holds k+1 of them), and the pair bound below. `makespan` is
/// that of a placement that is known; it only sharpens the bound.
///
/// Shape: `ranks` is positive and the costs are finite and not negative; no cost gives 0.
pub fn lower_bound(costs: &[f64], ranks: u32, makespan: f64) -> f64 {
    if costs.is_empty() {
        return 0.0;
    }
    lower_bound_of_sorted(&descending(costs), ranks, makespan)
}

/// The bound of a problem, whose ranks may have unequal speeds.
pub fn lower_bound_of(problem: &Problem, makespan: f64) -> f64 {
    match problem.speeds() {
        None => lower_bound(problem.costs(), problem.ranks(), makespan),
        Some(speeds) => on_uneven_ranks(&descending(problem.costs()), &descending(speeds)),
    }
}

/// No placement lets the k largest blocks take less than their sum over the speed of the k fastest ranks, nor all blocks
/// less than their sum over that of all ranks.
fn on_uneven_ranks(costs: &[f64], speeds: &[f64]) -> f64 {
    let (mut cost, mut speed, mut bound) = (0.0, 0.0, 0.0f64);
    for (k, &next) in speeds.iter().enumerate() {
        cost += costs.get(k).copied().unwrap_or(0.0);
        speed += next;
        bound = bound.max(cost / speed);
    }
    let all: f64 = costs.iter().sum();
    // The quotients are rounded, and so are the loads that they are compared with.
    let margin = 1.0 - 4.0 * f64::EPSILON * (costs.len() + speeds.len()) as f64;
    bound.max(all / speed) * margin
}

/// Like [`lower_bound`], for costs that are sorted from the largest to the smallest.
pub(crate) fn lower_bound_of_sorted(descending: &[f64], ranks: u32, makespan: f64) -> f64 {
    if descending.is_empty() {
        return 0.0;
    }
    let total: f64 = descending.iter().sum();
    let mean = rounded_up(descending, total, total / f64::from(ranks));
    let ranks = ranks as usize;
    mean.max(descending[0])
        .max(pigeonhole(descending, ranks))
        .max(pairs(descending, ranks, makespan))
}

/// The mean, rounded up to a multiple of the unit that all costs, and so all loads, are multiples of.
///
/// Loads of whole numbers are whole numbers. The unit is the largest power of two that divides every
/// cost; only where it makes all sums exact is it used.
fn rounded_up(costs: &[f64], total: f64, mean: f64) -> f64 {
    let unit = costs
        .iter()
        .copied()
        .map(lowest_bit)
        .fold(f64::INFINITY, f64::min);
    match unit > 0.0 && total / unit < (1u64 << 52) as f64 {
        true => (mean / unit).ceil() * unit,
        false => mean,
    }
}

/// The largest power of two that divides `cost`; infinite for 0, and 0 where it is not normal.
fn lowest_bit(cost: f64) -> f64 {
    if cost == 0.0 {
        return f64::INFINITY;
    }
    let mantissa = cost.to_bits() & ((1 << 52) - 1) | 1 << 52;
    cost.to_bits()
        .checked_sub(u64::from(52 - mantissa.trailing_zeros()) << 52)
        .map_or(0.0, |bits| f64::from_bits(bits & !((1 << 52) - 1)))
}

/// The costs from the largest to the smallest.
fn descending(costs: &[f64]) -> Vec<f64> {
    let mut sorted = costs.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    sorted
}

/// The largest, over k, sum of the k+1 smallest of the k * ranks + 1 largest costs.
fn pigeonhole(descending: &[f64], ranks: usize) -> f64 {
    let n = descending.len();
    let mut before = vec![0.0; n + 1];
    for (i, cost) in descending.iter().enumerate() {
        before[i + 1] = before[i] + cost;
    }
    let window = |k: usize| k * ranks - k..k * ranks + 1;
    let estimate = |k: usize| before[window(k).end] - before[window(k).start];
    // The prefix sums only find the best k; its sum is then formed anew, free of cancellation.
    let best = (1..=(n - 1) / ranks).max_by(|&a, &b| estimate(a).total_cmp(&estimate(b)));
    best.map_or(0.0, |k| descending[window(k)].iter().rev().sum())
}

/// The best makespan of those costs of which no rank can hold three.
///
/// Blocks above a third of a known makespan go on a rank at most in pairs, in the optimum too. The
/// m largest, ranks < m <= 2 * ranks, then have a best pairing: the largest of the 2 (m - ranks)
/// smallest with the smallest. Source: Graham, SIAM J. Appl. Math. 17(2), 1969, section 3.
fn pairs(descending: &[f64], ranks: usize, makespan: f64) -> f64 {
    let third = makespan / 3.0 * (1.0 + 1e-12);
    let m = descending
        .partition_point(|&cost| cost > third)
        .min(2 * ranks);
    let pairs = m.saturating_sub(ranks);
    (0..pairs)
        .map(|i| descending[2 * ranks - m + i] + descending[m - 1 - i])
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    /// The best makespan by trying every placement.
    fn optimum(costs: &[f64], loads: &mut [f64]) -> f64 {
        let Some((&first, rest)) = costs.split_first() else {
            return loads.iter().copied().fold(0.0, f64::max);
        };
        (0..loads.len())
            .map(|rank| {
                loads[rank] += first;
                let best = optimum(rest, loads);
                loads[rank] -= first;
                best
            })
            .fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_bound_never_exceeds_the_optimum_and_is_often_met() {
        let mut random = Random::new(11);
        let mut met = 0;
        for case in 0..2_000 {
            let (n, ranks) = (random.below(8), 1 + random.below(4));
            let costs: Vec<f64> = (0..n).map(|_| random.below(20) as f64).collect();
            let best = optimum(&costs, &mut vec![0.0; ranks]);
            for makespan in [best, 1.2 * best, 2.0 * best, costs.iter().sum()] {
                let bound = lower_bound(&costs, ranks as u32, makespan);
                assert!(
                    bound <= best,
                    "case {case}: {bound} > {best} for {costs:?} on {ranks}"
                );
                met += usize::from(makespan == best && bound == best);
            }
        }
        assert!(met > 1_400, "{met}");
    }

    #[test]
    fn the_unit_of_a_cost_is_its_lowest_bit() {
        for (cost, unit) in [
            (1.0, 1.0),
            (3.0, 1.0),
            (96.0, 32.0),
            (0.75, 0.25),
            (1e300, 0.0),
        ] {
            match unit == 0.0 {
                true => assert!(lowest_bit(cost) > 1e280),
                false => assert_eq!(lowest_bit(cost), unit, "{cost}"),
            }
        }
        assert_eq!(lowest_bit(0.1), 2f64.powi(-55));
        assert_eq!(lowest_bit(0.0), f64::INFINITY);
        assert_eq!(lowest_bit(5e-324), 0.0);
    }

    #[test]
    fn each_of_the_bounds_can_be_the_sharpest() {
        assert_eq!(lower_bound(&[1.0; 8], 4, 8.0), 2.0, "the mean");
        assert_eq!(
            lower_bound(&[1.0; 9], 4, 9.0),
            3.0,
            "the mean in whole blocks"
        );
        assert_eq!(
            lower_bound(&[0.75; 9], 4, 9.0),
            2.25,
            "in quarters, here by the pigeonhole"
        );
        assert_eq!(
            lower_bound(&[0.5, 0.75, 0.5, 0.5, 0.5, 0.5], 2, 9.0),
            1.75,
            "the mean in quarters"
        );
        assert_eq!(lower_bound(&[9.0, 1.0], 4, 10.0), 9.0, "the largest");
        assert_eq!(lower_bound(&[2.0, 2.0, 2.0], 2, 6.0), 4.0, "the pigeonhole");
        // Five blocks on three ranks: the pigeonhole gives 5 + 5, the pairs 6 + 5.
        assert_eq!(
            lower_bound(&[6.0, 6.0, 5.5, 5.0, 5.0], 3, 11.0),
            11.0,
            "the pairs"
        );
    }
}
