//! From belief and choice to what jobs, people and exports read of one cell.

use std::collections::BTreeSet;

use colltune_core::model::{CellModel, Native, Share, Source};
use colltune_core::variant::DEFAULT;
use nalgebra::{DMatrix, DVector};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};

use super::cells::Cells;
use super::context::{Context, seed_of};
use crate::allocation::{Exploring, Race, allocate, expected_loss};
use crate::belief::Belief;
use crate::choice::{self, Choice, GAIN_LEAST, SAMPLES_LEAST};
use crate::predict::{Place, Prediction};
use crate::statistics::{CellStatistics, Contrast, Interval, VariantStatistics};

const DRAWS: usize = 512;
/// Where less than this is to be expected of knowing the truth, exploring ends; below the other it narrows.
const LOSS_TO_SETTLE: f64 = GAIN_LEAST;
const LOSS_TO_NARROW: f64 = 0.03;
/// It ends below the other, too, where no variant is faster by this share with that probability.
const WORTH_ASKING: f64 = 0.03;
const ASKING_SHARE: f64 = 0.1;
/// Fewer runs than this settle nothing.
const RUNS_TO_SETTLE: u64 = 2;
/// Arms this many standard deviations beyond another one's are not drawn.
const DOMINATED: f64 = 2.5;

type Published = (usize, CellModel, CellStatistics);

pub fn measured(
    cells: &Cells,
    index: usize,
    belief: &Belief,
    choice: &Choice,
    time_ns: f64,
    nothing_to_gain: &str,
    context: &Context,
) -> Published {
    let entry = &cells.initial.cells[belief.cell];
    let variants = &cells.catalogue[entry.cell.collective.index()];
    let name = |place: usize| match place {
        0 => DEFAULT.to_owned(),
        arm => variants[usize::from(belief.arms[arm - 1].variant)]
            .name
            .to_string(),
    };
    let places = |set: &BTreeSet<u16>| cells.places(set, belief);
    let (drawable, disfavoured) = (
        places(&cells.drawable[index]),
        places(&cells.disfavoured[index]),
    );
    let allowed: Vec<bool> = belief
        .arms
        .iter()
        .map(|arm| cells.drawable[index].contains(&arm.variant))
        .collect();
    let best = choice.best.map_or(0, |arm| arm + 1);
    let draws = belief.draws(
        DRAWS,
        seed_of(context.seed, entry.cell.collective, belief.cell),
    );
    let dominated = choice::dominated(belief, &allowed, DOMINATED)
        .into_iter()
        .map(|arm| arm + 1)
        .filter(|place| *place != best)
        .collect();
    let unseen = drawable
        .iter()
        .copied()
        .filter(|&place| belief.arms[place - 1].calls < SAMPLES_LEAST)
        .collect();
    let untried = &cells.untried[index];
    let (mut exploring, mut settled) = exploring(belief, &draws, &drawable, untried, best);
    if settled.is_empty() && !nothing_to_gain.is_empty() {
        (exploring, settled) = (Exploring::Settled, nothing_to_gain.to_owned());
    }
    let shares = allocate(&Race {
        draws: &draws,
        drawable: &drawable,
        unseen: &unseen,
        dominated: &dominated,
        disfavoured: &disfavoured,
        best,
        exploring,
        explore_total: context.settings.explore_total,
    });
    let default = Contrast {
        gain: 1.0,
        lo: 1.0,
        hi: 1.0,
    };
    let contrast = |place: usize| {
        if place == 0 {
            default
        } else {
            choice::contrast(belief, place - 1)
        }
    };
    let listed = (0..=belief.arms.len()).map(|place| {
        let own = rounded(contrast(place));
        let arm = place.checked_sub(1);
        VariantStatistics {
            name: name(place),
            samples: arm.map_or(belief.default_calls, |arm| belief.arms[arm].calls),
            probability: shares[place],
            time_ns: interval(belief.level_ns, own),
            contrast: Some(own),
            replaces_default: arm.is_some_and(|arm| choice.replaces[arm]),
            reason: arm.map_or(String::new(), |arm| choice.reasons[arm].clone()),
        }
    });
    let gain = rounded(contrast(best));
    let statistics = CellStatistics {
        source: Source::Measured,
        best: name(best),
        gain: gain.gain,
        gain_lo: gain.lo,
        gain_hi: gain.hi,
        time_share: if time_ns > 0.0 {
            belief.time_ns / time_ns
        } else {
            0.0
        },
        waiting: (1.0 - belief.work).clamp(0.0, 1.0),
        drift: cells.watched[index].drift,
        settled,
        variants: listed.collect(),
        ..CellStatistics::unknown(entry.cell)
    };
    let drawn = shares.iter().enumerate().filter(|(_, share)| **share > 0.0);
    // What does not apply is listed with 0, so that the next training tells it from what is new. Where a cell ends for
    // another reason than that all was tried, what is untried stays new.
    let is_ended = exploring == Exploring::Settled;
    let unsampled = |&place: &usize| {
        let arm = &belief.arms[place - 1];
        let is_new = is_ended && untried.contains(&arm.variant);
        arm.calls == 0 && shares[place] == 0.0 && !is_new
    };
    let unsampled = drawable.iter().copied().filter(unsampled).map(name);
    let silent = cells.silent[index]
        .iter()
        .map(|&variant| variants[usize::from(variant)].name.to_string());
    let silent = silent.chain(unsampled).map(|name| Share {
        name,
        probability: 0.0,
    });
    let silent = silent.filter(|_| context.settings.explore_total > 0.0);
    let native = statistics.native(context.library);
    let native = native.filter(|(one, _)| one.name != statistics.best);
    let entry = CellModel {
        source: Source::Measured,
        best: name(best),
        gain: gain.gain,
        native: native.map(|(one, _)| Native {
            name: one.name.clone(),
            gain: one.contrast.map_or(1.0, |contrast| contrast.gain),
        }),
        measured_ranks: choice
            .best
            .and_then(|arm| measured_ranks(cells, index, belief.arms[arm].variant)),
        variants: drawn
            .map(|(place, &probability)| Share {
                name: name(place),
                probability,
            })
            .chain(silent)
            .collect(),
        ..entry.clone()
    };
    (belief.cell, entry, statistics)
}

