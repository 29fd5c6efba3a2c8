//! The leaves of the whole domain, who owns them, and who touches whom.
//!
//! Every rank holds this list, about [`BYTES_PER_LEAF`] bytes a leaf, and never the cells of others:
//! refinement and placement are then functions of shared facts, and only one byte per leaf and pass
//! (its mark) has to travel. The rest of the app sees the mesh through this type's methods alone, so
//! that a list that holds a rank's own leaves and their surroundings can take its place.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use crate::leaf::{FACES, Grid, Leaf, axis, tangents};

/// What one leaf costs on every rank: leaf, owner, key, neighbour table, and its share of quads where a surface is
/// refined. A pass of refinement takes four times as much for a moment. Homes, under `--compat`, come on top.
pub const BYTES_PER_LEAF: usize = 16 + 4 + 8 + 24 + 8;

/// Places have thirty bits.
pub const LEAVES_MAX: usize = (1 << 30) - 1;

/// What lies beyond a face of a leaf. Numbers are places in the mesh's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    Boundary,
    Same(usize),
    Coarser(usize),
    /// In the order of the face's quadrants: bit 0 along its first tangent, bit 1 along its second.
    Finer([usize; 4]),
}

/// All leaves in the order of [`Grid::key`].
#[derive(Clone, Debug)]
pub struct Mesh {
    pub grid: Grid,
    leaves: Vec<Leaf>,
    owners: Vec<u32>,
    /// Under `--compat`, the rank on which an inner block was split: its children are joined there again.
    homes: Option<FxHashMap<u64, u32>>,
    /// Ascending: a leaf is found by halving.
    keys: Vec<u64>,
    neighbours: Vec<[Code; FACES]>,
    quads: Vec<[u32; 4]>,
}

/// A neighbour in four bytes: two bits of kind, thirty of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code(u32);

impl Code {
    const BOUNDARY: Code = Code(u32::MAX);
    const SAME: u32 = 0;
    const COARSER: u32 = 1 << 30;
    const FINER: u32 = 2 << 30;
    const KIND: u32 = 3 << 30;
}

impl Mesh {
    /// The root grid; root `i` (x fastest) belongs to `owners[i]`.
    pub fn roots(grid: Grid, owners: Vec<u32>) -> Mesh {
        let [rx, ry, rz] = grid.roots;
        let leaves = (0..rz)
            .flat_map(|z| (0..ry).flat_map(move |y| (0..rx).map(move |x| [x, y, z])))
            .map(|at| Leaf { level: 0, at })
            .collect();
        Mesh::new(grid, leaves, owners, None)
    }

    /// The same where it is kept on which rank a block is split.
    pub fn roots_with_homes(grid: Grid, owners: Vec<u32>) -> Mesh {
        Mesh {
            homes: Some(FxHashMap::default()),
            ..Mesh::roots(grid, owners)
        }
    }

    /// A mesh of `leaves`, which stand in order, tile the domain and keep the 2:1 rule.
    ///
    /// `homes` says for every packed inner block on which rank it was split, where that is kept.
    pub fn new(
        grid: Grid,
        leaves: Vec<Leaf>,
        owners: Vec<u32>,
        homes: Option<FxHashMap<u64, u32>>,
    ) -> Mesh {
        let mut mesh = Mesh::unconnected(grid, leaves, owners, homes);
        // Leaves out of order cannot be found: they stay without neighbours, and `is_valid` names them.
        (mesh.neighbours, mesh.quads) = match mesh.keys.is_sorted() {
            true => table(mesh.len(), |i, face| mesh.look(i, face)),
            false => table(mesh.len(), |_, _| Neighbour::Boundary),
        };
        mesh
    }

    /// The same where the neighbours are known: `neighbour(i, face)` says what [`Mesh::neighbour`] will.
    pub fn connected(
        grid: Grid,
        leaves: Vec<Leaf>,
        owners: Vec<u32>,
        homes: Option<FxHashMap<u64, u32>>,
        neighbour: impl Fn(usize, usize) -> Neighbour,
    ) -> Mesh {
        let mut mesh = Mesh::unconnected(grid, leaves, owners, homes);
        (mesh.neighbours, mesh.quads) = table(mesh.len(), neighbour);
        mesh
    }

    fn unconnected(
        grid: Grid,
        leaves: Vec<Leaf>,
        owners: Vec<u32>,
        homes: Option<FxHashMap<u64, u32>>,
    ) -> Mesh {
        assert_eq!(leaves.len(), owners.len());
        assert!(leaves.len() <= LEAVES_MAX, "too many leaves for 30 bits");
        Mesh {
            grid,
            keys: leaves.iter().map(|&leaf| grid.key(leaf)).collect(),
            neighbours: Vec::new(),
            quads: Vec::new(),
            leaves,
            owners,
            homes,
        }
    }

