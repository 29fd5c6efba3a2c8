//! Root cells of a seeded universe: work in halos whose masses follow a truncated power law, and some everywhere.

use colltune_placement::curve::LEVEL_MAX;
use colltune_placement::generate::Random;
use colltune_placement::{Curve, Mesh, Octant};

/// The share of the work that unrefined cells everywhere have.
pub const EVEN: f64 = 0.3;
/// The lightest halo over the heaviest.
const LIGHTEST: f64 = 1e-4;

pub struct Universe {
    pub level: u8,
    /// Along the Hilbert curve.
    pub octants: Vec<Octant>,
    /// Shares of the whole work; they sum to one.
    pub work: Vec<f64>,
}

impl Universe {
    pub fn mesh(&self) -> Mesh<'_> {
        Mesh {
            dimensions: 3,
            root_level: self.level,
            octants: &self.octants,
        }
    }

    /// `2^level` roots to an edge; `slope` is that of the number of halos by mass, and the heaviest root has exactly
    /// the share `heaviest` of all work.
    pub fn new(level: u8, seed: u64, slope: f64, heaviest: f64) -> Universe {
        let n_roots = 1usize << (3 * level);
        let even = EVEN / n_roots as f64;
        let largest = heaviest - even;
        let mut random = Random::new(seed);
        let mut work = vec![even; n_roots];
        work[random.below(n_roots)] += largest;
        // Halos as they are drawn, until all work is given; none makes a root as heavy as the heaviest.
        let mut left = 1.0 - EVEN - largest;
        while left > 0.0 {
            let mass = (largest * mass(random.unit(), slope)).min(left);
            let root = random.below(n_roots);
            if work[root] + mass < heaviest || mass < 1e-9 {
                work[root] += mass;
                left -= mass;
            }
        }
        let shift = LEVEL_MAX - level;
        let keys = (0..n_roots as u64).map(|i| i << (3 * u32::from(shift)));
        Universe {
            level,
            octants: keys
                .map(|key| Curve::Hilbert.octant(3, key, level))
                .collect(),
            work,
        }
    }
}

/// A mass between [`LIGHTEST`] and 1 whose density falls as its `-slope`-th power; `u` is uniform.
fn mass(u: f64, slope: f64) -> f64 {
    let power = 1.0 - slope;
    match power.abs() < 1e-9 {
        true => LIGHTEST.powf(1.0 - u),
        false => {
            let low = LIGHTEST.powf(power);
            (low + u * (1.0 - low)).powf(1.0 / power)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_universe_has_all_its_work_and_the_heaviest_root_that_was_asked_for() {
        for (slope, heaviest) in [(1.2, 0.00847), (2.0, 0.02892), (2.6, 0.00847)] {
            let universe = Universe::new(4, 3, slope, heaviest);
            let sum: f64 = universe.work.iter().sum();
            let most = universe.work.iter().copied().fold(0.0, f64::max);
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
            assert!((most - heaviest).abs() < 1e-12, "{most}");
            assert_eq!(universe.work, Universe::new(4, 3, slope, heaviest).work);
        }
    }
}
