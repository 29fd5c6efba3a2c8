//! The cells of a rank's blocks in contiguous slabs, and what splitting and joining do.
//!
//! A slab holds one variable of all blocks, block after block, where work goes variable by variable:
//! memory is then read in order. Where a block's variables are needed together, one slab holds them
//! all, block after block.

use crate::physics::level;
use crate::shape::BlockShape;

/// The place of a block in its rank's allocation.
pub type Slot = u32;

/// All blocks of one rank. Slots that hold no block are kept for the next one.
#[derive(Clone, Debug)]
pub struct Field {
    shape: BlockShape,
    /// By variable, the last one spare; or a single one.
    slabs: Vec<Vec<f64>>,
    vars_per_slab: usize,
    free: Vec<Slot>,
    n_slots: u32,
}

/// A field's spare slab while it is lent.
#[derive(Debug)]
pub struct Spare {
    values: Vec<f64>,
    block_len: usize,
}

impl Spare {
    pub fn block_mut(&mut self, slot: Slot) -> &mut [f64] {
        &mut self.values[slot as usize * self.block_len..][..self.block_len]
    }
}

/// How a cell's value is divided when its block splits, and put together when it is joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// A cell holds a total: children get an eighth each, a parent gets the sum.
    Total,
    /// The five means of a gas: children get limited linear values, a parent gets the mean.
    Gas { gamma: f64 },
}

impl Field {
    /// One slab for all variables.
    pub fn new(shape: BlockShape) -> Field {
        Field {
            shape,
            slabs: vec![Vec::new()],
            vars_per_slab: shape.n_vars,
            free: Vec::new(),
            n_slots: 0,
        }
    }

    /// A slab for each variable, and a spare one for updates that are not in place.
    pub fn by_variable(shape: BlockShape) -> Field {
        Field {
            slabs: vec![Vec::new(); shape.n_vars + 1],
            vars_per_slab: 1,
            ..Field::new(shape)
        }
    }

    /// Slab and first place of one variable of one block.
    fn start(&self, slot: Slot, var: usize) -> (usize, usize) {
        let in_slab = slot as usize * self.vars_per_slab + var % self.vars_per_slab;
        (
            var / self.vars_per_slab,
            in_slab * self.shape.cells_per_var(),
        )
    }

    /// The spare slab, to be written while the others are read: see [`Field::by_variable`].
    pub fn lend_spare(&mut self) -> (Spare, &Field) {
        let block_len = self.shape.cells_per_var();
        let values = std::mem::take(&mut self.slabs[self.shape.n_vars]);
        (Spare { values, block_len }, self)
    }

    /// Makes what stands in the spare slab the values of `var`, and `var`'s slab the spare one.
    pub fn take_spare(&mut self, var: usize, spare: Spare) {
        self.slabs[self.shape.n_vars] = std::mem::replace(&mut self.slabs[var], spare.values);
    }

    pub fn shape(&self) -> BlockShape {
        self.shape
    }

    /// What one more block takes.
    pub fn bytes_per_block(&self) -> u64 {
        (8 * self.slabs.len() * self.vars_per_slab * self.shape.cells_per_var()) as u64
    }

    /// Blocks in use.
    pub fn n_blocks(&self) -> usize {
        self.n_slots as usize - self.free.len()
    }

