//! What the simulator finds of every cell: `prior.json`, computed once from a calibration.
//!
//! Simulating takes too long for the start of a job, so a job reads what was found. A place is what cells that are
//! simulated alike have in common. It names the variants that are much slower than another one, and by how much. How
//! much is hopeless is a setting of the site's, and may change without a new simulation. How all the others compare
//! stands beside it, in [`ratios`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cost::{Costs, Layout};
use super::place::Place;
use super::ratios::{self, CollectiveRatios, Ratios, RatiosFile};
use super::rivals::{differs, replaces};
use crate::algorithm::simulate::Machine;
use crate::catalogue::{self, Own, Variant};
use crate::collective::Collective;
use crate::library::Library;
use crate::space::{Cell, Space};
use crate::variant::Family;

/// The version of the layouts of `prior.json` and `ratios.json`.
pub const SCHEMA: u32 = 1;
/// The name of the file in the folder of its library.
pub const FILE: &str = "prior.json";

/// What the simulator finds so many times as slow as another variant is hopeless.
pub const HOPELESS_SIMULATED: f64 = 2.0;
/// Less than this is not worth a line: no setting calls it hopeless.
const SLOWER_LEAST: f64 = HOPELESS_SIMULATED;

/// What was found for one library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct Simulated {
    pub schema: u32,
    pub library: String,
    places: Vec<Slow>,
    /// Of `ratios.json`; none where that is missing, as beside what an earlier version found.
    #[serde(skip)]
    ratios: Vec<CollectiveRatios>,
}

/// The slow variants of one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
struct Slow {
    collective: Collective,
    place: Place,
    /// By name: how many times as long as another variant, at the least of both sizes.
    slower: BTreeMap<String, f64>,
}

/// How the variants of one place compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    collective: Collective,
    place: Place,
    slower: BTreeMap<String, f64>,
    /// By place in the catalogue.
    hundredths: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimulatedError {
    #[error("read the simulated prior: {0}")]
    Json(String),
    #[error(
        "use the simulated prior: its layout has version {0}, this colltune reads version {SCHEMA}"
    )]
    Schema(u32),
    #[error("use the simulated prior: it is of {found}, not of {wanted}")]
    Library { found: String, wanted: String },
}

/// What is to be simulated for a library, in parts that know nothing of each other: the cells of one
/// collective on one shape, which share simulations.
pub struct Work<'a> {
    library: Library,
    machine: &'a Machine,
    parts: Vec<Vec<Cell>>,
}

impl<'a> Work<'a> {
    /// Every variant whose cost is known in every cell of a space, on the least ranks of the cell and at both
    /// ends of its sizes. The parts that take longest come first.
    pub fn new(space: &Space, library: Library, machine: &'a Machine) -> Work<'a> {
        let mut parts = BTreeMap::<_, Vec<Cell>>::new();
        let mut seen = HashSet::new();
        for (cell, _) in space.cells() {
            let place = Place::of(&cell);
            if place.n_ranks() > 1 && seen.insert((cell.collective, place)) {
                let shape = (Reverse(place.n_ranks()), place.ppn, cell.collective);
                parts.entry(shape).or_default().push(cell);
            }
        }
        Work {
            library,
            machine,
            parts: parts.into_values().collect(),
        }
    }

    pub fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// How the variants compare in the cells of one part.
    pub fn part(&self, part: usize) -> Vec<Compared> {
        let cells = &self.parts[part];
        let collective = cells[0].collective;
        let mut clock = Clock {
            variants: catalogue::variants(self.library, collective),
            costs: Costs::new(self.library, *self.machine),
        };
        let of_cell = |cell: &Cell| {
            let times = clock.times(cell);
            Compared {
                collective,
                place: Place::of(cell),
                slower: clock.slower(&times),
                hundredths: ratios::hundredths(&times),
            }
        };
        cells.iter().map(of_cell).collect()
    }
}

impl Simulated {
    /// What was found, from all parts of the work for a library.
    pub fn new(library: Library, parts: impl IntoIterator<Item = Vec<Compared>>) -> Simulated {
        let mut ratios: BTreeMap<Collective, CollectiveRatios> = BTreeMap::new();
        let mut places = Vec::new();
        for one in parts.into_iter().flatten() {
            let Compared {
                collective,
                place,
                slower,
                hundredths,
            } = one;
            let of_collective = ratios.entry(collective);
            of_collective
                .or_insert_with(|| CollectiveRatios::new(library, collective))
                .add(place, hundredths);
            if !slower.is_empty() {
                places.push(Slow {
                    collective,
                    place,
                    slower,
                });
            }
        }
        Simulated {
            schema: SCHEMA,
            library: library.to_string(),
            places,
            ratios: ratios.into_values().collect(),
        }
    }

