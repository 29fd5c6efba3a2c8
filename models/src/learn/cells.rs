//! Evidence sorted into the cells of the tuning space, with what may be drawn there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use colltune_core::catalogue::{self, Facts, Variant};
use colltune_core::classify::{CellsBySize, Layout};
use colltune_core::collective::Collective;
use colltune_core::model::{CellModel, Model, Source};
use colltune_core::prior::place;
use colltune_core::prior::ratios::Ratios;
use colltune_core::prior::simulated::Simulated;
use colltune_core::settings::{Reproducible, Settings};
use colltune_core::space::{Cell, Range};

use super::context::{Context, Veto};
use crate::belief::{Asked, Belief, Measured};
use crate::evidence::Evidence;
use crate::predict::Place;
use crate::watching::{self, Watched};

/// Predictions further than this many octaves from any measurement are not used.
const REACH: f64 = 2.5;
/// A variant that was drawn for so many calls, as is to be expected, and has no sample does not apply to the cell's
/// calls. It is lost for good then: of those that do apply, fewer than one in a hundred are, as reviews within a job
/// leave what has no sample some six tenths of its share (e^-5).
const DRAWN_WITHOUT_SAMPLE: f64 = 8.0;
/// A run with samples of so many variants in a cell drew among them.
const VARIANTS_DRAWN: usize = 3;
/// Beyond this the prior is not asked at all: what it disfavours is still drawn a little.
const NO_PRIOR: f64 = 1e9;

/// All cells of a training.
pub struct Cells<'a> {
    pub initial: Model,
    pub catalogue: [Vec<Variant>; Collective::ALL.len()],
    /// The places in it, by name.
    places: [HashMap<String, u16>; Collective::ALL.len()],
    pub measured: Vec<Measured<'a>>,
    /// By measured cell.
    pub watched: Vec<Watched>,
    /// By measured cell the variants that are drawn, those that only the prior speaks against, and the choice before.
    pub drawable: Vec<BTreeSet<u16>>,
    pub disfavoured: Vec<BTreeSet<u16>>,
    /// By measured cell what does not apply to its calls, and of what is drawn that without a sample of which this is
    /// open: what is new, or had too few calls for its turn. Expectation alone says nothing of it.
    pub silent: Vec<BTreeSet<u16>>,
    pub untried: Vec<BTreeSet<u16>>,
    chosen: Vec<Option<u16>>,
    pub asked: Vec<Asked>,
    /// The places in the model of the cells that are asked about.
    pub asked_cells: Vec<usize>,
}