    /// A slot for one more block, its values zero or left over from another block.
    pub fn take_slot(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            self.n_slots += 1;
            let per_slot = self.vars_per_slab * self.shape.cells_per_var();
            let len = self.n_slots as usize * per_slot;
            for slab in &mut self.slabs {
                if len > slab.capacity() {
                    // A quarter more at a time: doubling would double the peak.
                    let more = len.max(slab.capacity() * 5 / 4) - slab.len();
                    slab.reserve_exact(more);
                }
                slab.resize(len, 0.0);
            }
            self.n_slots - 1
        })
    }

    pub fn give_back(&mut self, slot: Slot) {
        debug_assert!(!self.free.contains(&slot));
        self.free.push(slot);
    }

    /// Every variable of one block, ghosts included, in order: for fields of one slab.
    pub fn block(&self, slot: Slot) -> &[f64] {
        let len = self.shape.block_len();
        let [slab] = &self.slabs[..] else {
            panic!("the variables lie in slabs of their own");
        };
        &slab[slot as usize * len..][..len]
    }

    pub fn block_mut(&mut self, slot: Slot) -> &mut [f64] {
        let len = self.shape.block_len();
        let [slab] = &mut self.slabs[..] else {
            panic!("the variables lie in slabs of their own");
        };
        &mut slab[slot as usize * len..][..len]
    }

    /// One variable of one block, ghosts included.
    pub fn var(&self, slot: Slot, var: usize) -> &[f64] {
        let (slab, start) = self.start(slot, var);
        &self.slabs[slab][start..][..self.shape.cells_per_var()]
    }

    pub fn var_mut(&mut self, slot: Slot, var: usize) -> &mut [f64] {
        let (slab, start) = self.start(slot, var);
        let len = self.shape.cells_per_var();
        &mut self.slabs[slab][start..][..len]
    }

    /// One variable of two different blocks, the first for writing.
    pub fn pair(&mut self, to: Slot, from: Slot, var: usize) -> (&mut [f64], &[f64]) {
        let len = self.shape.cells_per_var();
        let ((slab, to), (_, from)) = (self.start(to, var), self.start(from, var));
        let [to, from] = self.slabs[slab]
            .get_disjoint_mut([to..to + len, from..from + len])
            .expect("two different blocks of this rank");
        (to, from)
    }

    /// Two different blocks, the first for writing: for fields of one slab.
    fn pair_of_blocks(&mut self, to: Slot, from: Slot) -> (&mut [f64], &[f64]) {
        let len = self.shape.block_len();
        let [to, from] = [to, from].map(|slot| slot as usize * len);
        let [to, from] = self.slabs[0]
            .get_disjoint_mut([to..to + len, from..from + len])
            .expect("two different blocks of this rank");
        (to, from)
    }

    /// Appends the interior cells of a block, variable after variable.
    pub fn read_interior(&self, slot: Slot, out: &mut Vec<f64>) {
        let nx = self.shape.cells[0];
        for var in 0..self.shape.n_vars {
            let cells = self.var(slot, var);
            for row in self.shape.rows() {
                out.extend_from_slice(&cells[row..row + nx]);
            }
        }
    }

    /// Inverse of `read_interior`; gives what is left of `values`.
    pub fn write_interior<'a>(&mut self, slot: Slot, mut values: &'a [f64]) -> &'a [f64] {
        let (shape, nx) = (self.shape, self.shape.cells[0]);
        for var in 0..shape.n_vars {
            let cells = self.var_mut(slot, var);
            for row in shape.rows() {
                let (now, later) = values.split_at(nx);
                cells[row..row + nx].copy_from_slice(now);
                values = later;
            }
        }
        values
    }

    /// Fills `child` with the part of `parent` that lies in `octant`, each cell eightfold.
    pub fn split_into(&mut self, parent: Slot, octant: usize, child: Slot, meaning: Meaning) {
        let shape = self.shape;
        if let Meaning::Gas { gamma } = meaning {
            let (to, from) = self.pair_of_blocks(child, parent);
            return level::split(shape, gamma, from, octant, to);
        }
        let [nx, ny, nz] = shape.cells;
        let g = shape.ghosts;
        let half = |d: usize| ((octant >> d) & 1) * shape.cells[d] / 2 + g;
        for var in 0..shape.n_vars {
            let (to, from) = self.pair(child, parent, var);
            for z in 0..nz {
                for y in 0..ny {
                    let row = shape.index(0, g, y + g, z + g);
                    let source = shape.index(0, half(0), y / 2 + half(1), z / 2 + half(2));
                    let pairs = to[row..row + nx].chunks_exact_mut(2);
                    for (pair, value) in pairs.zip(&from[source..]) {
                        pair.fill(value * 0.125);
                    }
                }
            }
        }
    }

    /// Appends what a block becomes as an octant of its parent: an eighth of the cells.
    pub fn read_coarsened(&self, slot: Slot, meaning: Meaning, out: &mut Vec<f64>) {
        let shape = self.shape;
        let [nx, ny, nz] = shape.cells;
        let ([_, sy, sz], g) = (shape.strides(), shape.ghosts);
        let factor = match meaning {
            Meaning::Total => 1.0,
            Meaning::Gas { .. } => 0.125,
        };
        for var in 0..shape.n_vars {
            let cells = self.var(slot, var);
            for z in (0..nz).step_by(2) {
                for y in (0..ny).step_by(2) {
                    let row = shape.index(0, g, y + g, z + g);
                    let pairs = |at: usize| cells[row + at..row + at + nx].chunks_exact(2);
                    let low = pairs(0).zip(pairs(sy));
                    let high = pairs(sz).zip(pairs(sz + sy));
                    out.extend(low.zip(high).map(|((a, b), (c, d))| {
                        // One fixed order, so that it does not matter who computes it.
                        let sum = ((a[0] + a[1]) + (b[0] + b[1])) + ((c[0] + c[1]) + (d[0] + d[1]));
                        sum * factor
                    }));
                }
            }
        }
    }

    /// Puts what `read_coarsened` gave for one child into its octant; gives what is left.
    pub fn write_octant<'a>(
        &mut self,
        slot: Slot,
        octant: usize,
        mut values: &'a [f64],
    ) -> &'a [f64] {
        let shape = self.shape;
        let half = shape.cells.map(|n| n / 2);
        let first: [usize; 3] =
            std::array::from_fn(|d| ((octant >> d) & 1) * half[d] + shape.ghosts);
        for var in 0..shape.n_vars {
            let cells = self.var_mut(slot, var);
            for z in 0..half[2] {
                for y in 0..half[1] {
                    let row = shape.index(0, first[0], first[1] + y, first[2] + z);
                    let (now, later) = values.split_at(half[0]);
                    cells[row..row + half[0]].copy_from_slice(now);
                    values = later;
                }
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_what_was_split_restores_every_cell() {
        let shape = BlockShape {
            cells: [4, 6, 2],
            ghosts: 1,
            n_vars: 2,
        };
        let mut field = Field::new(shape);
        let parent = field.take_slot();
        let values: Vec<f64> = (0..96).map(|i| f64::from(i) + 0.25).collect();
        assert!(field.write_interior(parent, &values).is_empty());
        let joined = field.take_slot();
        for octant in 0..8 {
            let child = field.take_slot();
            field.split_into(parent, octant, child, Meaning::Total);
            let mut coarse = Vec::new();
            field.read_coarsened(child, Meaning::Total, &mut coarse);
            assert!(field.write_octant(joined, octant, &coarse).is_empty());
            field.give_back(child);
        }
        let mut result = Vec::new();
        field.read_interior(joined, &mut result);
        assert_eq!(result, values);
        assert_eq!(field.n_blocks(), 2);
    }
}