    /// Reads `prior.json`.
    ///
    /// Errors: `Json` for text that is not this layout, `Schema` and `Library` for another version
    /// or library.
    pub fn from_json(text: &str, library: Library) -> Result<Simulated, SimulatedError> {
        let read: Simulated =
            serde_json::from_str(text).map_err(|error| SimulatedError::Json(error.to_string()))?;
        check(read.schema, &read.library, &library.to_string())?;
        Ok(read)
    }

    /// Adds what `ratios.json` says.
    ///
    /// Errors: as those of [`Simulated::from_json`]; then nothing is added.
    pub fn add_ratios(&mut self, text: &str) -> Result<(), SimulatedError> {
        let read: RatiosFile =
            serde_json::from_str(text).map_err(|error| SimulatedError::Json(error.to_string()))?;
        check(read.schema, &read.library, &self.library)?;
        self.ratios = read.collectives;
        Ok(())
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a prior holds only numbers, names and lists")
    }

    /// What `ratios.json` holds.
    pub fn ratios_to_json(&self) -> String {
        let file = RatiosFile {
            schema: SCHEMA,
            library: self.library.clone(),
            collectives: self.ratios.clone(),
        };
        serde_json::to_string(&file).expect("ratios are only numbers, names and lists")
    }

    /// How many variants are more than `factor` times as slow as another one, over all places.
    pub fn hopeless(&self, factor: f64) -> usize {
        let all = self.places.iter().flat_map(|place| place.slower.values());
        all.filter(|&&slower| slower > factor).count()
    }

    /// The slow variants of one collective, by place.
    pub fn of(&self, collective: Collective) -> HashMap<Place, &BTreeMap<String, f64>> {
        let of = self
            .places
            .iter()
            .filter(|slow| slow.collective == collective);
        of.map(|slow| (slow.place, &slow.slower)).collect()
    }

    /// How these variants, which are one collective's, compare in each place.
    pub fn ratios(&self, variants: &[Variant]) -> Ratios<'_> {
        let first = variants.first();
        let of_collective = first.and_then(|variant| {
            let mut all = self.ratios.iter();
            all.find(|of| of.collective == variant.collective)
        });
        of_collective.map_or_else(Ratios::default, |of| of.of(variants))
    }
}

fn check(schema: u32, found: &str, wanted: &str) -> Result<(), SimulatedError> {
    if schema != SCHEMA {
        return Err(SimulatedError::Schema(schema));
    }
    if found != wanted {
        return Err(SimulatedError::Library {
            found: found.to_owned(),
            wanted: wanted.to_owned(),
        });
    }
    Ok(())
}

/// The expected times of one collective's variants on one shape.
struct Clock {
    variants: Vec<Variant>,
    costs: Costs,
}

impl Clock {
    /// By place in the catalogue the times at both sizes; `None` where nothing is expected, and for what only does
    /// what another variant does.
    fn times(&mut self, cell: &Cell) -> Vec<Option<[f64; 2]>> {
        let Place {
            nodes,
            ppn,
            bytes: sizes,
        } = Place::of(cell);
        let layout = Layout {
            nodes: nodes as u32,
            ppn: ppn as u32,
        };
        let costs = &mut self.costs;
        let time = |variant: &Variant| {
            let schedule = variant.own.as_ref().and_then(Own::schedule);
            // The library's own choice is no rival: it is one of those that have a name.
            let is_one = variant.name.family != Family::Default;
            if !is_one || !schedule.is_none_or(|own| differs(own, cell)) {
                return None;
            }
            let [first, last] = sizes.map(|bytes| costs.of(variant, layout, bytes));
            Some([first?, last?])
        };
        self.variants.iter().map(time).collect()
    }

