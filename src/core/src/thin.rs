//! Which calls of a cell are sampled: all of them at first, then ever fewer.
//!
//! A function of shared facts alone, so that all ranks of a communicator sample the same calls.
//! After the first `samples_per_cell` calls the mean distance of two sampled calls grows with the
//! number of calls, so N calls give about s(1 + ln(N/s)) samples: a cell that is called a million
//! times leaves room in the trace for one that is called a hundred times.

use crate::select::mix;

/// The number of the next sampled call of a cell, after call `index` was sampled.
///
/// Shape:  `index` counts the cell's calls on one communicator from 0; the result is larger.
/// `gap_least` is the mean distance that the exploration budget asks for (see [`crate::review`]).
#[inline]
pub fn next_sampled(key: u64, index: u64, samples_per_cell: u32, gap_least: u64) -> u64 {
    // The usual case first: it needs no division.
    if index < u64::from(samples_per_cell) && gap_least <= 1 {
        return index + 1;
    }
    let mean_gap = (index / u64::from(samples_per_cell.max(1)))
        .max(gap_least)
        .max(1);
    if mean_gap == 1 {
        return index.saturating_add(1);
    }
    // Uniform over 1 ..= 2 * mean - 1, so that no pattern of the program's own stays in step.
    let spread = mean_gap.saturating_mul(2) - 1;
    index.saturating_add(1 + mix(key, index) % spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled_up_to(calls: u64, samples_per_cell: u32, gap_least: u64) -> Vec<u64> {
        std::iter::successors(Some(0), |&index| {
            Some(next_sampled(7, index, samples_per_cell, gap_least))
        })
        .take_while(|&index| index < calls)
        .collect()
    }

    #[test]
    fn the_first_calls_are_all_sampled_and_the_rest_thins_logarithmically() {
        let sampled = sampled_up_to(1_000_000, 256, 1);
        assert_eq!(sampled[..512], (0..512).collect::<Vec<u64>>());
        let expected = 256.0 * (1.0 + (1e6f64 / 256.0).ln());
        assert!(
            (sampled.len() as f64 / expected - 1.0).abs() < 0.25,
            "{} against {expected}",
            sampled.len()
        );
    }

    #[test]
    fn the_budget_widens_the_distance() {
        let n = sampled_up_to(100_000, 1_000_000, 50).len();
        assert!((1_800..2_200).contains(&n), "{n}");
    }

    #[test]
    fn it_is_total() {
        for index in [0, 1, u64::MAX - 1, u64::MAX] {
            for gap in [0, 1, 2, u64::MAX] {
                assert!(next_sampled(1, index, 0, gap) >= index);
            }
        }
    }
}
