//! Which leaves split and which families join: marks, the 2:1 rule, and the new list of leaves.
//!
//! A mark is what a leaf may do in one pass. The rules are miniAMR's, stated for the whole mesh: the
//! outcome is a function of the leaves and the marks alone, whoever owns them.

mod mark;

mod buffer;
mod carried;

pub use self::buffer::widen;
pub use self::mark::{Mark, Origin};

use self::carried::Carried;
use crate::leaf::{FACES, Leaf};
use crate::mesh::{Mesh, Neighbour};

/// What one pass of refinement did.
#[derive(Clone, Debug)]
pub struct Pass {
    /// One for each leaf of the new mesh.
    pub origins: Vec<Origin>,
    pub n_splits: u64,
    pub n_joins: u64,
}

/// What each leaf wants before its neighbours are asked. `wants` says, per leaf, whether its cells
/// are wanted finer (`Split`), left alone (`Stay`) or not wanted this fine (`Join`).
pub fn first_marks(mesh: &Mesh, wants: impl Fn(usize) -> Mark) -> Vec<Mark> {
    let depth = mesh.grid.depth;
    let mut marks: Vec<Mark> = (0..mesh.len())
        .map(|i| match (wants(i), mesh.leaves()[i].level) {
            (Mark::Split, level) if level == depth => Mark::Stay,
            (Mark::Join, 0) => Mark::Stay,
            (mark, _) => mark,
        })
        .collect();
    for i in 0..mesh.len() {
        match mesh.family(i) {
            // Not all siblings are leaves: they cannot join.
            None => raise(&mut marks, i),
            Some(first) if marks[i] == Mark::Stay => hold_family(&mut marks, first),
            Some(_) => {}
        }
    }
    marks
}

fn raise(marks: &mut [Mark], i: usize) {
    if marks[i] == Mark::Join {
        marks[i] = Mark::Stay;
    }
}

fn hold_family(marks: &mut [Mark], first: usize) {
    for i in first..first + 8 {
        raise(marks, i);
    }
}

/// Leaf `i` cannot be joined, and so neither can its siblings.
fn hold(mesh: &Mesh, marks: &mut [Mark], i: usize) {
    if marks[i] == Mark::Join {
        let first = mesh.family(i).expect("first_marks holds other leaves");
        hold_family(marks, first);
    }
}

/// Changes `marks` so that the mesh that follows from them keeps the 2:1 rule across faces.
///
/// From the finest level to the coarsest: a leaf that splits makes coarser neighbours split and
/// holds those of its level; a leaf with finer neighbours is held; a leaf that stays holds coarser
/// neighbours.
pub fn settle(mesh: &Mesh, marks: &mut [Mark]) {
    let depth = usize::from(mesh.grid.depth);
    let mut by_level = vec![Vec::new(); depth + 1];
    for (i, leaf) in mesh.leaves().iter().enumerate() {
        by_level[usize::from(leaf.level)].push(i as u32);
    }
    for of_level in by_level.iter().rev() {
        for i in of_level.iter().map(|&i| i as usize) {
            match marks[i] {
                Mark::Split => settle_split(mesh, marks, i),
                Mark::Join if has_finer(mesh, i) => hold(mesh, marks, i),
                _ => {}
            }
        }
        for i in of_level.iter().map(|&i| i as usize) {
            if marks[i] != Mark::Stay {
                continue;
            }
            for face in 0..FACES {
                if let Neighbour::Coarser(j) = mesh.neighbour(i, face) {
                    hold(mesh, marks, j);
                }
            }
        }
    }
}

fn has_finer(mesh: &Mesh, i: usize) -> bool {
    (0..FACES).any(|face| matches!(mesh.neighbour(i, face), Neighbour::Finer(_)))
}

fn settle_split(mesh: &Mesh, marks: &mut [Mark], i: usize) {
    if let Some(first) = mesh.family(i) {
        hold_family(marks, first);
    }
    for face in 0..FACES {
        match mesh.neighbour(i, face) {
            Neighbour::Same(j) => hold(mesh, marks, j),
            Neighbour::Coarser(j) => marks[j] = Mark::Split,
            _ => {}
        }
    }
}

/// The mesh after `marks`, which have been settled.
///
/// Children belong to the owner of their parent. A joined block goes to the rank that owns most of its children, the first
/// of those; under `--compat` to the one on which it was once split, as miniAMR's does.
pub fn apply(mesh: &Mesh, marks: &[Mark]) -> (Mesh, Pass) {
    let n_marked = |wanted: Mark| marks.iter().filter(|&&mark| mark == wanted).count();
    let n_leaves = mesh.len() + 7 * n_marked(Mark::Split) - n_marked(Mark::Join) / 8 * 7;
    let mut leaves: Vec<Leaf> = Vec::with_capacity(n_leaves);
    let mut owners = Vec::with_capacity(n_leaves);
    let mut homes = mesh.homes().cloned();
    let mut pass = Pass {
        origins: Vec::with_capacity(n_leaves),
        n_splits: 0,
        n_joins: 0,
    };
    // What becomes of each old leaf starts here.
    let mut places = Vec::with_capacity(mesh.len());
    let mut i = 0;
    while i < mesh.len() {
        let (leaf, owner) = (mesh.leaves()[i], mesh.owners()[i]);
        let place = leaves.len() as u32;
        match marks[i] {
            Mark::Split => {
                pass.n_splits += 1;
                if let Some(homes) = &mut homes {
                    homes.insert(leaf.packed(), owner);
                }
                leaves.extend((0..8).map(|octant| leaf.child(octant)));
                owners.extend([owner; 8]);
                let parts = (0..8).map(|octant| Origin::Part(i, octant));
                pass.origins.extend(parts);
                places.push(place);
                i += 1;
            }
            Mark::Join => {
                pass.n_joins += 1;
                let parent = leaf.parent().expect("roots are not joined");
                assert_eq!(mesh.family(i), Some(i), "whole families join");
                leaves.push(parent);
                owners.push(match &mut homes {
                    Some(homes) => homes.remove(&parent.packed()).expect("it was split once"),
                    None => most_frequent(&mesh.owners()[i..i + 8]),
                });
                pass.origins.push(Origin::Joined(i));
                places.extend([place; 8]);
                i += 8;
            }
            Mark::Stay => {
                leaves.push(leaf);
                owners.push(owner);
                pass.origins.push(Origin::Kept(i));
                places.push(place);
                i += 1;
            }
        }
    }
    let carried = Carried {
        old: mesh,
        marks,
        places: &places,
    };
    let neighbour = |i: usize, face: usize| carried.neighbour(i, pass.origins[i], face);
    let mesh = Mesh::connected(mesh.grid, leaves, owners, homes, neighbour);
    (mesh, pass)
}

/// The owner of most; the first of several.
fn most_frequent(owners: &[u32]) -> u32 {
    let n_of = |owner: u32| owners.iter().filter(|&&other| other == owner).count();
    let mut found = owners[0];
    for &owner in owners {
        if n_of(owner) > n_of(found) {
            found = owner;
        }
    }
    found
}
