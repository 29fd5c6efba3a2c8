//! Consecutive parts of a space-filling curve.
//!
//! Morton: root by root (x fastest), then the Morton order inside each root, as miniAMR numbers
//! blocks. Hilbert: the curve through the smallest cube of a power of two that holds the finest
//! level, restricted to the domain, so any root grid works.
//! Source of the Hilbert transform: Skilling, AIP Conf. Proc. 707, 2004.

use crate::leaf::{Grid, Leaf};
use crate::placement::{Placement, Question, cut, factors};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    Morton,
    Hilbert,
}

impl Placement for Curve {
    fn name(&self) -> &'static str {
        match self {
            Curve::Morton => "morton",
            Curve::Hilbert => "hilbert",
        }
    }

    fn place(&self, question: Question) -> Vec<u32> {
        let mesh = question.mesh;
        let mut order: Vec<u32> = (0..mesh.len() as u32).collect();
        if *self == Curve::Hilbert {
            let position = |i: &u32| hilbert(mesh.grid, mesh.leaves()[*i as usize]);
            order.sort_by_cached_key(position);
        }
        let costs: Vec<f64> = order.iter().map(|&i| question.costs[i as usize]).collect();
        let mut owners = vec![0; mesh.len()];
        let n_factors = factors(question.n_ranks);
        assign(&order, &costs, &n_factors, 0, question.n_ranks, &mut owners);
        owners
    }
}

/// Cuts by one factor after the other, as miniAMR does, so that equal costs give its parts.
fn assign(
    order: &[u32],
    costs: &[f64],
    factors: &[usize],
    first: usize,
    n_ranks: usize,
    owners: &mut [u32],
) {
    let Some((&factor, factors)) = factors.split_first() else {
        for &i in order {
            owners[i as usize] = first as u32;
        }
        return;
    };
    let n_ranks = n_ranks / factor;
    let mut start = 0;
    for (part, end) in cut(costs, factor).into_iter().enumerate() {
        let (order, costs) = (&order[start..end], &costs[start..end]);
        assign(
            order,
            costs,
            factors,
            first + part * n_ranks,
            n_ranks,
            owners,
        );
        start = end;
    }
}

/// Position of a leaf's first finest block along the Hilbert curve.
fn hilbert(grid: Grid, leaf: Leaf) -> u64 {
    let finest = grid.roots.iter().map(|&n| n << grid.depth).max();
    let bits = u32::BITS - (finest.unwrap_or(1) - 1).leading_zeros();
    let mut x = leaf.at.map(|c| c << (grid.depth - leaf.level));
    // A leaf is an aligned cube: the curve runs through it without leaving, so clearing the low bits
    // of the position gives the same for each of its cells.
    let position = interleave(transform(&mut x, bits), bits);
    let low = 3 * u32::from(grid.depth - leaf.level);
    (position >> low) << low
}

/// Skilling's transform from coordinates to the transposed position on the curve.
fn transform(x: &mut [u32; 3], bits: u32) -> [u32; 3] {
    let Some(top) = bits.checked_sub(1) else {
        return [0; 3];
    };
    for bit in (1..=top).rev() {
        let (q, p) = (1u32 << bit, (1u32 << bit) - 1);
        for d in 0..3 {
            if x[d] & q != 0 {
                x[0] ^= p;
            } else {
                let exchanged = (x[0] ^ x[d]) & p;
                x[0] ^= exchanged;
                x[d] ^= exchanged;
            }
        }
    }
    x[1] ^= x[0];
    x[2] ^= x[1];
    let mut mask = 0;
    for bit in (1..=top).rev() {
        if x[2] & (1 << bit) != 0 {
            mask ^= (1 << bit) - 1;
        }
    }
    x.map(|c| c ^ mask)
}

fn interleave(x: [u32; 3], bits: u32) -> u64 {
    (0..bits).rev().fold(0, |position, bit| {
        x.iter().fold(position, |position, &c| {
            (position << 1) | u64::from((c >> bit) & 1)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hilbert_curve_moves_to_a_face_neighbour_each_time() {
        for bits in 1..=4u32 {
            let n = 1u32 << bits;
            let grid = Grid {
                roots: [n, n, n],
                depth: 0,
            };
            let mut cells: Vec<[u32; 3]> = (0..n)
                .flat_map(|z| (0..n).flat_map(move |y| (0..n).map(move |x| [x, y, z])))
                .collect();
            cells.sort_by_key(|&at| hilbert(grid, Leaf { level: 0, at }));
            for pair in cells.windows(2) {
                let steps: u32 = (0..3).map(|d| pair[0][d].abs_diff(pair[1][d])).sum();
                assert_eq!(steps, 1, "bits = {bits}: {pair:?}");
            }
        }
    }

    #[test]
    fn a_block_covers_one_stretch_of_the_curve() {
        let grid = Grid {
            roots: [3, 1, 2],
            depth: 2,
        };
        let block = Leaf {
            level: 0,
            at: [2, 0, 1],
        };
        let start = hilbert(grid, block);
        let mut fine: Vec<u64> = (0..8)
            .flat_map(|a| (0..8).map(move |b| block.child(a).child(b)))
            .map(|leaf| hilbert(grid, leaf))
            .collect();
        fine.sort_unstable();
        let expected: Vec<u64> = (start..start + 64).collect();
        assert_eq!(fine, expected);
    }
}
