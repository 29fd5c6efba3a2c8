//! What is believed of each variant's mean cost beside the default's, from all evidence together.
//!
//! One hierarchical model of the contrast log(cost_v / cost_default): an effect of the cell, one of the run, whose
//! variance is pooled over cells so that one run knows what one run is worth, and noise, known from the moments. What
//! other cells say ([`crate::predict`]) is the prior of a cell's effect; the posterior is normal and in closed form.
//! Stalls ([`stalls`]) and what calls shift into what follows ([`shift`]) are part of the cost.

mod contrast;
mod measured;
mod posterior;
mod root;
mod shift;
pub mod stalls;

pub use measured::Measured;
use measured::{slow, without_stalls};
pub use posterior::{Arm, Belief, Estimate};
pub use shift::{Correction, of_default};

use std::borrow::Cow;
use std::collections::BTreeMap;

use colltune_core::collective::Collective;
use rayon::prelude::*;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::ablation::{Mechanism, has};
use crate::evidence::{Evidence, Shape};
use crate::predict::{Place, Point, Prediction, Predictor};
use contrast::{Fit, Observed, Sum};
use root::root;
use shift::Shift;
use stalls::{Common, Count};

/// What runs differ by in a variant, as a standard deviation, before any data, and for how many degrees of freedom
/// that guess counts.
const BETWEEN_GUESS: f64 = 0.1;
const BETWEEN_PRIOR: f64 = 3.0;
/// Degrees of freedom by which a cell leans on the others.
const CELL_PRIOR: f64 = 30.0;
/// How often the variance between runs and how calm each run is are found from each other.
const CALM_ROUNDS: usize = 4;
/// Points that say before any data that predictions are as wrong as they claim.
const MISFIT_PRIOR: f64 = 10.0;
/// What is guessed of the share of a prediction's error that all variants of a cell have in common, as products of
/// errors over variances, and the most that it can be.
const COMMON_PRIOR: (f64, f64) = (0.5, 1.0);
const COMMON_MOST: f64 = 0.95;
/// The tail at which choices are made; see [`crate::choice`].
const TAIL: f64 = 1e-4;

/// Things, and beside each where it came from.
type Traced<Thing, Origin> = (Vec<Thing>, Vec<Origin>);

struct Estimated {
    observed: Observed,
    /// What variants shift to the next collective, and into it.
    behind: [Vec<Shift>; 2],
    counts: BTreeMap<u16, Count>,
    /// What the default costs beyond its time, in times of that; known behind [`Estimated::of_cell`].
    of_default: f64,
}

/// Cells about which others are asked: for each its collective and variants with their places.
pub type Asked = (Collective, Vec<(u16, Place)>);

/// Beliefs of the measured cells, and predictions for the cells that are asked about.
pub fn believe(
    cells: &[Measured],
    asked: &[Asked],
    predictor: &dyn Predictor,
) -> (Vec<Belief>, Vec<Vec<Prediction>>) {
    let mut estimated: Vec<Estimated> = cells.par_iter().map(Estimated::new).collect();
    let (mut between, mut freedom) = pooled_between(&estimated);
    for _ in 0..CALM_ROUNDS {
        estimated.par_iter_mut().for_each(|cell| {
            let fit = cell.observed.fit(between);
            cell.observed.calm(&fit);
        });
        (between, freedom) = pooled_between(&estimated);
    }
    let tau = [0, 1].map(|part| {
        let cells = estimated.iter().map(|cell| &cell.behind[part][..]);
        shift::tau_squared(&cells.collect::<Vec<_>>())
    });
    let data: Vec<Vec<Option<Estimate>>> = estimated
        .par_iter_mut()
        .zip(cells)
        .map(|(estimated, cell)| estimated.of_cell(cell, between, freedom, tau))
        .collect();
    let (priors, predictions) = predicted(cells, &data, asked, predictor);
    let common_errors = common_errors(cells, &data, &priors);
    let counts = |counts: &Estimated| counts.counts.values().copied().collect::<Vec<_>>();
    let defaults = estimated.iter().filter_map(|cell| cell.counts.get(&0));
    let common = Common::new(
        &estimated.iter().flat_map(counts).collect::<Vec<_>>(),
        &defaults.copied().collect::<Vec<_>>(),
    );
    let elsewhere = sums(cells, &estimated);
    let beliefs = (0..cells.len())
        .into_par_iter()
        .map(|index| {
            let (cell, own) = (&cells[index], &estimated[index].counts);
            let variants: Vec<u16> = std::iter::once(0)
                .chain(cell.variants.iter().map(|(variant, _)| *variant))
                .collect();
            let counts: Vec<Count> = variants
                .iter()
                .map(|variant| own.get(variant).copied().unwrap_or_default())
                .collect();
            let others: Vec<Count> = variants
                .iter()
                .zip(&counts)
                .map(|(variant, own)| {
                    let mut count = elsewhere
                        .get(&(cell.collective, *variant))
                        .copied()
                        .unwrap_or_default();
                    count.add(*own, -1.0);
                    count
                })
                .collect();
            let (stalls, all_pay) = common.of_cell(&counts, &others);
            let common = common_errors[cell.collective.index()];
            let priors = (priors[index].as_slice(), common);
            let belief = Belief::new(cell, &data[index], priors, &counts, stalls, all_pay);
            belief.with_shift(estimated[index].of_default)
        })
        .collect();
    (beliefs, predictions)
}

