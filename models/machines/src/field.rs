//! Smooth random functions of message size and layout.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Terms of the sum: enough for values that are about normal.
const TERMS: usize = 24;
/// Over so many octaves of bytes, nodes and ranks per node a field forgets itself.
const OCTAVES: [f64; 3] = [4.0, 2.0, 2.0];

/// A random function with mean 0 and variance 1 at each place (random Fourier features of a Gaussian process).
///
/// Source: Rahimi & Recht, Random features for large-scale kernel machines, NIPS 2007.
#[derive(Clone, Debug)]
pub struct Field {
    terms: Vec<([f64; 3], f64)>,
}

impl Field {
    pub fn new(rng: &mut ChaCha8Rng) -> Field {
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        let frequencies: Vec<[f64; 3]> = (0..TERMS)
            .map(|_| OCTAVES.map(|octaves| normal() / octaves))
            .collect();
        let mut phase = || rng.random_range(0.0..std::f64::consts::TAU);
        Field {
            terms: frequencies
                .into_iter()
                .map(|frequency| (frequency, phase()))
                .collect(),
        }
    }

    pub fn at(&self, bytes: u64, nodes: u32, ppn: u32) -> f64 {
        let place = [
            (bytes as f64 + 1.0).log2(),
            f64::from(nodes).log2(),
            f64::from(ppn).log2(),
        ];
        let angle = |frequency: &[f64; 3]| -> f64 {
            frequency.iter().zip(place).map(|(one, at)| one * at).sum()
        };
        let terms = self.terms.iter();
        let sum: f64 = terms.map(|(one, phase)| (angle(one) + phase).cos()).sum();
        sum * (2.0 / TERMS as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn fields_have_mean_0_and_variance_1_and_neighbours_are_alike() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let values: Vec<[f64; 2]> = (0..4000)
            .map(|_| {
                let field = Field::new(&mut rng);
                [field.at(4096, 4, 2), field.at(8192, 4, 2)]
            })
            .collect();
        let mean = |of: &dyn Fn(&[f64; 2]) -> f64| values.iter().map(of).sum::<f64>() / 4000.0;
        assert!(mean(&|v| v[0]).abs() < 0.08, "five standard errors");
        assert!((mean(&|v| v[0] * v[0]) - 1.0).abs() < 0.12);
        // They are one octave of bytes apart.
        let alike = (-0.5 / OCTAVES[0].powi(2)).exp();
        assert!((mean(&|v| v[0] * v[1]) - alike).abs() < 0.12);
    }
}