    /// By name how many times as long as another variant that can run instead, at the least of both sizes.
    fn slower(&self, times: &[Option<[f64; 2]>]) -> BTreeMap<String, f64> {
        let ratio = |place: usize, rival: usize| {
            let (own, rival) = (times[place]?, times[rival]?);
            Some((own[0] / rival[0]).min(own[1] / rival[1]))
        };
        let worst = |place: usize| {
            let rivals = (0..times.len())
                .filter(|&rival| replaces(&self.variants[rival], &self.variants[place]));
            rivals
                .filter_map(|rival| ratio(place, rival))
                .fold(0.0, f64::max)
        };
        (0..times.len())
            .map(|place| (self.variants[place].name.to_string(), worst(place)))
            .filter(|(_, worst)| *worst >= SLOWER_LEAST && worst.is_finite())
            // Three digits are more than such a prediction has.
            .map(|(name, worst)| (name, (worst * 10.0).round() / 10.0))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    const LIBRARY: &str = "openmpi-4.1.4";

    fn of(text: &str) -> Simulated {
        let settings = Settings::from_toml(text).unwrap();
        let library = LIBRARY.parse().unwrap();
        let work = Work::new(&settings.space, library, &Machine::TYPICAL);
        Simulated::new(library, (0..work.n_parts()).map(|part| work.part(part)))
    }

    /// Few cells: the others of the usual space take seconds.
    fn few() -> String {
        Collective::ALL
            .into_iter()
            .map(|collective| {
                format!(
                    "[[space]]\ncollective = \"{collective}\"\nbytes = [0, 16, 1048576, \"inf\"]\n\
                     nodes = [1, 8, \"inf\"]\nppn = [1, 4, \"inf\"]\n"
                )
            })
            .collect()
    }

    #[test]
    fn short_messages_on_many_ranks_leave_rings_and_chains_behind() {
        let found = of(&few());
        let places = found.of(Collective::Allreduce);
        let at = |bytes: u64| {
            let here =
                |place: &&Place| place.bytes[0] == bytes && (place.nodes, place.ppn) == (8, 4);
            places.keys().find(here).map(|place| places[place])
        };
        let short = at(1).expect("something is slow there");
        assert!(short["p2p:ring"] > 4.0, "{short:?}");
        assert!(!short.contains_key("p2p:recursive_doubling"));
        assert!(at(1 << 20).is_none_or(|long| !long.contains_key("p2p:ring")));
        let lone = |place: &Place| place.nodes == 1 && place.ppn == 1;
        assert!(!places.keys().any(lone), "one rank has nothing to do");
        assert!(found.hopeless(3.0) > found.hopeless(10.0));
    }

    #[test]
    fn what_is_not_slow_enough_to_be_named_has_a_ratio_beside_the_fastest() {
        let found = of(&few());
        let settings = Settings::from_toml(&few()).unwrap();
        let library = LIBRARY.parse().unwrap();
        let variants = catalogue::variants(library, Collective::Allreduce);
        let ratios = found.ratios(&variants);
        let mut cells = settings.space.cells().map(|(cell, _)| cell);
        let cell = cells
            .find(|cell| {
                cell.collective == Collective::Allreduce
                    && (cell.bytes.lo, cell.nodes.lo, cell.ppn.lo) == (16, 8, 4)
            })
            .expect("the space has it");
        let at = ratios.at(&cell).expect("it was simulated");
        assert_eq!(at.len(), variants.len());
        for (variant, ratio) in variants.iter().zip(&at) {
            let is_simulated = ![Family::Default, Family::Node].contains(&variant.name.family);
            assert!(ratio.is_none() || is_simulated, "{}", variant.name);
            assert!(ratio.is_none_or(|ratio| ratio >= 1.0), "{}", variant.name);
        }
        let named = &found.of(Collective::Allreduce)[&Place::of(&cell)];
        let between = variants.iter().zip(&at).filter(|(variant, ratio)| {
            let is_named = named.contains_key(&variant.name.to_string());
            !is_named && ratio.is_some_and(|ratio| ratio > 1.0)
        });
        assert!(between.count() > 0, "{at:?}");
        assert!(found.ratios(&[]).at(&cell).is_none());
    }

    #[test]
    fn what_was_found_reads_back_and_other_layouts_are_errors() {
        let found = of(&few());
        let text = found.to_json();
        let library = LIBRARY.parse().unwrap();
        let mut read = Simulated::from_json(&text, library).unwrap();
        assert_ne!(read, found);
        let ratios = found.ratios_to_json();
        assert_eq!(read.add_ratios(&ratios), Ok(()));
        assert_eq!(read, found);
        let foreign = ratios.replace("4.1.4", "4.1.5");
        let half = &ratios[..ratios.len() / 2];
        for wrong in [half, foreign.as_str(), text.as_str()] {
            assert!(read.add_ratios(wrong).is_err());
        }
        assert_eq!(read, found, "what cannot be read changes nothing");
        let newer = text.replace("\"schema\":1", "\"schema\":2");
        assert_eq!(
            Simulated::from_json(&newer, library),
            Err(SimulatedError::Schema(2))
        );
        assert!(Simulated::from_json(&text, "mpich-4.0.2".parse().unwrap()).is_err());
        assert!(Simulated::from_json("{}", library).is_err());
    }
}
