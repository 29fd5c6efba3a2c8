//! SFCLB: the Hilbert curve through the blocks, cut greedily into segments of similar work.
//!
//! Rank after rank takes units from the curve until one more would take it farther from its share than stopping does.
//! A share is what is left of the work over the ranks that are left. With `sfclb:roots` a unit is a root with
//! everything refined from it, as in the code that the scheme comes from; by default it is a block. Source: Wu et
//! al., CLUSTER 2011, section IV-A.

use super::contiguous;
use super::row::Argument;
use super::units::units;
use crate::problem::Problem;

/// The owners of the blocks of `problem`, which has a mesh.
pub(super) fn place(problem: &Problem, argument: &Argument) -> Vec<u32> {
    let mesh = problem.mesh().expect("a need in the table");
    let units = units(mesh, argument);
    let segments = match problem.total() > 0.0 {
        true => segments(&units.sums(problem.costs()), problem.ranks()),
        false => contiguous::by_count(units.len(), problem.ranks()),
    };
    units.owners(&segments)
}

/// The rank of each unit; every rank gets one at least if there are enough.
fn segments(work: &[f64], ranks: u32) -> Vec<u32> {
    let mut left: f64 = work.iter().sum();
    let mut share = left / f64::from(ranks);
    let (mut rank, mut load, mut units) = (0, 0.0, 0);
    let assign = |(unit, &cost): (usize, &f64)| {
        let ranks_after = ranks - 1 - rank;
        let full = load + cost / 2.0 > share || work.len() - unit <= ranks_after as usize;
        if units > 0 && ranks_after > 0 && full {
            left -= load;
            rank += 1;
            share = left / f64::from(ranks - rank);
            (load, units) = (0.0, 0);
        }
        (load, units) = (load + cost, units + 1);
        rank
    };
    work.iter().enumerate().map(assign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{certify, makespan};
    use crate::curve::Curve;
    use crate::generate::{Distribution, Refined, costs, octree};
    use crate::problem::Mesh;

    #[test]
    fn equal_work_is_cut_into_equal_segments() {
        assert_eq!(segments(&[1.0; 6], 3), [0, 0, 1, 1, 2, 2]);
        assert_eq!(segments(&[4.0, 1.0, 1.0, 1.0, 1.0], 2), [0, 1, 1, 1, 1]);
        assert_eq!(segments(&[1.0, 1.0], 4), [0, 1]);
        assert_eq!(segments(&[9.0, 1.0, 1.0], 3), [0, 1, 2]);
        assert_eq!(segments(&[1.0, 1.0, 9.0], 3), [0, 1, 2]);
    }

    #[test]
    fn segments_follow_the_hilbert_curve_whatever_order_the_blocks_are_in() {
        let mesh = octree(6, 3, 1, 6, 900);
        let order = Curve::Morton.order(3, &mesh.octants);
        let octants: Vec<_> = order.iter().map(|&b| mesh.octants[b as usize]).collect();
        let in_morton = Mesh {
            octants: &octants,
            ..mesh.as_mesh()
        };
        let costs = costs(Distribution::Gaussian, 3, octants.len());
        let problem = Problem::new(&costs, 13).and_then(|p| p.with_mesh(in_morton));
        let problem = problem.unwrap();
        let owners = place(&problem, &Argument::None);
        let along: Vec<u32> = Curve::Hilbert
            .order(3, &octants)
            .iter()
            .map(|&b| owners[b as usize])
            .collect();
        assert!(along.is_sorted());
        let certificate = certify(&problem, &owners).unwrap();
        assert!(certificate.makespan <= certificate.mean + 100.0);
    }

    #[test]
    fn a_root_stays_whole_where_roots_are_placed() {
        let case = Refined::new(octree(7, 3, 2, 6, 1500), Distribution::Exponential, 4);
        let problem = case.without_graph(12);
        let whole = place(&problem, &Argument::Roots);
        let roots = super::super::units::roots(case.mesh.as_mesh());
        let mut owner_of = vec![None; roots.len()];
        for (&root, &owner) in roots.of_block.iter().zip(&whole) {
            assert_eq!(*owner_of[root as usize].get_or_insert(owner), owner);
        }
        let blocks = place(&problem, &Argument::None);
        assert!(makespan(&problem, &blocks) <= makespan(&problem, &whole));
    }
}