impl Estimated {
    fn new(cell: &Measured) -> Estimated {
        let weight = |row: &Evidence| {
            let said = cell.weights.get(&(row.run, row.variant));
            said.copied().unwrap_or(1.0)
        };
        let slow = slow(&cell.rows);
        let rows = cell
            .rows
            .iter()
            .map(|row| match slow.contains(&row.variant) {
                true => without_stalls(row),
                false => **row,
            });
        let rows: Vec<Evidence> = rows.collect();
        // The typical call of a run may be the default's or that of a variant which takes a thousandth of its time.
        let default_ns = default_ns(&rows);
        let at_default = |row: &Evidence| row.at_level(default_ns(row));
        let of_default: Vec<Evidence> = rows.iter().map(at_default).collect();
        let told: Vec<Evidence> = cell.rows.iter().map(|row| at_default(row)).collect();
        let [next, next_told] =
            [&of_default, &told].map(|rows| rows.iter().map(Evidence::one_on).collect::<Vec<_>>());
        let [rows, of_default, told, next, next_told] =
            [&rows, &of_default, &told, &next, &next_told]
                .map(|rows| rows.iter().collect::<Vec<_>>());
        let observed = Observed::new(&rows, weight);
        let behind = [(&of_default, &told), (&next, &next_told)].map(|(rows, told)| match observed
            .variants
            .first()
        {
            Some(0) => shift::of_cell(rows, told, &observed.variants, weight),
            _ => Vec::new(),
        });
        let mut by_run = BTreeMap::<u32, Vec<(u64, u64)>>::new();
        for row in &rows {
            let own = (row.calls, row.stalls);
            by_run.entry(row.run).or_default().push(own);
        }
        let rates = by_run.into_iter();
        let rates = rates.filter_map(|(run, of)| Some((run, stalls::disturbed(&of)?)));
        let disturbed: BTreeMap<u32, f64> = rates.collect();
        let mut counts = BTreeMap::<u16, Count>::new();
        for row in of_default {
            let weight = weight(row);
            let calls = weight * row.calls as f64;
            let count = Count {
                calls,
                stalls: weight * row.stalls as f64,
                excess: weight * row.stall_excess,
                expected: calls * disturbed.get(&row.run).copied().unwrap_or(0.0),
                exposed: if disturbed.is_empty() { 0.0 } else { calls },
            };
            counts.entry(row.variant).or_default().add(count, 1.0);
        }
        Estimated {
            observed,
            behind,
            counts,
            of_default: 0.0,
        }
    }

    /// Estimates for intervals and for far tails.
    fn fits(&mut self, between: f64, freedom: f64) -> [Fit; 2] {
        let observed = &mut self.observed;
        let rough = observed.fit(between);
        let sample = observed.sample();
        let excess = |variance: f64| {
            let fit = sample.fit(variance).residuals.of_runs;
            (fit.squares + CELL_PRIOR * between / variance) / (fit.expected + CELL_PRIOR)
        };
        let own = Observed::honest(root(excess, 1.0, 1e-6, 4.0));
        let of_runs = rough.residuals.of_runs.freedom();
        let freedom = freedom.min(CELL_PRIOR + of_runs).max(1.0);
        let noisier = observed.noisier.clone();
        [0.025, TAIL].map(|tail| {
            let noises = noisier.iter().zip(&observed.noise_freedom);
            // Where the scatter within runs and that between them agree, the noise is known.
            let surely = |(noisier, &freedom): (&f64, &f64)| {
                1.0 + (noisier - 1.0) * wider(freedom, tail).powi(2)
            };
            observed.noisier = noises.map(surely).collect();
            observed.fit(own * wider(freedom, tail).powi(2))
        })
    }

