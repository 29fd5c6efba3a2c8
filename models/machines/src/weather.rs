//! What a run and its moments do to the times of calls.

use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::recipe::Recipe;
use crate::site::{Arm, STALL_SHARE, Site};

/// All runs are slower or faster by so much, whatever the variant.
const RUN_LEVEL: f64 = 0.1;
/// How much of the shared level neighbouring calls keep.
const MEMORY: f64 = 0.97;

/// One run's weather.
pub struct Weather {
    level: f64,
    /// By cell and place in the catalogue, with mean 1 over runs.
    effects: Vec<Vec<f64>>,
    wander: f64,
    rng: ChaCha8Rng,
}

impl Weather {
    pub fn new(site: &Site, run: u32) -> Weather {
        let mut rng = ChaCha8Rng::seed_from_u64(site.seed);
        rng.set_stream(1 + u64::from(run));
        let level = around_1(RUN_LEVEL, &mut rng);
        let effects = site
            .cells
            .iter()
            .map(|cell| {
                let of = |_| around_1(site.recipe.run_effect, &mut rng);
                (0..cell.arms.len()).map(of).collect()
            })
            .collect();
        Weather {
            level,
            effects,
            wander: 0.0,
            rng,
        }
    }

    /// What calls of a variant cost in this run in the mean.
    pub fn mean_ns(&self, cell: usize, variant: usize, arm: &Arm) -> f64 {
        arm.cost_ns * self.level * self.effects[cell][variant]
    }

    /// What one call costs.
    pub fn cost_ns(&mut self, recipe: &Recipe, cell: usize, variant: usize, arm: &Arm) -> f64 {
        let step: f64 = StandardNormal.sample(&mut self.rng);
        self.wander = MEMORY * self.wander + (1.0 - MEMORY * MEMORY).sqrt() * step;
        let wander = (recipe.wander * self.wander - recipe.wander.powi(2) / 2.0).exp();
        let body = arm.body_ns() * self.level * self.effects[cell][variant] * wander;
        let stalls = match arm.stall {
            Some(times) if self.rng.random_bool(STALL_SHARE) => times,
            _ => 1.0,
        };
        body * stalls * around_1(recipe.noise, &mut self.rng)
    }

    pub fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }
}

/// Lognormal with mean 1.
fn around_1(sigma: f64, rng: &mut ChaCha8Rng) -> f64 {
    let z: f64 = StandardNormal.sample(rng);
    (sigma * z - sigma * sigma / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_runs_and_noise_leave_the_mean_what_it_is() {
        let site = Site::new(
            Recipe {
                layouts: vec![(4, 2)],
                sizes: vec![8],
                ..Recipe::stalling()
            },
            2,
        );
        let stalling = site.cells[0]
            .arms
            .iter()
            .flatten()
            .find(|arm| arm.stall.is_some());
        let arm = stalling.expect("every third stalls");
        let (mut sum, mut n) = (0.0, 0.0);
        for run in 0..300 {
            let mut weather = Weather::new(&site, run);
            for _ in 0..500 {
                sum += weather.cost_ns(&site.recipe, 0, 1, arm);
                n += 1.0;
            }
        }
        // 1,500 stalls: their share is known to 2.6 %.
        assert!((sum / n / arm.cost_ns - 1.0).abs() < 0.1);
    }
}
