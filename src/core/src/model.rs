//! What a training published: for each cell the probability of each variant, and the best one.
//!
//! This is `probabilities.json` of a generation. Generation 0 stands for "before any training":
//! it is made from the settings and lies in no file.

use std::collections::BTreeSet;

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::catalogue;
use crate::collective::Collective;
use crate::library::Library;
use crate::prior::undrawn::FirstDraws;
use crate::settings::{LearnerKind, Settings};
use crate::space::{Cell, Range};
use crate::variant::{DEFAULT, Family, VariantName};

/// The version of the layout of `probabilities.json`.
pub const SCHEMA: u32 = 1;

/// How the numbers of a cell came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Nothing is known: every variant is as likely as the others.
    Prior,
    /// From the cell's own measurements.
    Measured,
    /// From other cells' measurements, by regression.
    Predicted,
}

/// The learned choice of every cell for one library.
#[derive(Clone, Debug, PartialEq, Serialize, Encode, Decode)]
pub struct Model {
    pub schema: u32,
    /// The database key of the library, as in `openmpi-4.1.4`.
    pub library: String,
    pub machine: String,
    pub generation: u64,
    /// Who learned it: jobs draw as that one wants it.
    #[serde(skip_serializing_if = "LearnerKind::is_usual")]
    pub learner: LearnerKind,
    pub cells: Vec<CellModel>,
}

/// The learned choice of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Encode, Decode)]
#[serde(into = "CellRow")]
pub struct CellModel {
    pub cell: Cell,
    pub source: Source,
    /// The name of the variant to run when nothing is sampled.
    pub best: String,
    /// The default's time over that variant's, by the training; 1 where it was not measured.
    pub gain: f64,
    /// What tables hold, which can name the library's own algorithms alone: the fastest of them that may stand in for
    /// the default. `None` where that is `best`, or no one may.
    pub native: Option<Native>,
    /// The most ranks of a communicator on which `best` was measured. `None` where it was not measured, or before
    /// colltune noted that.
    pub measured_ranks: Option<u32>,
    pub variants: Vec<Share>,
}

/// An algorithm of the library's own, and the default's time over its.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct Native {
    pub name: String,
    pub gain: f64,
}

/// A cell as it is written: its ranges beside its choice.
#[derive(Serialize)]
struct CellRow {
    collective: Collective,
    bytes: Range,
    nodes: Range,
    ppn: Range,
    source: Source,
    best: String,
    #[serde(skip_serializing_if = "is_no_gain")]
    gain: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<Native>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_ranks: Option<u32>,
    variants: Vec<Share>,
}

fn no_gain() -> f64 {
    1.0
}

fn is_no_gain(gain: &f64) -> bool {
    *gain == 1.0
}

impl From<CellModel> for CellRow {
    fn from(entry: CellModel) -> CellRow {
        let Cell {
            collective,
            bytes,
            nodes,
            ppn,
        } = entry.cell;
        CellRow {
            collective,
            bytes,
            nodes,
            ppn,
            source: entry.source,
            best: entry.best,
            gain: entry.gain,
            native: entry.native,
            measured_ranks: entry.measured_ranks,
            variants: entry.variants,
        }
    }
}

/// The file as a job reads it: the variants of a cell, most of the text, stay text until the job is known to reach it.
#[derive(Deserialize)]
struct Unread<'a> {
    schema: u32,
    library: String,
    machine: String,
    generation: u64,
    #[serde(default)]
    learner: LearnerKind,
    #[serde(borrow)]
    cells: Vec<UnreadCell<'a>>,
}

#[derive(Deserialize)]
struct UnreadCell<'a> {
    collective: Collective,
    bytes: Range,
    nodes: Range,
    ppn: Range,
    source: Source,
    best: String,
    #[serde(default = "no_gain")]
    gain: f64,
    #[serde(default)]
    native: Option<Native>,
    #[serde(default)]
    measured_ranks: Option<u32>,
    #[serde(borrow)]
    variants: &'a RawValue,
}