    /// By the cell's variants what its own data say.
    fn of_cell(
        &mut self,
        cell: &Measured,
        between: f64,
        freedom: f64,
        tau: [f64; 2],
    ) -> Vec<Option<Estimate>> {
        let fits = self.fits(between, freedom);
        let observed = &self.observed;
        let inverses = [&fits[0], &fits[1]].map(|fit| inverse(&fit.information));
        let shared = shared(&inverses[0]);
        let corrections: Vec<Correction> = (0..observed.variants.len())
            .map(|arm| {
                let [shift, after] = self.behind.each_ref().map(|shifts| shifts.get(arm));
                let both = shift.zip(after);
                both.map_or_else(Correction::default, |(shift, after)| {
                    shift::of_both(shift, after, tau)
                })
            })
            .collect();
        let by_arm = fits[0].arms.iter().zip(fits[0].theta.iter());
        let by_arm = by_arm.map(|(&arm, theta)| (theta.exp(), corrections[arm]));
        let of_default = of_default(by_arm);
        self.of_default = of_default;
        for count in self.counts.values_mut() {
            count.excess /= 1.0 + of_default;
        }
        let mut result = vec![None; cell.variants.len()];
        for (place, (variant, _)) in cell.variants.iter().enumerate() {
            let Ok(arm) = observed.variants.binary_search(variant) else {
                continue;
            };
            result[place] = match fits[0].arms.iter().position(|other| *other == arm) {
                Some(row) => {
                    let variances = inverses.each_ref().map(|inverse| inverse[(row, row)]);
                    let estimate = Estimate {
                        mean: fits[0].theta[row],
                        variance: variances[0],
                        tail_variance: variances[1],
                        shared: Some(shared),
                    };
                    let Correction { contrast, variance } = corrections[arm];
                    Some(estimate.corrected(contrast, variance, of_default))
                }
                None => posterior::through_runs(&cell.rows, *variant),
            };
        }
        result
    }
}

/// What the default's calls take in the run and shape of a row, else in other runs; where it never ran what a typical call
/// takes.
fn default_ns(rows: &[Evidence]) -> impl Fn(&Evidence) -> f64 {
    let mut met = BTreeMap::new();
    let mut usual = BTreeMap::<Option<Shape>, (f64, f64)>::new();
    for row in rows.iter().filter(|row| row.variant == 0 && row.time.n > 0) {
        let time_ns = (row.level_ns * row.time.mean).max(1.0);
        met.insert((row.run, row.shape, row.component), time_ns);
        for of in [Some(row.shape), None] {
            let (sum, n) = usual.entry(of).or_default();
            (*sum, *n) = (*sum + time_ns.ln(), *n + 1.0);
        }
    }
    move |row| {
        let usual = |of| usual.get(&of).map(|(sum, n)| (sum / n).exp());
        let known = met.get(&(row.run, row.shape, row.component)).copied();
        let known = known
            .or_else(|| usual(Some(row.shape)))
            .or_else(|| usual(None));
        known.unwrap_or(row.level_ns).max(1.0)
    }
}

/// The variance between runs of all cells together, and its degrees of freedom.
fn pooled_between(cells: &[Estimated]) -> (f64, f64) {
    let samples: Vec<Cow<Observed>> = cells.iter().map(|cell| cell.observed.sample()).collect();
    let all = |variance: f64| {
        let of = |cell: &Cow<Observed>| cell.fit(variance).residuals.of_runs;
        let each: Vec<Sum> = samples.par_iter().map(of).collect();
        let mut sum = Sum::default();
        each.into_iter().for_each(|one| sum.add(one));
        sum
    };
    let excess = |variance: f64| {
        let sum = all(variance);
        let guess = BETWEEN_PRIOR * BETWEEN_GUESS.powi(2) / variance;
        (sum.squares + guess) / (sum.expected + BETWEEN_PRIOR)
    };
    let found = root(excess, 1.0, 1e-6, 4.0);
    (found, all(found).freedom() + BETWEEN_PRIOR)
}

