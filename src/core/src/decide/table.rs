//! What a job needs of a model: its cells, with variants by their places in the collective's list.
//!
//! Rank 0 makes it of the model that it read and hands it to all ranks, which keep it as long as the job runs. Cells of
//! a model differ in few ranges, numbers and lists of variants, so each of these stands in it once: of a model without
//! training for 8 ranks on a node a tenth of the bytes, and no text.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use bincode::{Decode, Encode};

use crate::account::default_ticks;
use crate::catalogue;
use crate::collective::Collective;
use crate::library::Library;
use crate::model::{CellModel, Model};
use crate::select::mix;
use crate::settings::LearnerKind;
use crate::space::{Cell, Range};

use super::DEFAULT;

/// The cells of a model, in its order.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct CellTable {
    pub machine: String,
    pub generation: u64,
    pub learner: LearnerKind,
    ranges: Vec<Range>,
    /// Probabilities and gains.
    numbers: Vec<f64>,
    /// Lists of variants with the places of their probabilities.
    lists: Vec<Vec<(u16, u32)>>,
    rows: Vec<Row>,
}

/// A cell, by places in the lists of its table.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
struct Row {
    collective: Collective,
    bytes: u32,
    nodes: u32,
    ppn: u32,
    best: u16,
    gain: u32,
    /// 0 where the model says nothing of it.
    measured_ranks: u32,
    list: u32,
}

/// Values, each once, and where they stand. All ranks wait while rank 0 looks for tens of thousands of them, so they
/// are found by hashes that are good enough as they are.
struct Once<T> {
    places: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    values: Vec<T>,
}

/// Keys that are hashes.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<T: PartialEq> Once<T> {
    fn new() -> Once<T> {
        Once {
            places: HashMap::default(),
            values: Vec::new(),
        }
    }

    /// The place of a value with this hash. Should another one have it, too, the value stands there twice.
    fn place(&mut self, hash: u64, value: T) -> u32 {
        let found = self.places.get(&hash);
        if let Some(&place) = found.filter(|place| self.values[**place as usize] == value) {
            return place;
        }
        let place = self.values.len() as u32;
        self.places.insert(hash, place);
        self.values.push(value);
        place
    }
}

impl Once<Range> {
    fn range(&mut self, range: Range) -> u32 {
        self.place(mix(range.lo, range.hi.unwrap_or(u64::MAX)), range)
    }
}

impl CellTable {
    /// The cells of a model of this library. Variants that it does not know are left out: the others keep their weights,
    /// which need not sum to 1, and where an unknown one was the best the library's own choice runs, which gains nothing.
    pub fn new(model: &Model, library: Library) -> CellTable {
        let names = Collective::ALL.map(|collective| names(library, collective));
        let (mut ranges, mut numbers, mut lists) = (Once::new(), Once::new(), Once::new());
        let mut row = |entry: &CellModel| {
            let Cell {
                collective,
                bytes,
                nodes,
                ppn,
            } = entry.cell;
            let names = &names[collective.index()];
            let mut number = |value: f64| numbers.place(mix(0, value.to_bits()), value);
            let mut list = Vec::with_capacity(entry.variants.len());
            let (mut next, mut hash) = (0, 0);
            for share in &entry.variants {
                if let Some(place) = find(names, &share.name, next) {
                    next = place + 1;
                    let number = number(share.probability);
                    hash = mix(hash, (place as u64) << 32 | u64::from(number));
                    list.push((place as u16, number));
                }
            }
            let best = find(names, &entry.best, 0);
            Row {
                collective,
                bytes: ranges.range(bytes),
                nodes: ranges.range(nodes),
                ppn: ranges.range(ppn),
                best: best.map_or(DEFAULT, |place| place as u16),
                gain: number(best.map_or(1.0, |_| entry.gain)),
                measured_ranks: entry.measured_ranks.unwrap_or(0),
                list: lists.place(hash, list),
            }
        };
        let rows = model.cells.iter().map(&mut row).collect();
        CellTable {
            machine: model.machine.clone(),
            generation: model.generation,
            learner: model.learner,
            ranges: ranges.values,
            numbers: numbers.values,
            lists: lists.values,
            rows,
        }
    }

