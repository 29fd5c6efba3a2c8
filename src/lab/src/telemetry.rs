//! `colltune-lab telemetry`: what the mini-app's telemetry says about waiting, critical paths, slow hosts, noise and
//! messages, and what messages of any program say that `colltune run --messages` recorded.
//!
//! ```text
//! $ mpirun -n 8 target/openmpi/colltune-amr --deck sedov-512 --num_tsteps 40 \
//!       --telemetry telemetry --telemetry_blocks --telemetry_rounds
//! $ colltune-lab telemetry summary telemetry
//! $ colltune-lab telemetry path telemetry --steps 10..30 --svg path.svg
//! ```

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use colltune_core::record::Manner;
use colltune_db::Database;
use colltune_db::job::TimedCall;
use colltune_telemetry::health::lateness::{Arrivals, Lateness, SYNCHRONISING, Stay};
use colltune_telemetry::messages::MessageRecording;
use colltune_telemetry::summary::Summary;
use colltune_telemetry::{Folder, health, matrix, noise, path, summary};
use colltune_timeline::{TimelineError, calls};
use serde::Serialize;

use crate::plot::{self, Bar};
use colltune_output::failure::{usage, wrong};
use colltune_output::parse::named;
use colltune_output::progress;
use colltune_output::{print, save};

/// Answers one question about a folder of telemetry.
pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.question {
        Question::Summary(asked) => {
            if let Some(recording) = MessageRecording::open(&asked.data.folder)? {
                if asked.svg.is_some() {
                    return Err(usage(
                        "draw a summary of messages: --svg draws a `telemetry matrix` of them",
                    ));
                }
                let found = recording.summary();
                return asked.data.tell(&found, &found.warnings, || found.text());
            }
            let found = summary::summary(&asked.data.open()?)?;
            if let Some(file) = &asked.svg {
                save(file, &shares(&found)?)?;
            }
            asked.data.tell(&found, &found.warnings, || found.text())
        }
        Question::Path(asked) => {
            let found = path::paths(&asked.data.open()?, &asked.steps)?;
            if let (Some(file), Some(longest)) = (&asked.svg, &found.longest) {
                save(file, &path::svg(longest))?;
            }
            asked.data.tell(&found, &found.warnings, || found.text())
        }
        Question::Health(asked) => match &asked.folder {
            Some(folder) => {
                let found = health::health(&Folder::open(folder)?)?;
                tell(asked.json, &found, &found.warnings, || found.text())
            }
            None => {
                let found = lateness(asked)?;
                tell(asked.json, &found, &found.warnings, || found.text())
            }
        },
        Question::Noise(asked) => {
            let found = noise::noise(&asked.open()?)?;
            asked.tell(&found, &found.warnings, || found.text())
        }
        Question::Matrix(asked) => {
            let found = match MessageRecording::open(&asked.data.folder)? {
                Some(_) if asked.step.is_some() || asked.kind != matrix::Freight::All => {
                    return Err(usage(
                        "count messages by --kind or --step: of a program that is not the mini-app neither is known",
                    ));
                }
                Some(recording) => recording.matrix()?,
                None => matrix::matrix(&asked.data.open()?, asked.kind, asked.step)?,
            };
            if let Some(file) = &asked.svg {
                save(file, &matrix::svg(&found))?;
            }
            if let Some(file) = &asked.csv {
                save(file, &found.csv())?;
            }
            asked.data.tell(&found, &found.warnings, || found.text())
        }
    }
}

impl Data {
    fn open(&self) -> anyhow::Result<Folder> {
        Ok(Folder::open(&self.folder)?)
    }

    fn tell(
        &self,
        found: &impl Serialize,
        warnings: &[String],
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        tell(self.json, found, warnings, text)
    }
}

fn tell(
    json: bool,
    found: &impl Serialize,
    warnings: &[String],
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    if json {
        let text = serde_json::to_string(found).context("write JSON")?;
        return print(&(text + "\n"));
    }
    for warning in warnings {
        progress::hint(warning);
    }
    print(&text())
}

/// Bars that are drawn; of more ranks every n-th.
const BARS_MAX: usize = 64;

/// What each rank's time went into, as bars.
fn shares(found: &Summary) -> anyhow::Result<String> {
    let every = found.ranks.len().div_ceil(BARS_MAX).max(1);
    // So many names with the word in them stand side by side.
    let word = if found.ranks.len() <= 12 { "rank " } else { "" };
    let bars: Vec<Bar> = found
        .ranks
        .iter()
        .step_by(every)
        .map(|of| {
            let share = &of.share;
            let parts = [
                ("work", share.work),
                ("other", share.other),
                ("late partners", share.late),
                ("other waiting for messages", share.wait - share.late),
                ("waiting in collectives", share.sync),
                ("collectives", share.call),
            ];
            Bar {
                name: format!("{word}{}", of.rank),
                parts: parts.map(|(name, ns)| (name, ns as f64 / 1e9)).to_vec(),
            }
        })
        .collect();
    let title = match every {
        1 => "Where the time of each rank goes".to_owned(),
        n => format!("Where the time goes, of every {n}th rank"),
    };
    plot::bars(&title, "seconds", &bars)
}

