//! Runs a policy: what it needs, its choice, and the limit that binds every one.

use super::limit;
use super::placement::Placement;
use super::row::Policy;
use crate::error::PlacementError;
use crate::problem::Problem;

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
