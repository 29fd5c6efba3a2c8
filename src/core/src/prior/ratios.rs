//! How long every variant is expected to take beside the fastest one: `ratios.json`, beside `prior.json`.
//!
//! `prior.json` names what may be hopeless, and nothing else. A training wants to know how the others compare, too. Names
//! stand once for a collective and ratios are whole numbers, so that every variant in every place takes no more room than
//! the slow ones by their names.

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
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // A call that takes no time at all, as on one rank, is no measure of others.
        assert_eq!(hundredths(&[Some([0.0, 0.0]), Some([1.0, 1.0])]), [0, 0]);
    }
}
