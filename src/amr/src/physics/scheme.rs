//! What the kernels get, what they leave, and the memory that they work in.

use super::N_VARS;
use crate::shape::BlockShape;

/// Of which order fluxes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FluxOrder {
    #[default]
    Second,
    /// Second where both cells can give what it takes, less where they would end without density or pressure.
    Positive,
}

/// What the kernels get besides the state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    /// Five variables and two ghost layers.
    pub shape: BlockShape,
    /// Ratio of specific heats.
    pub gamma: f64,
    pub fluxes: FluxOrder,
}

/// Fluxes through the six faces of a block, for the correction where its neighbour is of another level.
///
/// Shape:  `face(f)` holds variable after variable, in each the face's cells in memory order (the tangential axis that
///         is faster in memory runs fastest).
/// Units:  per area and time, positive along the axis on both of its faces.
#[derive(Clone, Debug)]
pub struct FaceFluxes {
    faces: [Vec<f64>; 6],
}

impl FaceFluxes {
    /// Room for a block's fluxes, all zero.
    pub fn new(shape: BlockShape) -> Self {
        FaceFluxes {
            faces: std::array::from_fn(|face| vec![0.0; N_VARS * shape.face_cells(face / 2)]),
        }
    }

    pub fn face(&self, face: usize) -> &[f64] {
        &self.faces[face]
    }

    pub(super) fn store(
        &mut self,
        face: usize,
        first: usize,
        row: &[Vec<f64>; N_VARS],
        from: usize,
        n: usize,
    ) {
        let cells = self.faces[face].len() / N_VARS;
        for (var, values) in row.iter().enumerate() {
            self.faces[face][var * cells + first..][..n].copy_from_slice(&values[from..from + n]);
        }
    }
}

/// Working memory for [`Scheme::advance`]: one for all blocks of a rank.
#[derive(Clone, Debug)]
pub struct Scratch {
    pub(super) primitive: Vec<f64>,
    pub(super) change: Vec<f64>,
    pub(super) row: [Vec<f64>; N_VARS],
}

impl Scratch {
    pub fn new(shape: BlockShape) -> Self {
        let row = vec![0.0; shape.cells[0] + 1];
        Scratch {
            primitive: vec![0.0; shape.block_len()],
            change: vec![0.0; shape.block_len()],
            row: std::array::from_fn(|_| row.clone()),
        }
    }
}
