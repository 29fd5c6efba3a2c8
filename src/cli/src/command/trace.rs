//! `colltune trace`: when a job ran what, as a time line for Perfetto and the Firefox profiler.
//!
//! ```text
//! $ colltune trace --db ./hydra.db -o trace.json
//! $ colltune trace --telemetry telemetry -o phases.json.gz
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use colltune_db::Database;
use colltune_timeline::{Drawn, TimelineError, calls, phases};
use flate2::Compression;
use flate2::write::GzEncoder;

use colltune_output::failure::{usage, wrong};
use colltune_output::progress;
use colltune_output::{fill, told};

/// Writes the time line.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let drawn = match (&args.telemetry, &args.db) {
        (Some(folder), _) => write(&args.output, |file| Ok(phases::draw(folder, file)?))?,
        (None, Some(db)) => {
            let db = Database::open(db)?;
            let mut warnings = Vec::new();
            let job = calls::find(&db, args.job.as_deref(), &mut warnings);
            for warning in warnings {
                progress::hint(warning);
            }
            let job = job.map_err(|error| match error {
                TimelineError::Job { .. } if args.job.is_some() => usage(error),
                error => error.into(),
            })?;
            write(&args.output, |file| Ok(calls::draw(&db, &job, file)?))?
        }
        (None, None) => {
            return Err(wrong(
                "nothing to draw: give --db DIR or --telemetry FOLDER",
            ));
        }
    };
    for note in &drawn.notes {
        progress::hint(note);
    }
    told(
        &args.output,
        &format!(
            "{}: {} events of {} ranks; open it in ui.perfetto.dev or profiler.firefox.com\n",
            args.output.display(),
            drawn.events,
            drawn.ranks
        ),
    )
}

/// Writes the file, compressed where its name says so.
fn write(
    path: &Path,
    draw: impl FnOnce(&mut dyn Write) -> anyhow::Result<Drawn>,
) -> anyhow::Result<Drawn> {
    fill(path, |file| {
        if path.extension().is_none_or(|end| end != "gz") {
            return draw(file);
        }
        let mut packed = GzEncoder::new(file, Compression::fast());
        let drawn = draw(&mut packed)?;
        packed
            .try_finish()
            .with_context(|| format!("write {}", path.display()))?;
        Ok(drawn)
    })
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune trace --db ./hydra.db -o trace.json
      The recorded collectives of the job that began last: a track for each rank that recorded, a
      process for each host; an event is named by collective and variant, and says bytes,
      communicator and what of it was work.
  colltune trace --db ./hydra.db --job 4711.hydra -o trace.json.gz
      Another job, compressed; a name that is not there lists those that are.
  colltune trace --telemetry telemetry -o phases.json
      The phases of the mini-app, recorded with --telemetry telemetry --telemetry_spans.

Only calls that were sampled are there: a gap between two is not idle time. Clocks of several
hosts are compared by the collectives that their ranks recorded together; how well, and where none
compares, is said.
Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub struct Args {
    /// The tuning database
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// The job, by the name in its records [default: the one that began last]
    #[arg(long, value_name = "JOB", conflicts_with = "telemetry")]
    job: Option<String>,
    /// Draw what the mini-app wrote into this folder instead
    #[arg(long, value_name = "FOLDER")]
    telemetry: Option<PathBuf>,
    /// The file to write, compressed if its name ends in .gz; `-` is standard output
    #[arg(short, long, default_value = "trace.json", value_name = "FILE")]
    output: PathBuf,
}
