//! A counter-based random number generator.

/// Draws of one seed, in order; see [`Random::at`] for any one of them.
///
/// Source: the finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014) over seed and counter.
#[derive(Debug, Clone)]
pub struct Random {
    seed: u64,
    index: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Random { seed, index: 0 }
    }

    /// Draw `index` of `seed`: 64 uniform bits.
    pub fn at(seed: u64, index: u64) -> u64 {
        mix(mix(seed ^ 0x9e37_79b9_7f4a_7c15)
            .wrapping_add(index.wrapping_mul(0xd1b5_4a32_d192_ed03)))
    }

    /// The next 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.index += 1;
        Random::at(self.seed, self.index - 1)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }

    /// Uniform in `0..n`, which is not empty.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0);
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }
}

/// The upper 53 bits as a number in [0, 1).
pub(super) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn mix(v: u64) -> u64 {
    let v = (v ^ v >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let v = (v ^ v >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    v ^ v >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draws_are_the_same_everywhere() {
        let mut random = Random::new(42);
        let drawn: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(drawn, (0..3).map(|i| Random::at(42, i)).collect::<Vec<_>>());
        assert_ne!(Random::at(42, 0), Random::at(43, 0));
    }

    #[test]
    fn units_and_small_numbers_are_uniform() {
        let mut random = Random::new(7);
        let n = 100_000;
        let mean = (0..n).map(|_| random.unit()).sum::<f64>() / f64::from(n);
        // The standard error of the mean is 1/sqrt(12 n) = 0.0009.
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        let mut counts = [0; 7];
        (0..70_000).for_each(|_| counts[random.below(7)] += 1);
        assert!(
            counts.iter().all(|&c| (9_500..10_500).contains(&c)),
            "{counts:?}"
        );
    }
}
