//! Which old runs are learned from: the newest of a group all, and of those behind them ever fewer the older they are.
//!
//! A run stays with a probability of `whole` over the number of newer runs of its group. So of n runs about
//! whole (1 + ln(n / whole)) stay. Its job's name and that number alone decide: which runs stay depends on no training.

/// Whether a run stays behind so many newer ones. `word` is a hash of its job's name.
pub fn stays(word: u64, newer: usize, whole: usize) -> bool {
    // 53 bits of a hash are a number from 0 to 1.
    let drawn = (word >> 11) as f64 / (1u64 << 53) as f64;
    drawn * (newer as f64) < whole as f64
}

/// How many of so many runs of a group stay, in the mean.
pub fn expected(runs: usize, whole: usize) -> f64 {
    let (runs, whole) = (runs as f64, whole as f64);
    match runs <= whole {
        true => runs,
        false => whole * (1.0 + (runs / whole).ln()),
    }
}

#[cfg(test)]
mod tests {
    use colltune_core::select::mix;

    use super::*;

    #[test]
    fn the_newest_stay_and_of_the_others_as_many_as_is_said() {
        let (runs, whole) = (100_000, 64);
        let stay = |newer: &usize| stays(mix(7, *newer as u64), *newer, whole);
        assert!((0..=whole).all(|newer| stay(&newer)));
        let left = (0..runs).filter(stay).count() as f64;
        let expected = expected(runs, whole);
        // The variance of a sum of rare events is at most its mean.
        assert!(
            (left - expected).abs() < 4.0 * expected.sqrt(),
            "{left} {expected}"
        );
        assert_eq!(super::expected(60, whole), 60.0);
    }

    #[test]
    fn what_is_gone_does_not_come_back_with_more_runs() {
        for word in (0..1000).map(|number| mix(1, number)) {
            let mut gone = false;
            for newer in 0..2000 {
                let stays = stays(word, newer, 16);
                assert!(!(gone && stays), "{newer}");
                gone = !stays;
            }
        }
    }
}