/// Which hosts came late to the recorded collectives of a job.
fn lateness(asked: &HealthArgs) -> anyhow::Result<Lateness> {
    let db = asked
        .db
        .as_deref()
        .ok_or_else(|| wrong("give a folder of telemetry, or a database by --db or COLLTUNE_DB"))?;
    let (db, mut warnings) = (Database::open(db)?, Vec::new());
    let job =
        calls::find(&db, asked.job.as_deref(), &mut warnings).map_err(|error| match error {
            TimelineError::Job { .. } if asked.job.is_some() => usage(error),
            error => error.into(),
        })?;
    let mut arrivals = Arrivals::default();
    for rank in job.ranks() {
        let Some(records) = job.read(&db, rank)? else {
            continue;
        };
        let counts = |call: &&TimedCall| {
            call.manner == Manner::Blocking && SYNCHRONISING.contains(&call.collective.as_str())
        };
        let stays = records.calls.iter().filter(counts).map(|call| Stay {
            comm: call.comm,
            call: call.call,
            duration_ns: call.duration_ns,
        });
        arrivals.add(&records.host, stays);
    }
    let mut found = arrivals.lateness().with_context(|| {
        format!(
            "compare hosts: ranks of two of them recorded no synchronising collective together in the job {}; record \
             ranks of each node (`recording_ranks` and `recording_ranks_per_node` in colltune.toml)",
            job.job
        )
    })?;
    found.warnings = warnings;
    Ok(found)
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune-amr --deck sedov-512 --telemetry t --telemetry_blocks --telemetry_rounds    (under mpirun) records
  colltune-lab telemetry summary t --svg s.svg    waiting against working, and what to do about it
  colltune-lab telemetry path t         which ranks and blocks decide when all can go on
  colltune-lab telemetry health t       ranks, cores and nodes that need longer for the same work
  colltune-lab telemetry health --db ./hydra.db    hosts that come late to any program's recorded collectives
  colltune-lab telemetry noise t        whether the costs of blocks can be trusted
  colltune-lab telemetry matrix t --kind ghost --svg ghosts.svg --csv ghosts.csv    who gives how much to whom
  colltune run --messages m -- mpirun -n 8 ./solver    any program: then `summary m` and `matrix m`, and nothing else

Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand, Debug)]
enum Question {
    /// Waiting against working by rank, phase and level, and what to do about it
    Summary(SummaryArgs),
    /// Critical paths: which ranks and blocks decide when all can go on
    Path(PathArgs),
    /// Ranks, cores and nodes that need longer for the same work
    Health(HealthArgs),
    /// Whether the costs of blocks can be trusted, and what comes on top of them
    Noise(Data),
    /// Who gives how much to whom
    Matrix(MatrixArgs),
}

#[derive(clap::Args, Debug)]
struct Data {
    /// The folder that --telemetry named; for summary and matrix also one of `colltune run --messages`
    folder: PathBuf,
    /// Print all numbers as JSON instead
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct SummaryArgs {
    #[command(flatten)]
    data: Data,
    /// Draw each rank's time into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct HealthArgs {
    /// The folder that --telemetry named
    folder: Option<PathBuf>,
    /// Without a folder: look for hosts that come late to the collectives that a job of any program recorded here
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// The job, by the name in its records [default: the one that began last]
    #[arg(long, value_name = "JOB", conflicts_with = "folder")]
    job: Option<String>,
    /// Print all numbers as JSON instead
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct PathArgs {
    #[command(flatten)]
    data: Data,
    /// Only these steps: 10..30, both included
    #[arg(long, value_parser = steps, default_value = "..", value_name = "A..B")]
    steps: RangeInclusive<u64>,
    /// Draw the longest path into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct MatrixArgs {
    #[command(flatten)]
    data: Data,
    /// What to count
    #[arg(long, default_value = "all", value_name = "KIND",
          value_parser = named(["ghost", "flux", "block", "all"], |name| name.parse::<matrix::Freight>().ok()))]
    kind: matrix::Freight,
    /// Only this step; otherwise the mean of all
    #[arg(long)]
    step: Option<u64>,
    /// Draw it into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a line for each pair into this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn steps(text: &str) -> Result<RangeInclusive<u64>, String> {
    let wrong = || "two steps with .. between them, such as 10..30".to_owned();
    let (first, last) = text.split_once("..").ok_or_else(wrong)?;
    let end = |text: &str, open: u64| match text {
        "" => Ok(open),
        text => text.parse().map_err(|_| wrong()),
    };
    let (first, last) = (end(first, 0)?, end(last, u64::MAX)?);
    match first <= last {
        true => Ok(first..=last),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_with_open_ends() {
        assert_eq!(steps("10..30"), Ok(10..=30));
        assert_eq!(steps(".."), Ok(0..=u64::MAX));
        assert_eq!(steps("7.."), Ok(7..=u64::MAX));
        for wrong in ["", "7", "9..7", "a..b", "1...2"] {
            assert!(steps(wrong).is_err(), "{wrong}");
        }
    }
}