/// For each measured cell and variant what the other cells say, and for the cells asked about what all say.
fn predicted(
    cells: &[Measured],
    data: &[Vec<Option<Estimate>>],
    asked: &[Asked],
    predictor: &dyn Predictor,
) -> (Vec<Vec<Prediction>>, Vec<Vec<Prediction>>) {
    let nothing = Prediction {
        mean: 0.0,
        variance: 1.0,
    };
    let mut priors: Vec<Vec<Prediction>> = cells
        .iter()
        .map(|cell| vec![nothing; cell.variants.len()])
        .collect();
    let mut predictions: Vec<Vec<Prediction>> = asked
        .iter()
        .map(|(_, variants)| vec![nothing; variants.len()])
        .collect();
    for collective in Collective::ALL {
        // By variant: points with where they came from, and places without data with where they go.
        let mut known: BTreeMap<u16, Traced<Point, (usize, usize)>> = BTreeMap::new();
        let mut wanted: BTreeMap<u16, Traced<Place, (bool, usize, usize)>> = BTreeMap::new();
        for (index, cell) in cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| cell.collective == collective)
        {
            for (place, (variant, at)) in cell.variants.iter().enumerate() {
                known.entry(*variant).or_default();
                match &data[index][place] {
                    Some(estimate) => {
                        let own = known.entry(*variant).or_default();
                        own.0.push(Point {
                            place: *at,
                            mean: estimate.mean,
                            variance: estimate.variance,
                        });
                        own.1.push((index, place));
                    }
                    None => {
                        let own = wanted.entry(*variant).or_default();
                        own.0.push(*at);
                        own.1.push((true, index, place));
                    }
                }
            }
        }
        for (index, (_, variants)) in asked
            .iter()
            .enumerate()
            .filter(|(_, (of, _))| *of == collective)
        {
            for (place, (variant, at)) in variants.iter().enumerate() {
                known.entry(*variant).or_default();
                let own = wanted.entry(*variant).or_default();
                own.0.push(*at);
                own.1.push((false, index, place));
            }
        }
        let points: Vec<Vec<Point>> = known.values().map(|(points, _)| points.clone()).collect();
        let places: Vec<Vec<Place>> = known
            .keys()
            .map(|variant| {
                wanted
                    .get(variant)
                    .map(|(places, _)| places.clone())
                    .unwrap_or_default()
            })
            .collect();
        let left_out = predictor.leave_out(&points);
        let wider = misfit(&points, &left_out);
        let widened = |prediction: Prediction| Prediction {
            variance: wider * prediction.variance,
            ..prediction
        };
        for ((_, homes), found) in known.values().zip(left_out) {
            homes
                .iter()
                .zip(found)
                .for_each(|(&(index, place), found)| priors[index][place] = widened(found));
        }
        let found = predictor.predict(&points, &places);
        for (variant, found) in known.keys().zip(found) {
            let homes = wanted
                .get(variant)
                .map(|(_, homes)| homes.as_slice())
                .unwrap_or_default();
            for (&(measured, index, place), prediction) in homes.iter().zip(found) {
                let home = if measured {
                    &mut priors
                } else {
                    &mut predictions
                };
                home[index][place] = widened(prediction);
            }
        }
    }
    (priors, predictions)
}

/// By collective how much of the variance of the predictions' errors the variants of a cell have in common.
fn common_errors(
    cells: &[Measured],
    data: &[Vec<Option<Estimate>>],
    priors: &[Vec<Prediction>],
) -> [f64; Collective::ALL.len()] {
    let mut sums = [COMMON_PRIOR; Collective::ALL.len()];
    for ((cell, data), priors) in cells.iter().zip(data).zip(priors) {
        let known: Vec<(f64, f64, Estimate)> = data
            .iter()
            .zip(priors)
            .filter_map(|(data, prior)| {
                let data = data.as_ref()?;
                let total = prior.variance + data.variance;
                let away = (data.mean - prior.mean) / total.sqrt();
                Some((away, prior.variance / total, *data))
            })
            .collect();
        let sum = &mut sums[cell.collective.index()];
        // Of so many pairs of a cell there is hardly more than one cell to learn from.
        let pairs = (known.len() * known.len().saturating_sub(1)) as f64 / 2.0;
        for (place, one) in known.iter().enumerate() {
            for other in &known[..place] {
                let both = (one.2.shared.zip(other.2.shared)).map_or(0.0, |(a, b)| {
                    let (share, its) = (
                        (1.0 - one.1) / one.2.variance,
                        (1.0 - other.1) / other.2.variance,
                    );
                    a.min(b) * (share * its).sqrt()
                });
                sum.0 += ((one.0 * other.0).clamp(-9.0, 9.0) - both) / pairs;
                sum.1 += (one.1 * other.1).sqrt() / pairs;
            }
        }
    }
    sums.map(|(product, variance)| (product / variance).clamp(0.0, COMMON_MOST))
}

