//! A margin round what a criterion wants finer, so that it is still on fine cells when the mesh is adapted next.

use super::mark::Mark;
use crate::mesh::Mesh;

/// What leaves want when each one that is wanted finer takes `n_rings` rings of leaves round it along.
///
/// Shape:  `wants` has a mark for each leaf, before any rule; so has the answer.
///
/// A leaf that wants finer cells has a feature in it, and is to be a level finer (or of the finest level). Leaves of a ring
/// are to be as fine: they split where they are coarser, and are not joined where that would make them coarser. One ring
/// more is to be a level coarser at most, so that the rings can follow in one pass. Rings count leaves that touch at a
/// face, an edge or a corner, of whatever size.
pub fn widen(mesh: &Mesh, mut wants: Vec<Mark>, n_rings: u32) -> Vec<Mark> {
    assert_eq!(wants.len(), mesh.len());
    if n_rings == 0 {
        return wants;
    }
    let level = |i: usize| mesh.leaves()[i].level;
    // The level that each leaf is to have at least; 0 asks for nothing.
    let mut least: Vec<u8> = (0..mesh.len())
        .map(|i| match wants[i] {
            Mark::Split => (level(i) + 1).min(mesh.grid.depth),
            _ => 0,
        })
        .collect();
    for ring in 0..=n_rings {
        let mut before = least.clone();
        if ring == n_rings {
            before
                .iter_mut()
                .for_each(|level| *level = level.saturating_sub(1));
        }
        for i in 0..mesh.len() {
            for j in touching(mesh, i) {
                least[i] = least[i].max(before[j]);
                least[j] = least[j].max(before[i]);
            }
        }
    }
    for (i, want) in wants.iter_mut().enumerate() {
        if level(i) < least[i] {
            *want = Mark::Split;
        } else if *want == Mark::Join && level(i) == least[i] {
            *want = Mark::Stay;
        }
    }
    wants
}

/// Leaves of the same or a coarser level that touch leaf `i` at a face, an edge or a corner.
fn touching(mesh: &Mesh, i: usize) -> impl Iterator<Item = usize> + '_ {
    let leaf = mesh.leaves()[i];
    let directions = (0..27).filter(|&direction| direction != 13);
    directions.filter_map(move |direction: i64| {
        let step = [direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1];
        let beyond = leaf.stepped(step, mesh.grid)?;
        // Finer leaves there look this way themselves.
        let place = mesh.holder(beyond);
        (mesh.leaves()[place].level <= leaf.level).then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::Grid;
    use crate::refine::{apply, first_marks, settle};

    /// Whether a point that wanders through a periodic domain is always on the finest leaves, where the mesh is adapted
    /// each time that it has moved by most of a finest leaf's edge.
    fn stays_on_finest_leaves(n_rings: u32) -> bool {
        let grid = Grid {
            roots: [4, 2, 4],
            depth: 2,
            periodic: true,
        };
        let mut mesh = Mesh::roots(grid, vec![0; grid.n_roots()]);
        let at = |step: u32| {
            [0.055, 0.095, 0.04].map(|pace: f64| (0.3 + pace * f64::from(step)).fract())
        };
        let holds = |mesh: &Mesh, i: usize, point: [f64; 3]| {
            let leaf = mesh.leaves()[i];
            let (lower, upper) = (leaf.lower(grid.roots), leaf.upper(grid.roots));
            (0..3).all(|d| (lower[d]..upper[d]).contains(&point[d]))
        };
        let adapt = |mesh: &mut Mesh, point: [f64; 3]| {
            let wants = (0..mesh.len()).map(|i| match holds(mesh, i, point) {
                true => Mark::Split,
                false => Mark::Join,
            });
            let wants = widen(mesh, wants.collect(), n_rings);
            let mut marks = first_marks(mesh, |i| wants[i]);
            settle(mesh, &mut marks);
            *mesh = apply(mesh, &marks).0;
        };
        (0..grid.depth).for_each(|_| adapt(&mut mesh, at(0)));
        (1..60).all(|step| {
            let point = at(step);
            let holder = (0..mesh.len()).find(|&i| holds(&mesh, i, point));
            let is_fine =
                mesh.leaves()[holder.expect("leaves tile the domain")].level == grid.depth;
            adapt(&mut mesh, point);
            mesh.is_valid(1).expect("a valid mesh");
            is_fine
        })
    }

    #[test]
    fn a_ring_of_leaves_keeps_a_wandering_feature_on_the_finest_level() {
        assert!(!stays_on_finest_leaves(0), "it leaves its own leaf");
        assert!(stays_on_finest_leaves(1));
        assert!(stays_on_finest_leaves(2));
    }
}
