//! Patches to ranks by chance: the less a rank has to do, the likelier it gets the next one.
//!
//! The base grid and homes are those of `none`. Patches come level by level, in curve order. Rank `p` is drawn with a
//! probability in proportion to `1 / (e + load_p)`, where `e` is the mean cost of a block, so that an idle rank is
//! likely and not certain. Source: Beckingsale et al., LNCS 7587, 2013, section 4: "with a probability based on an
//! estimation of current computational workload"; the formula is ours.

use super::shamrock;
use crate::generate::Random;
use crate::problem::Problem;

/// Deals out every refined block by chance. Needs a mesh.
///
/// Cost: the logarithm of the ranks for each block.
pub(super) fn place(problem: &Problem, seed: u32) -> Vec<u32> {
    let mesh = problem.mesh().expect("a need in the table");
    let mut owners = shamrock::none(problem);
    let mut loads = vec![0.0; problem.ranks() as usize];
    let mut patches: Vec<(u8, u32)> = Vec::new();
    for (block, octant) in (0u32..).zip(mesh.octants) {
        match octant.level > mesh.root_level {
            true => patches.push((octant.level, block)),
            false => loads[owners[block as usize] as usize] += problem.costs()[block as usize],
        }
    }
    patches.sort_unstable();
    // Where nothing costs anything all ranks are alike.
    let idle = (problem.total() / problem.n_blocks().max(1) as f64).max(f64::MIN_POSITIVE);
    let weight = |load: f64| idle / (idle + load);
    let mut urn = Urn::new(loads.iter().map(|&load| weight(load)).collect());
    let mut random = Random::new(u64::from(seed));
    for (_, block) in patches {
        let rank = urn.draw(random.unit());
        loads[rank] += problem.costs()[block as usize];
        urn.set(rank, weight(loads[rank]));
        owners[block as usize] = rank as u32;
    }
    owners
}

/// Weights that change, and draws in proportion to them: a binary tree of sums in an array.
struct Urn {
    sums: Vec<f64>,
    leaves: usize,
}

impl Urn {
    fn new(weights: Vec<f64>) -> Urn {
        let leaves = weights.len().next_power_of_two();
        let mut sums = vec![0.0; leaves];
        sums.extend(weights);
        sums.resize(2 * leaves, 0.0);
        for node in (1..leaves).rev() {
            sums[node] = sums[2 * node] + sums[2 * node + 1];
        }
        Urn { sums, leaves }
    }

    fn set(&mut self, place: usize, weight: f64) {
        let mut node = self.leaves + place;
        self.sums[node] = weight;
        while node > 1 {
            node /= 2;
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1];
        }
    }

    /// The place where `unit` of all weight is passed; never one without weight.
    fn draw(&self, unit: f64) -> usize {
        let mut left = unit * self.sums[1];
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if left >= self.sums[node] && self.sums[node + 1] > 0.0 {
                left -= self.sums[node];
                node += 1;
            }
        }
        node - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::loads;
    use crate::curve::{Curve, LEVEL_MAX, Octant};
    use crate::problem::Mesh;

    #[test]
    fn draws_follow_the_weights() {
        let mut urn = Urn::new(vec![1.0, 0.0, 2.0, 5.0, 8.0]);
        urn.set(3, 1.0);
        let mut counts = [0u32; 5];
        (0..12_000).for_each(|i| counts[urn.draw(f64::from(i) / 12_000.0)] += 1);
        assert_eq!(counts, [1000, 0, 2000, 1000, 8000]);
    }

    #[test]
    fn patches_go_to_idle_ranks_rather_than_to_busy_ones_and_the_base_grid_stays() {
        // The first half of the curve is coarse and dear, the second one refined twice and cheap.
        let roots = (0..64u64).map(|i| Curve::Hilbert.octant(3, i << (3 * (LEVEL_MAX - 2)), 2));
        let mut octants: Vec<Octant> = roots.collect();
        let fine = octants.split_off(32).into_iter();
        let fine = fine.flat_map(|o| o.children(3)).flat_map(|o| o.children(3));
        octants.extend(fine.collect::<Vec<_>>());
        let costs: Vec<f64> = (0..octants.len())
            .map(|block| if block < 32 { 200.0 } else { 1.0 })
            .collect();
        let mesh = Mesh {
            dimensions: 3,
            root_level: 2,
            octants: &octants,
        };
        let problem = Problem::new(&costs, 16).and_then(|p| p.with_mesh(mesh));
        let problem = problem.unwrap();
        let (home, owners) = (shamrock::none(&problem), place(&problem, 1));
        assert_eq!(owners[..32], home[..32]);
        // 2,048 patches: eight ranks have 800 already, eight have nothing.
        let got = loads(&problem, &owners);
        let (busy, idle): (f64, f64) = (got[..8].iter().sum(), got[8..].iter().sum());
        assert!(idle > 2.0 * (busy - 6400.0), "{busy} {idle}");
        assert!(busy > 6400.0, "nobody is left out");
        assert_ne!(owners, place(&problem, 2), "seeds differ");
    }
}
