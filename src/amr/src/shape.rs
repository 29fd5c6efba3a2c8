//! The layout of one block in memory.

use crate::leaf::tangents;

/// Cells, ghost layers and variables of every block of a run.
///
/// A block is one slice, variable after variable, x fastest; every variable has its ghost layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Interior cells in x, y and z: even, so that a block halves.
    pub cells: [usize; 3],
    pub ghosts: usize,
    pub n_vars: usize,
}

impl BlockShape {
    /// Cells with ghost layers in each direction.
    pub fn padded(&self) -> [usize; 3] {
        self.cells.map(|n| n + 2 * self.ghosts)
    }

    /// Distance in memory between neighbours in x, y and z.
    pub fn strides(&self) -> [usize; 3] {
        let [px, py, _] = self.padded();
        [1, px, px * py]
    }

    /// Values of one variable, ghosts included; also the distance between variables.
    pub fn cells_per_var(&self) -> usize {
        self.padded().iter().product()
    }

    /// Values of one variable without ghosts.
    pub fn interior_cells(&self) -> usize {
        self.cells.iter().product()
    }

    /// Values of one block.
    pub fn block_len(&self) -> usize {
        self.n_vars * self.cells_per_var()
    }

    /// Place of a cell in its block, counted from the outermost ghost.
    pub fn index(&self, var: usize, x: usize, y: usize, z: usize) -> usize {
        let [_, sy, sz] = self.strides();
        var * self.cells_per_var() + z * sz + y * sy + x
    }

    /// Place of the first interior cell in its variable.
    pub fn first_interior(&self) -> usize {
        self.index(0, self.ghosts, self.ghosts, self.ghosts)
    }

    /// Cells of a face normal to `axis`.
    pub fn face_cells(&self, axis: usize) -> usize {
        tangents(axis).iter().map(|&t| self.cells[t]).product()
    }

    /// First place of each interior row of a variable, in memory order.
    pub fn rows(&self) -> impl Iterator<Item = usize> + use<> {
        let ([_, sy, sz], first) = (self.strides(), self.first_interior());
        let [_, ny, nz] = self.cells;
        (0..nz).flat_map(move |z| (0..ny).map(move |y| first + z * sz + y * sy))
    }
}