impl UnreadCell<'_> {
    fn read(self) -> Result<CellModel, serde_json::Error> {
        let variants = serde_json::from_str(self.variants.get())?;
        Ok(CellModel {
            cell: Cell {
                collective: self.collective,
                bytes: self.bytes,
                nodes: self.nodes,
                ppn: self.ppn,
            },
            source: self.source,
            best: self.best,
            gain: self.gain,
            native: self.native,
            measured_ranks: self.measured_ranks,
            variants,
        })
    }
}

/// The probability that a sampled call of a cell runs a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct Share {
    pub name: String,
    pub probability: f64,
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    #[error("read the model: {0}")]
    Json(String),
    #[error("use the model: its layout has version {0}, this colltune reads version {SCHEMA}")]
    Schema(u32),
    #[error("use the model: it was learned for {model}, this job runs on {job}")]
    Library { model: String, job: String },
    #[error("use the model, cell {cell}: {problem}")]
    Cell { cell: String, problem: String },
}

impl Model {
    /// Generation 0: every variant that the site does not exclude, of the families that it wants
    /// and worth drawing, is as likely as the others, and calls that are not sampled run `default`.
    pub fn initial(settings: &Settings, library: Library, machine: &str) -> Model {
        Model::initial_within(settings, library, machine, u64::MAX, u64::MAX)
    }

    /// [`Model::initial`] without the cells that no communicator of a job can reach.
    ///
    /// Units: `nodes` of the job and the most ranks that it has on one node.
    pub fn initial_within(
        settings: &Settings,
        library: Library,
        machine: &str,
        nodes: u64,
        ppn: u64,
    ) -> Model {
        let known = Collective::ALL.map(|collective| catalogue::variants(library, collective));
        let mut first = known
            .each_ref()
            .map(|variants| FirstDraws::new(variants, settings, library));
        let cells = settings.space.cells();
        let cells = cells
            .filter(|(cell, _)| is_reached(cell.nodes, cell.ppn, nodes, ppn))
            .map(|(cell, block)| {
                let first = &mut first[cell.collective.index()];
                let undrawn = first.undrawn(&cell, block);
                let named = first.names().iter().zip(undrawn);
                let drawn = named.filter_map(|(name, undrawn)| undrawn.is_none().then_some(name));
                let drawn: Vec<&String> = drawn.collect();
                let others = (drawn.len() - 1) as f64;
                let of_default = match settings.learner {
                    LearnerKind::Colltune => default_share(others),
                    LearnerKind::OmpiCollTune => 1.0 / (1.0 + others),
                };
                let share = |name: &&String| Share {
                    name: (*name).clone(),
                    probability: match name.as_str() {
                        DEFAULT => of_default,
                        _ => (1.0 - of_default) / others,
                    },
                };
                CellModel {
                    cell,
                    source: Source::Prior,
                    best: DEFAULT.to_owned(),
                    gain: no_gain(),
                    native: None,
                    measured_ranks: None,
                    variants: drawn.iter().map(share).collect(),
                }
            });
        Model {
            schema: SCHEMA,
            library: library.to_string(),
            machine: machine.to_owned(),
            generation: 0,
            learner: settings.learner,
            cells: cells.collect(),
        }
    }

    /// Reads `probabilities.json`.
    ///
    /// Errors: `Json` for text that is not this layout, then those of [`Model::check`].
    pub fn from_json(text: &str, library: Library) -> Result<Model, ModelError> {
        Model::from_json_within(text, library, u64::MAX, u64::MAX)
    }

