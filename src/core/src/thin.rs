//! Which calls of a cell are sampled: as many as possible at first, then ever fewer.
//!
//! A function of shared facts alone, so that all ranks of a communicator sample the same calls. A
//! variant that runs once among calls of another is slower than where it stays: its messages take
//! other ways, and its data are not in the caches. So the calls before a sampled one warm it up
//! ([`WARMUPS`]): they run the same variant and are not recorded. A cell's first call on a
//! communicator is sampled as it comes: where there are few, they are all like that. After the first
//! `samples_per_cell` samples their mean distance grows with the number of calls, so N calls give
//! about s(1 + ln(N/(s(1 + r)))) samples: a cell that is called a million times leaves room in the
//! trace for one that is called a hundred times.

use crate::select::mix;

/// Calls that run a sampled call's variant right before it.
pub const WARMUPS: u64 = 2;
/// Messages from this size on take long enough to be timed as they come, and come seldom.
const WARMED_BELOW: u64 = 256 << 10;

/// How many warm-up calls a cell's samples need, from the number of variants that it draws and its
/// least message size in bytes.
pub fn warmups(variants: usize, least_bytes: u64) -> u64 {
    // Where only one variant runs there is nothing to warm up.
    if variants > 1 && least_bytes < WARMED_BELOW {
        WARMUPS
    } else {
        0
    }
}

/// The number of the next sampled call of a cell, after call `index` was sampled.
///
/// Shape:  `index` counts the cell's calls on one communicator from 0; the result is larger by more
///         than `warmups`, so that these calls lie between the two. `gap_least` is the mean
///         distance that the exploration budget asks for (see [`crate::review`]).
#[inline]
pub fn next_sampled(
    key: u64,
    index: u64,
    warmups: u64,
    samples_per_cell: u32,
    gap_least: u64,
) -> u64 {
    let period = warmups.saturating_add(1);
    let least = gap_least.max(period);
    let samples = u64::from(samples_per_cell.max(1));
    // A division takes longer than everything else here, and the first calls need none.
    let mean_gap = match index < samples.saturating_mul(least) {
        true => least,
        false => (index / samples).max(least),
    };
    // Uniform over period ..= 2 * mean - period, so that no pattern of the program's own stays in
    // step.
    let further = match (mean_gap - period).saturating_mul(2) {
        0 => 0,
        most => mix(key, index) % most.saturating_add(1),
    };
    index.saturating_add(period).saturating_add(further)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled_up_to(calls: u64, warmups: u64, gap_least: u64) -> Vec<u64> {
        std::iter::successors(Some(0), |&index| {
            Some(next_sampled(7, index, warmups, 256, gap_least))
        })
        .take_while(|&index| index < calls)
        .collect()
    }

    #[test]
    fn without_warmups_the_first_calls_are_all_sampled_and_the_rest_thins_logarithmically() {
        let sampled = sampled_up_to(1_000_000, 0, 1);
        assert_eq!(sampled[..512], (0..512).collect::<Vec<u64>>());
        let expected = 256.0 * (1.0 + (1e6f64 / 256.0).ln());
        assert!(
            (sampled.len() as f64 / expected - 1.0).abs() < 0.25,
            "{} against {expected}",
            sampled.len()
        );
    }

    #[test]
    fn warmups_lie_between_two_sampled_calls() {
        let sampled = sampled_up_to(1_000_000, WARMUPS, 1);
        assert!(sampled.windows(2).all(|pair| pair[1] - pair[0] > WARMUPS));
        let dense = sampled.iter().filter(|&&index| index < 768).count();
        assert_eq!(
            dense, 256,
            "samples follow each other as closely as warm-up calls allow"
        );
        let expected = 256.0 * (1.0 + (1e6f64 / 768.0).ln());
        assert!(
            (sampled.len() as f64 / expected - 1.0).abs() < 0.25,
            "{} against {expected}",
            sampled.len()
        );
    }

    #[test]
    fn large_messages_and_single_variants_are_not_warmed_up() {
        assert_eq!(warmups(2, 128 << 10), WARMUPS);
        assert_eq!(warmups(2, 256 << 10), 0);
        assert_eq!(warmups(1, 8), 0);
    }

    #[test]
    fn the_budget_widens_the_distance() {
        for warmups in [0, WARMUPS] {
            let n = sampled_up_to(10_000, warmups, 50).len();
            assert!((180..220).contains(&n), "{n}");
        }
    }

    #[test]
    fn it_is_total() {
        for index in [0, 1, u64::MAX - 1, u64::MAX] {
            for gap in [0, 1, 2, u64::MAX] {
                for warmups in [0, 2, u64::MAX] {
                    assert!(next_sampled(1, index, warmups, 0, gap) >= index);
                }
            }
        }
    }
}
