//! What blocks were measured to cost, whatever rank they were on.

use std::time::Instant;

use colltune_placement::{Costs, Inheritance, Octant, PlacementError, Smoothing};

use crate::cost::{Slowness, iterate};
use crate::mesh::Mesh;
use crate::placement::library::octants;
use crate::ranks::Ranks;

/// What each leaf costs, from times of its owner: smoothed, and carried through refinement.
///
/// A slow rank takes longer for the same block, so its times are multiplied by its speed: costs are those on a rank of
/// speed 1. Every rank holds the estimates of all leaves, about 32 bytes a leaf.
#[derive(Clone, Debug)]
pub struct Measured {
    costs: Costs,
    /// Of each rank, where any differs from 1.
    speeds: Option<Vec<f64>>,
    /// Seconds of the reference work on a rank of speed 1: the median of the ranks when they first compared.
    nominal_s: Option<f64>,
}

/// The next lower speed that ranks are said to have: a quarter of an octave. Noise is less, so ranks that are alike are
/// said to be.
const STEP: f64 = 0.840_896_415_253_714_6;
/// Ratios of times that are nearer to 1 than to a step.
const NEAR: f64 = 0.917_004_043_204_671_2;
/// Steps from 1 either way: a rank is at most 1,024 times as fast as another.
const STEPS_MAX: usize = 20;

impl Measured {
    /// Nothing is known yet: all leaves cost the same.
    pub fn new(mesh: &Mesh) -> Result<Measured, PlacementError> {
        let smoothing = Smoothing {
            // Blocks have the same number of cells on every level.
            inheritance: Inheritance::Repeat,
            ..Smoothing::default()
        };
        let octants: Vec<Octant> = octants(mesh).1;
        Ok(Measured {
            costs: Costs::new(smoothing, 3, &octants)?,
            speeds: None,
            nominal_s: None,
        })
    }

    /// Takes the seconds of each rank's leaves, in the mesh's order, and of its [`reference_s`], and tells all of them to
    /// all.
    pub fn observe(
        &mut self,
        ranks: &dyn Ranks,
        mesh: &Mesh,
        own: &[f64],
        reference_s: f64,
    ) -> Result<(), PlacementError> {
        let words = std::iter::once(&reference_s).chain(own);
        let bytes: Vec<u8> = words.flat_map(|time| time.to_le_bytes()).collect();
        let all = ranks.allgather_bytes(&bytes);
        let mut next: Vec<_> = all.iter().map(|times| times.chunks_exact(8)).collect();
        let mut of = |rank: usize| {
            let time = next[rank].next().expect("a time for each leaf");
            f64::from_le_bytes(time.try_into().expect("chunks of eight"))
        };
        let references: Vec<f64> = (0..all.len()).map(&mut of).collect();
        let times: Vec<f64> = mesh.owners().iter().map(|&o| of(o as usize)).collect();
        self.observe_on(mesh.owners(), &times, &references)
    }

    /// Takes the seconds of all leaves on ranks that took so long for the reference work.
    fn observe_on(
        &mut self,
        owners: &[u32],
        times: &[f64],
        references: &[f64],
    ) -> Result<(), PlacementError> {
        let nominal_s = *self.nominal_s.get_or_insert_with(|| median(references));
        let speeds: Vec<f64> = references.iter().map(|&s| speed(nominal_s / s)).collect();
        let costs = times.iter().zip(owners);
        let costs: Vec<f64> = costs
            .map(|(time, &owner)| time * speeds[owner as usize])
            .collect();
        self.speeds = speeds.iter().any(|&speed| speed != 1.0).then_some(speeds);
        self.observe_all(&costs)
    }

    /// Takes the costs of all leaves, in the mesh's order, where one place knows them.
    pub fn observe_all(&mut self, costs: &[f64]) -> Result<(), PlacementError> {
        self.costs.observe(costs)
    }

    /// Follows the mesh.
    pub fn adapt(&mut self, mesh: &Mesh) {
        self.costs.adapt(&octants(mesh).1);
    }

    pub fn costs(&self) -> Vec<f64> {
        self.costs.costs()
    }

    /// How fast each rank was when costs were last told, where any was slower or faster than most.
    pub fn speeds(&self) -> Option<&[f64]> {
        self.speeds.as_deref()
    }
}