    /// [`Model::from_json`] without the cells that no communicator of a job can reach. Of those only the ranges are read,
    /// and no variants looked at: a job's start waits for this, and most jobs reach few cells.
    ///
    /// Units: `nodes` of the job and the most ranks that it has on one node.
    pub fn from_json_within(
        text: &str,
        library: Library,
        nodes: u64,
        ppn: u64,
    ) -> Result<Model, ModelError> {
        let no_layout = |error: serde_json::Error| ModelError::Json(error.to_string());
        let unread: Unread<'_> = serde_json::from_str(text).map_err(no_layout)?;
        let reached = |cell: &UnreadCell<'_>| is_reached(cell.nodes, cell.ppn, nodes, ppn);
        let cells = unread.cells.into_iter().filter(reached);
        let cells: Result<_, _> = cells.map(UnreadCell::read).collect();
        let mut model = Model {
            schema: unread.schema,
            library: unread.library,
            machine: unread.machine,
            generation: unread.generation,
            learner: unread.learner,
            cells: cells.map_err(no_layout)?,
        };
        let known = known(library);
        model.check_against(library, &known)?;
        for entry in &mut model.cells {
            if !known[entry.cell.collective.index()].contains(&entry.best) {
                entry.best_is_gone();
            }
        }
        Ok(model)
    }

    /// Takes out what the site excludes by now: the model may have been learned before. The others keep their weights.
    pub fn leave_out_excluded(&mut self, settings: &Settings) {
        let blocks = &settings.space.blocks;
        if settings.exclude.is_empty() && blocks.iter().all(|block| block.exclude.is_empty()) {
            return;
        }
        for entry in &mut self.cells {
            let own = blocks.iter().filter(|block| block.overlaps(&entry.cell));
            let lists = own.map(|block| &block.exclude).chain([&settings.exclude]);
            let excluded: Vec<&String> = lists.flatten().collect();
            entry
                .variants
                .retain(|share| !excluded.contains(&&share.name));
            if entry
                .native
                .as_ref()
                .is_some_and(|native| excluded.contains(&&native.name))
            {
                entry.native = None;
            }
            if excluded.contains(&&entry.best) {
                entry.best_is_gone();
            }
        }
    }

    /// Lets each cell run what tables hold when nothing is sampled: an algorithm of the library's own, or its default.
    pub fn confine_to_tables(&mut self) {
        for entry in &mut self.cells {
            entry.confine_to_tables();
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a model holds only numbers, names and lists")
    }

    /// Whether the model can be used for a job on `library`.
    ///
    /// A variant of our own may be gone since the training, or not be there yet: it does not run,
    /// and the model is good for the others.
    ///
    /// Errors: `Schema` and `Library` for another version or library, `Cell` for other unknown
    /// variants and for probabilities that are none or do not sum to 1.
    pub fn check(&self, library: Library) -> Result<(), ModelError> {
        self.check_against(library, &known(library))
    }

    fn check_against(&self, library: Library, known: &Known) -> Result<(), ModelError> {
        if self.schema != SCHEMA {
            return Err(ModelError::Schema(self.schema));
        }
        if self.library != library.to_string() {
            return Err(ModelError::Library {
                model: self.library.clone(),
                job: library.to_string(),
            });
        }
        for entry in &self.cells {
            entry
                .check(&known[entry.cell.collective.index()])
                .map_err(|problem| ModelError::Cell {
                    cell: entry.cell.to_string(),
                    problem,
                })?;
        }
        Ok(())
    }
}

impl CellModel {
    fn confine_to_tables(&mut self) {
        let family = |name: &str| name.parse::<VariantName>().map(|name| name.family);
        if !matches!(family(&self.best), Ok(Family::Default | Family::Native)) {
            self.best_is_gone();
        }
    }

    /// Runs the best algorithm of the library's own, or its default.
    fn best_is_gone(&mut self) {
        let native = self.native.take().unwrap_or_else(|| Native {
            name: DEFAULT.to_owned(),
            gain: no_gain(),
        });
        (self.best, self.gain) = (native.name, native.gain);
        self.measured_ranks = None;
    }

