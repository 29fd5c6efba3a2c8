//! What policies give.

use crate::certificate::{Certificate, certify_with_bound, hash};
use crate::error::PlacementError;
use crate::problem::Problem;

/// What a policy has chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// The rank of each block, in curve order.
    pub owners: Vec<u32>,
    /// A lower bound of any placement's makespan, where the policy has proved one on its way.
    pub proved_bound: Option<f64>,
}

impl Placement {
    /// Judges the placement; the bound that the policy proved counts.
    pub fn certify(&self, problem: &Problem) -> Result<Certificate, PlacementError> {
        certify_with_bound(problem, &self.owners, self.proved_bound)
    }

    /// See [`hash`].
    pub fn hash(&self) -> u64 {
        hash(&self.owners)
    }
}

impl From<Vec<u32>> for Placement {
    fn from(owners: Vec<u32>) -> Self {
        Placement {
            owners,
            proved_bound: None,
        }
    }
}
