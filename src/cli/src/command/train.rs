//! `colltune train`: learn from the runs since the last training.
//!
//! ```text
//! $ colltune run --db ./hydra.db -- mpirun -n 8 ./solver      # ten times or so
//! $ colltune train --db ./hydra.db
//! took 40 traces with 23,104 records
//! openmpi-4.1.4: generation 1 from 10 runs, 23,104 records of 5,776 calls
//!   12 cells measured, in 5 of them another variant than the default is best
//!   5 cells changed their best variant
//!   7 of 12 cells stable: for three trainings no probability moved by more than 2 points
//! $ colltune status --db ./hydra.db
//! ```

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use crate::asked;
use colltune_core::levers::learned::LearnedLever;
use colltune_core::settings::LearnerKind;
use colltune_db::lock::LockError;
use colltune_db::train::LibraryReport;
use colltune_db::{Database, DbError, TrainOptions, TrainReport, runs, train};
use serde::Serialize;

use colltune_launch::trial::{Interrupt, interrupted};
use colltune_output::parse::learner;
use colltune_output::progress;
use colltune_output::{json, tell};

/// How often a training that another one keeps waiting is tried again.
const TRIES_EVERY: Duration = Duration::from_millis(200);

/// Ingests, learns and publishes.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let options = TrainOptions {
        seed: args.seed,
        force: args.force,
    };
    Database::open(&args.db)?;
    let db = Database::create_or_open(&args.db)?.learning_by(args.learner);
    let report = train(&db, options, &progress::show)?;
    progress::clear();
    for warning in &report.ingest.warnings {
        progress::hint(warning);
    }
    if args.json {
        return json(&Json::of(&db, &report));
    }
    print(&db, &report);
    Ok(())
}

/// Trains as soon as no other training runs: jobs that took minutes must not be run anew for that. Before each
/// further try `goes_on` is asked whether to wait on.
///
/// Errors: those of [`train`], and of `goes_on`.
pub fn train_in_turn(
    db: &Database,
    goes_on: &dyn Fn() -> anyhow::Result<()>,
) -> anyhow::Result<TrainReport> {
    let mut said = String::new();
    loop {
        match train(db, TrainOptions::default(), &|_| ()) {
            Err(DbError::Lock(LockError::Held { holder, .. })) => {
                if holder != said {
                    progress::show(&format!("waits: {holder} is training"));
                    said = holder;
                }
                goes_on()?;
                sleep(TRIES_EVERY);
            }
            other => return Ok(other?),
        }
    }
}

/// Whether no signal has asked this command to end.
///
/// Errors: one has.
pub fn goes_on(interrupt: &Interrupt) -> anyhow::Result<()> {
    match interrupt.signal() {
        Some(signal) => Err(interrupted(signal)),
        None => Ok(()),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune train --db ./hydra.db
      After a batch of runs, ten or so. Running jobs are not disturbed, their traces are left for
      the next training. With nothing new nothing is published.
  colltune train --db ./hydra.db --learner ompicolltune
      As the paper has it: regressions of run times by XGBoost, the most probable variant in every
      cell. Jobs draw as what was published last wants it.

Traces that cannot be used are moved to DB/quarantine, each with NAME.reason; the rest goes on.
Only one training runs at a time: a second one is told who holds DB/train.lock.
Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub struct Args {
    /// The tuning database
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: PathBuf,
    /// Seed of the posterior draws that set probabilities; one data set and seed give one model
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Who learns, whatever the settings say
    #[arg(long, value_parser = learner())]
    learner: Option<LearnerKind>,
    /// Publish a new generation even if nothing is new
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The contents of `train --json`.
#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    traces: u64,
    records: u64,
    traces_of_running_jobs: u64,
    /// Unusable traces, each with its reason.
    quarantined: &'a [(String, String)],
    warnings: &'a [String],
    libraries: Vec<Learned>,
    /// What is in force of levers that programs ask about.
    levers: &'a [LearnedLever],
}

/// What a training did for one library.
#[derive(Serialize)]
struct Learned {
    library: String,
    generation: u64,
    /// Whether it is a new one.
    published: bool,
    runs: u64,
    records: u64,
    calls: u64,
    cells_measured: u64,
    /// Those where another variant than `default` is best.
    cells_tuned: u64,
    cells_changed: u64,
    /// Those whose probabilities have not moved for three trainings; null where that cannot be read.
    cells_at_rest: Option<usize>,
}

impl Json<'_> {
    fn of<'a>(db: &Database, report: &'a TrainReport) -> Json<'a> {
        let learned = |one: &LibraryReport| Learned {
            library: one.library.to_string(),
            generation: one.generation,
            published: one.published,
            runs: one.runs,
            records: one.records,
            calls: one.calls,
            cells_measured: one.cells_measured,
            cells_tuned: one.cells_tuned,
            cells_changed: one.cells_changed,
            cells_at_rest: colltune_report::cells_at_rest(db, &one.library)
                .ok()
                .map(|(at_rest, _)| at_rest),
        };
        Json {
            schema: 1,
            traces: report.ingest.traces,
            records: report.ingest.records,
            traces_of_running_jobs: report.ingest.running,
            quarantined: &report.ingest.quarantined,
            warnings: &report.ingest.warnings,
            libraries: report.libraries.iter().map(learned).collect(),
            levers: &report.levers,
        }
    }
}

