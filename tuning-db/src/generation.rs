//! Generations: what a training published for one library, and which one is in force.
//!
//! A generation is written under another name, synced and moved to `generations/NNNNNN`; only then
//! `CURRENT` names it. Whoever reads sees a whole generation or the one before.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::context::DataKey;
use colltune_core::library::Library;
use colltune_core::model::{CellModel, Model};
use colltune_core::prior::simulated::Simulated;
use colltune_core::settings::Settings;
use colltune_core::space::{Block, Cell, Range, Space};
use colltune_core::variant::DEFAULT;
use colltune_files::{MODEL_BYTES_MAX, SETTINGS_BYTES_MAX, read_text};
use colltune_models::statistics::{CellStatistics, VariantStatistics};
use colltune_models::{Control, Learned};
use serde::{Deserialize, Serialize};

use crate::check_word::check_word;
use crate::database::{CURRENT, Database, DbError, at};
use crate::folder::Folder;
use crate::passed::Passed;
use crate::verdicts::Verdicts;
use crate::write;

/// The version of the layouts of `cells.json` and `meta.json`; those of version 1 are read, too.
pub const SCHEMA: u32 = 2;

/// What is in force for one library.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// 0 before any training.
    pub number: u64,
    pub key: DataKey,
    pub library: Library,
    pub model: Model,
    /// Every cell of the tuning space, in its order. The model may join cells about which nothing
    /// is known, these do not.
    pub cells: Vec<CellStatistics>,
    /// `None` for generation 0.
    pub meta: Option<Meta>,
}

/// `meta.json`: how a generation came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub schema: u32,
    pub generation: u64,
    pub library: String,
    pub machine: String,
    pub colltune_version: String,
    pub created_unix_ms: u64,
    pub seed: u64,
    /// Runs, the records of all their ranks, and the calls that these recorded.
    pub runs: u64,
    pub records: u64,
    pub calls: u64,
    /// What was learned from: rows of evidence.
    #[serde(default)]
    pub evidence: u64,
    /// When the last of it was published.
    #[serde(default)]
    pub sequence: u64,
    /// Time of the recorded calls, mean over the ranks.
    #[serde(default)]
    pub seconds: f64,
    pub cells_measured: u64,
    /// Share of the recorded time that was work, which bounds what tuning can gain.
    #[serde(default = "all")]
    pub work: f64,
    /// The component of the library that `default` is of in the last run that says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// How often a copy of the default would have replaced it; `None` in generations that did not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// Why there is nothing to gain in any cell; empty where there may be.
    #[serde(default)]
    pub nothing_to_gain: String,
    /// Calls that passed through untuned.
    #[serde(default)]
    pub passed: Vec<Passed>,
    /// A check word over all that shapes a training.
    #[serde(default)]
    pub shaped_by: String,
    pub learn_ms: u64,
}

/// The work in generations that do not know better.
fn all() -> f64 {
    1.0
}

/// `cells.json`.
#[derive(Serialize, Deserialize)]
struct CellsFile {
    schema: u32,
    generation: u64,
    /// The tuning space that was learned for: the bounds of each box.
    space: Vec<Bounds>,
    /// The measured and predicted ones; about the others nothing is known.
    cells: Vec<CellStatistics>,
}

/// One box of the tuning space, `null` for "inf".
#[derive(Serialize, Deserialize)]
struct Bounds {
    collective: Collective,
    bytes: Vec<Option<u64>>,
    nodes: Vec<Option<u64>>,
    ppn: Vec<Option<u64>>,
}

impl From<&Block> for Bounds {
    fn from(block: &Block) -> Bounds {
        let Block {
            collective,
            bytes,
            nodes,
            ppn,
            ..
        } = block.clone();
        Bounds {
            collective,
            bytes,
            nodes,
            ppn,
        }
    }
}

impl From<Bounds> for Block {
    fn from(bounds: Bounds) -> Block {
        let Bounds {
            collective,
            bytes,
            nodes,
            ppn,
        } = bounds;
        Block {
            collective,
            bytes,
            nodes,
            ppn,
            exclude: Vec::new(),
        }
    }
}

/// A check word over all that shapes a training: another word means another training.
pub(crate) fn shaped_by(
    db: &Database,
    key: &DataKey,
    settings: &Settings,
    seed: u64,
    evidence: u64,
    verdicts: &Verdicts,
) -> String {
    let simulated = settings.simulated.get(&key.library);
    let both = |found: &Simulated| found.to_json() + &found.ratios_to_json();
    let simulated = simulated.map_or(String::new(), both);
    let calibration = read_text(&db.calibration(key.library), SETTINGS_BYTES_MAX);
    let settings = Settings {
        machine: Some(db.machine(settings)),
        simulated: Default::default(),
        ..settings.clone()
    };
    let names = catalogue::all(key.library);
    let names: Vec<String> = names
        .iter()
        .map(|one| format!("{}={}", one.collective, one.name))
        .collect();
    let all = [
        env!("CARGO_PKG_VERSION").to_owned(),
        key.to_string(),
        format!("{settings:?}"),
        simulated,
        calibration.unwrap_or_default(),
        names.join(" "),
        format!("{seed} {evidence:016x}"),
        verdicts.shapes(),
    ];
    format!("{:016x}", check_word(all.join("\n").as_bytes()))
}

