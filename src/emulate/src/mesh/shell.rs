//! The mesh of a blast wave without its gas: blocks are refined where the shell of the exact shock cuts them.

use colltune_amr::physics::sedov::Exact;
use colltune_placement::curve::LEVEL_MAX;
use colltune_placement::{Curve, Octant};

use super::front::Front;

/// Refinements beyond the root grid.
const REFINEMENTS: u8 = 2;
/// Cells to an edge of a block.
const CELLS: f64 = 16.0;

/// Root blocks and domain of a blast wave around the origin; every side is periodic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shell {
    pub roots: [u32; 3],
    /// Half the domain's edges.
    pub half: [f64; 3],
    /// How far the refined shell reaches from the shock, in cells of the block that is asked.
    pub inwards: f64,
    pub outwards: f64,
}

/// Leaves along the Z-order curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    pub octants: Vec<Octant>,
    /// Whether the shock itself runs through each.
    pub in_shock: Vec<bool>,
    /// The domain in blocks of the finest level, and the leaf at each of them.
    extent: [u32; 3],
    leaf_at: Vec<u32>,
    finest: u8,
}

/// Two leaves that touch; each pair stands once in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact {
    pub from: u32,
    pub to: u32,
    /// 1 at a face, 2 at an edge, 3 at a corner.
    pub axes: u8,
    /// The receiver is a level coarser, or more.
    pub to_coarser: bool,
}

/// Radius of the shock of a blast of `energy` at `time` in a gas of density 1.
pub fn shock_radius(gamma: f64, energy: f64, time: f64) -> f64 {
    Exact::new(gamma, energy, 1.0).radius(time)
}

impl Shell {
    /// The leaves when the shock is at `radius`.
    pub fn blocks(&self, radius: f64) -> Blocks {
        let most = self.roots.into_iter().max().expect("three axes");
        let root_level = most.next_power_of_two().ilog2() as u8;
        let mut leaves: Vec<(Octant, bool)> = Vec::new();
        let [nx, ny, nz] = self.roots;
        let all = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
        for place in all {
            self.descend(place, 0, root_level, radius, &mut leaves);
        }
        leaves.sort_by_cached_key(|(octant, _)| Curve::Morton.key(3, *octant));
        let extent = self.roots.map(|n| n << REFINEMENTS);
        let (octants, in_shock): (Vec<Octant>, Vec<bool>) = leaves.into_iter().unzip();
        let finest = root_level + REFINEMENTS;
        let mut blocks = Blocks {
            leaf_at: vec![u32::MAX; extent.iter().map(|&n| n as usize).product()],
            octants,
            in_shock,
            extent,
            finest,
        };
        for leaf in 0..blocks.octants.len() {
            let (corner, side) = blocks.place(leaf);
            for z in corner[2]..corner[2] + side {
                for y in corner[1]..corner[1] + side {
                    let row = blocks.index([corner[0], y, z]);
                    blocks.leaf_at[row..row + side as usize].fill(leaf as u32);
                }
            }
        }
        blocks
    }

    fn descend(
        &self,
        place: [u32; 3],
        level: u8,
        root_level: u8,
        radius: f64,
        leaves: &mut Vec<(Octant, bool)>,
    ) {
        let edge: [f64; 3] =
            std::array::from_fn(|d| 2.0 * self.half[d] / f64::from(self.roots[d] << level));
        let lower: [f64; 3] = std::array::from_fn(|d| f64::from(place[d]) * edge[d] - self.half[d]);
        let upper = std::array::from_fn(|d| lower[d] + edge[d]);
        let front = Front {
            centre: [0.0; 3],
            radius,
        };
        let cell = edge.into_iter().fold(f64::INFINITY, f64::min) / CELLS;
        let is_cut = front.reaches([lower, upper], [self.inwards * cell, self.outwards * cell]);
        if is_cut && level < REFINEMENTS {
            for child in 0..8 {
                let place = std::array::from_fn(|d| 2 * place[d] + (child >> d & 1));
                self.descend(place, level + 1, root_level, radius, leaves);
            }
            return;
        }
        let level = root_level + level;
        let [x, y, z] = place.map(|c| c << (LEVEL_MAX - level));
        let in_shock = front.reaches([lower, upper], [0.0; 2]);
        leaves.push((Octant::new(x, y, z, level), in_shock));
    }
}

impl Blocks {
    /// Lower corner and edge of a leaf, in blocks of the finest level.
    fn place(&self, leaf: usize) -> ([u32; 3], u32) {
        let Octant { x, y, z, level } = self.octants[leaf];
        let shift = LEVEL_MAX - self.finest;
        ([x, y, z].map(|c| c >> shift), 1 << (self.finest - level))
    }

    fn index(&self, [x, y, z]: [u32; 3]) -> usize {
        let [nx, ny, _] = self.extent.map(|n| n as usize);
        (z as usize * ny + y as usize) * nx + x as usize
    }

    /// All pairs that touch, across the periodic sides too, by sender and receiver.
    ///
    /// Cost: a look in 26 directions from each leaf, and at every finest block where others are finer.
    pub fn contacts(&self) -> Vec<Contact> {
        let mut all = Vec::with_capacity(26 * self.octants.len());
        let mut around: Vec<(u32, u8)> = Vec::new();
        for leaf in 0..self.octants.len() {
            around.clear();
            self.look_around(leaf, &mut around);
            // The nearest way of touching comes first.
            around.sort_unstable_by_key(|&(other, axes)| u64::from(other) << 8 | u64::from(axes));
            around.dedup_by_key(|(other, _)| *other);
            let level = self.octants[leaf].level;
            all.extend(around.iter().map(|&(other, axes)| Contact {
                from: leaf as u32,
                to: other,
                axes,
                to_coarser: self.octants[other as usize].level < level,
            }));
        }
        all
    }

