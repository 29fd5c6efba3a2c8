//! What the measured cells of a collective say about its other cells.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::catalogue::{Facts, Variant};
use colltune_core::collective::Collective;
use colltune_core::model::Model;
use colltune_core::space::{Cell, Range};
use rayon::prelude::*;

use super::error::LearnError;
use crate::baseline::compare::Comparison;
use crate::baseline::regress::{Place, Point, RegressError, Regression, densify};

/// Predictions further than this many octaves from any measurement are not used.
const REACH: f64 = 2.5;
/// A predicted gain replaces the default from here on, next to a cell where it was measured.
const PREDICTED_GAIN: f64 = 0.05;

/// What the measured cells of one collective say about the others.
pub(super) struct Survey<'a> {
    collective: Collective,
    variants: &'a [Variant],
    /// Every cell with the place that stands for it.
    pub(super) places: Vec<(usize, Place)>,
    /// Training points by variant.
    points: Vec<Vec<Point>>,
    measured: Vec<Place>,
    /// Where which variant beat the default beyond doubt.
    proofs: Vec<(Place, usize)>,
    /// A layout that a cell's place stands for.
    facts: BTreeMap<usize, Facts>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(
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
    pub(super) fn regressions(&self, seed: u64) -> Result<Vec<Option<Regression>>, LearnError> {
        let fitted = self.points.par_iter().enumerate().map(|(variant, points)| {
            (!points.is_empty())
                .then(|| Regression::fit(points, seed))
                .transpose()
                .map_err(|error| self.error(variant, error))
        });
        fitted.collect()
    }

    /// For every place the log times by variant.
    pub(super) fn predict(
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
    pub(super) fn reaches(&self, place: Place) -> bool {
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
    pub(super) fn is_convincing(
        &self,
        variant: usize,
        place: Place,
        predicted: &[Option<f64>],
    ) -> bool {
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