impl<'a> Cells<'a> {
    pub fn new(evidence: &'a [Evidence], context: &Context) -> Cells<'a> {
        let initial = Model::initial(context.settings, context.library, context.machine);
        let catalogue =
            Collective::ALL.map(|collective| catalogue::variants(context.library, collective));
        let places = catalogue.each_ref().map(|variants| {
            let names = variants.iter().map(|variant| variant.name.to_string());
            names.zip(0..).collect()
        });
        let by_cell = by_cell(evidence, &initial);
        let mut cells = Cells {
            catalogue,
            places,
            measured: Vec::new(),
            watched: Vec::new(),
            drawable: Vec::new(),
            disfavoured: Vec::new(),
            silent: Vec::new(),
            untried: Vec::new(),
            chosen: Vec::new(),
            asked: Vec::new(),
            asked_cells: Vec::new(),
            initial,
        };
        let open = Settings {
            hopeless_factor: Some(NO_PRIOR),
            ..context.settings.clone()
        };
        let open = if by_cell.is_empty() {
            cells.initial.clone()
        } else {
            Model::initial(&open, context.library, context.machine)
        };
        let mut by_cell = by_cell;
        for rows in by_cell.values_mut() {
            rows.sort_unstable_by_key(|row| (row.run, row.shape, row.component, row.variant));
        }
        let simulations = Simulations::new(context, &cells.catalogue);
        let draw = drawing_runs(by_cell.values().map(Vec::as_slice), context.settings);
        for (index, rows) in by_cell {
            cells.add(
                index,
                rows,
                &open.cells[index],
                &draw,
                context,
                &simulations,
            );
        }
        cells.ask(&simulations);
        cells
    }

    /// `draw` are the runs that drew.
    fn add(
        &mut self,
        index: usize,
        rows: Vec<&'a Evidence>,
        open: &CellModel,
        draw: &BTreeSet<u32>,
        context: &Context,
        simulations: &Simulations,
    ) {
        let entry = &self.initial.cells[index];
        let collective = entry.cell.collective;
        let variants = &self.catalogue[collective.index()];
        let places = &self.places[collective.index()];
        let shares = |entry: &CellModel| -> BTreeMap<u16, f64> {
            let known = entry.variants.iter();
            known
                .filter_map(|share| Some((*places.get(&share.name)?, share.probability)))
                .collect()
        };
        let named = |entry: &CellModel| -> BTreeSet<u16> {
            shares(entry)
                .into_keys()
                .filter(|&place| place != 0)
                .collect()
        };
        let (mut drawable, all) = (named(entry), named(open));
        let mut disfavoured: BTreeSet<u16> = all.difference(&drawable).copied().collect();
        let sampled: BTreeSet<u16> = rows.iter().map(|row| row.variant).collect();
        let refuted = refuted(context.vetoes, &entry.cell, places);
        let before = context
            .previous
            .and_then(|model| previous(model, &entry.cell));
        let (first_shares, last_shares) = (shares(entry), before.map(shares));
        // What jobs drew before the first training is unknown: a calibration behind them may have changed it.
        let share_before = |variant: u16| {
            last_shares
                .as_ref()
                .and_then(|shares| shares.get(&variant).copied())
        };
        let drawn_since = drawn_calls(&rows, draw, context.runs_before) as f64;
        let is_silent = |variant: u16| {
            // What was published with 0 was silent before.
            let is_over = |share: f64| share == 0.0 || share * drawn_since >= DRAWN_WITHOUT_SAMPLE;
            !sampled.contains(&variant)
                && !refuted.contains(&variant)
                && share_before(variant).is_some_and(is_over)
        };
        // Generations change shares and may each see too few calls, so over all of them the first draws' shares count.
        let drawn = drawn_calls(&rows, draw, 0) as f64;
        let is_untried = |variant: u16| {
            let expected = drawn * first_shares.get(&variant).copied().unwrap_or(0.0);
            let is_new = share_before(variant).is_none() || refuted.contains(&variant);
            !sampled.contains(&variant) && (is_new || expected < DRAWN_WITHOUT_SAMPLE)
        };
        let silent: BTreeSet<u16> = drawable
            .iter()
            .copied()
            .filter(|&variant| is_silent(variant))
            .collect();
        drawable.retain(|variant| !silent.contains(variant));
        let untried = drawable
            .iter()
            .copied()
            .filter(|&variant| is_untried(variant))
            .collect();
        disfavoured.retain(|&variant| !is_silent(variant));
        self.silent.push(silent);
        self.untried.push(untried);
        let chosen = before.and_then(|found| places.get(&found.best).copied());
        let mut known: BTreeSet<u16> = drawable.union(&disfavoured).copied().collect();
        known.extend(
            sampled
                .into_iter()
                .filter(|variant| usize::from(*variant) < variants.len()),
        );
        known.remove(&0);
        let simulated = simulations.at(&entry.cell, variants);
        let at = middle(&rows);
        let place = |variant: &u16| {
            let simulated = simulated[usize::from(*variant)];
            (*variant, Place { simulated, ..at })
        };
        let watched = watching::watch(&rows);
        self.measured.push(Measured {
            cell: index,
            collective,
            weights: watched.weights.clone(),
            variants: known.iter().map(place).collect(),
            rows,
        });
        self.watched.push(watched);
        self.drawable.push(drawable);
        self.disfavoured.push(disfavoured);
        self.chosen.push(chosen.filter(|place| *place != 0));
    }

    /// By measured cell and arm what may stand in for the default.
    pub fn allowed(&self) -> Vec<Vec<bool>> {
        let of_cell = |(index, cell): (usize, &Measured)| {
            let may = |(variant, _): &(u16, Place)| {
                self.drawable[index].contains(variant) || self.disfavoured[index].contains(variant)
            };
            cell.variants.iter().map(may).collect()
        };
        self.measured.iter().enumerate().map(of_cell).collect()
    }

    /// The places of a belief's arms that are in a set of variants, the default counted as 0.
    pub fn places(&self, set: &BTreeSet<u16>, belief: &Belief) -> Vec<usize> {
        (1..=belief.arms.len())
            .filter(|&place| set.contains(&belief.arms[place - 1].variant))
            .collect()
    }

    /// How many runs, from one on, compare a variant with the default in a measured cell.
    pub fn runs_compared_from(&self, index: usize, first: u32) -> u64 {
        let rows = self.measured[index].rows.iter();
        let compares = |row: &&&Evidence| row.variant != 0 && row.run >= first && row.calls > 0;
        let runs: BTreeSet<u32> = rows.filter(compares).map(|row| row.run).collect();
        runs.len() as u64
    }

    pub fn before(&self) -> Vec<Option<u16>> {
        self.chosen.clone()
    }

    /// Lists the cells without evidence that lie near measured ones of their collective.
    fn ask(&mut self, simulations: &Simulations) {
        let mut near: BTreeMap<Collective, Vec<Place>> = BTreeMap::new();
        for cell in &self.measured {
            near.entry(cell.collective)
                .or_default()
                .extend(cell.variants.first().map(|(_, place)| *place));
        }
        let taken: BTreeSet<usize> = self.measured.iter().map(|cell| cell.cell).collect();
        for (index, entry) in self.initial.cells.iter().enumerate() {
            let Some(places) = near
                .get(&entry.cell.collective)
                .filter(|_| !taken.contains(&index))
            else {
                continue;
            };
            let (at, [bytes, nodes, ppn]) = stands_for(&entry.cell);
            let distance = |other: &Place| {
                (at.bytes - other.bytes).abs()
                    + (at.nodes - other.nodes).abs()
                    + (at.ppn - other.ppn).abs()
            };
            if !places.iter().any(|other| distance(other) <= REACH) {
                continue;
            }
            let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let facts = Facts::usual(
                entry.cell.collective,
                bytes,
                count(nodes.saturating_mul(ppn)),
                count(nodes),
            );
            let variants = &self.catalogue[entry.cell.collective.index()];
            let simulated = simulations.at(&entry.cell, variants);
            let places = &self.places[entry.cell.collective.index()];
            let asked = entry.variants.iter().filter_map(|share| {
                let place = *places.get(&share.name).filter(|place| **place != 0)?;
                let simulated = simulated[usize::from(place)];
                let asked = (place, Place { simulated, ..at });
                variants[usize::from(place)]
                    .applies(&facts)
                    .then_some(asked)
            });
            let mut asked: Vec<(u16, Place)> = asked.collect();
            asked.sort_by_key(|(variant, _)| *variant);
            self.asked.push((entry.cell.collective, asked));
            self.asked_cells.push(index);
        }
    }
}

/// What the simulator says of the library's variants, by collective; made once for all cells.
struct Simulations<'c> {
    of_collectives: Vec<CollectiveSimulation<'c>>,
}

