//! From a cell's probabilities and a call's number to a variant.
//!
//! The random numbers are counter-based: a function of (job seed, communicator, cell, call), so
//! no rank keeps a state that another could be out of step with, and communicators may be used in
//! any interleaving.

/// Mixes two words into one: the finalizer of SplitMix64 over their combination.
///
/// Source: Steele, Lea & Flood, OOPSLA 2014; constants of Stafford's variant 13.
pub const fn mix(a: u64, b: u64) -> u64 {
    let mut z = (a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The key of one cell on one communicator of one job.
pub const fn key(seed: u64, comm: u64, cell: u64) -> u64 {
    mix(mix(mix(seed, 0x636f_6c6c_7475_6e65), comm), cell)
}

/// The random word of call `index` under a key. It is independent of [`crate::thin`]'s, which
/// uses the key itself.
pub const fn word(key: u64, index: u64) -> u64 {
    mix(key ^ 0x5eed_5eed_5eed_5eed, index)
}

/// Draws one of several choices with given probabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chooser {
    /// Upper ends of the choices' shares of 2^64, ascending; the last share is open.
    ends: Vec<u64>,
    choices: Vec<u16>,
}

impl Chooser {
    /// Shape:  pairs of choice and weight; weights need not sum to 1. Choices of weight 0, negative
    ///         or not finite are never drawn. With none left, nothing can be drawn.
    pub fn new(weights: &[(u16, f64)]) -> Chooser {
        let drawn: Vec<_> = weights
            .iter()
            .filter(|(_, weight)| weight.is_finite() && *weight > 0.0)
            .collect();
        let total: f64 = drawn.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let mut chooser = Chooser::default();
        for (choice, weight) in drawn {
            sum += weight;
            // `as` saturates, so rounding above 1 is harmless.
            chooser.ends.push((sum / total * 2f64.powi(64)) as u64);
            chooser.choices.push(*choice);
        }
        chooser
    }

    /// What may be drawn, each with its share in parts of 2^32. In whole numbers: it is asked on the path of calls,
    /// where the program may have floating-point traps.
    pub fn shares(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let last = self.ends.len().saturating_sub(1);
        let end = move |place: usize| match place == last {
            true => 1 << 32,
            false => self.ends[place] >> 32,
        };
        let mut start = 0;
        self.choices.iter().enumerate().map(move |(place, choice)| {
            let share = end(place) - start;
            start += share;
            (*choice, share)
        })
    }

    /// The choice for a random word, which is not asked for where there is one choice; `None` when there is nothing
    /// to choose. Total.
    #[inline]
    pub fn draw(&self, word: impl FnOnce() -> u64) -> Option<u16> {
        if let [one] = self.choices[..] {
            return Some(one);
        }
        let word = word();
        // Counting instead of searching: no branch depends on the word.
        let passed = self.ends.iter().filter(|end| word >= **end).count();
        let place = passed.min(self.choices.len().saturating_sub(1));
        self.choices.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let chooser = Chooser::new(&[(3, 0.5), (4, 0.0), (5, 0.25), (6, f64::NAN), (7, 0.25)]);
        let mut seen = [0u32; 8];
        let key = key(1, 2, 3);
        for index in 0..40_000 {
            seen[usize::from(chooser.draw(|| word(key, index)).unwrap())] += 1;
        }
        assert_eq!((seen[4], seen[6]), (0, 0));
        // Five standard deviations of a binomial with n = 40,000 are below 500.
        for (choice, expected) in [(3, 20_000), (5, 10_000), (7, 10_000)] {
            assert!(seen[choice].abs_diff(expected) < 500, "{seen:?}");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_covered() {
        let chooser = Chooser::new(&[(1, 1.0 / 3.0), (2, 1.0 / 3.0), (3, 1.0 / 3.0)]);
        assert_eq!(chooser.draw(|| 0), Some(1));
        assert_eq!(chooser.draw(|| u64::MAX), Some(3));
        assert_eq!(Chooser::new(&[]).draw(|| 5), None);
        assert_eq!(Chooser::new(&[]).shares().count(), 0);
        let third: u64 = (1 << 32) / 3;
        let shares: Vec<_> = chooser.shares().collect();
        assert!(shares.iter().all(|(_, share)| third.abs_diff(*share) < 4));
        assert_eq!(shares.iter().map(|(_, share)| share).sum::<u64>(), 1 << 32);
        let one = Chooser::new(&[(1, 0.0), (2, 0.1)]);
        assert_eq!(one.draw(|| unreachable!("there is one choice")), Some(2));
        assert_eq!(Chooser::new(&[(1, 0.0)]).draw(|| 5), None);
    }

    #[test]
    fn keys_of_neighbours_differ() {
        let mut keys = std::collections::BTreeSet::new();
        for seed in 0..10 {
            for comm in 0..10 {
                for cell in 0..10 {
                    keys.insert(key(seed, comm, cell));
                }
            }
        }
        assert_eq!(keys.len(), 1000);
    }
}
