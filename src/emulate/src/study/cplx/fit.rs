//! The two parameters that are fitted, both at 512 ranks, to two numbers that the paper says of 512 ranks.

use super::epoch::BlockCosts;
use super::scale::{self, BASELINE, Model, POLICIES, Sample, Totals};
use crate::EmulateError;

/// What is met: the baseline's share of synchronisation, and the best policy's gain; percent.
pub const SYNC_AT_512: f64 = 35.0;
pub const GAIN_AT_512: f64 = 15.3;

/// Where is looked first: the shock's surcharge, and the unknown spread.
const SHOCK_MAX: f64 = 2.0;
const UNKNOWN_MAX: f64 = 0.6;
const FIRST: u32 = 6;
const HALVINGS: i32 = 5;

/// What the fit found, and where it leaves its two targets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    pub costs: BlockCosts,
    pub block_ns: f64,
    pub sync: f64,
    pub gain: f64,
}

/// Least squares over a grid, and then over ever smaller ones around the best so far: always the same steps.
///
/// Errors: as running the policies.
pub fn fit(sample: &Sample, model: &Model) -> Result<Fitted, EmulateError> {
    let widths = [SHOCK_MAX, UNKNOWN_MAX].map(|most| most / f64::from(FIRST));
    let grid = |n: u32| (0..=n).map(f64::from);
    let first = grid(FIRST).flat_map(|i| grid(FIRST).map(move |j| [i * widths[0], j * widths[1]]));
    let mut best = nearest(sample, model, None, first)?;
    for halving in 1..=HALVINGS {
        let centre = [best.costs.shock, best.costs.unknown_cv];
        let step = |d: usize, i: i32| {
            (centre[d] + f64::from(i) * widths[d] * 0.5f64.powi(halving)).max(0.0)
        };
        let around = (-1..=1).flat_map(|i| (-1..=1).map(move |j| (i, j)));
        let around = around.filter(|&place| place != (0, 0));
        let points = around.map(|(i, j)| [step(0, i), step(1, j)]);
        best = nearest(sample, model, Some(best), points)?;
    }
    Ok(best)
}

/// The point nearest to both targets; the earlier one of equals.
fn nearest(
    sample: &Sample,
    model: &Model,
    known: Option<Fitted>,
    points: impl Iterator<Item = [f64; 2]>,
) -> Result<Fitted, EmulateError> {
    let off =
        |found: &Fitted| (found.sync - SYNC_AT_512).powi(2) + (found.gain - GAIN_AT_512).powi(2);
    let mut best = known;
    for [shock, unknown] in points {
        let found = at(sample, model, BlockCosts::new(shock, unknown))?;
        if best.is_none_or(|best| off(&found) < off(&best)) {
            best = Some(found);
        }
    }
    Ok(best.expect("a grid has points"))
}

fn at(sample: &Sample, model: &Model, costs: BlockCosts) -> Result<Fitted, EmulateError> {
    let block_ns = scale::block_ns(sample, &costs, &model.noise);
    let model = Model {
        costs,
        block_ns,
        ..model.clone()
    };
    let runs = scale::run(
        &sample.deck,
        sample.epochs.iter(),
        &POLICIES,
        &model,
        None,
        None,
    )?;
    Ok(Fitted {
        costs,
        block_ns,
        sync: sync(&runs[BASELINE]),
        gain: gains(&runs).into_iter().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// The share of a run that is synchronisation, percent.
pub fn sync(run: &Totals) -> f64 {
    100.0 * run.times.synchronisation / run.times.total()
}

/// What each policy but the baseline gains over it, percent.
pub fn gains(runs: &[Totals]) -> Vec<f64> {
    let today = runs[BASELINE].times.total();
    let gain = |run: &Totals| 100.0 * (1.0 - run.times.total() / today);
    runs[BASELINE + 1..].iter().map(gain).collect()
}
