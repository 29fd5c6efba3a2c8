//! A training as published: of each of a collective's variants one regression of its run time over message size, nodes
//! and ranks per node; of the predicted times each cell's probabilities, also of cells without data.
//!
//! What the paper leaves open is decided as simply as it can be. A probability is in inverse proportion to the predicted
//! time, then held within the settings' bounds. The regression is XGBoost with its own defaults and the gamma objective:
//! times are above 0 and differ by orders of magnitude between sizes. A variant that was timed in less than half of its
//! measured cells has too few rows for one: it is drawn as what takes the mean of the others, and is no choice. Nor is one
//! that applies to few of a cell's calls: of the others it says nothing.
//!
//! Source: Hunold & Steiner, OMPICollTune, PMBS 2022, section III.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use colltune_core::catalogue::{self, Variant};
use colltune_core::collective::Collective;
use colltune_core::model::{CellModel, Model, Share, Source};
use colltune_core::settings::LearnerKind;
use colltune_core::variant::DEFAULT;
use rayon::prelude::*;

use super::cells::{at, by_cell, merged, middle, stands_for};
use super::context::Context;
use super::control::Control;
use super::learned::{LearnError, Learned};
use crate::allocation::whole;
use crate::evidence::Evidence;
use crate::predict::{Place, Timed, XgBoost};
use crate::probabilities::{Bounds, bounded};
use crate::statistics::{CellStatistics, Contrast, Interval, VariantStatistics};

/// The share of its measured cells in which a variant has to be timed for a regression.
const COVERED: f64 = 0.5;
/// A variant with less than this share of the calls that the least probability gives it in a cell applies to few of them.
const APPLIES: f64 = 0.25;

/// What is read of the evidence, by cell of the space.
struct Database<'a> {
    initial: Model,
    catalogue: [Vec<Variant>; Collective::ALL.len()],
    measured: BTreeMap<usize, Vec<&'a Evidence>>,
    /// Time in each of them, and in all.
    times_ns: BTreeMap<usize, f64>,
    total_ns: f64,
    bounds: Bounds,
}

/// One collective's cells, and by variant what it is predicted to take in each; `None` for too few rows.
struct Predicted {
    cells: Vec<usize>,
    times_ns: BTreeMap<u16, Option<Vec<f64>>>,
}

/// What became of one cell.
struct Published {
    cell: usize,
    model: CellModel,
    statistics: CellStatistics,
    lowered_to: Option<f64>,
}

/// Learns from all evidence of one library, in whatever order it comes.
pub(super) fn learn(evidence: &[Evidence], context: &Context) -> Result<Learned, LearnError> {
    let xgboost = XgBoost::loaded().map_err(|why| LearnError::NoXgboost {
        who: "the learner \"ompicolltune\" needs",
        why,
    })?;
    let database = Database::new(evidence, context);
    let mut notes = Vec::new();
    let mut entries = database.initial.cells.clone();
    let mut statistics = Vec::new();
    let mut lowered: Option<(usize, f64)> = None;
    for collective in database.collectives() {
        let predicted = database.predict(xgboost, collective)?;
        notes.extend(database.note_of_few(collective, &predicted));
        let places = 0..predicted.cells.len();
        let all: Vec<_> = places
            .into_par_iter()
            .filter_map(|place| database.publish(&predicted, place))
            .collect();
        for one in all {
            if let Some(to) = one.lowered_to {
                let (n_cells, least) = lowered.unwrap_or((0, to));
                lowered = Some((n_cells + 1, least.min(to)));
            }
            entries[one.cell] = one.model;
            statistics.push(one.statistics);
        }
    }
    notes.extend(lowered.map(|lowered| database.note_of_bounds(lowered)));
    statistics.sort_by_key(|cell| cell.cell);
    let model = Model {
        generation: context.generation,
        learner: LearnerKind::OmpiCollTune,
        cells: merged(entries),
        ..database.initial.clone()
    };
    model.check(context.library)?;
    Ok(Learned {
        model,
        statistics,
        calls: evidence.iter().map(|row| row.calls).sum(),
        work: database.work(),
        control: Control::default(),
        nothing_to_gain: String::new(),
        notes,
    })
}

