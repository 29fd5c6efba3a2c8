//! Consecutive parts of a space-filling curve.
//!
//! Morton: root by root (x fastest), then the Morton order inside each root, as miniAMR numbers
//! blocks. Hilbert: the placement library's curve, through a cube of a power of two that holds the
//! domain, so any root grid works.

use crate::placement::library::octants;
use crate::placement::{Question, cut, factors};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    Morton,
    Hilbert,
}

impl Curve {
    /// A rank for each leaf.
    pub fn place(&self, question: Question) -> Vec<u32> {
        let mesh = question.mesh;
        let order: Vec<u32> = match self {
            Curve::Morton => (0..mesh.len() as u32).collect(),
            Curve::Hilbert => colltune_placement::Curve::Hilbert.order(3, &octants(mesh).1),
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::Grid;
    use crate::mesh::Mesh;

    #[test]
    fn along_the_hilbert_curve_the_next_rank_s_block_is_a_face_neighbour() {
        for bits in 1..=3u32 {
            let n = 1u32 << bits;
            let n_ranks = (n * n * n) as usize;
            let roots = [n, n, n];
            let grid = Grid {
                roots,
                depth: 0,
                periodic: false,
            };
            let mesh = Mesh::roots(grid, vec![0; n_ranks]);
            let costs = vec![1.0; n_ranks];
            let owners = Curve::Hilbert.place(Question {
                mesh: &mesh,
                costs: &costs,
                n_ranks,
            });
            let mut at = vec![[0; 3]; n_ranks];
            for (leaf, owner) in mesh.leaves().iter().zip(owners) {
                at[owner as usize] = leaf.at;
            }
            for pair in at.windows(2) {
                let steps: u32 = (0..3).map(|d| pair[0][d].abs_diff(pair[1][d])).sum();
                assert_eq!(steps, 1, "bits = {bits}: {pair:?}");
            }
        }
    }
}