/// What the variances of predictions have to be multiplied with, so that those of left-out points are honest.
fn misfit(points: &[Vec<Point>], left_out: &[Vec<Prediction>]) -> f64 {
    let pairs: Vec<(f64, f64, f64)> = points
        .iter()
        .flatten()
        .zip(left_out.iter().flatten())
        .map(|(point, found)| {
            let away = (point.mean - found.mean).powi(2);
            (away, found.variance, point.variance)
        })
        .collect();
    let squares = |factor: f64| {
        let one = |&(away, variance, noise): &(f64, f64, f64)| {
            (away / (factor * variance + noise)).min(25.0)
        };
        pairs.iter().map(one).sum::<f64>() + MISFIT_PRIOR / factor
    };
    root(squares, pairs.len() as f64 + MISFIT_PRIOR, 1.0, 16.0)
}

/// Calls and stalls of each variant over all cells of its collective.
fn sums(cells: &[Measured], estimated: &[Estimated]) -> BTreeMap<(Collective, u16), Count> {
    let mut sums = BTreeMap::<_, Count>::new();
    for (cell, estimated) in cells.iter().zip(estimated) {
        for (variant, count) in &estimated.counts {
            sums.entry((cell.collective, *variant))
                .or_default()
                .add(*count, 1.0);
        }
    }
    sums
}

/// Beyond so many degrees of freedom the search for a quantile of Student's distribution takes for ever, and an
/// expansion has it to five digits.
const FREEDOM_MANY: f64 = 200.0;

/// How much wider Student's distribution is than the normal one at a tail.
///
/// Source: the expansion: Fisher & Cornish, Technometrics 2, 1960.
fn wider(freedom: f64, tail: f64) -> f64 {
    if !has(Mechanism::StudentInflation) {
        return 1.0;
    }
    let normal = Normal::standard().inverse_cdf(1.0 - tail);
    if freedom > FREEDOM_MANY {
        let square = normal * normal;
        return 1.0
            + (square + 1.0) / (4.0 * freedom)
            + (5.0 * square * square + 16.0 * square + 3.0) / (96.0 * freedom * freedom);
    }
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).map_or(1.0, |student| {
        (student.inverse_cdf(1.0 - tail) / normal).max(1.0)
    })
}

fn inverse(information: &nalgebra::DMatrix<f64>) -> nalgebra::DMatrix<f64> {
    let n = information.nrows();
    let ridge = nalgebra::DMatrix::identity(n, n) * 1e-9;
    (information + ridge).cholesky().map_or_else(
        || nalgebra::DMatrix::identity(n, n) * 1e9,
        |factor| factor.inverse(),
    )
}

/// The part of the contrasts' variances that is the default's: their mean covariance.
fn shared(covariance: &nalgebra::DMatrix<f64>) -> f64 {
    let n = covariance.nrows() as f64;
    if n < 2.0 {
        return 0.5 * covariance.trace();
    }
    let least = covariance.diagonal().min();
    ((covariance.sum() - covariance.trace()) / (n * (n - 1.0))).clamp(0.0, 0.9 * least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_distribution_is_as_much_wider_by_the_expansion_as_by_search_and_of_any_number_of_runs()
     {
        for tail in [0.025, TAIL] {
            let [searched, expanded] =
                [1.0, 1.0 + 1e-9].map(|factor| wider(factor * FREEDOM_MANY, tail));
            assert!((searched - expanded).abs() < 1e-4, "{searched} {expanded}");
            assert!((wider(1e12, tail) - 1.0).abs() < 1e-9);
            assert!(wider(3.0, tail) > 1.5);
        }
    }
}
