//! Block costs as the CPLX study draws them: whole numbers from 50 to 100.

use std::fmt;
use std::str::FromStr;

use super::random::{Random, unit};
use crate::error::PlacementError;

/// How the costs of blocks vary.
///
/// Source: Jain et al. 2025, section VI-C, and the parameters of its benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// 50 plus an exponential of rate 0.1.
    Exponential,
    /// Mean 75, standard deviation 10.
    Gaussian,
    /// Density proportional to x^-3.
    PowerLaw,
}

impl Distribution {
    pub const ALL: [Distribution; 3] = [
        Distribution::Exponential,
        Distribution::Gaussian,
        Distribution::PowerLaw,
    ];
}

/// The costs of `n` blocks; block `i` depends on the seed and on `i` alone.
///
/// Units: none; whole numbers in [50, 100]. A draw outside is drawn again.
pub fn costs(distribution: Distribution, seed: u64, n: usize) -> Vec<f64> {
    (0..n as u64)
        .map(|block| {
            (0u64..)
                .map(|attempt| {
                    let pair = Random::at(seed, block);
                    one(
                        distribution,
                        Random::at(pair, 2 * attempt),
                        Random::at(pair, 2 * attempt + 1),
                    )
                })
                .find(|cost| (50.0..=100.0).contains(cost))
                .expect("each attempt succeeds with a probability above one half")
        })
        .collect()
}

fn one(distribution: Distribution, first: u64, second: u64) -> f64 {
    let (u, v) = (unit(first), unit(second));
    let cost = match distribution {
        Distribution::Exponential => 50.0 - (1.0 - u).ln() / 0.1,
        // Box and Muller's transform.
        Distribution::Gaussian => {
            75.0 + 10.0 * (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        }
        // The inverse of the distribution function on [50, 101).
        Distribution::PowerLaw => {
            let (low, high) = (50f64.powi(-2), 101f64.powi(-2));
            (low - u * (low - high)).powf(-0.5)
        }
    };
    cost.floor()
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Distribution::Exponential => "exponential",
            Distribution::Gaussian => "gaussian",
            Distribution::PowerLaw => "power-law",
        })
    }
}

impl FromStr for Distribution {
    type Err = PlacementError;

    fn from_str(name: &str) -> Result<Self, PlacementError> {
        let found = Distribution::ALL
            .into_iter()
            .find(|d| d.to_string() == name);
        found.ok_or_else(|| PlacementError::UnknownDistribution(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_whole_numbers_with_the_mean_of_their_distribution() {
        // The means of the truncated and rounded-down distributions.
        for (distribution, mean) in [
            (Distribution::Exponential, 59.2),
            (Distribution::Gaussian, 74.6),
            (Distribution::PowerLaw, 66.4),
        ] {
            let costs = costs(distribution, 1, 100_000);
            assert!(
                costs
                    .iter()
                    .all(|c| c.fract() == 0.0 && (50.0..=100.0).contains(c))
            );
            let found = costs.iter().sum::<f64>() / 1e5;
            assert!((found - mean).abs() < 0.3, "{distribution}: {found}");
        }
    }

    #[test]
    fn a_longer_list_begins_with_the_shorter() {
        for distribution in Distribution::ALL {
            let long = costs(distribution, 9, 1000);
            assert_eq!(long[..100], costs(distribution, 9, 100));
            assert_ne!(long[..100], costs(distribution, 10, 100));
            assert_eq!(
                distribution.to_string().parse::<Distribution>().unwrap(),
                distribution
            );
        }
    }
}