/// Seconds of a piece of work that is the same on every rank: the least of some tries, as one may be interrupted.
pub fn reference_s(slowness: Slowness) -> f64 {
    const CELLS: [f64; 256] = [0.5; 256];
    let tries = (0..5).map(|_| {
        let (start, pace) = (Instant::now(), slowness.begin());
        iterate(&std::hint::black_box(CELLS), 16);
        slowness.end(pace);
        start.elapsed().as_secs_f64()
    });
    tries.fold(f64::INFINITY, f64::min).max(1e-9)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The step that is nearest to a ratio. By multiplications alone: every rank has to find the same bits.
fn speed(ratio: f64) -> f64 {
    let mut speed = 1.0;
    for _ in 0..STEPS_MAX {
        if ratio < speed * NEAR {
            speed *= STEP;
        } else if ratio * NEAR > speed {
            speed /= STEP;
        }
    }
    speed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::Grid;
    use crate::placement::Question;
    use crate::placement::library::{Told, owners_told};
    use crate::shape::BlockShape;

    #[test]
    fn speeds_are_steps_and_what_is_nearly_alike_is_alike() {
        for ratio in [0.92, 0.97, 1.0, 1.05, 1.09] {
            assert_eq!(speed(ratio), 1.0, "{ratio}");
        }
        for (ratio, steps) in [(0.25, 8), (0.26, 8), (0.5, 4), (0.85, 1), (1e-9, 20)] {
            let exact = STEP.powi(steps);
            assert!((speed(ratio) / exact - 1.0).abs() < 1e-12, "{ratio}");
        }
        assert!((speed(4.0) - 4.0).abs() < 1e-12 && (speed(1.19) * STEP - 1.0).abs() < 1e-12);
    }

    /// Where one rank of four takes `slower` times as long, costs are measured and blocks placed anew again and again.
    #[test]
    fn costs_and_owners_come_to_rest_where_one_rank_is_slow() {
        let grid = Grid {
            roots: [4, 4, 4],
            depth: 0,
            periodic: false,
        };
        let shape = BlockShape {
            cells: [4; 3],
            ghosts: 0,
            n_vars: 1,
        };
        let (n, n_ranks, slower) = (64, 4, 4.0);
        let truth: Vec<f64> = (0..n).map(|i| 1.0 + (i % 7) as f64 / 3.0).collect();
        let of_rank = |rank: u32| if rank == 1 { slower } else { 1.0 };
        let mut mesh = Mesh::roots(grid, (0..n as u32).map(|i| i / 16).collect());
        let mut measured = Measured::new(&mesh).unwrap();
        let ideal = truth.iter().sum::<f64>() / (3.0 + 1.0 / slower);
        for round in 0..20u64 {
            // Up to 2 % of noise.
            let noise = |i: u64| 1.0 + 0.02 * ((round * 64 + i) * 7919 % 97) as f64 / 97.0;
            let times = (0..n as u64).zip(&truth).zip(mesh.owners());
            let times: Vec<f64> = times
                .map(|((i, cost), &owner)| cost * of_rank(owner) * noise(i))
                .collect();
            let references: Vec<f64> = (0..n_ranks as u32)
                .map(|rank| 2e-5 * of_rank(rank) * noise(rank.into()))
                .collect();
            measured
                .observe_on(mesh.owners(), &times, &references)
                .unwrap();
            for (cost, truth) in measured.costs().iter().zip(&truth) {
                assert!((cost / truth - 1.0).abs() < 0.03, "{cost} for {truth}");
            }
            let costs = measured.costs();
            let question = Question {
                mesh: &mesh,
                costs: &costs,
                n_ranks,
            };
            let told = Told {
                speeds: measured.speeds(),
                topology: None,
            };
            let policy = "lpt-swap".parse().unwrap();
            let owners = owners_told(&policy, question, shape, told).unwrap();
            let mut loads = [0.0; 4];
            for (cost, &owner) in truth.iter().zip(&owners) {
                loads[owner as usize] += cost * of_rank(owner);
            }
            let makespan = loads.iter().copied().fold(0.0, f64::max);
            assert!(makespan < 1.1 * ideal, "round {round}: {loads:?}, {ideal}");
            mesh.place_on(owners);
        }
    }
}