struct CollectiveSimulation<'c> {
    ratios: Ratios<'c>,
    /// An earlier version kept only what it found to be slow.
    slower: HashMap<place::Place, &'c BTreeMap<String, f64>>,
}

impl<'c> Simulations<'c> {
    fn new(context: &Context<'c>, catalogue: &[Vec<Variant>]) -> Simulations<'c> {
        let found = context.settings.simulated.get(&context.library);
        let of = |found: &'c Simulated| {
            let pairs = Collective::ALL.into_iter().zip(catalogue);
            let of = pairs.map(|(collective, variants)| CollectiveSimulation {
                ratios: found.ratios(variants),
                slower: found.of(collective),
            });
            of.collect()
        };
        Simulations {
            of_collectives: found.map_or_else(Vec::new, of),
        }
    }

    /// Of each variant of a cell, as [`Place`] has it.
    fn at(&self, cell: &Cell, variants: &[Variant]) -> Vec<f64> {
        let Some(found) = self.of_collectives.get(cell.collective.index()) else {
            return vec![0.0; variants.len()];
        };
        let ratios = found.ratios.at(cell).unwrap_or_else(|| {
            let slower = found.slower.get(&place::Place::of(cell));
            let ratio = |variant: &Variant| slower?.get(&variant.name.to_string()).copied();
            variants.iter().map(ratio).collect()
        });
        let logs = ratios.into_iter().map(|ratio| ratio.map_or(0.0, f64::ln));
        logs.collect()
    }
}

