//! The whole way from records to a published choice.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::catalogue::{self, Facts, Variant};
use colltune_core::classify::{CellsBySize, Layout};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::model::{CellModel, Model, Share, Source};
use colltune_core::settings::Settings;
use colltune_core::space::{Cell, Range};
use rayon::prelude::*;
use thiserror::Error;

use crate::call::{self, Call, Row};
use crate::compare::{Comparison, DOUBT, Effect, SAMPLES_LEAST, compare};
use crate::regress::{Place, Point, RegressError, Regression, densify};
use crate::statistics::{CellStatistics, Interval, VariantStatistics};
use crate::weigh::{Exploring, TEMPERATURE, Weighed, weigh};

/// A variant is not drawn again where it is surely slower than the fastest by this factor.
const HOPELESS: f64 = 10.0;
/// Samples per variant below which a cell is explored widely.
const SAMPLES_TO_NARROW: u64 = 4;
/// The temperature of wide exploration, see [`Exploring::Widely`].
const WIDE_TEMPERATURE: f64 = 0.3;
/// A rival that may be faster than the best by this share, at [`OPEN_DOUBT`] standard errors, keeps
/// the race open until it has this many samples.
const WORTH_ASKING: f64 = 0.05;
const OPEN_DOUBT: f64 = 2.0;
const SAMPLES_TO_CLOSE: u64 = 128;
/// Predictions further than this many octaves from any measurement are not used.
const REACH: f64 = 2.5;
/// A predicted gain replaces the default from here on, next to a cell where it was measured.
const PREDICTED_GAIN: f64 = 0.05;

/// What a training needs to know beside the records.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub settings: &'a Settings,
    pub library: Library,
    pub machine: &'a str,
    /// The number that the result will carry.
    pub generation: u64,
    pub seed: u64,
}

/// What a training found.
pub struct Learned {
    pub model: Model,
    /// Of the cells that were measured or predicted; about the others nothing is known.
    pub statistics: Vec<CellStatistics>,
    pub regressions: Vec<(Collective, String, Regression)>,
    pub calls: u64,
}

#[derive(Clone, Debug, Error)]
pub enum LearnError {
    #[error("learn {collective} {variant}: {error}")]
    Regress {
        collective: Collective,
        variant: String,
        error: RegressError,
    },
}

/// Learns from all records of one library.
///
/// Errors: `Regress` for what XGBoost reports.
/// Source: Hunold & Steiner, PMBS 2022, section III; robust comparison and proof are ours.
pub fn learn(rows: Vec<Row>, context: Context) -> Result<Learned, LearnError> {
    let initial = Model::initial(context.settings, context.library, context.machine);
    let catalogue =
        Collective::ALL.map(|collective| catalogue::variants(context.library, collective));
    let calls = call::calls(rows);
    let by_cell = sort_into_cells(&calls, &initial);
    let measured: BTreeMap<usize, Comparison> = {
        let compared = by_cell.par_iter().map(|(&cell, calls)| {
            let collective = initial.cells[cell].cell.collective;
            let n_variants = catalogue[collective.index()].len();
            (cell, compare(calls, n_variants))
        });
        compared.collect()
    };
    drop(by_cell);
    let mut learned = Learned {
        model: Model {
            generation: context.generation,
            ..initial
        },
        statistics: Vec::new(),
        regressions: Vec::new(),
        calls: calls.len() as u64,
    };
    for collective in Collective::ALL {
        let variants = &catalogue[collective.index()];
        let survey = Survey::new(collective, variants, &learned.model, &measured);
        let regressions = survey.regressions(context.seed)?;
        let predictions = survey.predict(&regressions)?;
        for (&(cell, place), predicted) in survey.places.iter().zip(predictions) {
            let entry = &mut learned.model.cells[cell];
            let known = Known {
                variants,
                predicted: &predicted,
                explore_total: context.settings.explore_total,
            };
            let statistics = match measured.get(&cell) {
                Some(comparison) => known.measure(entry, comparison),
                None if survey.reaches(place) => known.predict(entry, |variant| {
                    survey.is_convincing(variant, place, &predicted)
                }),
                None => continue,
            };
            learned.statistics.push(statistics);
        }
        let named = variants.iter().zip(regressions);
        learned
            .regressions
            .extend(named.filter_map(|(variant, regression)| {
                Some((collective, variant.name.to_string(), regression?))
            }));
    }
    learned.model.cells = merged(learned.model.cells);
    Ok(learned)
}

