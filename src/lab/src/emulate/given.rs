//! What the subcommands are given by name: machines, costs and meshes.

use std::path::Path;

use anyhow::Context;
use colltune_amr::deck;
use colltune_amr::leaf::Leaf;
use colltune_amr::settings::Settings;
use colltune_core::calibration::Calibration;
use colltune_core::context::DataKey;
use colltune_core::library::Library;
use colltune_core::space::{Cell, Range};
use colltune_core::variant::DEFAULT;
use colltune_db::{Database, Generation, generation};
use colltune_emulate::EmulateError;
use colltune_emulate::cost::Costs;
use colltune_emulate::machine::{self, Machine};
use colltune_emulate::mesh::{Recording, Shock, random_leaves};
use colltune_emulate::price::{Known, Learned, LearnedCell};
use colltune_emulate::program::History;
use colltune_files::{SETTINGS_BYTES_MAX, read_text};
use colltune_models::statistics::VariantStatistics;

use super::recording;
use colltune_output::progress;

/// A machine by the name of a preset, a TOML file, or a tuning database with one calibration.
pub fn machine(name: &str) -> anyhow::Result<Machine> {
    let path = Path::new(name);
    if path.is_dir() {
        return of_database(path);
    }
    if name.ends_with(".toml") || name.contains('/') {
        let text = read_text(path, SETTINGS_BYTES_MAX).with_context(|| format!("read {name}"))?;
        return Ok(Machine::from_toml(name, &text)?);
    }
    Ok(machine::preset(name)?)
}

/// A tuning database and its library, where it has one calibration.
pub fn calibrated(path: &Path) -> anyhow::Result<(Database, Library)> {
    let db = Database::open(path)?;
    let all = db.libraries()?;
    let calibrated: Vec<_> = all
        .into_iter()
        .filter(|library| db.calibration(*library).is_file())
        .collect();
    let [library] = calibrated[..] else {
        anyhow::bail!(
            "find one calibration in {}: there are {}; name the file calibration.toml instead",
            path.display(),
            calibrated.len()
        );
    };
    Ok((db, library))
}

fn of_database(path: &Path) -> anyhow::Result<Machine> {
    let (db, library) = calibrated(path)?;
    let file = db.calibration(library);
    let text =
        read_text(&file, SETTINGS_BYTES_MAX).with_context(|| format!("read {}", file.display()))?;
    let calibration =
        Calibration::from_toml(&text).with_context(|| format!("use {}", file.display()))?;
    let learned = match most_trained(&db, library)? {
        Some(generation) => learned(&generation),
        None => Learned::default(),
    };
    Ok(Machine {
        learned,
        ..Machine::of_calibration(&calibration)
    })
}

/// The newest training of a library, by the transport that most calls were recorded with: nothing says which of them the
/// emulated runs have.
fn most_trained(db: &Database, library: Library) -> anyhow::Result<Option<Generation>> {
    let keys = generation::trained(db)?.into_iter();
    let own_choice = |key: &DataKey| key.library == library && key.told.is_none();
    let of_library: Vec<DataKey> = keys.filter(own_choice).collect();
    let mut trained = Vec::new();
    for key in &of_library {
        trained.push(Generation::load(db, key.clone())?);
    }
    let calls = |generation: &Generation| generation.meta.as_ref().map_or(0, |meta| meta.calls);
    let found = trained.into_iter().max_by_key(calls);
    if let Some(found) = found.as_ref().filter(|_| of_library.len() > 1) {
        progress::hint(format_args!(
            "collectives cost what {} has learned; what was learned with other transports is not asked",
            found.key
        ));
    }
    Ok(found)
}

/// What the newest training knows of all cells: medians where a variant ran, and what it predicts of others.
fn learned(generation: &Generation) -> Learned {
    let range = |range: Range| range.lo..=range.last();
    let cells = generation.cells.iter();
    let of_cells = cells.flat_map(|of| of.variants.iter().map(move |variant| (of.cell, variant)));
    let cell = |(cell, variant): (Cell, &VariantStatistics)| {
        Some(LearnedCell {
            collective: cell.collective.name().to_owned(),
            variant: variant.name.clone(),
            bytes: range(cell.bytes),
            nodes: range(cell.nodes),
            ppn: range(cell.ppn),
            known: known(variant)?,
        })
    };
    Learned(of_cells.filter_map(cell).collect())
}

/// A prediction whose 95 % interval spans more than this factor says less than the simulator does.
const SPAN_MAX: f64 = 4.0;

fn known(variant: &VariantStatistics) -> Option<Known> {
    let is_predicted = variant.samples == 0 && variant.name != DEFAULT;
    let gain = variant
        .contrast
        .filter(|gain| gain.hi <= SPAN_MAX * gain.lo);
    match (variant.time_ns.median, is_predicted) {
        (Some(time_ns), false) if variant.samples > 0 => Some(Known::Measured(time_ns)),
        (Some(time_ns), true) => gain.map(|_| Known::Predicted(time_ns)),
        (None, true) => gain.map(|gain| Known::Gain(gain.gain)),
        _ => None,
    }
}