/// The number in `CURRENT`, 0 without one.
///
/// Errors: `Generation` for a `CURRENT` that holds no number.
pub fn current(db: &Database, key: &DataKey) -> Result<u64, DbError> {
    let path = db.current(key);
    match read_text(&path, SETTINGS_BYTES_MAX) {
        Ok(text) => text.trim().parse().map_err(|_| DbError::Generation {
            path,
            problem: format!("{:?} is no number", text.trim()),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(at("read", &path)(error)),
    }
}

/// The keys that something was learned for; a calibration alone is nothing learned.
///
/// Errors: `Io` for the database's folder, those of [`current`].
pub fn trained(db: &Database) -> Result<Vec<DataKey>, DbError> {
    let mut keys = Vec::new();
    for key in db.keys()? {
        if current(db, &key)? > 0 {
            keys.push(key);
        }
    }
    Ok(keys)
}

fn folder(db: &Database, key: &DataKey, number: u64) -> PathBuf {
    db.generations(key).join(format!("{number:06}"))
}

impl Generation {
    /// Reads the generation in force; before any training that is generation 0, made from the
    /// settings.
    ///
    /// Errors: `Generation` naming the file for one that is missing, half-written or of another
    /// version or library; `Settings`.
    pub fn load(db: &Database, key: impl Into<DataKey>) -> Result<Generation, DbError> {
        let key = key.into();
        let library = key.library;
        match current(db, &key)? {
            0 => {
                let settings = db.settings()?;
                let model = Model::initial(&settings, library, &db.machine(&settings));
                let cells = with_unknown(&model, &settings.space, Vec::new());
                Ok(Generation {
                    number: 0,
                    key,
                    library,
                    model,
                    cells,
                    meta: None,
                })
            }
            number => Self::load_number(db, key, number),
        }
    }

    /// As [`Generation::load`], with the cells alone of which something is known; none before any training.
    pub(crate) fn load_known(db: &Database, key: &DataKey) -> Result<Generation, DbError> {
        match current(db, key)? {
            0 => Ok(Generation {
                cells: Vec::new(),
                ..Self::load(db, key.clone())?
            }),
            number => Ok(Self::read(db, key.clone(), number)?.0),
        }
    }

    /// Reads one numbered generation, in force or not.
    pub fn load_number(
        db: &Database,
        key: impl Into<DataKey>,
        number: u64,
    ) -> Result<Generation, DbError> {
        let (mut found, space) = Self::read(db, key.into(), number)?;
        found.cells = with_unknown(&found.model, &space, found.cells);
        Ok(found)
    }

    /// One numbered generation with the cells that are written, and its tuning space.
    fn read(db: &Database, key: DataKey, number: u64) -> Result<(Generation, Space), DbError> {
        let library = key.library;
        let folder = folder(db, &key, number);
        let problem = |path: &Path, problem: String| DbError::Generation {
            path: path.to_owned(),
            problem,
        };
        let text = |name: &str| {
            let path = folder.join(name);
            read_text(&path, MODEL_BYTES_MAX).map_err(|error| problem(&path, error.to_string()))
        };
        let model_path = folder.join("probabilities.json");
        let model = Model::from_json(&text("probabilities.json")?, library)
            .map_err(|error| problem(&model_path, error.to_string()))?;
        let mut cells: CellsFile = serde_json::from_str(&text("cells.json")?)
            .map_err(|error| problem(&folder.join("cells.json"), error.to_string()))?;
        let meta: Meta = serde_json::from_str(&text("meta.json")?)
            .map_err(|error| problem(&folder.join("meta.json"), error.to_string()))?;
        for (name, schema) in [("cells.json", cells.schema), ("meta.json", meta.schema)] {
            if !(1..=SCHEMA).contains(&schema) {
                return Err(problem(
                    &folder.join(name),
                    format!("its layout has version {schema}, this colltune reads {SCHEMA}"),
                ));
            }
        }
        // For a choice that is gone since the training stands what runs in its place.
        for cell in &mut cells.cells {
            let is_gone = || catalogue::find(library, cell.cell.collective, &cell.best).is_none();
            if catalogue::is_default(&cell.best) || !is_gone() {
                continue;
            }
            let runs = model.cells.iter().find(|one| one.cell == cell.cell);
            let (best, gain) = runs.map_or((DEFAULT, 1.0), |one| (one.best.as_str(), one.gain));
            cell.best = best.to_owned();
            (cell.gain, cell.gain_lo, cell.gain_hi) = (gain, gain, gain);
        }
        let space = Space {
            blocks: cells.space.into_iter().map(Block::from).collect(),
        };
        let found = Generation {
            number,
            key,
            library,
            model,
            cells: cells.cells,
            meta: Some(meta),
        };
        Ok((found, space))
    }

    /// The number that the next training publishes: above every one there, in force or not.
    pub fn next_number(db: &Database, key: &DataKey) -> Result<u64, DbError> {
        let last = numbers(db, key)?.last().copied().unwrap_or(0);
        Ok(last.max(current(db, key).unwrap_or(0)) + 1)
    }
}

/// The numbers of the generations on disk, ascending, in force or not.
///
/// Errors: `Io` for a folder that cannot be read; one that does not exist has none.
pub fn numbers(db: &Database, key: &DataKey) -> Result<Vec<u64>, DbError> {
    let folder = db.generations(key);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(at("read the folder", &folder))?,
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let mut numbers: Vec<u64> = entries.flatten().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Publishes what was learned and puts it in force.
///
/// Errors: `Io` and `Learn`; then the generation before is still in force.
pub fn publish(
    db: &Database,
    key: &DataKey,
    learned: &Learned,
    space: &Space,
    meta: &Meta,
) -> Result<u64, DbError> {
    let number = meta.generation;
    let parent = db.make_folder(&db.generations(key))?;
    let target = OsString::from(format!("{number:06}"));
    let path = parent.path().join(&target);
    let drafted = parent.draft_folder(&target);
    let (draft, inside) = drafted.map_err(at("make the folder", &path))?;
    let result = write_files(&inside, learned, space, meta)
        .and_then(|()| write::publish(&parent, &draft, &target))
        .and_then(|()| put_in_force(db, key, number));
    if result.is_err() {
        let _ = parent.remove_folder(&draft);
    }
    result.map(|()| number)
}

/// Puts a generation in force that is there.
///
/// Errors: `Io`; then the one before is still in force.
pub(crate) fn put_in_force(db: &Database, key: &DataKey, number: u64) -> Result<(), DbError> {
    let library = db.folder(&db.library(key))?;
    write::sync(&library)?;
    write::atomically(&library, CURRENT, format!("{number:06}\n").as_bytes())
}

fn write_files(
    folder: &Folder,
    learned: &Learned,
    space: &Space,
    meta: &Meta,
) -> Result<(), DbError> {
    let cells = CellsFile {
        schema: SCHEMA,
        generation: meta.generation,
        space: space.blocks.iter().map(Bounds::from).collect(),
        cells: learned.statistics.clone(),
    };
    let files = [
        ("probabilities.json", learned.model.to_json()),
        (
            "cells.json",
            serde_json::to_string(&cells).expect("numbers and names"),
        ),
    ];
    for (name, text) in files {
        write::synced(folder, name, text.as_bytes())?;
    }
    let meta = serde_json::to_string_pretty(meta).expect("numbers and names");
    write::synced(folder, "meta.json", meta.as_bytes())?;
    write::sync(folder)
}

/// Statistics of every cell of a tuning space, in its order.
fn with_unknown(model: &Model, space: &Space, known: Vec<CellStatistics>) -> Vec<CellStatistics> {
    let mut known: HashMap<Cell, CellStatistics> =
        known.into_iter().map(|cell| (cell.cell, cell)).collect();
    let mut unknown: HashMap<(Collective, Range), Vec<&CellModel>> = HashMap::new();
    for entry in &model.cells {
        unknown
            .entry((entry.cell.collective, entry.cell.bytes))
            .or_default()
            .push(entry);
    }
    let holder = |cell: &Cell| {
        let sizes = unknown
            .get(&(cell.collective, cell.bytes))
            .into_iter()
            .flatten();
        sizes.copied().find(|entry| {
            entry
                .cell
                .contains(cell.collective, cell.bytes.lo, cell.nodes.lo, cell.ppn.lo)
        })
    };
    let nothing_known = |cell: Cell| CellStatistics {
        cell,
        variants: holder(&cell)
            .into_iter()
            .flat_map(|entry| &entry.variants)
            .map(|share| VariantStatistics {
                name: share.name.clone(),
                samples: 0,
                probability: share.probability,
                ..VariantStatistics::default()
            })
            .collect(),
        ..CellStatistics::unknown(cell)
    };
    space
        .cells()
        .map(|(cell, _)| known.remove(&cell).unwrap_or_else(|| nothing_known(cell)))
        .collect()
}