    /// Every leaf in each of the 26 directions, and how many axes the direction has.
    fn look_around(&self, leaf: usize, around: &mut Vec<(u32, u8)>) {
        let (corner, side) = self.place(leaf);
        let side = side as i32;
        let leaf_at = |offset: [i32; 3]| {
            let at = std::array::from_fn(|d| {
                let (at, extent) = (corner[d] as i32 + offset[d], self.extent[d] as i32);
                match at {
                    -1 => extent as u32 - 1,
                    at if at == extent => 0,
                    at => at as u32,
                }
            });
            self.leaf_at[self.index(at)]
        };
        for direction in (0..27).filter(|&direction| direction != 13) {
            let towards = [direction % 3, direction / 3 % 3, direction / 9];
            let axes = towards.iter().filter(|&&step| step != 1).count() as u8;
            let [xs, ys, zs] = towards.map(|step| [-1..0, 0..side, side..side + 1][step].clone());
            let first = leaf_at([xs.start, ys.start, zs.start]);
            if self.octants[first as usize].level <= self.octants[leaf].level {
                // It is all there is in this direction.
                around.push((first, axes));
                continue;
            }
            for z in zs {
                for y in ys.clone() {
                    around.extend(xs.clone().map(|x| (leaf_at([x, y, z]), axes)));
                }
            }
        }
        around.retain(|&(other, _)| other != leaf as u32);
    }

    /// What is known of each leaf by what was known of the leaves `before`: its own value, its ancestor's, or the mean
    /// over its descendants.
    pub fn inherit(&self, before: &Blocks, values: &[f64]) -> Vec<f64> {
        let known = |leaf: usize| {
            let (corner, side) = self.place(leaf);
            let first = before.leaf_at[before.index(corner)] as usize;
            if before.octants[first].level <= self.octants[leaf].level {
                return values[first];
            }
            let (mut sum, mut n) = (0.0, 0.0);
            for z in corner[2]..corner[2] + side {
                for y in corner[1]..corner[1] + side {
                    for x in corner[0]..corner[0] + side {
                        sum += values[before.leaf_at[before.index([x, y, z])] as usize];
                        n += 1.0;
                    }
                }
            }
            sum / n
        };
        (0..self.octants.len()).map(known).collect()
    }

    /// Who owns each leaf that stayed, and where it was; those that were split or joined are left out.
    pub fn stayed<'a>(&'a self, before: &'a Blocks) -> impl Iterator<Item = (usize, usize)> + 'a {
        (0..self.octants.len()).filter_map(|leaf| {
            let (corner, _) = self.place(leaf);
            let other = before.leaf_at[before.index(corner)] as usize;
            (before.octants[other] == self.octants[leaf]).then_some((leaf, other))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Shell = Shell {
        roots: [8, 8, 16],
        half: [1.0; 3],
        inwards: 1.0,
        outwards: 3.0,
    };

    #[test]
    fn leaves_tile_the_domain_and_every_contact_has_its_opposite() {
        for radius in [0.1, 0.2, 0.3475] {
            let blocks = SHELL.blocks(radius);
            assert!(blocks.leaf_at.iter().all(|&leaf| leaf != u32::MAX));
            let volume: u64 = (0..blocks.octants.len())
                .map(|leaf| u64::from(blocks.place(leaf).1).pow(3))
                .sum();
            assert_eq!(
                volume,
                blocks.leaf_at.len() as u64,
                "no leaf lies on another"
            );
            let contacts = blocks.contacts();
            let mut turned: Vec<(u32, u32, u8)> =
                contacts.iter().map(|c| (c.to, c.from, c.axes)).collect();
            turned.sort_unstable();
            let straight: Vec<(u32, u32, u8)> =
                contacts.iter().map(|c| (c.from, c.to, c.axes)).collect();
            assert_eq!(turned, straight);
        }
    }

    #[test]
    fn a_grid_without_refinement_has_26_neighbours_across_its_periodic_sides() {
        // The shell of so large a radius lies outside.
        let contacts = SHELL.blocks(50.0).contacts();
        assert_eq!(contacts.len(), 26 * 1024);
        let of = |axes| contacts.iter().filter(|c| c.axes == axes).count() / 1024;
        assert_eq!([of(1), of(2), of(3)], [6, 12, 8]);
    }

    #[test]
    fn what_was_known_goes_to_children_and_comes_from_them() {
        let (coarse, fine) = (SHELL.blocks(50.0), SHELL.blocks(0.3));
        let values: Vec<f64> = (0..coarse.octants.len()).map(|i| i as f64).collect();
        let down = fine.inherit(&coarse, &values);
        assert!(
            down.windows(2).all(|pair| pair[0] <= pair[1]),
            "in the curve's order"
        );
        assert_eq!(
            coarse.inherit(&fine, &down),
            values,
            "the mean of equals is their value"
        );
        let stayed = fine.stayed(&coarse).count();
        let split = coarse.octants.len() - stayed;
        assert!(split > 0 && fine.octants.len() - stayed >= 8 * split);
        assert_eq!(fine.stayed(&fine).count(), fine.octants.len());
    }
}
