//! What other codes do, as baselines: equal numbers of blocks along the Z-order curve, and the CPLX study's policies as
//! their published code behaves.
//!
//! Both go by the Z-order curve of the mesh, whatever order the blocks are given in.

use super::contiguous::by_count;
use crate::curve::Curve;
use crate::error::PlacementError;
use crate::problem::Problem;
use crate::published::Published;

/// Equal numbers of blocks along the Z-order curve.
pub(super) fn z_order(problem: &Problem) -> Vec<u32> {
    back(
        &order(problem),
        by_count(problem.n_blocks(), problem.ranks()),
    )
}

/// Owners by a published policy.
///
/// Errors: `Policy` where its code refuses the problem or aborts.
pub(super) fn published(problem: &Problem, policy: Published) -> Result<Vec<u32>, PlacementError> {
    let order = order(problem);
    let costs: Vec<f64> = order
        .iter()
        .map(|&block| problem.costs()[block as usize])
        .collect();
    let owners = policy.place(&costs, problem.ranks());
    let owners = owners.ok_or_else(|| PlacementError::Policy {
        policy: "published",
        reason: format!(
            "the published code of {} refuses {} blocks on {} ranks",
            policy.name(),
            problem.n_blocks(),
            problem.ranks()
        ),
    })?;
    Ok(back(&order, owners))
}

/// The blocks along the Z-order curve.
fn order(problem: &Problem) -> Vec<u32> {
    let mesh = problem.mesh().expect("a need in the table");
    Curve::Morton.order(mesh.dimensions, mesh.octants)
}

/// Owners along the curve, in the order of the blocks.
fn back(order: &[u32], along: Vec<u32>) -> Vec<u32> {
    let mut owners = vec![0; order.len()];
    for (&block, owner) in order.iter().zip(along) {
        owners[block as usize] = owner;
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Distribution, Refined, octree};
    use crate::policy::{Policy, place};

    #[test]
    fn owners_rise_along_the_z_order_curve_and_not_along_the_order_of_the_blocks() {
        // Blocks of these meshes stand along the Hilbert curve.
        let case = Refined::new(octree(7, 3, 2, 6, 700), Distribution::Exponential, 7);
        let problem = case.without_graph(16);
        let along = |name: &str| -> Vec<u32> {
            let placed = place(&name.parse::<Policy>().unwrap(), &problem).unwrap();
            assert!(!placed.owners.is_sorted(), "{name}");
            let order = order(&problem);
            order.iter().map(|&b| placed.owners[b as usize]).collect()
        };
        assert_eq!(along("z-order"), by_count(case.costs.len(), 16));
        for name in ["baseline", "cdp", "lpt", "cdpc:8", "cplx:50"] {
            let policy: Published = name.parse().unwrap();
            let sorted: Vec<f64> = order(&problem)
                .iter()
                .map(|&b| problem.costs()[b as usize])
                .collect();
            let expected = policy.place(&sorted, 16).unwrap();
            assert_eq!(along(&format!("published:{name}")), expected, "{name}");
        }
    }

    #[test]
    fn what_the_published_code_refuses_is_an_error_that_says_so() {
        let mesh = octree(7, 3, 1, 6, 8);
        let ones = vec![1.0; mesh.octants.len()];
        let problem = Problem::new(&ones, 100)
            .and_then(|p| p.with_mesh(mesh.as_mesh()))
            .unwrap();
        let policy: Policy = "published:baseline".parse().unwrap();
        let error = place(&policy, &problem).unwrap_err().to_string();
        assert!(
            error.contains("baseline") && error.contains("100 ranks"),
            "{error}"
        );
    }
}
