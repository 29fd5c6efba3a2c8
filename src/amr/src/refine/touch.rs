//! Which leaves touch each other, at faces, edges and corners.

use std::ops::RangeInclusive;

use crate::mesh::Mesh;

/// Leaves of the same or a coarser level that touch leaf `i` where so many axes meet: 1 at a face, 2 at an edge, 3 at a
/// corner.
pub fn touching(
    mesh: &Mesh,
    i: usize,
    n_axes: RangeInclusive<usize>,
) -> impl Iterator<Item = usize> + '_ {
    let leaf = mesh.leaves()[i];
    (0..27).filter_map(move |direction: i64| {
        let step = [direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1];
        let axes = step.iter().filter(|&&d| d != 0).count();
        if !n_axes.contains(&axes) {
            return None;
        }
        let beyond = leaf.stepped(step, mesh.grid)?;
        // Finer leaves there look this way themselves.
        let place = mesh.holder(beyond);
        (mesh.leaves()[place].level <= leaf.level).then_some(place)
    })
}
