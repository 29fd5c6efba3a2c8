//! A node that is slower than the others, and whether policies know it.

use std::ops::Range;

use crate::EmulateError;
use crate::machine::Machine;

/// A node whose ranks compute so many times as long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowNode {
    pub node: u32,
    pub factor: f64,
    /// Whether policies that use the speeds of ranks know of it. When blocks are placed anew does not follow from it.
    pub is_told: bool,
}

impl SlowNode {
    /// The node's ranks.
    ///
    /// Errors: `Machine` without such a node.
    pub(super) fn ranks(
        &self,
        machine: &Machine,
        n_ranks: usize,
    ) -> Result<Range<usize>, EmulateError> {
        let ppn = machine.shape.ppn as usize;
        let first = self.node as usize * ppn;
        match first < n_ranks {
            true => Ok(first..(first + ppn).min(n_ranks)),
            false => Err(EmulateError::Machine(format!(
                "it has no node {}: {n_ranks} ranks lie on nodes 0 to {}",
                self.node,
                machine.node(n_ranks as u32 - 1)
            ))),
        }
    }

    /// How fast each rank is beside those of other nodes.
    ///
    /// Errors: `Machine` without such a node.
    pub(super) fn speeds(
        &self,
        machine: &Machine,
        n_ranks: usize,
    ) -> Result<Vec<f64>, EmulateError> {
        let mut speeds = vec![1.0; n_ranks];
        speeds[self.ranks(machine, n_ranks)?].fill(1.0 / self.factor);
        Ok(speeds)
    }
}
