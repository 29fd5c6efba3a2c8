//! Policies: how owners are chosen.
//!
//! A policy is a row of the [`TABLE`] and an argument; it is read from, and printed as, its name, such
//! as `contiguous`, `cplx:50` or `contiguous-optimal:max=4`. A new policy is one file and one row.

pub mod cdp;
pub mod contiguous;
pub mod contiguous_optimal;
pub mod cplx;
#[cfg(feature = "metis")]
mod graphlb;
mod grouplb;
mod hierarchical;
#[cfg(feature = "ilp")]
mod ilp;
mod least_loaded;
mod limit;
pub mod lpt;
pub mod lpt_swap;
mod name;
mod rcb;
mod repack;
mod sfclb;
mod shamrock;
mod table;
mod units;

pub use name::{Argument, Policy, Syntax};
pub use table::{Need, Row, TABLE};

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

/// Chooses the owners: the same ones for the same problem, on any number of threads.
///
/// Errors: the problem lacks something that the policy needs, or the policy gives up and says why.
pub fn place(policy: &Policy, problem: &Problem) -> Result<Placement, PlacementError> {
    let row = policy.row();
    for need in row.needs {
        if !need.is_met(problem) {
            return Err(PlacementError::Needs {
                policy: row.name,
                need: need.describe(),
            });
        }
    }
    let mut placement = (row.run)(problem, policy.argument())?;
    limit::keep(problem, &mut placement.owners);
    debug_assert_eq!(problem.check_owners(&placement.owners), Ok(()));
    Ok(placement)
}

#[cfg(test)]
mod tests;