/// Joins neighbouring cells about which nothing is known, along nodes and ranks per node.
///
/// A communicator has one layout, so it meets the same ranges of sizes as before; every job reads
/// the result, and most cells of a tuning space are far from anything that was measured.
fn merged(cells: Vec<CellModel>) -> Vec<CellModel> {
    let by_ppn = joined(cells, |cell| &mut cell.ppn);
    let mut cells = joined(by_ppn, |cell| &mut cell.nodes);
    cells.sort_by_key(|entry| entry.cell);
    cells
}

fn joined(cells: Vec<CellModel>, axis: fn(&mut Cell) -> &mut Range) -> Vec<CellModel> {
    let mut lines: BTreeMap<Cell, Vec<(Range, CellModel)>> = BTreeMap::new();
    for entry in cells {
        let mut line = entry.cell;
        let range = std::mem::replace(axis(&mut line), Range { lo: 0, hi: None });
        lines.entry(line).or_default().push((range, entry));
    }
    let mut result: Vec<CellModel> = Vec::new();
    for mut line in lines.into_values() {
        line.sort_by_key(|(range, _)| *range);
        let mut last: Option<(Range, CellModel)> = None;
        for (range, entry) in line {
            match &mut last {
                Some((before, kept))
                    if before.hi == Some(range.lo)
                        && (kept.source, entry.source) == (Source::Prior, Source::Prior)
                        && kept.variants == entry.variants =>
                {
                    before.hi = range.hi;
                    *axis(&mut kept.cell) = *before;
                }
                _ => result.extend(last.replace((range, entry)).map(|(_, entry)| entry)),
            }
        }
        result.extend(last.map(|(_, entry)| entry));
    }
    result
}

fn sort_into_cells(calls: &[Call], model: &Model) -> BTreeMap<usize, Vec<Call>> {
    let mut cells_of: BTreeMap<(Collective, u32, u32), CellsBySize> = BTreeMap::new();
    let mut by_cell: BTreeMap<usize, Vec<Call>> = BTreeMap::new();
    for call in calls {
        let layout = Layout {
            n_ranks: call.n_ranks,
            nodes: call.nodes,
            ppn: call.ppn,
        };
        let cells = cells_of
            .entry((call.collective, call.nodes, call.ppn))
            .or_insert_with(|| CellsBySize::new(model, call.collective, layout));
        if let Some(place) = cells.position(call.bytes) {
            by_cell
                .entry(cells.cells()[place] as usize)
                .or_default()
                .push(*call);
        }
    }
    by_cell
}

/// What the measured cells of one collective say about the others.
struct Survey<'a> {
    collective: Collective,
    variants: &'a [Variant],
    /// Every cell with the place that stands for it.
    places: Vec<(usize, Place)>,
    /// Training points by variant.
    points: Vec<Vec<Point>>,
    measured: Vec<Place>,
    /// Where which variant beat the default beyond doubt.
    proofs: Vec<(Place, usize)>,
    /// A layout that a cell's place stands for.
    facts: BTreeMap<usize, Facts>,
}

