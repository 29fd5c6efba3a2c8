//! Databases of the benchmarks, and the training that a user would do: two batches of ten runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use colltune_core::collective::Collective;
use colltune_core::model::Model;
use colltune_core::request::Mode;
use colltune_core::select::mix;
use colltune_core::settings::Settings;
use serde_json::Value;

use super::Bench;
use super::jobs::{self, Cell, Tuner};
use super::place::Place;
use colltune_launch::own;

/// A new, empty database below the output folder; one of the same name is removed first.
pub fn empty(bench: &Bench, name: &str) -> anyhow::Result<PathBuf> {
    let db = bench.out.join(format!("{name}.db"));
    if db.exists() {
        std::fs::remove_dir_all(&db).with_context(|| format!("remove {}", db.display()))?;
    }
    std::fs::create_dir_all(db.join("incoming"))
        .with_context(|| format!("create {}", db.display()))?;
    // The nodes of a simulated cluster have names of their own: one name makes them one machine.
    std::fs::write(db.join("colltune.toml"), "machine = \"bench\"\n")
        .with_context(|| format!("write the settings of {}", db.display()))?;
    Ok(db)
}

/// A new database in whose generation 1 a variant is the choice for all calls of a collective.
pub fn learned(
    bench: &Bench,
    place: &Place,
    name: &str,
    (collective, variant): (Collective, &str),
) -> anyhow::Result<PathBuf> {
    let db = empty(bench, name)?;
    let mut model = Model::initial(&Settings::default(), place.library, "bench");
    model.generation = 1;
    let all = model.cells.iter_mut();
    for cell in all.filter(|cell| cell.cell.collective == collective) {
        variant.clone_into(&mut cell.best);
        cell.gain = 1.5;
    }
    let library = db.join(place.library.to_string());
    let generation = library.join("generations/000001");
    std::fs::create_dir_all(&generation)
        .and_then(|()| std::fs::write(generation.join("probabilities.json"), model.to_json()))
        .and_then(|()| std::fs::write(library.join("CURRENT"), "000001\n"))
        .with_context(|| format!("write a generation of {}", db.display()))?;
    Ok(db)
}

/// `colltune train --db DB`, with what it printed.
pub fn train(bench: &Bench, db: &Path) -> anyhow::Result<String> {
    let own = own::colltune()?;
    let mut command = Command::new("timeout");
    command
        .args(["--foreground", "-k", "2", "300"])
        .arg(own)
        .args(["train", "--db"])
        .arg(db);
    let output = command
        .stdin(Stdio::null())
        .output()
        .context("start colltune train")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    bench.note_warnings(&stderr);
    if !output.status.success() {
        bail!("train {}: {}", db.display(), stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `colltune calibrate` where jobs of `place` run, into a database.
pub fn calibrate(place: &Place, db: &Path) -> anyhow::Result<()> {
    let own = own::colltune()?;
    let mut words: Vec<OsString> = ["--foreground", "-k", "2", "600"]
        .map(OsString::from)
        .to_vec();
    words.extend(place.scheduler().iter().map(OsString::from));
    words.extend([own.into(), "calibrate".into(), "--db".into(), db.into()]);
    words.push("--".into());
    words.extend(place.line(place.n_ranks, &[], &[]));
    let mut command = Command::new("timeout");
    command
        .args(&words)
        .envs(place.variables.iter().cloned())
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command
        .stdin(Stdio::null())
        .output()
        .context("start colltune calibrate")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("calibrate {}: {}", db.display(), stderr.trim());
    }
    Ok(())
}

/// A copy of a database below the output folder; one of the same name is removed first.
pub fn copy(bench: &Bench, db: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let copy = bench.out.join(format!("{name}.db"));
    if copy.exists() {
        std::fs::remove_dir_all(&copy).with_context(|| format!("remove {}", copy.display()))?;
    }
    let status = Command::new("cp").arg("-a").args([db, &copy]).status();
    if !status.context("start cp")?.success() {
        bail!("copy {}", db.display());
    }
    Ok(copy)
}

/// The cells that `colltune status --json` tells of.
pub fn status(db: &Path) -> anyhow::Result<Vec<Value>> {
    let own = own::colltune()?;
    let mut command = Command::new(own);
    let output = command.args(["status", "--json", "--db"]).arg(db).output();
    let output = output.context("start colltune status")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("read the status of {}: {}", db.display(), stderr.trim());
    }
    let status: Value =
        serde_json::from_slice(&output.stdout).context("read what colltune status wrote")?;
    Ok(status["cells"].as_array().cloned().unwrap_or_default())
}

/// Whether one of these holds the calls of a measured cell.
pub fn holds(status: &Value, place: &Place, (collective, bytes): Cell) -> bool {
    let within = |key: &str, value: u64| {
        let range = &status[key];
        range[0].as_u64().is_some_and(|low| low <= value)
            && range[1].as_u64().is_none_or(|high| value < high)
    };
    status["collective"] == collective.name()
        && within("nodes", place.nodes as u64)
        && within("ppn", (place.n_ranks / place.nodes) as u64)
        && within("bytes", bytes)
}

/// Sets the call orders of training apart from those of measured rounds.
const TRAINING: u64 = 0x7e41;

/// Runs in a batch, as in the paper.
pub const RUNS: u64 = 10;

/// What was learned after a batch, and after a second one.
pub struct Batches {
    pub one: PathBuf,
    pub two: PathBuf,
}

/// Two batches of ten explore runs of the program that is measured afterwards, each batch followed
/// by a training, from a database that is calibrated and no more. Seeds and call orders are those of no measured run and
/// of no other `number`.
pub fn train_two_batches(
    bench: &Bench,
    place: &Place,
    calibrated: &Path,
    number: u64,
    cells: &[Cell],
    repetitions: usize,
) -> anyhow::Result<Batches> {
    let db = copy(bench, calibrated, "tuned-two")?;
    let batch = |batch: u64| -> anyhow::Result<()> {
        for run in 0..RUNS {
            bench.progress(&format!(
                "training {}: run {} of {}",
                number + 1,
                batch * RUNS + run + 1,
                2 * RUNS
            ));
            let seed = 1000 * (number + 1) + batch * RUNS + run;
            let tuner = Tuner::shim(&db, Mode::Explore, seed);
            let order = mix(TRAINING, seed) >> 1;
            let arguments = jobs::collectives(cells, repetitions, 2, order);
            jobs::run(bench, place, place.n_ranks, &tuner, &arguments)?;
        }
        bench.progress(&format!("training {}: learning", number + 1));
        train(bench, &db).map(drop)
    };
    batch(0)?;
    let one = copy(bench, &db, "tuned-one")?;
    batch(1)?;
    Ok(Batches { one, two: db })
}
