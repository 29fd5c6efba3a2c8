//! How long every variant is expected to take beside the fastest one: `ratios.json`, beside `prior.json`.
//!
//! `prior.json` names what may be hopeless, and nothing else. A training wants to know how the others compare, too, and so
//! do jobs before the first one, which draw by it. Names stand once for a collective and ratios are whole numbers, so that
//! every variant in every place takes no more room than the slow ones by their names.

use std::collections::HashMap;

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

use super::place::Place;
use crate::catalogue::{self, Variant};
use crate::collective::Collective;
use crate::library::Library;
use crate::space::Cell;

/// The name of the file in the folder of its library.
pub const FILE: &str = "ratios.json";

/// Weights are so many parts of the fastest one's: with more, cells that hardly differ would have lists of their own.
const WEIGHT_PARTS: f64 = 8.0;
/// What a variant is drawn at the least, by what it would be if all were drawn alike.
const WEIGHT_LEAST: f64 = 1.0 / 3.0;

/// `ratios.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RatiosFile {
    pub schema: u32,
    pub library: String,
    pub collectives: Vec<CollectiveRatios>,
}

/// What was found of one collective's variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct CollectiveRatios {
    pub(super) collective: Collective,
    /// Of the variants, in the order of their ratios.
    names: Vec<String>,
    places: Vec<PlaceRatios>,
}

/// The ratios of one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
struct PlaceRatios {
    place: Place,
    /// How many times as long as the fastest, in hundredths; 0 where nothing is expected.
    hundredths: Vec<u32>,
}

impl CollectiveRatios {
    pub(super) fn new(library: Library, collective: Collective) -> CollectiveRatios {
        let variants = catalogue::variants(library, collective);
        CollectiveRatios {
            collective,
            names: variants.iter().map(|one| one.name.to_string()).collect(),
            places: Vec::new(),
        }
    }

    /// Adds what [`hundredths`] says of a place, unless that is nothing.
    pub(super) fn add(&mut self, place: Place, hundredths: Vec<u32>) {
        if hundredths.iter().any(|&ratio| ratio > 0) {
            self.places.push(PlaceRatios { place, hundredths });
        }
    }

    /// The ratios of these variants; another version of colltune may have known others.
    pub(super) fn of(&self, variants: &[Variant]) -> Ratios<'_> {
        let names = self.names.iter().map(String::as_str);
        let columns: HashMap<&str, usize> = names.zip(0..).collect();
        let column = |variant: &Variant| {
            let name = variant.name.to_string();
            columns.get(name.as_str()).copied()
        };
        let places = self.places.iter();
        Ratios {
            columns: variants.iter().map(column).collect(),
            places: places
                .map(|one| (one.place, one.hundredths.as_slice()))
                .collect(),
        }
    }
}

/// How many times as long as the fastest each variant takes, in hundredths, in the geometric mean over both sizes; 0 where
/// nothing is expected of it.
pub(super) fn hundredths(times: &[Option<[f64; 2]>]) -> Vec<u32> {
    let least = [0, 1].map(|end| {
        let known = times.iter().flatten().map(|time| time[end]);
        known.fold(f64::INFINITY, f64::min)
    });
    let ratio = |time: &Option<[f64; 2]>| {
        let [first, last] = (*time)?;
        let ratio = (first / least[0] * (last / least[1])).sqrt();
        ratio.is_finite().then_some(ratio)
    };
    let whole = |ratio: f64| (100.0 * ratio).round() as u32;
    let all = times.iter().map(ratio);
    all.map(|ratio| ratio.map_or(0, whole)).collect()
}

/// The ratios of one collective's variants.
#[derive(Clone, Debug, Default)]
pub struct Ratios<'a> {
    /// By variant, where its ratio stands in a place's list.
    columns: Vec<Option<usize>>,
    places: HashMap<Place, &'a [u32]>,
}

impl Ratios<'_> {
    /// How many times as long as the fastest each variant is expected to take in a cell, if anything is expected of it;
    /// `None` where nothing was simulated.
    pub fn at(&self, cell: &Cell) -> Option<Vec<Option<f64>>> {
        let hundredths = self.places.get(&Place::of(cell))?;
        let ratio = |column: &Option<usize>| {
            let ratio = *hundredths.get((*column)?)?;
            (ratio > 0).then_some(f64::from(ratio) / 100.0)
        };
        Some(self.columns.iter().map(ratio).collect())
    }

    /// How often some of the variants are to be drawn in a cell before anything was measured, beside each other: the
    /// longer one is expected to take the less, and what nothing is expected of as often as the middle of the others.
    ///
    /// Shape: `drawn` are places of variants; the weights are as many, 1 in the mean and a third at the least.
    pub fn weights(&self, cell: &Cell, drawn: &[usize]) -> Vec<f64> {
        let alike = || vec![1.0; drawn.len()];
        let Some(ratios) = self.at(cell) else {
            return alike();
        };
        let parts = |ratio: f64| (WEIGHT_PARTS / ratio).round().max(1.0);
        let weights: Vec<Option<f64>> = drawn
            .iter()
            .map(|&place| ratios[place].map(parts))
            .collect();
        let mut known: Vec<f64> = weights.iter().flatten().copied().collect();
        known.sort_by(f64::total_cmp);
        let Some(&middle) = known.get(known.len() / 2) else {
            return alike();
        };
        let weights = weights.into_iter().map(|one| one.unwrap_or(middle));
        with_a_least(&weights.collect::<Vec<_>>())
    }
}