/// The most ranks on which a variant was measured.
fn measured_ranks(cells: &Cells, index: usize, variant: u16) -> Option<u32> {
    let rows = cells.measured[index].rows.iter();
    let own = rows.filter(|row| row.variant == variant && row.calls > 0);
    own.map(|row| row.shape.n_ranks).max()
}

/// How much a cell is worth exploring still, and why no more, if it is not.
fn exploring(
    belief: &Belief,
    draws: &[Vec<f64>],
    drawable: &[usize],
    untried: &BTreeSet<u16>,
    best: usize,
) -> (Exploring, String) {
    if belief.runs < RUNS_TO_SETTLE || belief.default_calls < SAMPLES_LEAST {
        return (Exploring::Open, String::new());
    }
    if belief.work < GAIN_LEAST {
        return (
            Exploring::Settled,
            format!(
                "{:.1} % of its time is waiting for late ranks",
                100.0 * (1.0 - belief.work)
            ),
        );
    }
    if !untried.is_empty() {
        return (Exploring::Open, String::new());
    }
    let asking = asking(draws, drawable, best);
    let loss = expected_loss(draws, drawable, best, 0.0);
    if is_settled(asking, loss) {
        // No such draw among so many is no proof, so the share is at least 1 %.
        let share = (100.0 * asking).ceil().max(1.0);
        return (
            Exploring::Settled,
            format!("no variant is faster by 3 % with a probability of more than {share:.0} %"),
        );
    }
    let exploring = if loss < LOSS_TO_NARROW && best != 0 {
        Exploring::Narrow
    } else {
        Exploring::Open
    };
    (exploring, String::new())
}

/// How likely the variant is worth asking that is likeliest so: faster than `best` by [`WORTH_ASKING`].
fn asking(draws: &[Vec<f64>], drawable: &[usize], best: usize) -> f64 {
    let is_better = |place: usize| {
        draws
            .iter()
            .filter(|costs| costs[place] < (1.0 - WORTH_ASKING) * costs[best])
            .count()
    };
    let most = std::iter::once(0)
        .chain(drawable.iter().copied())
        .map(is_better)
        .max()
        .unwrap_or(0);
    most as f64 / draws.len().max(1) as f64
}

/// Whether exploring ends. That no single variant is likely to be faster does not do: of many one may well be, and then
/// much is to be expected of knowing which.
fn is_settled(asking: f64, loss: f64) -> bool {
    loss < LOSS_TO_SETTLE || (asking < ASKING_SHARE && loss < LOSS_TO_NARROW)
}