/// Costs from a file that `fit` wrote.
pub fn costs(path: &Path) -> anyhow::Result<Costs> {
    let text = read_text(path, SETTINGS_BYTES_MAX).with_context(|| {
        let file = path.display();
        format!("read {file}: `colltune-lab emulate fit --telemetry FOLDER -o {file}` writes it, --costs names another")
    })?;
    Costs::from_toml(&text)
        .map_err(anyhow::Error::from)
        .with_context(|| format!("read {}", path.display()))
}

/// Where a mesh comes from, and the words of the program that has it.
pub struct Mesh {
    source: Source,
    pub words: Vec<String>,
    /// The ranks from which the root grid follows, where the words do not say.
    pub ranks: usize,
}

enum Source {
    Objects,
    Recorded(Recording),
    Shell,
    Octree(u64),
}

/// What settings make of a mesh that neither objects nor a recording decide about.
pub enum Made {
    Shock(Shock),
    Still(Vec<Leaf>),
}

/// A folder of telemetry, or a deck, `shell:` before it or not, or `octree:` with a seed, with more options behind it.
pub fn mesh(name: &str, more: &[String], ranks: usize) -> anyhow::Result<Mesh> {
    let path = Path::new(name);
    if path.is_dir() {
        let mesh = recording::read(path)?.mesh;
        return Ok(Mesh {
            words: mesh.words.iter().chain(more).cloned().collect(),
            ranks: mesh.n_ranks,
            source: Source::Recorded(mesh),
        });
    }
    let (source, deck) = match name.split_once(':') {
        Some(("shell", deck)) => (Source::Shell, Some(deck)),
        Some(("octree", seed)) => {
            let seed = seed
                .parse()
                .with_context(|| format!("use {name}: its seed"))?;
            (Source::Octree(seed), None)
        }
        Some(("cosmology", _)) => return Err(of_a_study(name, "root cells, not blocks", "art")),
        Some(("quadrant", _)) => {
            let has = "patches of two dimensions that lie upon each other";
            return Err(of_a_study(name, has, "shamrock"));
        }
        _ => (Source::Objects, Some(name)),
    };
    let deck = deck.into_iter().flat_map(|deck| ["--deck", deck]);
    let line = std::iter::once("colltune-amr").chain(deck);
    let line = line.map(str::to_owned).chain(more.iter().cloned());
    let words = deck::expand(line).map_err(EmulateError::Mesh)?;
    Ok(Mesh {
        source,
        words: words.into_iter().skip(1).collect(),
        ranks,
    })
}

/// A mesh that this program has no blocks for.
fn of_a_study(name: &str, has: &str, study: &str) -> anyhow::Error {
    let what = format!("{name} has {has}: `colltune-bench study {study}` alone runs it");
    EmulateError::Mesh(what).into()
}

impl Mesh {
    /// What a run with these settings makes of it, where that decides.
    pub fn made(&self, settings: &Settings) -> Result<Option<Made>, EmulateError> {
        Ok(match self.source {
            Source::Shell => Some(Made::Shock(Shock::new(settings)?)),
            Source::Octree(seed) => Some(Made::Still(random_leaves(seed, settings)?)),
            Source::Objects | Source::Recorded(_) => None,
        })
    }

    /// What decides about the mesh.
    pub fn history<'a>(&'a self, made: &'a Option<Made>) -> History<'a> {
        match (&self.source, made) {
            (Source::Recorded(recording), _) => History::Recorded(recording),
            (_, Some(Made::Shock(shock))) => History::Shock(shock),
            (_, Some(Made::Still(leaves))) => History::Still(leaves),
            (_, None) => History::Objects,
        }
    }
}

#[cfg(test)]
mod tests {
    use colltune_models::statistics::{Contrast, Interval};

    use super::*;

    #[test]
    fn what_nobody_ran_has_a_price_where_its_prediction_is_narrow() {
        let variant = |name: &str, samples, median, [lo, hi]: [f64; 2]| VariantStatistics {
            name: name.to_owned(),
            samples,
            time_ns: Interval {
                median,
                ..Interval::default()
            },
            contrast: Some(Contrast { gain: 1.5, lo, hi }),
            ..VariantStatistics::default()
        };
        let (narrow, wide) = ([1.0, 4.0], [1.0, 4.1]);
        for (found, expected) in [
            (variant("a", 3, Some(5.0), wide), Some(Known::Measured(5.0))),
            (
                variant("a", 0, Some(5.0), narrow),
                Some(Known::Predicted(5.0)),
            ),
            (variant("a", 0, Some(5.0), wide), None),
            (variant("a", 0, None, narrow), Some(Known::Gain(1.5))),
            (variant("a", 0, None, wide), None),
            (variant(DEFAULT, 0, Some(5.0), narrow), None),
            (variant(DEFAULT, 0, None, narrow), None),
        ] {
            assert_eq!(known(&found), expected, "{found:?}");
        }
    }
}
