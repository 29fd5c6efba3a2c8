//! What times do beside their means: factors of a block, of a block in a step, of a rank, and spikes.
//!
//! A factor is a function of the seed and of what it belongs to, so the same block has the same one on any rank, in any
//! order, and on any number of threads.

use colltune_placement::generate::Random;

use crate::cost::NoiseCosts;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    pub costs: NoiseCosts,
    pub seed: u64,
}

impl Noise {
    /// Of a block on its owner in a step: its time over the mean of such blocks.
    pub fn factor(&self, block: u64, owner: u32, step: u64) -> f64 {
        let NoiseCosts {
            block_cv,
            step_cv,
            rank_cv,
            spike_share,
            spike_factor,
            pace_cv,
            ..
        } = self.costs;
        let of_block = self.lognormal(1, block, block_cv);
        let of_step = self.lognormal(2, block ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15), step_cv);
        let of_rank = self.lognormal(3, u64::from(owner), rank_cv);
        let drawn = self.uniform(4, block ^ step.wrapping_mul(0xbf58_476d_1ce4_e5b9));
        let spike = if drawn < spike_share {
            spike_factor
        } else {
            1.0
        };
        let pace = self.lognormal(6, (u64::from(owner) << 40) ^ step, pace_cv);
        // The mean that this is a factor of has spikes in it already.
        let spike = spike / (1.0 + spike_share * (spike_factor - 1.0));
        of_block * of_step * of_rank * pace * spike
    }

    /// Of a rank in a window of a step, beside what it has in the whole step.
    pub fn of_window(&self, rank: u32, step: u64, window: u32) -> f64 {
        let of = (u64::from(rank) << 40) ^ step ^ (u64::from(window) << 28);
        self.lognormal(7, of, self.costs.window_cv)
    }

    /// Working time between a rank's stops, its `nth` and the next: none where it is never stopped.
    pub fn until_stop(&self, rank: usize, nth: u32) -> Option<f64> {
        let NoiseCosts {
            stop_share: share,
            stop_ns,
            ..
        } = self.costs;
        let drawn = self.uniform(5, ((rank as u64) << 32) | u64::from(nth));
        let between = stop_ns * (1.0 - share) / share;
        (share > 0.0 && stop_ns > 0.0).then(|| -between * (1.0 - drawn).ln())
    }

    fn uniform(&self, kind: u64, of: u64) -> f64 {
        let mut random = Random::new(Random::at(self.seed ^ (kind << 56), of));
        random.unit()
    }

    /// A factor of mean 1 whose relative standard deviation is `cv`.
    pub fn lognormal(&self, kind: u64, of: u64, cv: f64) -> f64 {
        if cv == 0.0 {
            return 1.0;
        }
        let mut random = Random::new(Random::at(self.seed ^ (kind << 56), of));
        // Box and Muller's transform.
        let (u, v) = (1.0 - random.unit(), random.unit());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        let variance = (1.0 + cv * cv).ln();
        (variance.sqrt() * normal - variance / 2.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_mean_one_and_the_spread_that_is_asked_for() {
        let spiky = NoiseCosts {
            spike_share: 0.1,
            spike_factor: 3.0,
            ..NoiseCosts::default()
        };
        let with_spikes = Noise {
            costs: spiky,
            seed: 3,
        };
        let sum: f64 = (0..40_000)
            .map(|block| with_spikes.factor(block, 0, 1))
            .sum();
        assert!((sum / 40_000.0 - 1.0).abs() < 0.015, "{sum}");
        let costs = NoiseCosts {
            block_cv: 0.2,
            ..NoiseCosts::default()
        };
        let noise = Noise { costs, seed: 3 };
        let all: Vec<f64> = (0..40_000).map(|block| noise.factor(block, 0, 1)).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / all.len() as f64;
        // Five standard errors of 40,000 draws.
        assert!((mean - 1.0).abs() < 0.005, "{mean}");
        assert!((variance.sqrt() - 0.2).abs() < 0.006, "{variance}");
        assert_eq!(
            noise.factor(7, 0, 1),
            noise.factor(7, 3, 9),
            "a block's own factor stays"
        );
        assert_eq!(
            Noise { seed: 4, ..noise }.factor(7, 0, 1),
            Noise { seed: 4, ..noise }.factor(7, 0, 2)
        );
        assert_ne!(
            Noise { seed: 4, ..noise }.factor(7, 0, 1),
            noise.factor(7, 0, 1)
        );
    }
}