impl<'a> Survey<'a> {
    fn new(
        collective: Collective,
        variants: &'a [Variant],
        model: &Model,
        measured: &BTreeMap<usize, Comparison>,
    ) -> Survey<'a> {
        let own = || {
            measured
                .iter()
                .filter(|(cell, _)| model.cells[**cell].cell.collective == collective)
        };
        let mut seen = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        let mut points = vec![Vec::new(); variants.len()];
        let mut places = BTreeSet::new();
        for point in own().flat_map(|(_, comparison)| &comparison.points) {
            let (nodes, ppn) = (u64::from(point.nodes), u64::from(point.ppn));
            for (axis, value) in [point.bytes, nodes, ppn].into_iter().enumerate() {
                seen[axis].insert(value);
            }
            places.insert((point.bytes, nodes, ppn));
            points[usize::from(point.variant)].push(Point {
                place: Place::new(point.bytes, nodes, ppn),
                log_time: point.log_time,
                weight: point.samples as f64 / (point.samples as f64 + 10.0),
            });
        }
        let stand_for = |cell: &Cell| {
            [
                typical(cell.bytes, &seen[0], middle(cell.bytes)),
                typical(cell.nodes, &seen[1], top(cell.nodes)),
                typical(cell.ppn, &seen[2], top(cell.ppn)),
            ]
        };
        let cells = model
            .cells
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.cell.collective == collective);
        let standing: Vec<(usize, [u64; 3])> = cells
            .map(|(index, entry)| (index, stand_for(&entry.cell)))
            .collect();
        let place = |[bytes, nodes, ppn]: [u64; 3]| Place::new(bytes, nodes, ppn);
        let proofs = own()
            .flat_map(|(cell, comparison)| {
                let at = place(stand_for(&model.cells[*cell].cell));
                (1..variants.len())
                    .filter(|&variant| comparison.beats(variant, 0))
                    .map(move |variant| (at, variant))
            })
            .collect();
        let facts = |[bytes, nodes, ppn]: [u64; 3]| {
            let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let n_ranks = count(nodes.saturating_mul(ppn));
            Facts::usual(collective, bytes, n_ranks, count(nodes))
        };
        let mut wanted = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        if !places.is_empty() {
            for (_, at) in &standing {
                let at = place(*at);
                for (axis, value) in [at.bytes, at.nodes, at.ppn].into_iter().enumerate() {
                    wanted[axis].insert(value.to_bits());
                }
            }
        }
        Survey {
            collective,
            variants,
            points: points
                .into_iter()
                .map(|points| densify(&points, &wanted))
                .collect(),
            facts: standing
                .iter()
                .map(|(index, at)| (*index, facts(*at)))
                .collect(),
            places: standing
                .into_iter()
                .map(|(index, at)| (index, place(at)))
                .collect(),
            measured: places
                .into_iter()
                .map(|(bytes, nodes, ppn)| Place::new(bytes, nodes, ppn))
                .collect(),
            proofs,
        }
    }

    /// One regression per variant that has data.
    fn regressions(&self, seed: u64) -> Result<Vec<Option<Regression>>, LearnError> {
        let fitted = self.points.par_iter().enumerate().map(|(variant, points)| {
            (!points.is_empty())
                .then(|| Regression::fit(points, seed))
                .transpose()
                .map_err(|error| self.error(variant, error))
        });
        fitted.collect()
    }

    /// For every place the log times by variant.
    fn predict(
        &self,
        regressions: &[Option<Regression>],
    ) -> Result<Vec<Vec<Option<f64>>>, LearnError> {
        let places: Vec<Place> = self.places.iter().map(|(_, place)| *place).collect();
        let mut times = vec![vec![None; regressions.len()]; places.len()];
        for (variant, regression) in regressions.iter().enumerate() {
            let Some(regression) = regression else {
                continue;
            };
            let predicted = regression
                .predict(&places)
                .map_err(|error| self.error(variant, error))?;
            for (times, predicted) in times.iter_mut().zip(predicted) {
                times[variant] = Some(predicted);
            }
        }
        Ok(times)
    }

    fn error(&self, variant: usize, error: RegressError) -> LearnError {
        LearnError::Regress {
            collective: self.collective,
            variant: self.variants[variant].name.to_string(),
            error,
        }
    }

    /// Whether a place lies between measurements or next to one.
    fn reaches(&self, place: Place) -> bool {
        let between = |axis: fn(&Place) -> f64, slack: f64| {
            let values = || self.measured.iter().map(axis);
            let (least, most) = (
                values().fold(f64::INFINITY, f64::min),
                values().fold(f64::NEG_INFINITY, f64::max),
            );
            (least - slack..=most + slack).contains(&axis(&place))
        };
        between(|place| place.bytes, 1.0)
            && between(|place| place.nodes, 0.0)
            && between(|place| place.ppn, 0.0)
            && self
                .measured
                .iter()
                .any(|other| other.distance(place) <= REACH)
    }

    /// Whether a predicted time may replace the default: it is clearly faster, and it beat the
    /// default in a measured cell nearby.
    fn is_convincing(&self, variant: usize, place: Place, predicted: &[Option<f64>]) -> bool {
        let gain = predicted[0]
            .zip(predicted[variant])
            .map_or(0.0, |(default, own)| default - own);
        let cell = self
            .places
            .iter()
            .find(|(_, other)| *other == place)
            .map(|(cell, _)| cell);
        let applies = cell.is_some_and(|cell| self.variants[variant].applies(&self.facts[cell]));
        let near =
            |(at, proven): &(Place, usize)| *proven == variant && at.distance(place) <= REACH;
        gain > PREDICTED_GAIN && applies && self.proofs.iter().any(near)
    }
}

