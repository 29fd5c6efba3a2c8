//! What blocks cost: measured times, smoothed, and carried through refinement.

use crate::curve::{Curve, LEVEL_MAX, Octant};
use crate::error::PlacementError;

/// How measurements become costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothing {
    /// The weight of a new measurement against all earlier ones, above 0 and at most 1.
    pub weight: f64,
    /// A measurement counts as at most this many times the estimate, and at least its inverse: one
    /// hiccup moves little, a lasting change still arrives step by step. At least 1.
    pub outlier_factor: f64,
    pub inheritance: Inheritance,
}

/// What a block that was not there before is expected to cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inheritance {
    /// Children share their parent's cost equally; a parent costs what its children did together.
    Share,
    /// Every child costs what its parent did, a parent the mean of its children: for blocks that have
    /// the same number of cells on every level.
    Repeat,
}

impl Default for Smoothing {
    fn default() -> Self {
        Smoothing {
            weight: 0.3,
            outlier_factor: 4.0,
            inheritance: Inheritance::Share,
        }
    }
}

/// Estimated costs of the leaves of a mesh.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    smoothing: Smoothing,
    dimensions: u8,
    /// The leaves in the order of the mesh.
    octants: Vec<Octant>,
    /// What each leaf is estimated to cost; `None` until it or a relative of it was measured.
    estimates: Vec<Option<f64>>,
}

impl Costs {
    /// Errors: a weight outside (0, 1], or an outlier factor below 1.
    pub fn new(
        smoothing: Smoothing,
        dimensions: u8,
        octants: &[Octant],
    ) -> Result<Self, PlacementError> {
        let refuse = |what, value, reason| {
            Err(PlacementError::Value {
                what,
                value,
                reason,
            })
        };
        if !(smoothing.weight > 0.0 && smoothing.weight <= 1.0) {
            return refuse(
                "the weight of a measurement",
                smoothing.weight,
                "is not in (0, 1]",
            );
        }
        if smoothing.outlier_factor.is_nan() || smoothing.outlier_factor < 1.0 {
            return refuse(
                "the outlier factor",
                smoothing.outlier_factor,
                "is not at least 1",
            );
        }
        Ok(Costs {
            smoothing,
            dimensions,
            octants: octants.to_vec(),
            estimates: vec![None; octants.len()],
        })
    }

    /// Takes one measured time per leaf, in the mesh's order; NaN stands for "not measured".
    ///
    /// Errors: a wrong number of times, or a negative or infinite one, which is named; nothing is
    /// taken then.
    pub fn observe(&mut self, times: &[f64]) -> Result<(), PlacementError> {
        if times.len() != self.estimates.len() {
            return Err(PlacementError::Length {
                what: "the measured times",
                expected: self.estimates.len(),
                found: times.len(),
            });
        }
        if let Some(block) = times.iter().position(|t| t.is_infinite() || *t < 0.0) {
            let cost = times[block];
            return Err(match cost.is_infinite() {
                true => PlacementError::CostNotFinite { block, cost },
                false => PlacementError::CostNegative { block, cost },
            });
        }
        let Smoothing {
            weight,
            outlier_factor,
            ..
        } = self.smoothing;
        for (estimate, &time) in self.estimates.iter_mut().zip(times) {
            *estimate = match *estimate {
                _ if time.is_nan() => *estimate,
                // A cost of 0 gives no scale to damp against.
                None | Some(0.0) => Some(time),
                Some(old) => {
                    let damped = time.clamp(old / outlier_factor, old * outlier_factor);
                    Some(old + weight * (damped - old))
                }
            };
        }
        Ok(())
    }

    /// Carries the estimates over to the leaves of a changed mesh.
    pub fn adapt(&mut self, octants: &[Octant]) {
        let known = Known::new(self);
        self.estimates = octants
            .iter()
            .map(|octant| known.estimate(octant))
            .collect();
        self.octants = octants.to_vec();
    }

    /// Of the mesh: 2 or 3.
    pub fn dimensions(&self) -> u8 {
        self.dimensions
    }

    /// The cost of each leaf, in the mesh's order; leaves of which nothing is known cost the mean of
    /// the others, or 1 if nothing is known at all.
    pub fn costs(&self) -> Vec<f64> {
        let known: Vec<f64> = self.estimates.iter().flatten().copied().collect();
        let mean = match known.len() {
            0 => 1.0,
            n => known.iter().sum::<f64>() / n as f64,
        };
        self.estimates.iter().map(|e| e.unwrap_or(mean)).collect()
    }
}

/// The leaves with an estimate, in the order of the curve.
struct Known {
    dimensions: u8,
    inheritance: Inheritance,
    leaves: Vec<(u64, Octant, f64)>,
}

impl Known {
    fn new(costs: &Costs) -> Self {
        let key = |octant: &Octant| Curve::Morton.key(costs.dimensions, *octant);
        let known = costs.octants.iter().zip(&costs.estimates);
        let mut leaves: Vec<(u64, Octant, f64)> = known
            .filter_map(|(octant, estimate)| Some((key(octant), *octant, (*estimate)?)))
            .collect();
        leaves.sort_unstable_by_key(|leaf| leaf.0);
        Known {
            dimensions: costs.dimensions,
            inheritance: costs.smoothing.inheritance,
            leaves,
        }
    }

