//! What objects want of the mesh, and how far they move in a step.

use crate::leaf::{Grid, Leaf};
use crate::mesh::Mesh;
use crate::object::Objects;
use crate::refine::Mark;
use crate::settings::Settings;

/// What the objects want of each block, or all of them where the mesh is refined uniformly.
pub(super) fn wanted(settings: &Settings, objects: &Objects, mesh: &Mesh) -> Vec<Mark> {
    let uniform = |leaf: Leaf| match leaf.level < mesh.grid.depth {
        true => Mark::Split,
        false => Mark::Stay,
    };
    let leaves = mesh.leaves().iter();
    match settings.options.uniform_refine {
        1 => leaves.map(|&leaf| uniform(leaf)).collect(),
        _ => leaves
            .map(|&leaf| wanted_of(settings, objects, mesh, leaf))
            .collect(),
    }
}

/// What the objects want of a block: finer cells where one touches it.
fn wanted_of(settings: &Settings, objects: &Objects, mesh: &Mesh, leaf: Leaf) -> Mark {
    let roots = mesh.grid.roots;
    let (mut lower, mut upper) = (leaf.lower(roots), leaf.upper(roots));
    if !settings.options.refine_ghost {
        return match objects.touch(lower, upper) {
            true => Mark::Split,
            false => Mark::Join,
        };
    }
    let ghost = ghost_widths(settings, mesh, leaf.level);
    for d in 0..3 {
        lower[d] -= 2.0 * ghost[d];
        upper[d] += 2.0 * ghost[d];
    }
    if objects.touch(lower, upper) {
        return Mark::Split;
    }
    if leaf.level == 0 {
        return Mark::Join;
    }
    // Joined now, its parent would be split again at once.
    let ghost = ghost_widths(settings, mesh, leaf.level - 1);
    for d in 0..3 {
        lower[d] -= ghost[d];
        upper[d] += ghost[d];
    }
    match objects.touch(lower, upper) {
        true => Mark::Stay,
        false => Mark::Join,
    }
}

/// Half the extent of a cell of `level`, in the unit cube.
fn ghost_widths(settings: &Settings, mesh: &Mesh, level: u8) -> [f64; 3] {
    let depth = mesh.grid.depth;
    let half = f64::from(1u32 << (depth - level));
    std::array::from_fn(|d| {
        let mesh_size = f64::from(mesh.grid.roots[d] << (depth + 1));
        (half / settings.shape.cells[d] as f64) / mesh_size
    })
}

/// How far objects move in a step.
pub(super) fn step_length(settings: &Settings, objects: &Objects, grid: Grid) -> f64 {
    let Some(time) = settings.options.time else {
        return 1.0;
    };
    if let Some(steps) = settings.n_steps {
        return time / steps as f64;
    }
    let cells = settings.shape.cells;
    let finest = std::array::from_fn(|d| {
        let blocks = u64::from(grid.roots[d]) << (grid.depth + 1);
        (blocks * cells[d] as u64) as f64
    });
    objects.time_step(finest)
}
