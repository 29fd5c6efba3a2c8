//! The patches of three materials in a square: a disc in a square in the domain, refined along both interfaces.
//!
//! Patches of all levels are there at once: what lies beneath a finer one is computed too, as in patch-based codes.

use std::collections::{HashMap, HashSet};

use colltune_placement::curve::LEVEL_MAX;
use colltune_placement::{Curve, Mesh, Octant};

/// Cells along a patch's edge.
pub const EDGE: u64 = 8;
/// Levels above the base grid.
pub const LEVELS: u8 = 4;
/// Layers of ghost cells.
const LAYERS: u64 = 2;
/// A cell's variables that are exchanged, of eight bytes each.
const VARS: u64 = 10;
/// Half the inner square's side, and the disc's radius, in parts of the domain's side.
const HALF: f64 = 0.2;
const RADIUS: f64 = 0.1;

/// Where the materials lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deck {
    /// Both interfaces round the centre of the domain.
    Symmetric,
    /// One quadrant of that, in as many cells: the centre is a corner.
    Asymmetric,
}

/// What one patch gives another in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

pub struct Patches {
    pub root_level: u8,
    /// Along the Hilbert curve, a patch before what lies on it.
    pub octants: Vec<Octant>,
    /// Ghosts from patches beside, or where there are none from those beneath them.
    pub boundary: Vec<Contact>,
    /// Cells that lie upon each other, one value of each coarse one both ways.
    pub transfer: Vec<Contact>,
}

impl Patches {
    /// A base grid of `2^root_level` patches to an edge, and what is refined.
    pub fn new(deck: Deck, root_level: u8) -> Patches {
        let octants = hierarchy(deck, root_level);
        let places: HashMap<Octant, u32> = octants.iter().copied().zip(0..).collect();
        let (mut boundary, mut transfer) = (Vec::new(), Vec::new());
        for (to, octant) in (0u32..).zip(&octants) {
            let is_base = octant.level == root_level;
            for direction in FACES {
                let Some(beside) = octant.neighbour(direction) else {
                    continue;
                };
                let (from, cells) = match places.get(&beside) {
                    Some(&from) => (from, LAYERS * EDGE),
                    // A coarse cell is as wide as two fine ones.
                    None => (
                        places[&beside.ancestor(octant.level - 1)],
                        LAYERS * EDGE / 4,
                    ),
                };
                let bytes = 8 * VARS * cells;
                boundary.push(Contact { from, to, bytes });
            }
            if !is_base {
                let beneath = places[&octant.ancestor(octant.level - 1)];
                let bytes = 8 * VARS * EDGE * EDGE / 4;
                for (from, to) in [(beneath, to), (to, beneath)] {
                    transfer.push(Contact { from, to, bytes });
                }
            }
        }
        Patches {
            root_level,
            octants,
            boundary,
            transfer,
        }
    }

    pub fn mesh(&self) -> Mesh<'_> {
        Mesh {
            dimensions: 2,
            root_level: self.root_level,
            octants: &self.octants,
        }
    }

    pub fn n_cells(&self) -> u64 {
        self.octants.len() as u64 * EDGE * EDGE
    }
}

const FACES: [[i32; 3]; 4] = [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0]];

/// All patches: those that an interface crosses are refined, and a patch's neighbours one level below are all there.
fn hierarchy(deck: Deck, root_level: u8) -> Vec<Octant> {
    let shift = LEVEL_MAX - root_level;
    let roots = (0..1u64 << (2 * root_level))
        .map(|i| Curve::Hilbert.octant(2, i << (2 * shift), root_level));
    let mut levels: Vec<HashSet<Octant>> = vec![roots.collect()];
    for level in 0..usize::from(LEVELS) {
        let crossed = levels[level].iter().filter(|octant| crosses(deck, octant));
        let next = crossed.flat_map(|octant| octant.children(2)).collect();
        levels.push(next);
    }
    // From the finest down: what a patch needs beside it may need more beside itself.
    for level in (2..=usize::from(LEVELS)).rev() {
        let coarse = root_level + level as u8 - 1;
        let mut needed = HashSet::new();
        for octant in &levels[level] {
            for (x, y) in (-1..=1).flat_map(|y| (-1..=1).map(move |x| (x, y))) {
                let beside = octant.neighbour([x, y, 0]);
                needed.extend(beside.map(|beside| beside.ancestor(coarse)));
            }
        }
        let families = needed.iter().map(|octant| octant.ancestor(coarse - 1));
        let families: HashSet<Octant> = families.collect();
        levels[level - 1].extend(families.iter().flat_map(|parent| parent.children(2)));
    }
    let all: Vec<Octant> = levels.into_iter().flatten().collect();
    let order = Curve::Hilbert.order(2, &all);
    order.into_iter().map(|i| all[i as usize]).collect()
}

/// Whether the disc's edge or the square's passes through.
fn crosses(deck: Deck, octant: &Octant) -> bool {
    let unit = 1.0 / f64::from(1u32 << LEVEL_MAX);
    // The quadrant's side is half the domain's.
    let (centre, zoom) = match deck {
        Deck::Symmetric => (0.5, 1.0),
        Deck::Asymmetric => (0.0, 0.5),
    };
    let side = unit * f64::from(octant.side());
    let range = |low: u32| {
        let low = unit * f64::from(low) - centre;
        let (a, b) = (zoom * low, zoom * (low + side));
        let nearest = if a <= 0.0 && b >= 0.0 {
            0.0
        } else {
            a.abs().min(b.abs())
        };
        (nearest, a.abs().max(b.abs()))
    };
    let ((x_near, x_far), (y_near, y_far)) = (range(octant.x), range(octant.y));
    let in_square = x_near.max(y_near) < HALF && x_far.max(y_far) >= HALF;
    let in_disc = x_near.hypot(y_near) < RADIUS && x_far.hypot(y_far) >= RADIUS;
    in_square || in_disc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_lies_on_one_and_has_neighbours_one_level_below_at_least() {
        for deck in [Deck::Symmetric, Deck::Asymmetric] {
            let patches = Patches::new(deck, 4);
            let all: HashSet<Octant> = patches.octants.iter().copied().collect();
            assert_eq!(all.len(), patches.octants.len(), "each is there once");
            for octant in &patches.octants {
                for level in 4..octant.level {
                    assert!(all.contains(&octant.ancestor(level)));
                }
                for direction in FACES {
                    let beside = octant.neighbour(direction);
                    let coarse = octant.level.saturating_sub(1).max(4);
                    assert!(beside.is_none_or(|b| all.contains(&b.ancestor(coarse))));
                }
            }
            let finest = patches.octants.iter().map(|octant| octant.level).max();
            assert_eq!(finest, Some(4 + LEVELS));
        }
    }

    #[test]
    fn quarters_of_the_symmetric_deck_are_alike_and_all_patches_of_the_other_lie_in_one() {
        let quarter = |octant: &Octant| octant.ancestor(1);
        let count = |deck| {
            let patches = Patches::new(deck, 5);
            let mut counts: HashMap<Octant, usize> = HashMap::new();
            for octant in patches.octants.iter().filter(|octant| octant.level > 5) {
                *counts.entry(quarter(octant)).or_default() += 1;
            }
            counts.into_values().collect::<Vec<_>>()
        };
        let symmetric = count(Deck::Symmetric);
        assert!(symmetric.len() == 4 && symmetric.iter().all(|&n| n == symmetric[0]));
        assert_eq!(count(Deck::Asymmetric).len(), 1);
    }
}
