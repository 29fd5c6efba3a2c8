//! `colltune status`: what is known about each cell, and what is chosen there.
//!
//! ```text
//! $ colltune status --db ./hydra.db
//! $ colltune status --db ./hydra.db --json | jq '.cells[] | select(.gain > 1.1) | .best'
//! ```

use std::path::PathBuf;

use anyhow::{Context, bail};
use colltune_core::library::Library;
use colltune_core::model::{SCHEMA, Source};
use colltune_core::space::Range;
use colltune_core::variant::Size;
use colltune_db::{Database, Generation, Passed};
use colltune_models::statistics::{CellStatistics, VariantStatistics};
use serde::Serialize;

use super::output::print;
use crate::failure::usage;

/// Prints the table, or JSON.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let db = Database::open(&args.db)?;
    let generations = generations(&db, args)?;
    let text = if args.json {
        json(&db, &generations)?
    } else {
        table(&db, &generations, args.all)
    };
    print(&text)
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune status --db ./hydra.db
      The measured cells: how many calls were timed, which variant is best, how much faster than
      the default it is, and how likely each variant is to be drawn.
  colltune status --db ./hydra.db --json
      Every cell and variant, with the median time of each and its 95 % interval.

A gain is claimed only where it is beyond doubt; elsewhere the best variant is the default.
Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub struct Args {
    /// The tuning database
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: PathBuf,
    /// Print every cell as JSON
    #[arg(long)]
    json: bool,
    /// The MPI library and version, where the database holds several: openmpi-4.1.4
    #[arg(long, value_name = "KEY")]
    library: Option<String>,
    /// Show cells without measurements too
    #[arg(long, conflicts_with = "json")]
    all: bool,
}

fn generations(db: &Database, args: &Args) -> anyhow::Result<Vec<Generation>> {
    let mut libraries = db.libraries()?;
    if let Some(key) = &args.library {
        let library: Library = key.parse().map_err(usage)?;
        if !libraries.contains(&library) {
            bail!(
                "find {key} in {}: {}",
                db.root().display(),
                listed(&libraries)
            );
        }
        libraries = vec![library];
    }
    if args.json && libraries.len() > 1 {
        return Err(usage(format!(
            "choose a library: {}; name one with --library",
            listed(&libraries)
        )));
    }
    libraries
        .into_iter()
        .map(|library| Ok(Generation::load(db, library)?))
        .collect()
}

fn listed(libraries: &[Library]) -> String {
    let names: Vec<String> = libraries.iter().map(Library::to_string).collect();
    if names.is_empty() {
        "it holds no library yet".to_owned()
    } else {
        format!("it holds {}", names.join(", "))
    }
}

/// The contents of `status --json`.
#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    library: Option<String>,
    machine: String,
    generation: u64,
    cells: &'a [CellStatistics],
    /// Calls that passed through untuned: nonblocking, persistent and neighbourhood collectives.
    passed: &'a [Passed],
}

fn json(db: &Database, generations: &[Generation]) -> anyhow::Result<String> {
    let machine = || Ok::<_, anyhow::Error>(db.machine(&db.settings()?));
    let json = match generations.first() {
        None => Json {
            schema: SCHEMA,
            library: None,
            machine: machine()?,
            generation: 0,
            cells: &[],
            passed: &[],
        },
        Some(generation) => Json {
            schema: SCHEMA,
            library: Some(generation.library.to_string()),
            machine: generation.model.machine.clone(),
            generation: generation.number,
            cells: &generation.cells,
            passed: generation.meta.as_ref().map_or(&[], |meta| &meta.passed),
        },
    };
    let mut text = serde_json::to_string(&json).context("write JSON")?;
    text.push('\n');
    Ok(text)
}

fn table(db: &Database, generations: &[Generation], all: bool) -> String {
    if generations.is_empty() {
        return format!(
            "no runs yet: start jobs with `colltune run --db {} -- mpirun ...`\n",
            db.root().display()
        );
    }
    generations
        .iter()
        .map(|generation| table_of(db, generation, all))
        .collect::<Vec<_>>()
        .join("\n")
}

fn table_of(db: &Database, generation: &Generation, all: bool) -> String {
    let mut text = match &generation.meta {
        None => format!(
            "{}: not trained yet, run `colltune train --db {}`\n",
            generation.library,
            db.root().display()
        ),
        Some(meta) => format!(
            "{} on {}: generation {}, learned from {} runs and {} calls\n",
            generation.library, meta.machine, generation.number, meta.runs, meta.calls
        ),
    };
    let shown: Vec<&CellStatistics> = generation
        .cells
        .iter()
        .filter(|cell| all || cell.source == Source::Measured)
        .collect();
    let mut rows = vec![
        [
            "collective",
            "bytes",
            "nodes",
            "ppn",
            "calls",
            "best",
            "gain",
            "drawn most",
        ]
        .map(str::to_owned),
    ];
    rows.extend(shown.iter().map(|cell| row(cell)));
    if rows.len() > 1 {
        text.push_str(&aligned(&rows));
    }
    let hidden = generation.cells.len() - shown.len();
    if hidden > 0 && generation.meta.is_some() {
        text.push_str(&format!(
            "{hidden} cells without measurements are not shown (--all shows them)\n"
        ));
    }
    let passed = generation
        .meta
        .as_ref()
        .map_or(&[][..], |meta| &meta.passed);
    if !passed.is_empty() {
        text.push_str("recorded, but never tuned:\n");
        text.push_str(&aligned(&passed_rows(passed)));
    }
    text
}

fn passed_rows(passed: &[Passed]) -> Vec<[String; 7]> {
    let head = [
        "collective",
        "manner",
        "bytes",
        "nodes",
        "ppn",
        "records",
        "median",
    ];
    let row = |row: &Passed| {
        let [lo, hi] = row.bytes;
        [
            row.collective.to_string(),
            row.manner.replace('_', " "),
            format!("[{}, {})", Size(lo), Size(hi)),
            row.nodes.to_string(),
            row.ppn.to_string(),
            row.records.to_string(),
            format!("{:.1} us", row.median_ns as f64 / 1e3),
        ]
    };
    std::iter::once(head.map(str::to_owned))
        .chain(passed.iter().map(row))
        .collect()
}

fn row(cell: &CellStatistics) -> [String; 8] {
    let plain = |range: Range| match range.hi {
        Some(hi) if hi == range.lo + 1 => range.lo.to_string(),
        Some(hi) => format!("{}-{}", range.lo, hi - 1),
        None => format!("{}+", range.lo),
    };
    let bytes = match cell.cell.bytes.hi {
        Some(hi) => format!("[{}, {})", Size(cell.cell.bytes.lo), Size(hi)),
        None => format!("{}+", Size(cell.cell.bytes.lo)),
    };
    let mut likely: Vec<&VariantStatistics> = cell.variants.iter().collect();
    likely.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let likely: Vec<String> = likely
        .iter()
        .take(2)
        .map(|variant| format!("{} {:.0} %", variant.name, 100.0 * variant.probability))
        .collect();
    let best = if cell.source == Source::Measured {
        cell.best.clone()
    } else {
        format!("{} (predicted)", cell.best)
    };
    [
        cell.cell.collective.to_string(),
        bytes,
        plain(cell.cell.nodes),
        plain(cell.cell.ppn),
        cell.samples().to_string(),
        best,
        format!("{:.2}x", cell.gain),
        likely.join(", "),
    ]
}

/// Columns as wide as their widest entry.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width: Vec<usize> = (0..N)
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row
            .iter()
            .zip(&width)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