    /// All cells; their places here are those in the model.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.rows.iter().map(|row| self.cell_of(row))
    }

    fn cell_of(&self, row: &Row) -> Cell {
        let range = |place: u32| self.ranges[place as usize];
        Cell {
            collective: row.collective,
            bytes: range(row.bytes),
            nodes: range(row.nodes),
            ppn: range(row.ppn),
        }
    }

    /// The cell in a place.
    pub fn cell(&self, place: u32) -> Cell {
        self.cell_of(&self.rows[place as usize])
    }

    /// What runs in the cell in a place when nothing is sampled, by what was learned.
    pub fn best(&self, place: u32) -> u16 {
        self.rows[place as usize].best
    }

    /// The default's time over that variant's, by the training; 1 where it was not measured.
    pub fn gain(&self, place: u32) -> f64 {
        self.numbers[self.rows[place as usize].gain as usize]
    }

    /// The most ranks on which that variant was measured; at the least the fewest that the cell has.
    pub fn measured_ranks(&self, place: u32) -> u64 {
        let told = self.rows[place as usize].measured_ranks;
        self.cell(place).measured_ranks(told)
    }

    /// The variants that sampled calls of the cell in a place draw, and their probabilities.
    pub fn shares(&self, place: u32) -> impl Iterator<Item = (u16, f64)> + '_ {
        let list = &self.lists[self.rows[place as usize].list as usize];
        let share = |&(variant, number): &(u16, u32)| (variant, self.numbers[number as usize]);
        list.iter().map(share)
    }

    /// Whether any cell runs something else than the library's own choice.
    pub fn chooses(&self) -> bool {
        self.rows.iter().any(|row| row.best != DEFAULT)
    }

    /// How many times as long as what runs in a cell the library's own choice takes there, at most and rounded up to
    /// between 1 and 1,000; `None` where it runs in all of them. Reckoned in whole numbers, as in the program's calls.
    pub fn dearest(&self) -> Option<u64> {
        const PARTS: u64 = 1 << 10;
        let chosen = self.rows.iter().filter(|row| row.best != DEFAULT);
        let times = chosen.map(|row| {
            let gain = self.numbers[row.gain as usize];
            default_ticks(PARTS, gain).div_ceil(PARTS).clamp(1, 1000)
        });
        times.max()
    }

    /// Whether what runs in any cell when nothing is sampled meets a condition.
    pub fn any_best(&self, mut is_met: impl FnMut(Collective, u16) -> bool) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|row| is_met(row.collective, row.best))
    }

    /// Whether any variant that sampled calls may draw meets a condition.
    pub fn any_drawn(&self, mut is_met: impl FnMut(Collective, u16) -> bool) -> bool {
        self.rows.iter().any(|row| {
            let mut list = self.lists[row.list as usize].iter();
            list.any(|(variant, _)| is_met(row.collective, *variant))
        })
    }

    /// Lets each cell run, when nothing is sampled, one of the variants that it draws: that in the place that `which`
    /// makes of their number.
    #[cfg(test)]
    pub(super) fn choose(&mut self, which: impl Fn(usize) -> usize) {
        for row in &mut self.rows {
            let list = &self.lists[row.list as usize];
            row.best = list[which(list.len())].0;
        }
    }
}

/// The names of a collective's variants.
fn names(library: Library, collective: Collective) -> Vec<String> {
    let variants = catalogue::variants(library, collective);
    let names = variants.iter().map(|variant| variant.name.to_string());
    names.collect()
}

