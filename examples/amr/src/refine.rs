//! Which leaves split and which families join: marks, the 2:1 rule, and the new list of leaves.
//!
//! A mark is what a leaf may do in one pass. The rules are miniAMR's, stated for the whole mesh: the
//! outcome is a function of the leaves and the marks alone, whoever owns them.

use rustc_hash::FxHashMap;

use crate::leaf::{FACES, Leaf};
use crate::mesh::{Mesh, Neighbour};

/// What a leaf is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
pub enum Mark {
    /// May be joined with its siblings.
    Join = -1,
    Stay = 0,
    Split = 1,
}

/// Where a leaf of the new mesh comes from; places are those of the old mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Kept(usize),
    /// One octant of a leaf that was split.
    Part(usize, usize),
    /// Eight siblings from this place on.
    Joined(usize),
}

/// Whether settling changed any mark of a level: first by splits, then by leaves that stay.
///
/// miniAMR repeats each of its two sweeps of a level until nothing changes, and adds up the changes
/// over the ranks each time; a sweep that changed something is followed by one that does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub by_splits: bool,
    pub by_stays: bool,
}

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
            // Not all siblings are leaves: nobody can join.
            None => raise(&mut marks, i),
            Some(first) if marks[i] == Mark::Stay => {
                hold_family(&mut marks, first);
            }
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

fn hold_family(marks: &mut [Mark], first: usize) -> bool {
    let family = &mut marks[first..first + 8];
    let joining = family.iter_mut().filter(|mark| **mark == Mark::Join);
    joining.map(|mark| *mark = Mark::Stay).count() > 0
}

/// Leaf `i` cannot be joined, and so neither can its siblings; says whether that is news.
fn hold(mesh: &Mesh, marks: &mut [Mark], i: usize) -> bool {
    if marks[i] != Mark::Join {
        return false;
    }
    let first = mesh.family(i).expect("first_marks holds other leaves");
    hold_family(marks, first)
}

/// Changes `marks` so that the mesh that follows from them keeps the 2:1 rule across faces.
///
/// From the finest level to the coarsest: a leaf that splits makes coarser neighbours split and
/// holds those of its level; a leaf with finer neighbours is held; a leaf that stays holds coarser
/// neighbours. Gives, per level, whether that changed anything.
pub fn settle(mesh: &Mesh, marks: &mut [Mark]) -> Vec<Changed> {
    let depth = usize::from(mesh.grid.depth);
    let mut by_level = vec![Vec::new(); depth + 1];
    for (i, leaf) in mesh.leaves().iter().enumerate() {
        by_level[usize::from(leaf.level)].push(i);
    }
    let mut changed = vec![Changed::default(); depth + 1];
    for level in (0..=depth).rev() {
        let of_level = &by_level[level];
        for &i in of_level {
            changed[level].by_splits |= match marks[i] {
                Mark::Split => settle_split(mesh, marks, i),
                Mark::Join => has_finer(mesh, i) && hold(mesh, marks, i),
                Mark::Stay => false,
            };
        }
        for &i in of_level.iter().filter(|_| level > 0) {
            if marks[i] != Mark::Stay {
                continue;
            }
            for face in 0..FACES {
                if let Neighbour::Coarser(j) = mesh.neighbour(i, face) {
                    changed[level].by_stays |= hold(mesh, marks, j);
                }
            }
        }
    }
    changed
}

fn has_finer(mesh: &Mesh, i: usize) -> bool {
    (0..FACES).any(|face| matches!(mesh.neighbour(i, face), Neighbour::Finer(_)))
}

fn settle_split(mesh: &Mesh, marks: &mut [Mark], i: usize) -> bool {
    let mut changed = mesh
        .family(i)
        .is_some_and(|first| hold_family(marks, first));
    for face in 0..FACES {
        match mesh.neighbour(i, face) {
            Neighbour::Same(j) => changed |= hold(mesh, marks, j),
            Neighbour::Coarser(j) if marks[j] != Mark::Split => {
                marks[j] = Mark::Split;
                changed = true;
            }
            _ => {}
        }
    }
    changed
}

/// The mesh after `marks`, which have been settled.
///
/// Children belong to the owner of their parent. A joined block goes to the rank on which it was
/// once split.
pub fn apply(mesh: &Mesh, marks: &[Mark]) -> (Mesh, Pass) {
    let mut leaves: Vec<Leaf> = Vec::with_capacity(mesh.len());
    let mut owners = Vec::with_capacity(mesh.len());
    let mut homes: FxHashMap<u64, u32> = mesh.homes().clone();
    let mut pass = Pass {
        origins: Vec::with_capacity(mesh.len()),
        n_splits: 0,
        n_joins: 0,
    };
    let mut i = 0;
    while i < mesh.len() {
        let (leaf, owner) = (mesh.leaves()[i], mesh.owners()[i]);
        match marks[i] {
            Mark::Split => {
                pass.n_splits += 1;
                homes.insert(leaf.packed(), owner);
                for octant in 0..8 {
                    leaves.push(leaf.child(octant));
                    owners.push(owner);
                    pass.origins.push(Origin::Part(i, octant));
                }
                i += 1;
            }
            Mark::Join => {
                pass.n_joins += 1;
                let parent = leaf.parent().expect("roots are not joined");
                assert_eq!(mesh.family(i), Some(i), "whole families join");
                leaves.push(parent);
                owners.push(homes.remove(&parent.packed()).expect("it was split once"));
                pass.origins.push(Origin::Joined(i));
                i += 8;
            }
            Mark::Stay => {
                leaves.push(leaf);
                owners.push(owner);
                pass.origins.push(Origin::Kept(i));
                i += 1;
            }
        }
    }
    (Mesh::new(mesh.grid, leaves, owners, homes), pass)
}