/// The runs that drew among variants, by what they sampled in any one cell. A job that records runs the default alone,
/// one that exploits what was chosen beside it, and neither gives another variant its turn. Where results are to be
/// reproducible within a run, that draws once in each cell.
fn drawing_runs<'r, 'e: 'r>(
    cells: impl Iterator<Item = &'r [&'e Evidence]>,
    settings: &Settings,
) -> BTreeSet<u32> {
    let once = settings.reproducible == Reproducible::Run;
    let draws = |run: &&[&Evidence]| {
        let variants: BTreeSet<u16> = run.iter().map(|row| row.variant).collect();
        variants.len() >= VARIANTS_DRAWN || once && variants.iter().any(|&variant| variant != 0)
    };
    let runs = cells.flat_map(|rows| rows.chunk_by(|a, b| a.run == b.run).filter(draws));
    runs.map(|run| run[0].run).collect()
}

/// Sampled calls of the runs, from one on, that drew.
fn drawn_calls(rows: &[&Evidence], draw: &BTreeSet<u32>, first: u32) -> u64 {
    let drawn = rows
        .iter()
        .filter(|row| row.run >= first && draw.contains(&row.run));
    drawn.map(|row| row.calls).sum()
}

/// The variants that a whole program refuted in a cell, to be tried anew.
fn refuted(vetoes: &[Veto], cell: &Cell, places: &HashMap<String, u16>) -> BTreeSet<u16> {
    // The space may have been cut otherwise since.
    let vetoes = vetoes.iter().filter(|veto| veto.cell.overlaps(cell));
    let place = |veto: &Veto| places.get(&veto.variant).copied();
    vetoes.filter_map(place).collect()
}

/// What is in force where a cell begins; its space may have been cut otherwise.
fn previous<'m>(model: &'m Model, cell: &Cell) -> Option<&'m CellModel> {
    let holds = |entry: &&CellModel| {
        entry
            .cell
            .contains(cell.collective, cell.bytes.lo, cell.nodes.lo, cell.ppn.lo)
    };
    model.cells.iter().find(holds)
}

pub(super) fn by_cell<'e>(
    evidence: &'e [Evidence],
    model: &Model,
) -> BTreeMap<usize, Vec<&'e Evidence>> {
    let mut sizes: BTreeMap<(Collective, u32, u32), CellsBySize> = BTreeMap::new();
    let mut by_cell: BTreeMap<usize, Vec<&Evidence>> = BTreeMap::new();
    for row in evidence {
        let shape = row.shape;
        let layout = Layout {
            n_ranks: shape.n_ranks,
            nodes: shape.nodes,
            ppn: shape.ppn,
        };
        let cells = sizes
            .entry((shape.collective, shape.nodes, shape.ppn))
            .or_insert_with(|| CellsBySize::new(model, shape.collective, layout));
        if let Some(place) = cells.position(shape.message_bytes) {
            by_cell
                .entry(cells.cells()[place] as usize)
                .or_default()
                .push(row);
        }
    }
    by_cell
}

pub(super) fn at(bytes: f64, nodes: f64, ppn: f64) -> Place {
    Place {
        bytes: (bytes + 1.0).log2(),
        nodes: nodes.max(1.0).log2(),
        ppn: ppn.max(1.0).log2(),
        simulated: 0.0,
    }
}

/// The mean place of a cell's calls.
pub(super) fn middle(rows: &[&Evidence]) -> Place {
    let mut sum = [0.0; 4];
    for row in rows {
        let (shape, calls) = (row.shape, row.calls as f64);
        let place = at(
            shape.message_bytes as f64,
            f64::from(shape.nodes),
            f64::from(shape.ppn),
        );
        for (sum, value) in sum
            .iter_mut()
            .zip([place.bytes, place.nodes, place.ppn, 1.0])
        {
            *sum += calls * value;
        }
    }
    let [bytes, nodes, ppn, calls] = sum;
    Place {
        bytes: bytes / calls,
        nodes: nodes / calls,
        ppn: ppn / calls,
        simulated: 0.0,
    }
}

/// A call that stands for a cell without any: the geometric middle of its sizes, the most of its nodes and ranks.
pub(super) fn stands_for(cell: &Cell) -> (Place, [u64; 3]) {
    let bytes = match cell.bytes.hi {
        Some(hi) => ((cell.bytes.lo.max(1) as f64) * (hi.max(2) as f64)).sqrt() as u64,
        None => cell.bytes.lo.saturating_mul(2).max(1),
    };
    let top = |range: Range| range.hi.map_or(range.lo, |hi| hi.saturating_sub(1)).max(1);
    let (nodes, ppn) = (top(cell.nodes), top(cell.ppn));
    (
        at(bytes as f64, nodes as f64, ppn as f64),
        [bytes, nodes, ppn],
    )
}

