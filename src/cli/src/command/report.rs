//! `colltune report`: what a database says, as one page for a browser.
//!
//! ```text
//! $ colltune report --db ./hydra.db -o report.html
//! $ colltune report --db ./hydra.db --json | jq '.head.gain'
//! ```

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use colltune_core::collective::Collective;
use colltune_core::variant::Size;
use colltune_db::{DataKey, Database};
use colltune_report::{Question, ReportError, Shape, page};

use colltune_output::failure::usage;
use colltune_output::parse::collective;
use colltune_output::progress;
use colltune_output::{is_stdout, print, save, told};

/// A report says within so many bytes that it is one.
const BEGINNING: u64 = 4096;

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
    let replaced = match before(&args.output)? {
        Before::Nothing => "",
        Before::Report => "replaced the report in ",
    };
    save(&args.output, &page)?;
    told(
        &args.output,
        &format!(
            "{replaced}{}: {} runs, {} cells, {} KiB\n",
            args.output.display(),
            report.head.runs.all,
            report.cells.shown.len(),
            page.len() / 1024
        ),
    )
}

/// What is in the place of the file that is to be written.
enum Before {
    Nothing,
    Report,
}

/// Looks at it. An empty file and what is none, such as a terminal, are nothing.
///
/// Errors: for a file that is no report: it must not be lost.
fn before(path: &Path) -> anyhow::Result<Before> {
    let is_file = |path: &Path| {
        path.metadata()
            .is_ok_and(|about| about.is_file() && about.len() > 0)
    };
    if is_stdout(path) || !is_file(path) {
        return Ok(Before::Nothing);
    }
    let mut begins = Vec::new();
    let file = File::open(path).with_context(|| format!("read {}", path.display()))?;
    let read = file.take(BEGINNING).read_to_end(&mut begins);
    read.with_context(|| format!("read {}", path.display()))?;
    match String::from_utf8_lossy(&begins).contains(page::TITLE) {
        true => Ok(Before::Report),
        false => Err(usage(format!(
            "write {0}: it is there, and no report of colltune's; name another file with -o, or remove it",
            path.display()
        ))),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune report --db ./hydra.db
      Writes report.html, one file that needs nothing else: where the time of each program's
      collectives goes and which variants ran, what is chosen and what it gains, how the
      probabilities moved, whether predictions were right, whole runs with and without the tuner,
      and the levers that programs ask about.
  colltune report --db ./hydra.db --collective allreduce --shape 4x2 --bytes 8,48
      Only cells that hold such calls.
  colltune report --db ./hydra.db --holdout 3x2
      What would have been chosen on 3 nodes with 2 ranks each without the data from there.

Whole runs are compared where there are five without the tuner: `colltune run --mode off --db DIR
-- ...`. Runs count as alike by program, arguments (known by a hash alone) and layout;
COLLTUNE_LABEL names those that differ in their arguments only.
A report that is there is replaced, and that is said; any other file is left alone, and refused.
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
    /// Learn anew without this layout's data, and compare with them
    #[arg(long, value_name = "NxP")]
    holdout: Option<Shape>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_replaced_and_another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("db");
        Database::create_or_open(&db).unwrap();
        let written = colltune_report::read(&Database::open(&db).unwrap(), &Question::default());
        let file = folder.path().join("report.html");
        assert!(
            matches!(before(&file), Ok(Before::Nothing)),
            "there is none yet"
        );
        std::fs::write(&file, "").unwrap();
        assert!(
            matches!(before(&file), Ok(Before::Nothing)),
            "as `mktemp` makes it"
        );
        std::fs::write(&file, page::html(&written.unwrap())).unwrap();
        assert!(matches!(before(&file), Ok(Before::Report)));
        assert!(matches!(
            before(Path::new("/dev/null")),
            Ok(Before::Nothing)
        ));
        std::fs::write(&file, "<html><title>My thesis</title>").unwrap();
        let refused = before(&file).err().expect("it is somebody's").to_string();
        assert!(refused.contains("no report of colltune's"), "{refused}");
    }
}