    /// What lies beyond `face` of leaf `i`, by search.
    fn look(&self, i: usize, face: usize) -> Neighbour {
        let leaf = self.leaves[i];
        let Some(beyond) = leaf.beyond(face, self.grid) else {
            return Neighbour::Boundary;
        };
        let place = self.holder(beyond);
        match self.leaves[place].level.cmp(&leaf.level) {
            Ordering::Equal => Neighbour::Same(place),
            Ordering::Less => Neighbour::Coarser(place),
            Ordering::Greater => Neighbour::Finer(std::array::from_fn(|q| {
                let child = beyond.child(touching_octant(face, q));
                self.place(child)
                    .expect("leaves tile the domain and differ by one level at most")
            })),
        }
    }

    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// What the list takes in memory on each rank.
    pub fn bytes(&self) -> usize {
        // The map keeps an eighth of its places free at least, and a byte of control beside each.
        let capacity = self.homes.as_ref().map_or(0, FxHashMap::capacity);
        let of_homes = capacity * 8 / 7 * (size_of::<(u64, u32)>() + 1);
        let of_leaves = self.leaves.capacity() * size_of::<Leaf>()
            + self.owners.capacity() * size_of::<u32>()
            + self.keys.capacity() * size_of::<u64>();
        let of_neighbours = self.neighbours.capacity() * size_of::<[Code; FACES]>()
            + self.quads.capacity() * size_of::<[u32; 4]>();
        of_homes + of_leaves + of_neighbours
    }

    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    pub fn homes(&self) -> Option<&FxHashMap<u64, u32>> {
        self.homes.as_ref()
    }

    pub fn place(&self, leaf: Leaf) -> Option<usize> {
        let place = self.keys.binary_search(&self.grid.key(leaf)).ok()?;
        (self.leaves[place] == leaf).then_some(place)
    }

    /// The place of the leaf that `block` is or lies in, or of the first leaf in it.
    pub fn holder(&self, block: Leaf) -> usize {
        let key = self.grid.key(block);
        self.keys.partition_point(|&other| other <= key) - 1
    }

    /// Places of the leaves that `rank` owns, in order.
    pub fn own(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        let is_own = move |&(_, &owner): &(usize, &u32)| owner as usize == rank;
        let pairs = self.owners.iter().enumerate();
        pairs.filter(is_own).map(|(i, _)| i)
    }

    /// What lies beyond `face` of the leaf at place `i`.
    pub fn neighbour(&self, i: usize, face: usize) -> Neighbour {
        let code = self.neighbours[i][face];
        if code == Code::BOUNDARY {
            return Neighbour::Boundary;
        }
        let value = (code.0 & !Code::KIND) as usize;
        match code.0 & Code::KIND {
            Code::SAME => Neighbour::Same(value),
            Code::COARSER => Neighbour::Coarser(value),
            _ => Neighbour::Finer(self.quads[value].map(|q| q as usize)),
        }
    }

    /// First place of the family of leaf `i`, when all eight siblings are leaves.
    pub fn family(&self, i: usize) -> Option<usize> {
        let leaf = self.leaves[i];
        let parent = leaf.parent()?;
        let first = i.checked_sub(leaf.octant())?;
        let last = first + 7;
        let complete = last < self.leaves.len()
            && self.leaves[first] == parent.child(0)
            && self.leaves[last] == parent.child(7);
        complete.then_some(first)
    }

    /// How many leaves each level has, up to the grid's depth.
    pub fn per_level(&self) -> Vec<i64> {
        let mut counts = vec![0; usize::from(self.grid.depth) + 1];
        for leaf in &self.leaves {
            counts[usize::from(leaf.level)] += 1;
        }
        counts
    }

    /// How many leaves each rank owns.
    pub fn per_rank(&self, n_ranks: usize) -> Vec<i64> {
        let mut counts = vec![0; n_ranks];
        for &owner in &self.owners {
            counts[owner as usize] += 1;
        }
        counts
    }

    /// Gives every leaf a new owner.
    pub fn place_on(&mut self, owners: Vec<u32>) {
        assert_eq!(owners.len(), self.leaves.len());
        self.owners = owners;
    }