impl<'a> Database<'a> {
    fn new(evidence: &'a [Evidence], context: &Context) -> Database<'a> {
        let initial = Model::initial(context.settings, context.library, context.machine);
        let mut measured = by_cell(evidence, &initial);
        for rows in measured.values_mut() {
            rows.sort_unstable_by_key(|row| (row.run, row.shape, row.component, row.variant));
        }
        let time_ns = |rows: &[&Evidence]| match context.spent {
            Some(spent) => spent.ns(rows.iter().copied()),
            None => rows.iter().map(|row| row.spent_ns()).sum(),
        };
        let times_ns: BTreeMap<usize, f64> = measured
            .iter()
            .map(|(&cell, rows)| (cell, time_ns(rows)))
            .collect();
        Database {
            initial,
            catalogue: Collective::ALL
                .map(|collective| catalogue::variants(context.library, collective)),
            measured,
            total_ns: times_ns.values().sum(),
            times_ns,
            bounds: Bounds {
                min: context.settings.probability_min,
                max: context.settings.probability_max,
            },
        }
    }

    /// Those of which anything was measured.
    fn collectives(&self) -> BTreeSet<Collective> {
        let cells = self.measured.keys();
        cells.map(|&cell| self.cell(cell).cell.collective).collect()
    }

    fn cell(&self, cell: usize) -> &CellModel {
        &self.initial.cells[cell]
    }

    fn rows(&self, cell: usize) -> &[&'a Evidence] {
        self.measured.get(&cell).map_or(&[], Vec::as_slice)
    }

    fn name(&self, collective: Collective, variant: u16) -> String {
        let known = &self.catalogue[collective.index()][usize::from(variant)];
        known.name.to_string()
    }

    /// The variants of a cell, as generation 0 draws them.
    fn drawn(&self, cell: usize) -> Vec<u16> {
        let entry = self.cell(cell);
        let variants = &self.catalogue[entry.cell.collective.index()];
        let places: HashMap<String, u16> = variants
            .iter()
            .zip(0..)
            .map(|(variant, place)| (variant.name.to_string(), place))
            .collect();
        let names = entry.variants.iter();
        names
            .filter_map(|share| places.get(&share.name).copied())
            .collect()
    }

    fn predict(&self, xgboost: &XgBoost, collective: Collective) -> Result<Predicted, LearnError> {
        let cells: Vec<usize> = (0..self.initial.cells.len())
            .filter(|&cell| self.cell(cell).cell.collective == collective)
            .collect();
        let drawn: Vec<Vec<u16>> = cells.iter().map(|&cell| self.drawn(cell)).collect();
        let asked: Vec<Place> = cells
            .iter()
            .map(|&cell| match self.rows(cell) {
                [] => stands_for(&self.cell(cell).cell).0,
                rows => middle(rows),
            })
            .collect();
        let variants: BTreeSet<u16> = drawn.iter().flatten().copied().collect();
        let variants: Vec<u16> = variants.into_iter().collect();
        let predicted: Result<Vec<_>, LearnError> = variants
            .into_par_iter()
            .map(|variant| {
                let its_own = cells.iter().zip(&drawn);
                let its_own = its_own.filter(|(_, drawn)| drawn.contains(&variant));
                let its_own: Vec<&[&Evidence]> =
                    its_own.map(|(&cell, _)| self.rows(cell)).collect();
                let Some(timed) = timed(&its_own, variant, self.bounds.min) else {
                    return Ok((variant, None));
                };
                let times = xgboost.run_times(&timed, &asked);
                let times = times.map_err(|error| LearnError::Regression {
                    variant: format!("{collective}={}", self.name(collective, variant)),
                    why: error.to_string(),
                })?;
                Ok((variant, Some(times)))
            })
            .collect();
        Ok(Predicted {
            cells,
            times_ns: predicted?.into_iter().collect(),
        })
    }

    /// `None` for a cell in which nothing is known of any variant.
    fn publish(&self, predicted: &Predicted, place: usize) -> Option<Published> {
        let cell = predicted.cells[place];
        let entry = self.cell(cell);
        let drawn = self.drawn(cell);
        let times = drawn.iter().map(|variant| {
            let known = predicted.times_ns.get(variant)?.as_ref()?;
            Some(known[place])
        });
        let times: Vec<Option<f64>> = times.collect();
        let known: Vec<f64> = times.iter().flatten().map(|time| 1.0 / time).collect();
        if known.is_empty() {
            return None;
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let weights: Vec<f64> = times
            .iter()
            .map(|time| time.map_or(mean, |time| 1.0 / time))
            .collect();
        let found = bounded(&weights, self.bounds);
        let probabilities = whole(&found.probabilities);
        // Of several that are as probable, as at the most, the one that takes the least.
        let rows = self.rows(cell);
        let is_measured = !rows.is_empty();
        let applies = |one: usize| !is_measured || applies(rows, drawn[one], self.bounds.min);
        let best = (0..drawn.len())
            .filter(|&one| times[one].is_some() && applies(one))
            .max_by(|&a, &b| {
                let by_probability = found.probabilities[a].total_cmp(&found.probabilities[b]);
                let by_time = weights[a].total_cmp(&weights[b]);
                by_probability.then(by_time).then(b.cmp(&a))
            })?;
        let names: Vec<String> = drawn
            .iter()
            .map(|&variant| self.name(entry.cell.collective, variant))
            .collect();
        let of_default = drawn.iter().position(|variant| *variant == 0);
        let of_default = of_default.and_then(|place| times[place]);
        let gain = |one: usize| Some(to_4_digits(of_default? / times[one]?));
        let source = match is_measured {
            true => Source::Measured,
            false => Source::Predicted,
        };
        let model = CellModel {
            source,
            best: names[best].clone(),
            gain: gain(best).unwrap_or(1.0),
            native: None,
            measured_ranks: rows.iter().map(|row| row.shape.n_ranks).max(),
            variants: shares(&names, &probabilities),
            ..entry.clone()
        };
        let calls = |variant: u16| -> u64 {
            let own = rows.iter().filter(|row| row.variant == variant);
            own.map(|row| row.calls).sum()
        };
        let listed = (0..drawn.len()).map(|one| VariantStatistics {
            name: names[one].clone(),
            samples: calls(drawn[one]),
            probability: probabilities[one],
            time_ns: Interval {
                median: times[one].map(|time| (10.0 * time).round() / 10.0),
                ..Interval::default()
            },
            contrast: gain(one).map(|gain| Contrast {
                gain,
                lo: gain,
                hi: gain,
            }),
            replaces_default: one == best && names[one] != DEFAULT,
            reason: reason(one == best, times[one].is_some(), applies(one)).to_owned(),
        });
        let statistics = CellStatistics {
            source,
            best: model.best.clone(),
            gain: model.gain,
            gain_lo: model.gain,
            gain_hi: model.gain,
            time_share: match self.total_ns > 0.0 {
                true => self.times_ns.get(&cell).unwrap_or(&0.0) / self.total_ns,
                false => 0.0,
            },
            waiting: waiting(rows),
            variants: listed.collect(),
            ..CellStatistics::unknown(entry.cell)
        };
        Some(Published {
            cell,
            model,
            statistics,
            lowered_to: found.lowered_to,
        })
    }

    /// What a person should know of variants without a regression. Those that no measured cell draws have had no turn.
    fn note_of_few(&self, collective: Collective, predicted: &Predicted) -> Option<String> {
        let measured = predicted.cells.iter().copied();
        let measured = measured.filter(|&cell| !self.rows(cell).is_empty());
        let had_turns: BTreeSet<u16> = measured.flat_map(|cell| self.drawn(cell)).collect();
        let is_known = |variant: &&u16| predicted.times_ns[*variant].is_some();
        let few: Vec<String> = had_turns
            .iter()
            .filter(|variant| !is_known(variant))
            .map(|&variant| self.name(collective, variant))
            .collect();
        let first = few.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let more = if few.len() > 3 { ", ..." } else { "" };
        (!few.is_empty()).then(|| {
            format!(
                "{collective}: too few timed calls for a regression of {} of {} variants ({first}{more}); they are drawn as \
                 what takes the mean of the others, and are no choice",
                few.len(),
                had_turns.len()
            )
        })
    }

    fn note_of_bounds(&self, (n_cells, to): (usize, f64)) -> String {
        let asked = self.bounds.min;
        format!(
            "probability_min = {asked} cannot hold in {n_cells} cells, which have more than {:.0} variants; there it is \
             lowered for all alike, to {to:.4} at the least",
            (1.0 / asked).floor()
        )
    }

    /// Share of the recorded time that was work.
    fn work(&self) -> f64 {
        if self.total_ns <= 0.0 {
            return 1.0;
        }
        let of = |(cell, time): (&usize, &f64)| (1.0 - waiting(self.rows(*cell))) * time;
        self.times_ns.iter().map(of).sum::<f64>() / self.total_ns
    }
}

/// The mean times of a variant by place, from the rows of its cells; `None` where too few of the measured ones have any.
fn timed(cells: &[&[&Evidence]], variant: u16, least: f64) -> Option<Vec<Timed>> {
    let measured = cells.iter().filter(|rows| !rows.is_empty());
    let (n_measured, mut n_timed) = (measured.clone().count(), 0);
    let mut sums: BTreeMap<(u64, u32, u32), (f64, u64)> = BTreeMap::new();
    for rows in measured {
        let own = rows
            .iter()
            .filter(|row| row.variant == variant && row.calls > 0);
        n_timed += usize::from(applies(rows, variant, least));
        for row in own {
            let shape = row.shape;
            let sum = sums
                .entry((shape.message_bytes, shape.nodes, shape.ppn))
                .or_default();
            *sum = (sum.0 + row.spent_ns(), sum.1 + row.calls);
        }
    }
    let is_enough = n_timed > 0 && n_timed as f64 >= COVERED * n_measured as f64;
    let timed = sums
        .into_iter()
        .map(|((bytes, nodes, ppn), (ns, calls))| Timed {
            place: at(bytes as f64, f64::from(nodes), f64::from(ppn)),
            time_ns: (ns / calls as f64).max(1.0),
            calls,
        });
    is_enough.then(|| timed.collect())
}

/// Whether a variant ran about as many of a cell's calls as it was drawn for at the least.
fn applies(rows: &[&Evidence], variant: u16, least: f64) -> bool {
    let calls = |own: bool| -> u64 {
        let some = rows.iter().filter(|row| !own || row.variant == variant);
        some.map(|row| row.calls).sum()
    };
    let own = calls(true);
    own > 0 && own as f64 >= APPLIES * least * calls(false) as f64
}

fn shares(names: &[String], probabilities: &[f64]) -> Vec<Share> {
    let both = names.iter().zip(probabilities);
    both.map(|(name, &probability)| Share {
        name: name.clone(),
        probability,
    })
    .collect()
}

fn reason(is_best: bool, is_known: bool, applies: bool) -> &'static str {
    match (is_best, is_known, applies) {
        (true, ..) => "the most probable",
        (false, true, true) => "",
        (false, true, false) => "it ran few of the cell's calls",
        (false, false, _) => "too few timed calls for a regression",
    }
}

/// The share of a cell's time that is waiting for late ranks.
fn waiting(rows: &[&Evidence]) -> f64 {
    let sum = |of: fn(&Evidence) -> f64| rows.iter().map(|row| of(row)).sum::<f64>();
    let spent = sum(Evidence::spent_ns);
    let work = sum(|row| row.level_ns * row.work * row.calls as f64);
    match spent > 0.0 {
        true => (1.0 - work / spent).clamp(0.0, 1.0),
        false => 0.0,
    }
}

fn to_4_digits(gain: f64) -> f64 {
    (gain * 1e4).round().max(1.0) / 1e4
}
