//! What one run recorded, as costs are fitted to it.

use super::rows::{MessageRow, PhaseRow};
use super::windows::WorkRow;
use crate::mesh::Recording;

/// What one run recorded.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    pub mesh: &'a Recording,
    pub phases: &'a [PhaseRow],
    pub messages: &'a [MessageRow],
    /// By windows; without them nothing is known of what comes and goes within a step.
    pub work: &'a [WorkRow],
}
