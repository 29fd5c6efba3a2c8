//! One grid of policies by variants.

use colltune_emulate::whatif::{Grid, Levers};
use serde::Serialize;

#[derive(Serialize)]
pub struct Case {
    /// To a block's edge; `None` for the mesh's own.
    pub cells: Option<u32>,
    pub ranks: usize,
    pub levers: Levers,
    pub grid: Grid,
}