/// Joins neighbouring cells about which nothing is known, or the same is predicted, along nodes and ranks per node.
///
/// A communicator has one layout, so it meets the same ranges of sizes as before; every job reads the result, and
/// most cells of a tuning space are far from anything that was measured.
pub(crate) fn merged(cells: Vec<CellModel>) -> Vec<CellModel> {
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
                        && kept.source != Source::Measured
                        && (kept.source, &kept.best, kept.gain, &kept.variants)
                            == (entry.source, &entry.best, entry.gain, &entry.variants) =>
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Moments, Shape};
    use colltune_core::algorithm::simulate::Machine;
    use colltune_core::library::{Library, Product};
    use colltune_core::model::Share;
    use colltune_core::prior::simulated::Work;

    const LIBRARY: Library = Library {
        product: Product::OpenMpi,
        version: (4, 1, 4),
    };
    const SHAPE: Shape = Shape {
        collective: Collective::Allreduce,
        message_bytes: 64,
        nodes: 2,
        ppn: 4,
        n_ranks: 8,
    };

    /// Settings with what a calibration found, and with what an earlier version would have kept of that.
    fn calibrated() -> [Settings; 2] {
        let text = "[[space]]\ncollective = \"allreduce\"\nbytes = [0, 16, 1024, \"inf\"]\n\
             nodes = [1, 2, 3, \"inf\"]\nppn = [1, 4, 5, \"inf\"]\n";
        let mut settings = Settings::from_toml(text).unwrap();
        let blocks = &mut settings.space.blocks;
        blocks.retain(|block| block.collective == Collective::Allreduce);
        let work = Work::new(&settings.space, LIBRARY, &Machine::TYPICAL);
        let found = Simulated::new(LIBRARY, (0..work.n_parts()).map(|part| work.part(part)));
        let earlier = Simulated::from_json(&found.to_json(), LIBRARY).unwrap();
        [found, earlier].map(|simulated| Settings {
            simulated: BTreeMap::from([(LIBRARY, simulated)]),
            ..settings.clone()
        })
    }

    fn first_training(settings: &Settings) -> Context<'_> {
        Context::first(settings, LIBRARY, "test")
    }

    fn row(variant: u16, calls: u64) -> Evidence {
        Evidence {
            calls,
            level_ns: 1e4,
            time: Moments {
                n: calls,
                mean: 1.0,
                m2: 0.01,
            },
            ..Evidence::nothing(0, SHAPE, variant)
        }
    }

    #[test]
    fn a_training_sees_ratios_between_1_and_2_but_of_an_earlier_calibration() {
        let [full, earlier] = calibrated();
        let variants = catalogue::variants(LIBRARY, Collective::Allreduce);
        let rows: Vec<Evidence> = (0..variants.len() as u16).map(|one| row(one, 50)).collect();
        let seen = |settings: &Settings| {
            let cells = Cells::new(&rows, &first_training(settings));
            let measured = cells.measured[0].variants.clone();
            let asked = cells.asked.iter().flat_map(|(_, asked)| asked.clone());
            [measured, asked.collect::<Vec<_>>()]
        };
        let between = |(_, place): &&(u16, Place)| (1e-9..2f64.ln()).contains(&place.simulated);
        for all in seen(&full) {
            assert!(all.iter().any(|one| between(&one)), "{all:?}");
        }
        let [measured, asked] = seen(&earlier);
        assert!(!measured.iter().chain(&asked).any(|one| between(&one)));
        let is_slow = |(_, place): &(u16, Place)| place.simulated >= 2f64.ln();
        assert!(measured.iter().any(is_slow), "{measured:?}");
    }

    /// What is silent and what is untried in the cell of one run in which so many calls drew.
    fn unsampled(
        settings: &Settings,
        previous: Option<&Model>,
        sampled: [u16; 2],
        calls: f64,
    ) -> [BTreeSet<u16>; 2] {
        let mut rows = sampled.map(|variant| row(variant, 1)).to_vec();
        rows.push(row(0, calls as u64 - 2));
        let context = Context {
            previous,
            ..first_training(settings)
        };
        let cells = Cells::new(&rows, &context);
        [cells.silent[0].clone(), cells.untried[0].clone()]
    }

    /// The shares of the calibrated cell without the default's, the least first, and the variants that they are of.
    fn shares(model: &Model) -> (Vec<f64>, Vec<u16>) {
        let here = |entry: &&CellModel| entry.cell.contains(Collective::Allreduce, 64, 2, 4);
        let found = model.cells.iter().find(here).expect("the space has it");
        let mut shares = found.variants.clone();
        shares.remove(0);
        shares.sort_by(|a, b| a.probability.total_cmp(&b.probability));
        let variants = catalogue::variants(LIBRARY, Collective::Allreduce);
        let place = |share: &Share| {
            let mut names = variants.iter().map(|one| one.name.to_string());
            names.position(|name| name == share.name).expect("known") as u16
        };
        let places = shares.iter().map(place).collect();
        let shares = shares.iter().map(|share| share.probability);
        (shares.collect(), places)
    }

    #[test]
    fn nothing_is_silent_before_its_turn_by_its_own_share() {
        let [settings, _] = calibrated();
        let mut model = Model::initial(&settings, LIBRARY, "test");
        let (shares, places) = shares(&model);
        let (rare, usual) = (places[0], places[places.len() - 1]);
        let name = catalogue::variants(LIBRARY, Collective::Allreduce)[usize::from(rare)]
            .name
            .to_string();
        let variants = model.cells.iter_mut().flat_map(|entry| &mut entry.variants);
        for share in variants.filter(|share| share.name == name) {
            share.probability *= 0.5;
        }
        let share = 0.5 * shares[0];
        let found = |calls: f64| unsampled(&settings, Some(&model), [places[1], places[2]], calls);
        // So many calls that what is drawn the most had its turn, and what is drawn the least had not.
        let [silent, _] = found(DRAWN_WITHOUT_SAMPLE / share - 1.0);
        assert!(silent.contains(&usual) && !silent.contains(&rare));
        let [silent, untried] = found(DRAWN_WITHOUT_SAMPLE / share + 1.0);
        assert!(silent.contains(&rare));
        assert!(untried.is_empty(), "{untried:?}");
    }

    #[test]
    fn a_first_training_takes_nothing_for_silent_as_a_calibration_may_have_come_behind_the_draws() {
        for settings in calibrated() {
            let (_, places) = shares(&Model::initial(&settings, LIBRARY, "test"));
            let [silent, untried] = unsampled(&settings, None, [places[1], places[2]], 1e6);
            assert!(silent.is_empty(), "{silent:?}");
            assert_eq!(untried.len(), places.len() - 2);
        }
    }

    #[test]
    fn calls_of_jobs_that_record_or_exploit_give_no_variant_its_turn() {
        let run = |run: u32, variants: &[u16]| -> Vec<Evidence> {
            let rows = variants.iter().map(|&variant| row(variant, 1000));
            rows.map(|row| Evidence { run, ..row }).collect()
        };
        let settings = Settings::default();
        let drawn = |rows: &[Evidence], first: u32| {
            let rows: Vec<&Evidence> = rows.iter().collect();
            let draw = drawing_runs([rows.as_slice()].into_iter(), &settings);
            drawn_calls(&rows, &draw, first)
        };
        let mut rows = [run(0, &[0]), run(1, &[0]), run(2, &[0, 4])].concat();
        assert_eq!(drawn(&rows, 0), 0);
        rows.extend(run(3, &[0, 1, 2]));
        rows.extend(run(4, &[0]));
        assert_eq!(drawn(&rows, 0), 3000);
        assert_eq!(drawn(&rows, 3), 3000);
        assert_eq!(drawn(&rows, 4), 0);
        // A run that draws in one cell draws in all of them.
        let rows: Vec<&Evidence> = rows.iter().collect();
        let (few, many) = rows.split_at(4);
        let draw = drawing_runs([few, many].into_iter(), &settings);
        assert_eq!(draw, BTreeSet::from([3]));
        let once = Settings {
            reproducible: Reproducible::Run,
            ..Settings::default()
        };
        let draw = drawing_runs([few, many].into_iter(), &once);
        assert_eq!(
            draw,
            BTreeSet::from([2, 3]),
            "a run that records draws nothing"
        );
    }
}
