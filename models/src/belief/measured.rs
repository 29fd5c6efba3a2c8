//! What is known of a cell that was measured.

use std::collections::BTreeMap;

use colltune_core::collective::Collective;

use crate::evidence::Evidence;
use crate::predict::Place;

/// A cell with evidence.
pub struct Measured<'a> {
    /// Its place in the model.
    pub cell: usize,
    pub collective: Collective,
    pub rows: Vec<&'a Evidence>,
    /// What its runs still count, by run; 1 where nothing is said.
    pub weights: BTreeMap<u32, f64>,
    /// Every variant that has evidence or may be drawn, but the default, with its place, sorted.
    pub variants: Vec<(u16, Place)>,
}