    fn check(&self, known: &BTreeSet<String>) -> Result<(), String> {
        let is_known = |name: &str| known.contains(name) || is_of_ours(name);
        let native = self.native.iter().map(|native| (&native.name, native.gain));
        for (name, gain) in std::iter::once((&self.best, self.gain)).chain(native) {
            if !is_known(name) {
                return Err(format!("unknown best variant {name:?}"));
            }
            if !(gain > 0.0 && gain.is_finite()) {
                return Err(format!("{name} has the gain {gain}"));
            }
        }
        let mut sum = 0.0;
        for share in &self.variants {
            if !is_known(&share.name) {
                return Err(format!("unknown variant {:?}", share.name));
            }
            if !(0.0..=1.0).contains(&share.probability) {
                return Err(format!(
                    "{} has the probability {}",
                    share.name, share.probability
                ));
            }
            sum += share.probability;
        }
        if (sum - 1.0).abs() > 1e-6 {
            return Err(format!("the probabilities sum to {sum}"));
        }
        Ok(())
    }
}

/// The probability of the default beside so many others that all are to be compared with it: as many calls as make the
/// sum of the contrasts' variances least. Source: Dunnett, J. Am. Stat. Assoc. 50, 1955.
pub fn default_share(others: f64) -> f64 {
    1.0 / (1.0 + others.sqrt())
}

/// The names of a library's variants, by collective.
type Known = [BTreeSet<String>; Collective::ALL.len()];

fn known(library: Library) -> Known {
    Collective::ALL.map(|collective| {
        let variants = catalogue::variants(library, collective);
        variants
            .iter()
            .map(|variant| variant.name.to_string())
            .collect()
    })
}

/// Whether a name is that of a variant of our own, which a version of colltune may have or not.
fn is_of_ours(name: &str) -> bool {
    let family = name.parse::<VariantName>().map(|name| name.family);
    matches!(family, Ok(Family::P2p | Family::Node | Family::Mockup))
}

/// Whether a communicator of a job on so many nodes, with so many ranks on one at most, can be in these ranges.
fn is_reached(of_nodes: Range, of_ppn: Range, nodes: u64, ppn: u64) -> bool {
    of_nodes.lo <= nodes && of_ppn.lo <= ppn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Product;

    const LIBRARY: Library = Library {
        product: Product::OpenMpi,
        version: (4, 1, 4),
    };

    fn initial() -> Model {
        Model::initial(&Settings::default(), LIBRARY, "test")
    }

    #[test]
    fn generation_0_is_valid_draws_all_but_the_default_alike_and_survives_its_file() {
        let model = initial();
        assert_eq!(model.check(LIBRARY), Ok(()));
        for entry in &model.cells {
            assert_eq!(entry.best, DEFAULT);
            let (default, others) = entry.variants.split_first().unwrap();
            assert_eq!(default.name, DEFAULT);
            assert!(
                others
                    .iter()
                    .all(|share| share.probability == others[0].probability
                        && share.probability <= default.probability)
            );
        }
        assert_eq!(Model::from_json(&model.to_json(), LIBRARY), Ok(model));
    }

    #[test]
    fn a_job_reads_the_cells_that_it_reaches_and_looks_at_no_variants_of_others() {
        let whole = initial();
        let reached = Model::initial_within(&Settings::default(), LIBRARY, "test", 2, 4);
        assert!(reached.cells.len() * 4 < whole.cells.len());
        let far = whole
            .cells
            .iter()
            .rposition(|entry| entry.cell.nodes.lo > 2);
        let mut json: serde_json::Value = serde_json::from_str(&whole.to_json()).unwrap();
        json["cells"][far.unwrap()]["variants"] = serde_json::json!(["of a later version"]);
        let json = json.to_string();
        assert_eq!(Model::from_json_within(&json, LIBRARY, 2, 4), Ok(reached));
        let refused = Model::from_json(&json, LIBRARY);
        assert!(matches!(refused, Err(ModelError::Json(_))), "{refused:?}");
    }

    #[test]
    fn confined_to_tables_a_cell_runs_an_algorithm_of_the_librarys_own_or_the_default() {
        let native = |gain| {
            let name = "native:ring".to_owned();
            Some(Native { name, gain })
        };
        let cases = [
            ("node:shm+ring", 2.0, native(1.5), "native:ring", 1.5),
            ("node:shm+ring", 2.0, None, DEFAULT, 1.0),
            ("native:basic_linear", 2.0, None, "native:basic_linear", 2.0),
            (DEFAULT, 1.0, None, DEFAULT, 1.0),
        ];
        let of_allreduce = |entry: &&CellModel| entry.cell.collective == Collective::Allreduce;
        let mut model = initial();
        model.cells = vec![model.cells.iter().find(of_allreduce).unwrap().clone()];
        for (best, gain, native, runs, gains) in cases {
            let entry = &mut model.cells[0];
            (entry.best, entry.gain, entry.native) = (best.to_owned(), gain, native);
            entry.measured_ranks = (best != DEFAULT).then_some(8);
            let read = Model::from_json(&model.to_json(), LIBRARY);
            let mut read = read.expect("what is written is read");
            assert_eq!(read, model);
            read.confine_to_tables();
            assert_eq!(
                (read.cells[0].best.as_str(), read.cells[0].gain),
                (runs, gains)
            );
        }
        for wrong in [("native:no_such", 1.5), ("native:ring", 0.0)] {
            let (name, gain) = (wrong.0.to_owned(), wrong.1);
            model.cells[0].native = Some(Native { name, gain });
            let refused = model.check(LIBRARY);
            assert!(matches!(refused, Err(ModelError::Cell { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn a_variant_of_our_own_that_is_gone_refuses_no_model_and_other_unknown_names_do() {
        let mut model = initial();
        let is_of_several = |entry: &CellModel| entry.variants.len() > 1;
        let place = model.cells.iter().position(is_of_several).unwrap();
        for gone in ["p2p:gone:segsize=4KiB", "node:shm+gone", "mockup:gone"] {
            let entry = &mut model.cells[place];
            (entry.best, entry.gain) = (gone.to_owned(), 2.0);
            entry.variants[1].name = gone.to_owned();
            let read = Model::from_json(&model.to_json(), LIBRARY);
            let mut runs = model.clone();
            runs.cells[place].best_is_gone();
            assert_eq!(runs.cells[place].best, DEFAULT);
            assert_eq!(read, Ok(runs));
        }
        for wrong in ["native:gone", "p2p:Gone", "p2p:gone:depth=2", "gone"] {
            for spoil in [
                |entry: &mut CellModel, name: String| entry.best = name,
                |entry: &mut CellModel, name: String| entry.variants[1].name = name,
            ] {
                let mut bad = model.clone();
                spoil(&mut bad.cells[place], wrong.to_owned());
                let refused = bad.check(LIBRARY);
                assert!(matches!(refused, Err(ModelError::Cell { .. })), "{wrong}");
            }
        }
        // What it was given counts, whether or not it is known.
        model.cells[place].variants[1].probability = 0.0;
        let refused = model.check(LIBRARY);
        assert!(matches!(refused, Err(ModelError::Cell { .. })));
    }

    #[test]
    fn excluded_variants_and_segments_above_the_message_are_not_drawn() {
        let text = "exclude = [\"native:ring\"]\n[[space]]\ncollective = \"allreduce\"\nexclude = [\"native:rabenseifner\"]";
        let settings = Settings::from_toml(text).unwrap();
        let model = Model::initial(&settings, LIBRARY, "test");
        for entry in &model.cells {
            let has = |name: &str| entry.variants.iter().any(|share| share.name == name);
            assert!(!has("native:ring"));
            assert!(
                !(has("native:rabenseifner") && entry.cell.collective == Collective::Allreduce)
            );
            let above = entry.cell.bytes.last() > 4096
                && entry
                    .cell
                    .nodes
                    .last()
                    .saturating_mul(entry.cell.ppn.last())
                    > 2;
            // A line of very many is hopeless for few segments.
            if entry.cell.nodes.lo.max(entry.cell.ppn.lo) > 32 {
                continue;
            }
            assert_eq!(
                has("native:pipeline:segsize=4KiB") && entry.cell.collective == Collective::Bcast,
                above && entry.cell.collective == Collective::Bcast,
                "{}",
                entry.cell
            );
        }
    }

    #[test]
    fn what_is_excluded_after_a_training_is_neither_drawn_nor_run() {
        let text = "exclude = [\"node:shm\"]\n[[space]]\ncollective = \"allreduce\"\nbytes = [0, 1024]\n\
                    exclude = [\"native:ring\"]\n[[space]]\ncollective = \"allreduce\"\nbytes = [1024, \"inf\"]\n";
        let settings = Settings::from_toml(text).unwrap();
        let mut model = Model::initial(&Settings::default(), LIBRARY, "test");
        for entry in &mut model.cells {
            let native = Native {
                name: "native:ring".to_owned(),
                gain: 1.5,
            };
            if entry.cell.collective == Collective::Allreduce {
                (entry.best, entry.gain) = ("node:shm".to_owned(), 2.0);
                entry.native = Some(native);
            }
        }
        model.leave_out_excluded(&settings);
        let mut lists = std::collections::BTreeSet::new();
        for entry in &model.cells {
            let has = |name: &str| entry.variants.iter().any(|share| share.name == name);
            assert!(
                !has("node:shm") && entry.best != "node:shm",
                "{}",
                entry.cell
            );
            if entry.cell.collective == Collective::Allreduce {
                let is_short = entry.cell.bytes.lo < 1024;
                let runs = if is_short { "default" } else { "native:ring" };
                let gain = if is_short { 1.0 } else { 1.5 };
                assert_eq!(
                    (entry.best.as_str(), entry.gain),
                    (runs, gain),
                    "{}",
                    entry.cell
                );
                assert!(!(is_short && has("native:ring")), "{}", entry.cell);
                lists.insert((is_short, has("native:ring")));
            }
        }
        assert!(
            lists.contains(&(false, true)),
            "elsewhere it is drawn as before"
        );
    }

    #[test]
    fn foreign_damaged_and_senseless_models_are_refused() {
        let model = initial();
        let json = model.to_json();
        assert!(matches!(
            Model::from_json(&json[..json.len() / 2], LIBRARY),
            Err(ModelError::Json(_))
        ));
        let other = Library {
            product: Product::OpenMpi,
            version: (4, 1, 5),
        };
        assert!(matches!(
            Model::from_json(&json, other),
            Err(ModelError::Library { .. })
        ));
        assert!(matches!(
            Model {
                schema: 9,
                ..model.clone()
            }
            .check(LIBRARY),
            Err(ModelError::Schema(9))
        ));
        for spoil in [
            |entry: &mut CellModel| entry.best = "native:nonsense".to_owned(),
            |entry: &mut CellModel| entry.variants[0].name = "native:nonsense".to_owned(),
            |entry: &mut CellModel| entry.variants[0].probability = f64::NAN,
            |entry: &mut CellModel| entry.variants[0].probability = 0.9,
            |entry: &mut CellModel| entry.variants.clear(),
            |entry: &mut CellModel| entry.gain = f64::NAN,
            |entry: &mut CellModel| entry.gain = 0.0,
        ] {
            let mut bad = model.clone();
            spoil(&mut bad.cells[30]);
            assert!(matches!(bad.check(LIBRARY), Err(ModelError::Cell { .. })));
        }
    }
}