/// The place of a name, which is most likely the next one, or soon behind it.
fn find(names: &[String], name: &str, next: usize) -> Option<usize> {
    let places = (next..names.len()).chain(0..next.min(names.len()));
    places.into_iter().find(|&place| names[place] == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Share;
    use crate::settings::Settings;
    use crate::variant::{self, Family};

    fn model() -> (Model, Library) {
        let library = "openmpi-4.1.4".parse().unwrap();
        let settings = Settings {
            families: Some(vec![Family::Native, Family::Node, Family::P2p]),
            ..Settings::default()
        };
        let mut model = Model::initial_within(&settings, library, "here", 4, 8);
        for (place, entry) in model.cells.iter_mut().enumerate() {
            let last = entry.variants.len() - 1;
            entry
                .best
                .clone_from(&entry.variants[place % (last + 1)].name);
            entry.gain = 1.0 + place as f64 / 7.0;
            entry.measured_ranks = (place % 3 > 0).then_some(place as u32);
            // No two probabilities are alike.
            entry.variants[0].probability += 1e-9 * place as f64;
        }
        (model, library)
    }

    #[test]
    fn a_table_says_of_every_cell_what_the_model_says_and_survives_being_handed_out() {
        let (mut model, library) = model();
        model.generation = 7;
        let table = CellTable::new(&model, library);
        let config = bincode::config::standard();
        let bytes = bincode::encode_to_vec(&table, config).unwrap();
        let (table, read): (CellTable, usize) = bincode::decode_from_slice(&bytes, config).unwrap();
        assert_eq!(read, bytes.len());
        assert_eq!((table.machine.as_str(), table.generation), ("here", 7));
        assert_eq!(table.cells().count(), model.cells.len());
        for (place, entry) in (0..).zip(&model.cells) {
            let variants = catalogue::variants(library, entry.cell.collective);
            let name = |variant: u16| variants[usize::from(variant)].name.to_string();
            assert_eq!(table.cell(place), entry.cell);
            assert_eq!(name(table.best(place)), entry.best);
            assert_eq!(table.gain(place), entry.gain);
            let least = entry.cell.nodes.lo * entry.cell.ppn.lo;
            let measured = entry
                .measured_ranks
                .map_or(least, |ranks| least.max(ranks.into()));
            assert_eq!(table.measured_ranks(place), measured);
            let shares = table.shares(place).map(|(variant, probability)| Share {
                name: name(variant),
                probability,
            });
            assert!(shares.eq(entry.variants.iter().cloned()), "{}", entry.cell);
        }
    }

    #[test]
    fn variants_that_nobody_knows_are_left_out_and_never_run() {
        let (mut model, library) = model();
        let entry = model.cells.iter_mut().zip(0..);
        let mut of_several = entry.filter(|(entry, _)| entry.variants.len() > 2);
        let (entry, place) = of_several.next().expect("a cell with several variants");
        entry.variants[1].name = "p2p:gone".to_owned();
        (entry.best, entry.gain) = ("p2p:gone".to_owned(), 2.0);
        let mut known = entry.variants.clone();
        known.remove(1);
        let collective = entry.cell.collective;
        let table = CellTable::new(&model, library);
        assert_eq!((table.best(place), table.gain(place)), (DEFAULT, 1.0));
        let names = names(library, collective);
        let shares = table.shares(place).map(|(variant, probability)| Share {
            name: names[usize::from(variant)].clone(),
            probability,
        });
        assert!(shares.eq(known));
        for entry in &mut model.cells {
            entry.best = variant::DEFAULT.to_owned();
        }
        assert!(table.chooses());
        assert!(!CellTable::new(&model, library).chooses());
    }

    #[test]
    fn a_model_without_training_is_handed_out_in_a_few_kilobytes() {
        let library = "openmpi-4.1.4".parse().unwrap();
        let model = Model::initial_within(&Settings::default(), library, "here", 1, 8);
        let config = bincode::config::standard();
        let whole = bincode::encode_to_vec(&model, config).unwrap().len();
        let table = CellTable::new(&model, library);
        let table = bincode::encode_to_vec(&table, config).unwrap().len();
        assert!(
            table < 12 << 10 && table * 8 < whole,
            "{table} of {whole} bytes"
        );
    }
}
