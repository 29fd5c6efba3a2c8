//! What the subcommands are given by name: machines, costs and meshes.

use std::path::Path;

use anyhow::Context;
use colltune_amr::deck;
use colltune_core::calibration::Calibration;
use colltune_core::space::{Cell, Range};
use colltune_db::{Database, Generation};
use colltune_emulate::EmulateError;
use colltune_emulate::cost::Costs;
use colltune_emulate::machine::{self, Machine};
use colltune_emulate::mesh::Recording;
use colltune_emulate::price::{Measured, MeasuredCell};
use colltune_files::{SETTINGS_BYTES_MAX, read_text};
use colltune_models::statistics::VariantStatistics;

use super::recording;

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

fn of_database(path: &Path) -> anyhow::Result<Machine> {
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
    let file = db.calibration(library);
    let text =
        read_text(&file, SETTINGS_BYTES_MAX).with_context(|| format!("read {}", file.display()))?;
    let calibration =
        Calibration::from_toml(&text).with_context(|| format!("use {}", file.display()))?;
    let measured = measured(&Generation::load(&db, library)?);
    Ok(Machine {
        measured,
        ..Machine::of_calibration(&calibration)
    })
}

/// The medians of all cells that a training saw measured.
fn measured(generation: &Generation) -> Measured {
    let range = |range: Range| range.lo..=range.hi.unwrap_or(u64::MAX);
    let cells = generation.cells.iter();
    let of_cells = cells.flat_map(|of| of.variants.iter().map(move |variant| (of.cell, variant)));
    let cell = |(cell, variant): (Cell, &VariantStatistics)| {
        let time_ns = variant.time_ns.median.filter(|_| variant.samples > 0)?;
        Some(MeasuredCell {
            collective: cell.collective.name().to_owned(),
            variant: variant.name.clone(),
            bytes: range(cell.bytes),
            nodes: range(cell.nodes),
            ppn: range(cell.ppn),
            time_ns,
        })
    };
    Measured(of_cells.filter_map(cell).collect())
}

/// Costs from a file that `fit` wrote.
pub fn costs(path: &Path) -> anyhow::Result<Costs> {
    let text =
        read_text(path, SETTINGS_BYTES_MAX).with_context(|| format!("read {}", path.display()))?;
    Costs::from_toml(&text)
        .map_err(anyhow::Error::from)
        .with_context(|| format!("read {}", path.display()))
}

/// Where a mesh comes from, and the words of the program that has it.
pub struct Mesh {
    pub recording: Option<Recording>,
    pub words: Vec<String>,
    /// The ranks from which the root grid follows, where the words do not say.
    pub ranks: usize,
}

/// A folder of telemetry, or a deck with more options behind it.
pub fn mesh(name: &str, more: &[String], ranks: usize) -> anyhow::Result<Mesh> {
    let path = Path::new(name);
    if path.is_dir() {
        let mesh = recording::read(path)?.mesh;
        return Ok(Mesh {
            words: mesh.words.iter().chain(more).cloned().collect(),
            ranks: mesh.n_ranks,
            recording: Some(mesh),
        });
    }
    let line = ["colltune-amr", "--deck", name].map(str::to_owned);
    let line = line.into_iter().chain(more.iter().cloned());
    let words = deck::expand(line).map_err(EmulateError::Mesh)?;
    Ok(Mesh {
        recording: None,
        words: words.into_iter().skip(1).collect(),
        ranks,
    })
}