    /// XXH3-64 over the packed leaves in order, little-endian: the same for the same mesh.
    pub fn hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(8 * self.leaves.len());
        for leaf in &self.leaves {
            bytes.extend_from_slice(&leaf.packed().to_le_bytes());
        }
        twox_hash::XxHash3_64::oneshot(&bytes)
    }

    /// Checks the mesh's invariants for a job of `n_ranks` ranks and names the first that fails.
    pub fn is_valid(&self, n_ranks: usize) -> Result<(), String> {
        let mut next = 0u64;
        for (&leaf, &key) in self.leaves.iter().zip(&self.keys) {
            if key != next {
                return Err(format!(
                    "{leaf:?} starts at key {key}, not {next}: no tiling"
                ));
            }
            next += self.grid.span(leaf.level);
        }
        if next != self.grid.n_roots() as u64 * self.grid.span(0) {
            return Err(format!(
                "the leaves end at key {next}, not at the domain's end"
            ));
        }
        if let Some(owner) = self.owners.iter().find(|&&o| o as usize >= n_ranks) {
            return Err(format!("a leaf belongs to rank {owner} of {n_ranks}"));
        }
        for i in 0..self.len() {
            for face in 0..FACES {
                self.is_symmetric(i, face)?;
            }
        }
        self.homes_are_valid(n_ranks)
    }

    fn is_symmetric(&self, i: usize, face: usize) -> Result<(), String> {
        let back = face ^ 1;
        let ok = match self.neighbour(i, face) {
            Neighbour::Boundary => self.leaves[i].beyond(face, self.grid).is_none(),
            Neighbour::Same(j) => self.neighbour(j, back) == Neighbour::Same(i),
            Neighbour::Coarser(j) => match self.neighbour(j, back) {
                Neighbour::Finer(quad) => quad[quadrant(self.leaves[i], axis(face))] == i,
                _ => false,
            },
            Neighbour::Finer(quad) => quad
                .iter()
                .all(|&j| self.neighbour(j, back) == Neighbour::Coarser(i)),
        };
        let leaf = self.leaves[i];
        ok.then_some(())
            .ok_or_else(|| format!("{leaf:?} and its neighbour beyond face {face} disagree"))
    }

    /// Where homes are kept every inner block has one, and nothing else has.
    fn homes_are_valid(&self, n_ranks: usize) -> Result<(), String> {
        let Some(homes) = &self.homes else {
            return Ok(());
        };
        let mut n_inner = 0;
        for &leaf in &self.leaves {
            // Counted at the first descendant only.
            let mut inner = leaf;
            while inner.octant() == 0 {
                let Some(parent) = inner.parent() else { break };
                inner = parent;
                n_inner += 1;
                match homes.get(&inner.packed()) {
                    Some(&home) if (home as usize) < n_ranks => {}
                    home => return Err(format!("inner block {inner:?} has home {home:?}")),
                }
            }
        }
        let n_homes = homes.len();
        (n_inner == n_homes)
            .then_some(())
            .ok_or_else(|| format!("{n_homes} homes for {n_inner} inner blocks"))
    }
}

/// The table of neighbours of `n` leaves, and the quadruples that it refers to.
fn table(
    n: usize,
    neighbour: impl Fn(usize, usize) -> Neighbour,
) -> (Vec<[Code; FACES]>, Vec<[u32; 4]>) {
    let mut quads = Vec::new();
    let mut code = |i: usize, face: usize| match neighbour(i, face) {
        Neighbour::Boundary => Code::BOUNDARY,
        Neighbour::Same(j) => Code(Code::SAME | j as u32),
        Neighbour::Coarser(j) => Code(Code::COARSER | j as u32),
        Neighbour::Finer(quad) => {
            quads.push(quad.map(|j| j as u32));
            Code(Code::FINER | (quads.len() as u32 - 1))
        }
    };
    let codes = (0..n).map(|i| std::array::from_fn(|face| code(i, face)));
    let codes = codes.collect();
    quads.shrink_to_fit();
    (codes, quads)
}

/// The quadrant of a coarser neighbour's face that `leaf` covers; the face is normal to `axis`.
pub fn quadrant(leaf: Leaf, axis: usize) -> usize {
    let [t0, t1] = tangents(axis);
    ((leaf.at[t0] & 1) + 2 * (leaf.at[t1] & 1)) as usize
}

/// The octant, of the block beyond `face`, that touches quadrant `q` of that face.
pub fn touching_octant(face: usize, q: usize) -> usize {
    let [t0, t1] = tangents(axis(face));
    // Beyond a low face lies the upper half of the neighbour.
    ((1 - face % 2) << axis(face)) | ((q & 1) << t0) | ((q >> 1) << t1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refine::{Mark, apply, first_marks, settle};

    #[test]
    fn a_leaf_takes_the_bytes_that_are_stated_where_a_sphere_is_refined() {
        let grid = Grid {
            roots: [4; 3],
            depth: 4,
            periodic: false,
        };
        let mut mesh = Mesh::roots(grid, vec![0; 64]);
        for _ in 0..4 {
            let on_surface = |i: usize| {
                let (lower, upper) = (
                    mesh.leaves()[i].lower(grid.roots),
                    mesh.leaves()[i].upper(grid.roots),
                );
                let square = |x: f64| (x - 0.5) * (x - 0.5);
                let far = (0..3).map(|d| square(lower[d]).max(square(upper[d])));
                let near = (0..3).map(|d| square(0.5f64.clamp(lower[d], upper[d])));
                match near.sum::<f64>() < 0.09 && far.sum::<f64>() > 0.09 {
                    true => Mark::Split,
                    false => Mark::Join,
                }
            };
            let mut marks = first_marks(&mesh, on_surface);
            settle(&mesh, &mut marks);
            mesh = apply(&mesh, &marks).0;
        }
        let per_leaf = mesh.bytes() as f64 / mesh.len() as f64;
        assert!(mesh.len() > 10_000, "{}", mesh.len());
        let stated = BYTES_PER_LEAF as f64;
        assert!((0.8 * stated..=stated).contains(&per_leaf), "{per_leaf}");
    }
}
