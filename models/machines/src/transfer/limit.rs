//! How near to the best anybody can come on a layout that was never measured.
//!
//! Here all is known but the random fields themselves: what the schedules truly cost on the machine, what the default
//! costs in each cell, and how alike a field is at two places. What is left is the best linear prediction of a field from
//! the measurements elsewhere (kriging), and no predictor has less to guess.

use colltune_core::collective::Collective;
use colltune_models::evidence::Shape;
use colltune_models::predict::Prediction;
use nalgebra::{DMatrix, DVector};

use super::{ERROR, Transferred, Truth, each_left_out};
use crate::cost::{Costs, SPREAD};
use crate::field;
use crate::site::Site;

/// Leaves out each layout of a machine in turn.
pub fn limit(seed: u64, collectives: usize) -> Transferred {
    each_left_out(seed, collectives, |site, collective, known, asked| {
        let mut costs = Costs::simulated(site.machine);
        let both = known.iter().zip(asked).enumerate();
        both.map(|(variant, (known, asked))| {
            predicted(site, collective, variant, &mut costs, (known, asked))
        })
        .collect()
    })
}

/// One variant's contrasts in the asked places.
fn predicted(
    site: &Site,
    collective: Collective,
    variant: usize,
    costs: &mut Costs,
    (known, asked): (&[(Truth, f64)], &[Truth]),
) -> Vec<Prediction> {
    let variant = &site.variants[collective.index()][variant];
    // What the contrast would be if there were no field.
    let mut plain = |shape: &Shape| {
        let cost = costs.of(variant, shape.message_bytes, shape.nodes, shape.ppn);
        let cell = site.cells.iter().find(|cell| cell.shape == *shape);
        let default_ns = cell.expect("a truth is of a cell").default_ns();
        (cost.expect("its truth was made of it") / default_ns).ln()
    };
    let alike = |one: &Truth, other: &Truth| {
        let at = |truth: &Truth| {
            (
                truth.shape.message_bytes,
                truth.shape.nodes,
                truth.shape.ppn,
            )
        };
        SPREAD * SPREAD * field::likeness(at(one), at(other))
    };
    let n = known.len();
    let of_fields = DVector::from_fn(n, |row, _| known[row].1 - plain(&known[row].0.shape));
    let covariance = DMatrix::from_fn(n, n, |row, column| {
        let own = if row == column { ERROR * ERROR } else { 0.0 };
        alike(&known[row].0, &known[column].0) + own
    });
    let factor = covariance.cholesky().expect("errors are on its diagonal");
    let weights = factor.solve(&of_fields);
    let of = |truth: &Truth| {
        let shared = DVector::from_fn(n, |row, _| alike(&known[row].0, truth));
        Prediction {
            mean: plain(&truth.shape) + shared.dot(&weights),
            variance: SPREAD * SPREAD - shared.dot(&factor.solve(&shared)),
        }
    };
    asked.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knows_all_but_the_fields_is_off_by_what_they_vary_alone() {
        let found = limit(1, 1);
        let coverage = found.holding / found.intervals;
        assert!((0.92..0.98).contains(&coverage), "{found:?}");
        assert!(found.near / found.cells > 0.8, "{found:?}");
    }
}
