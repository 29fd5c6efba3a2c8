//! `colltune report`: what a database says, as one page for a browser.
//!
//! ```text
//! $ colltune report --db ./hydra.db -o report.html
//! $ colltune report --db ./hydra.db --json | jq '.head.gain'
//! ```

use std::path::PathBuf;

use anyhow::Context;
use colltune_core::collective::Collective;
use colltune_core::variant::Size;
use colltune_db::{DataKey, Database};
use colltune_report::{Holdout, Question, ReportError, Shape, page};

use crate::failure::usage;
use crate::output::{print, save, told};
use crate::parse::collective;
use crate::progress;

/// Writes the page, or prints its numbers.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let db = Database::open(&args.db)?;
    let question = args.question()?;
    let report = colltune_report::read(&db, &question).map_err(|error| match error {
        ReportError::Library { .. } => usage(error),
        error => error.into(),
    })?;
    if args.json {
        let text = serde_json::to_string(&report).context("write JSON")?;
        return print(&(text + "\n"));
    }
    for warning in &report.warnings {
        progress::hint(warning);
    }
    let page = page::html(&report);
    save(&args.output, &page)?;
    told(
        &args.output,
        &format!(
            "{}: {} runs, {} cells, {} KiB\n",
            args.output.display(),
            report.head.runs.all,
            report.cells.shown.len(),
            page.len() / 1024
        ),
    )
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune report --db ./hydra.db
      Writes report.html, one file that needs nothing else: where the time of each program's
      collectives goes and which variants ran, what is chosen and what it gains, how the
      probabilities moved, whether predictions were right, and whole runs with and without the
      tuner.
  colltune report --db ./hydra.db --collective allreduce --shape 4x2 --bytes 8,48
      Only cells that hold such calls.
  colltune report --db ./hydra.db --holdout 3x2
      What would have been chosen on 3 nodes with 2 ranks each without the data from there.

Whole runs are compared where there are five without the tuner: `colltune run --mode off --db DIR
-- ...`. Runs count as alike by program, arguments (known by a hash alone) and layout;
COLLTUNE_LABEL names those that differ in their arguments only.
Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub struct Args {
    /// The tuning database
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: PathBuf,
    /// The file to write; `-` is standard output
    #[arg(short, long, default_value = "report.html", value_name = "FILE")]
    output: PathBuf,
    /// Print all numbers of the page as JSON instead
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// The MPI library and version, where the database holds several: openmpi-4.1.4
    #[arg(long, value_name = "KEY")]
    library: Option<String>,
    /// Only this collective
    #[arg(long, value_parser = collective(), value_name = "NAME")]
    collective: Option<Collective>,
    /// Only this layout, nodes x ranks on each: 4x2
    #[arg(long, value_name = "NxP")]
    shape: Option<Shape>,
    /// Only cells that hold one of these message sizes: 8,48,64KiB
    #[arg(long, value_delimiter = ',', value_name = "SIZES")]
    bytes: Vec<String>,
    /// Only runs with this label (COLLTUNE_LABEL)
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// Learn anew without this layout's data, and compare with them; `each`: each layout in its turn
    #[arg(long, value_name = "NxP")]
    holdout: Option<Holdout>,
}

impl Args {
    fn question(&self) -> anyhow::Result<Question> {
        let library = self.library.as_deref().map(str::parse::<DataKey>);
        let size = |text: &String| text.parse::<Size>().map(|size| size.0);
        Ok(Question {
            library: library.transpose().map_err(usage)?,
            collective: self.collective,
            shape: self.shape,
            bytes: self
                .bytes
                .iter()
                .map(size)
                .collect::<Result<_, _>>()
                .map_err(usage)?,
            label: self.label.clone(),
            holdout: self.holdout,
        })
    }
}
