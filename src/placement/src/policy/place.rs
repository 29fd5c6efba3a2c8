//! Runs a policy: what it needs, its choice, the limit that binds every one, and the match with the present owners.

use super::placement::Placement;
use super::row::{HEED_SPEEDS, Policy};
use super::{fit, limit};
use crate::error::PlacementError;
use crate::matching::match_owners;
use crate::problem::{Matching, Problem};

/// Chooses the owners: the same ones for the same problem.
///
/// Where the problem has present owners, ranks are renumbered as its [`Matching`] allows.
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
    let mut placement = match (problem.speeds(), row.on_uneven_ranks) {
        (None, _) => (row.run)(problem, policy.argument())?,
        (Some(_), Some(run)) if policy.heeds_speeds() => run(problem, policy.argument())?,
        (Some(_), _) => {
            return Err(PlacementError::Speeds {
                policy: policy.to_string(),
                heed: HEED_SPEEDS,
            });
        }
    };
    limit::keep(problem, &mut placement.owners);
    fit::keep(problem, &mut placement.owners)?;
    let is_matched = match problem.matching() {
        Matching::Off => false,
        Matching::KeepOrder => !placement.owners.is_sorted(),
        Matching::Free => true,
    };
    if is_matched && problem.owners().is_some() {
        placement.owners = match_owners(problem, &placement.owners)?;
    }
    debug_assert_eq!(problem.check_owners(&placement.owners), Ok(()));
    Ok(placement)
}
