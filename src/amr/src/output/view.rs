//! What the writers see of a block.

use crate::leaf::Leaf;
use crate::shape::BlockShape;

/// One block of this rank.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'a> {
    pub leaf: Leaf,
    /// The rank that owns it.
    pub owner: u32,
    /// Every variable, ghosts included.
    pub cells: &'a [f64],
}

impl BlockView<'_> {
    /// Interior cells of a variable, x fastest.
    pub fn interior(&self, shape: BlockShape, var: usize) -> impl Iterator<Item = f64> + '_ {
        let cells = &self.cells[var * shape.cells_per_var()..];
        shape
            .rows()
            .flat_map(move |row| cells[row..row + shape.cells[0]].iter().copied())
    }
}