fn print(db: &Database, report: &TrainReport) {
    let ingest = &report.ingest;
    tell(format!(
        "took {} with {}",
        counted(ingest.traces, "trace"),
        counted(ingest.records, "record")
    ));
    if ingest.running > 0 {
        tell(format!(
            "left {} of running jobs for later",
            counted(ingest.running, "trace")
        ));
    }
    if !ingest.quarantined.is_empty() {
        tell(format!(
            "moved {} to {}:",
            counted(ingest.quarantined.len() as u64, "unusable trace"),
            db.quarantine().display()
        ));
        for (name, reason) in ingest.quarantined.iter().take(10) {
            tell(format!("  {}: {reason}", name.escape_debug()));
        }
        if ingest.quarantined.len() > 10 {
            tell(format!("  ... and {} more", ingest.quarantined.len() - 10));
        }
    }
    for library in &report.libraries {
        print_library(db, library);
    }
    for lever in &report.levers {
        tell(asked::sentence(lever));
    }
    if report.libraries.is_empty() && report.levers.is_empty() {
        let empty = runs::times(db, &mut Vec::new()).len() as u64;
        let start = format!("`colltune run --db {} -- mpirun ...`", db.in_shell());
        tell(match empty {
            0 => format!("nothing to learn from yet: start jobs with {start}"),
            _ => format!(
                "nothing to learn from: {} left no records; a job that cannot write them says why at its end; start more \
                 with {start}",
                counted(empty, "run")
            ),
        });
    }
}

fn print_library(db: &Database, report: &LibraryReport) {
    let LibraryReport {
        library,
        generation,
        ..
    } = report;
    if !report.published {
        tell(format!(
            "{library}: nothing new, generation {generation} stays in force"
        ));
        return;
    }
    tell(format!(
        "{library}: generation {generation} from {}, {} of {}",
        counted(report.runs, "run"),
        counted(report.records, "record"),
        counted(report.calls, "call")
    ));
    tell(format!(
        "  {} measured, in {} of them another variant than the default is best",
        counted(report.cells_measured, "cell"),
        grouped(report.cells_tuned)
    ));
    tell(format!(
        "  {} changed their best variant",
        counted(report.cells_changed, "cell")
    ));
    // Files that cannot be read are reported where they are needed.
    if let Ok((at_rest, cells)) = colltune_report::cells_at_rest(db, library) {
        tell(format!(
            "  {at_rest} of {} stable: for three trainings no probability moved by more than 2 points",
            counted(cells as u64, "cell"),
        ));
    }
}

pub fn counted(number: u64, noun: &str) -> String {
    format!(
        "{} {noun}{}",
        grouped(number),
        if number == 1 { "" } else { "s" }
    )
}

/// A number with commas: 23,104.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use colltune_db::lock::Lock;

    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (23_104, "23,104"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(counted(1, "run"), "1 run");
    }

    #[test]
    fn who_finds_another_training_waits_for_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let other = std::cell::Cell::new(Some(Lock::take(&db.lock_path()).unwrap()));
        let stops = train_in_turn(&db, &|| anyhow::bail!("interrupted"));
        assert_eq!(stops.unwrap_err().to_string(), "interrupted");
        let ends = || {
            assert!(other.take().is_some(), "it is over: nothing is waited for");
            Ok(())
        };
        train_in_turn(&db, &ends).unwrap();
        assert!(other.take().is_none(), "it waited");
    }
}