pub fn predicted(
    cells: &Cells,
    index: usize,
    predictions: &[Prediction],
    context: &Context,
) -> Published {
    let cell = cells.asked_cells[index];
    let (collective, asked) = &cells.asked[index];
    let entry = &cells.initial.cells[cell];
    let variants = &cells.catalogue[collective.index()];
    let name = |(variant, _): &(u16, Place)| variants[usize::from(*variant)].name.to_string();
    let mut random = StdRng::seed_from_u64(seed_of(context.seed, *collective, cell));
    let mean = DVector::from_iterator(predictions.len(), predictions.iter().map(|one| one.mean));
    let spread = DMatrix::from_diagonal(&DVector::from_iterator(
        predictions.len(),
        predictions.iter().map(|one| one.variance.sqrt()),
    ));
    let draws: Vec<Vec<f64>> = (0..DRAWS)
        .map(|_| {
            let normal =
                DVector::from_fn(predictions.len(), |_, _| StandardNormal.sample(&mut random));
            let theta = &mean + &spread * normal;
            std::iter::once(1.0)
                .chain(theta.iter().map(|theta| theta.exp()))
                .collect()
        })
        .collect();
    let drawable: Vec<usize> = (1..=asked.len()).collect();
    // They have not run here, so each is drawn at least a little.
    let unseen = drawable.iter().copied().collect();
    let shares = allocate(&Race {
        draws: &draws,
        drawable: &drawable,
        unseen: &unseen,
        dominated: &BTreeSet::new(),
        disfavoured: &[],
        best: 0,
        exploring: Exploring::Open,
        explore_total: context.settings.explore_total,
    });
    let names = || std::iter::once(DEFAULT.to_owned()).chain(asked.iter().map(name));
    let drawn = names().zip(&shares).filter(|(_, share)| **share > 0.0);
    let model = CellModel {
        source: Source::Predicted,
        best: DEFAULT.to_owned(),
        variants: drawn
            .map(|(name, &probability)| Share { name, probability })
            .collect(),
        ..entry.clone()
    };
    let contrast = |place: usize| {
        let one = predictions[place.checked_sub(1)?];
        let gain = |deviations: f64| (-one.mean + deviations * one.variance.sqrt()).exp();
        Some(rounded(Contrast {
            gain: gain(0.0),
            lo: gain(-1.96),
            hi: gain(1.96),
        }))
    };
    let listed = names()
        .zip(&shares)
        .enumerate()
        .map(|(place, (name, &probability))| VariantStatistics {
            name,
            probability,
            contrast: contrast(place),
            reason: if place > 0 {
                "nobody ran it here".to_owned()
            } else {
                String::new()
            },
            ..VariantStatistics::default()
        });
    let statistics = CellStatistics {
        source: Source::Predicted,
        variants: listed.collect(),
        ..CellStatistics::unknown(entry.cell)
    };
    (cell, model, statistics)
}

/// The time behind a contrast, in ns.
fn interval(default_ns: f64, contrast: Contrast) -> Interval {
    let time = |gain: f64| Some((10.0 * default_ns / gain).round() / 10.0);
    Interval {
        median: time(contrast.gain),
        lo: time(contrast.hi),
        hi: time(contrast.lo),
    }
}

fn rounded(contrast: Contrast) -> Contrast {
    let round = |gain: f64| (gain * 1e4).round().max(1.0) / 1e4;
    Contrast {
        gain: round(contrast.gain),
        lo: round(contrast.lo),
        hi: round(contrast.hi),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws of a cell in which so many variants seem 5 % slower than the default, known to 5 % each.
    fn draws(n_variants: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut cost = || {
            let normal: f64 = StandardNormal.sample(&mut random);
            1.05 * (0.05 * normal).exp()
        };
        let mut costs = || -> Vec<f64> {
            std::iter::once(1.0)
                .chain((0..n_variants).map(|_| cost()))
                .collect()
        };
        (0..DRAWS).map(|_| costs()).collect()
    }

    #[test]
    fn a_cell_stays_open_where_no_variant_is_likely_to_be_faster_but_one_of_many_is() {
        for seed in 1..=5 {
            for (n_variants, settles) in [(4, true), (40, false)] {
                let draws = draws(n_variants, seed);
                let drawable: Vec<usize> = (1..=n_variants).collect();
                let asking = asking(&draws, &drawable, 0);
                let loss = expected_loss(&draws, &drawable, 0, 0.0);
                let told = format!("{n_variants} variants, seed {seed}: {asking}, {loss}");
                assert!(asking < ASKING_SHARE, "{told}");
                assert!(loss > LOSS_TO_SETTLE, "{told}");
                assert_eq!(is_settled(asking, loss), settles, "{told}");
            }
        }
    }
}