/// The measured value inside a range that is in the middle of those there.
fn typical(range: Range, seen: &BTreeSet<u64>, otherwise: u64) -> u64 {
    let inside: Vec<u64> = seen
        .iter()
        .copied()
        .filter(|value| range.contains(*value))
        .collect();
    inside.get(inside.len() / 2).copied().unwrap_or(otherwise)
}

/// The geometric middle of a range of message sizes.
fn middle(range: Range) -> u64 {
    match range.hi {
        Some(hi) => ((range.lo.max(1) as f64) * (hi.max(2) as f64)).sqrt() as u64,
        None => range.lo.saturating_mul(2).max(1),
    }
}

/// The last value of a range of counts: with the usual doublings a power of two.
fn top(range: Range) -> u64 {
    range.hi.map_or(range.lo, |hi| hi.saturating_sub(1)).max(1)
}

/// What is known about the variants of one cell.
struct Known<'a> {
    variants: &'a [Variant],
    predicted: &'a [Option<f64>],
    explore_total: f64,
}

impl Known<'_> {
    /// Places in the catalogue of the variants that a cell may draw, `default` first.
    fn drawable(&self, entry: &CellModel) -> Vec<usize> {
        let names: BTreeSet<&str> = entry
            .variants
            .iter()
            .map(|share| share.name.as_str())
            .collect();
        (0..self.variants.len())
            .filter(|&place| {
                place == 0 || names.contains(self.variants[place].name.to_string().as_str())
            })
            .collect()
    }

    fn measure(&self, entry: &mut CellModel, comparison: &Comparison) -> CellStatistics {
        let drawable = self.drawable(entry);
        let effects = &comparison.effects;
        let pessimistic = |place: usize| {
            effects[place].map_or(f64::INFINITY, |effect| {
                effect.log_time + effect.error.slower
            })
        };
        let best = drawable
            .iter()
            .copied()
            .filter(|&place| comparison.beats(place, 0))
            .min_by(|&a, &b| pessimistic(a).total_cmp(&pessimistic(b)))
            .unwrap_or(0);
        let fastest = effects
            .iter()
            .flatten()
            .map(|effect| effect.log_time)
            .fold(f64::INFINITY, f64::min);
        let weighed: Vec<Weighed> = drawable
            .iter()
            .map(|&place| match effects[place] {
                Some(effect) => Weighed {
                    log_time: Some(effect.log_time - (OPEN_DOUBT * effect.error.faster).min(0.5)),
                    hopeless: effect.samples >= 3
                        && effect.log_time - DOUBT * effect.error.faster > fastest + HOPELESS.ln(),
                },
                None => Weighed {
                    log_time: self.beside_the_default(place, effects),
                    hopeless: false,
                },
            })
            .collect();
        let enough = comparison.samples() >= SAMPLES_TO_NARROW * drawable.len() as u64;
        let comparable = effects[0].is_some_and(|effect| effect.samples >= SAMPLES_LEAST);
        let exploring = if !(enough && comparable) {
            self.widely(WIDE_TEMPERATURE)
        } else if drawable
            .iter()
            .any(|&place| place != best && is_open(effects[place], effects[best]))
        {
            self.widely(TEMPERATURE)
        } else {
            Exploring::AtMost(self.explore_total)
        };
        let gain = effects[0]
            .zip(effects[best])
            .map_or(1.0, |(default, best)| {
                (default.log_time - best.log_time).exp()
            });
        let interval = |place: usize| match effects[place] {
            Some(Effect {
                log_time, error, ..
            }) => {
                // 95 %; the error also has to cover how far the cell's typical call is known.
                let half = |error: f64| (1.96 * error).min(20.0);
                let (lo, hi) = (log_time - half(error.faster), log_time + half(error.slower));
                let [median, lo, hi] = [log_time, lo, hi].map(|log| Some(round_ns(log.exp())));
                Interval { median, lo, hi }
            }
            None => predicted_time(self.beside_the_default(place, effects)),
        };
        let samples = |place: usize| effects[place].map_or(0, |effect| effect.samples);
        self.conclude(
            entry,
            Source::Measured,
            best,
            gain,
            (&drawable, &weighed, exploring),
            samples,
            interval,
        )
    }

    fn predict(
        &self,
        entry: &mut CellModel,
        is_convincing: impl Fn(usize) -> bool,
    ) -> CellStatistics {
        let drawable = self.drawable(entry);
        let time = |place: usize| self.predicted[place].unwrap_or(f64::INFINITY);
        let best = drawable
            .iter()
            .copied()
            .filter(|&place| place > 0 && is_convincing(place))
            .min_by(|&a, &b| time(a).total_cmp(&time(b)))
            .unwrap_or(0);
        let weighed: Vec<Weighed> = drawable
            .iter()
            .map(|&place| Weighed {
                log_time: self.predicted[place],
                hopeless: false,
            })
            .collect();
        let gain = if best == 0 {
            1.0
        } else {
            (time(0) - time(best)).exp()
        };
        let interval = |place: usize| predicted_time(self.predicted[place]);
        self.conclude(
            entry,
            Source::Predicted,
            best,
            gain,
            (&drawable, &weighed, self.widely(WIDE_TEMPERATURE)),
            |_| 0,
            interval,
        )
    }

    fn widely(&self, temperature: f64) -> Exploring {
        // A site that forbids exploring means it.
        if self.explore_total > 0.0 {
            Exploring::Widely(temperature)
        } else {
            Exploring::AtMost(0.0)
        }
    }

    /// The predicted time of a variant without samples, on the scale of the cell's own default.
    fn beside_the_default(&self, place: usize, effects: &[Option<Effect>]) -> Option<f64> {
        Some(self.predicted[place]? - self.predicted[0]? + effects[0]?.log_time)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call for each source of knowledge, and no other caller"
    )]
    fn conclude(
        &self,
        entry: &mut CellModel,
        source: Source,
        best: usize,
        gain: f64,
        (drawable, weighed, exploring): (&[usize], &[Weighed], Exploring),
        samples: impl Fn(usize) -> u64,
        interval: impl Fn(usize) -> Interval,
    ) -> CellStatistics {
        let best_drawn = drawable
            .iter()
            .position(|&place| place == best)
            .unwrap_or(0);
        let shares = weigh(weighed, best_drawn, exploring, self.explore_total);
        let share_of = |place: usize| {
            drawable
                .iter()
                .position(|&other| other == place)
                .map_or(0.0, |index| shares[index])
        };
        let name = |place: usize| self.variants[place].name.to_string();
        entry.source = source;
        entry.best = name(best);
        entry.variants = drawable
            .iter()
            .zip(&shares)
            .filter(|(_, share)| **share > 0.0)
            .map(|(&place, &probability)| Share {
                name: name(place),
                probability,
            })
            .collect();
        let listed = (0..self.variants.len())
            .filter(|place| drawable.contains(place) || samples(*place) > 0);
        let variants = listed
            .map(|place| VariantStatistics {
                name: name(place),
                samples: samples(place),
                probability: share_of(place),
                time_ns: interval(place),
            })
            .collect();
        CellStatistics {
            cell: entry.cell,
            source,
            best: name(best),
            gain: (gain * 1e4).round() / 1e4,
            variants,
        }
    }
}

/// Whether more samples may show that `rival` is clearly faster than the best so far.
fn is_open(rival: Option<Effect>, best: Option<Effect>) -> bool {
    let (Some(rival), Some(best)) = (rival, best) else {
        return false; // what has no samples by now does not apply here
    };
    let error = best.error.slower.hypot(rival.error.faster);
    let may_gain = best.log_time - rival.log_time + OPEN_DOUBT * error;
    rival.samples < SAMPLES_TO_CLOSE && may_gain > WORTH_ASKING
}

fn predicted_time(log_time: Option<f64>) -> Interval {
    Interval {
        median: log_time.map(|log| round_ns(log.exp())),
        lo: None,
        hi: None,
    }
}

fn round_ns(time: f64) -> f64 {
    (time * 10.0).round() / 10.0
}