    fn estimate(&self, octant: &Octant) -> Option<f64> {
        let first = Curve::Morton.key(self.dimensions, *octant);
        let width = 1u64 << (u32::from(self.dimensions) * u32::from(LEVEL_MAX - octant.level));
        let from = self.leaves.partition_point(|leaf| leaf.0 < first);
        let to = from + self.leaves[from..].partition_point(|leaf| leaf.0 < first + width);
        // The leaf that starts where the octant does can be the octant itself or an ancestor.
        let before = self.leaves[..to]
            .get(from)
            .or(from.checked_sub(1).map(|i| &self.leaves[i]));
        let ancestor = [before, from.checked_sub(1).map(|i| &self.leaves[i])]
            .into_iter()
            .flatten()
            .find(|leaf| leaf.1.contains(octant));
        if let Some(&(_, ancestor, cost)) = ancestor {
            let finer = i32::from(octant.level - ancestor.level) * i32::from(self.dimensions);
            return Some(match self.inheritance {
                Inheritance::Share => cost * 0.5f64.powi(finer),
                Inheritance::Repeat => cost,
            });
        }
        let inside = &self.leaves[from..to];
        let sum: f64 = inside.iter().map(|leaf| leaf.2).sum();
        (!inside.is_empty()).then(|| match self.inheritance {
            Inheritance::Share => sum,
            Inheritance::Repeat => sum / inside.len() as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::octree;

    fn costs_of(octants: &[Octant], inheritance: Inheritance) -> Costs {
        let smoothing = Smoothing {
            inheritance,
            ..Smoothing::default()
        };
        Costs::new(smoothing, 3, octants).unwrap()
    }

    #[test]
    fn measurements_are_weighted_exponentially_and_outliers_damped() {
        let mut costs = costs_of(&[Octant::ROOT], Inheritance::Share);
        assert_eq!(costs.costs(), [1.0]);
        costs.observe(&[10.0]).unwrap();
        costs.observe(&[20.0]).unwrap();
        assert!((costs.costs()[0] - 13.0).abs() < 1e-12);
        costs.observe(&[1e9]).unwrap();
        assert!((costs.costs()[0] - 13.0 * (0.7 + 0.3 * 4.0)).abs() < 1e-12);
        costs.observe(&[f64::NAN]).unwrap();
        assert!((costs.costs()[0] - 24.7).abs() < 1e-12);
        (0..60).for_each(|_| costs.observe(&[1000.0]).unwrap());
        assert!(
            (costs.costs()[0] - 1000.0).abs() < 1.0,
            "a lasting change arrives"
        );
    }

    #[test]
    fn bad_measurements_are_named_and_change_nothing() {
        let children: Vec<Octant> = Octant::ROOT.children(3).collect();
        let mut costs = costs_of(&children, Inheritance::Share);
        costs.observe(&[1.0; 8]).unwrap();
        let before = costs.clone();
        let mut times = [2.0; 8];
        times[5] = -1.0;
        let error = costs.observe(&times).unwrap_err();
        assert_eq!(
            error,
            PlacementError::CostNegative {
                block: 5,
                cost: -1.0
            }
        );
        assert!(costs.observe(&[2.0; 7]).is_err() && costs.observe(&[f64::INFINITY; 8]).is_err());
        assert_eq!(costs, before);
        for (weight, outlier_factor) in [(0.0, 2.0), (1.1, 2.0), (f64::NAN, 2.0), (0.5, 0.9)] {
            let smoothing = Smoothing {
                weight,
                outlier_factor,
                inheritance: Inheritance::Share,
            };
            assert!(Costs::new(smoothing, 3, &children).is_err());
        }
    }

    #[test]
    fn a_split_shares_and_a_merge_sums_or_both_repeat() {
        let children: Vec<Octant> = Octant::ROOT.children(3).collect();
        let mut finer = children[1..].to_vec();
        finer.extend(children[0].children(3));
        let times: Vec<f64> = (1..=8).map(f64::from).collect();
        let mut shared = costs_of(&children, Inheritance::Share);
        shared.observe(&times).unwrap();
        shared.adapt(&finer);
        assert_eq!(shared.costs()[..7], times[1..]);
        assert_eq!(shared.costs()[7..], [0.125; 8]);
        shared.adapt(&children);
        assert_eq!(
            shared.costs(),
            times,
            "refining and coarsening restores the costs"
        );
        shared.adapt(&[Octant::ROOT]);
        assert_eq!(shared.costs(), [36.0]);
        let mut repeated = costs_of(&children, Inheritance::Repeat);
        repeated.observe(&times).unwrap();
        repeated.adapt(&finer);
        assert_eq!(repeated.costs()[7..], [1.0; 8]);
        repeated.adapt(&[Octant::ROOT]);
        let mean = (2..=8).map(f64::from).sum::<f64>() + 8.0;
        assert_eq!(repeated.costs(), [mean / 15.0]);
    }

    #[test]
    fn the_total_survives_any_change_of_the_mesh() {
        let coarse = octree(1, 3, 1, 6, 200);
        let fine = octree(2, 3, 1, 8, 900);
        let mut costs = costs_of(&coarse.octants, Inheritance::Share);
        let times: Vec<f64> = (0..coarse.octants.len())
            .map(|i| 1.0 + (i % 7) as f64)
            .collect();
        costs.observe(&times).unwrap();
        let total: f64 = times.iter().sum();
        costs.adapt(&fine.octants);
        assert!((costs.costs().iter().sum::<f64>() / total - 1.0).abs() < 1e-12);
        costs.adapt(&coarse.octants);
        assert!((costs.costs().iter().sum::<f64>() / total - 1.0).abs() < 1e-12);
    }
}