/// Scales weights to a mean of 1, and lifts to [`WEIGHT_LEAST`] what would be less, at the cost of the others.
fn with_a_least(weights: &[f64]) -> Vec<f64> {
    let mut ascending = weights.to_vec();
    ascending.sort_by(f64::total_cmp);
    let (mut total, mut left) = (weights.len() as f64, weights.iter().sum::<f64>());
    // Each that is lifted leaves less for the others, so the next may have to be lifted, too; never all.
    for weight in ascending {
        if weight * total / left >= WEIGHT_LEAST {
            break;
        }
        total -= WEIGHT_LEAST;
        left -= weight;
    }
    let scaled = |weight: &f64| (weight * total / left).max(WEIGHT_LEAST);
    weights.iter().map(scaled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Range;

    #[test]
    fn a_ratio_is_over_the_fastest_at_both_sizes_and_what_has_no_time_has_none() {
        let times = [
            None,
            Some([100.0, 4000.0]),
            Some([200.0, 2000.0]),
            Some([100.0, 2000.0]),
            Some([800.0, 4000.0]),
            Some([f64::INFINITY, 1e9]),
        ];
        // The root of 1 times 2, of 2 times 1, of 1 times 1 and of 8 times 2.
        assert_eq!(hundredths(&times), [0, 141, 141, 100, 400, 0]);
        assert_eq!(hundredths(&[None, None]), [0, 0]);
        // What takes no time at all, be it a call on one rank, is nobody's measure.
        assert_eq!(hundredths(&[Some([0.0, 0.0]), Some([1.0, 1.0])]), [0, 0]);
    }

    fn are_near(found: &[f64], expected: &[f64]) -> bool {
        let mut both = found.iter().zip(expected);
        found.len() == expected.len() && both.all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn who_takes_twice_as_long_is_drawn_half_as_often_and_nobody_less_than_a_third_of_alike() {
        let range = |lo, hi| Range { lo, hi };
        let cell = Cell {
            collective: Collective::Allreduce,
            bytes: range(16, Some(64)),
            nodes: range(2, Some(3)),
            ppn: range(4, None),
        };
        // Of the first nothing is expected, and the last is in no list: another version knows it.
        let hundredths = [0, 100, 133, 200, 1600, 100, 200];
        let ratios = Ratios {
            columns: (0..8).map(Some).collect(),
            places: HashMap::from([(Place::of(&cell), hundredths.as_slice())]),
        };
        // In eighths of the fastest one's weight: 8, 4 and 8, of which the mean is 20/3.
        let found = ratios.weights(&cell, &[1, 3, 5]);
        assert!(are_near(&found, &[1.2, 0.6, 1.2]), "{found:?}");
        // 6, 8, 6, 4 and 1, of which the mean is 5: the last is lifted from 1/5, and 24 parts share 5 - 1/3.
        let found = ratios.weights(&cell, &[0, 1, 2, 3, 4]);
        let part = (5.0 - 1.0 / 3.0) / 24.0;
        let expected = [6.0, 8.0, 6.0, 4.0].map(|parts| parts * part);
        assert!(are_near(&found[..4], &expected), "{found:?}");
        assert!(are_near(&found[4..], &[1.0 / 3.0]), "{found:?}");
        // Where nothing is known of any, or of the place, all are alike.
        assert_eq!(ratios.weights(&cell, &[0, 7]), [1.0, 1.0]);
        let nodes = range(1, Some(2));
        let elsewhere = Cell { nodes, ..cell };
        assert_eq!(ratios.weights(&elsewhere, &[1, 4]), [1.0, 1.0]);
        assert!(ratios.weights(&cell, &[]).is_empty());
    }

    #[test]
    fn weights_have_a_mean_of_1_and_none_is_below_the_least_however_far_they_lie_apart() {
        for n in 1..40 {
            for slow in 0..n {
                let one = |place: usize| if place < slow { 1.0 } else { 8.0 };
                let weights = with_a_least(&(0..n).map(one).collect::<Vec<_>>());
                let sum: f64 = weights.iter().sum();
                assert!((sum - n as f64).abs() < 1e-9, "{n} {slow}: {weights:?}");
                let is_enough = |weight: &f64| *weight >= WEIGHT_LEAST;
                assert!(weights.iter().all(is_enough), "{n} {slow}: {weights:?}");
            }
        }
    }
}
