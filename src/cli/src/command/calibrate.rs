//! `colltune calibrate`: measures this machine, so that times can be predicted before the first run.
//!
//! ```text
//! $ colltune calibrate --db ./hydra.db -- mpirun -n 8
//! $ colltune-lab simulate --db ./hydra.db --ranks 64x16 --collective allreduce
//! ```

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use colltune_core::calibration::Calibration;
use colltune_core::library::{Abi, Library};
use colltune_db::machine::host_name;
use colltune_db::{Database, line_word};
use serde::Serialize;
use serde_json::Value;

use super::train::grouped;
use colltune_launch::library::of_launcher;
use colltune_launch::line::find_launcher;
use colltune_launch::measuring::{self, answer_in, calibration, helper};
use colltune_launch::trial::Interrupt;
use colltune_launch::trial::interrupted;
use colltune_output::failure::{Stopped, usage};
use colltune_output::parse::abi;
use colltune_output::progress;
use colltune_output::{json, print, tell};

/// Runs the helper program with the given line and writes what it measured into the database.
pub fn run(args: &Args) -> anyhow::Result<()> {
    library_of(&args.line, args.mpi)?; // before a database is made
    let db = Database::create_or_open(&args.db)?;
    let (library, calibration) = into(&db, &args.line, args.mpi, &Interrupt::listen()?, None)?;
    progress::clear();
    if !args.json {
        print(&calibration.to_toml())?;
    }
    if calibration.between.is_none() {
        progress::hint(format_args!(
            "the job had one node; usual parameters stand for the network between nodes"
        ));
    }
    let settings = db.settings()?;
    let factor = settings.hopeless_factor_on(library);
    let found = settings.simulated.get(&library);
    if args.json {
        return json(&Json {
            file: db.calibration(library),
            calibration: &calibration,
            variants_expected_hopeless: found.map_or(0, |found| found.hopeless(factor)),
        });
    }
    tell(format!(
        "# written to {}; {} times a variant is expected to be over {factor} times as slow as another one in a cell",
        db.calibration(library).display(),
        grouped(found.map_or(0, |found| found.hopeless(factor)) as u64)
    ));
    Ok(())
}

/// Measures this machine with the launcher and its options, and publishes what was measured.
///
/// What was measured, and found from that, before it was cut short is taken as it is.
///
/// Errors: a helper that fails; `Stopped` by a signal, or at `until`, which leave what was found so far.
pub fn into(
    db: &Database,
    line: &[OsString],
    told: Option<Abi>,
    interrupt: &Interrupt,
    until: Option<Instant>,
) -> anyhow::Result<(Library, Calibration)> {
    let settings = db.settings()?;
    let line_word = line_word(line, &place_of(line, told)?);
    let calibration = match db.unfinished_calibration(&line_word) {
        Some((_, measured)) => {
            progress::tell("Going on with the calibration that was cut short.");
            measured
        }
        None => {
            let measured = measure(line, told, interrupt, until)?;
            calibration(&measured, db.machine(&settings))?
        }
    };
    if calibration.inside.is_none() && calibration.between.is_none() {
        bail!(
            "measure messages with one rank: start two or more, best two nodes with two ranks each"
        );
    }
    let library: Library = calibration
        .library
        .parse()
        .with_context(|| format!("use {}", calibration.library))?;
    progress::show("calibrating: which variants are hopeless on this machine");
    // In a thread that a signal or the budget leaves behind: it publishes whole files or none, ends with this process, and
    // writes down every second what it has found.
    let (tell, simulated) = channel();
    let (into, measured) = (db.clone(), calibration.clone());
    std::thread::spawn(move || {
        tell.send(into.calibrate(library, &measured, &settings, &line_word))
    });
    loop {
        match simulated.recv_timeout(LOOK) {
            Ok(result) => {
                result?;
                return Ok((library, calibration));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("simulate the variants: a thread ended"),
        }
        if let Some(signal) = interrupt.signal() {
            return Err(interrupted(signal));
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            return Err(out_of_budget());
        }
    }
}

/// The exit code of `colltune tune` where its budget ended before the work did.
const OUT_OF_BUDGET: u8 = 3;

fn out_of_budget() -> anyhow::Error {
    anyhow::Error::new(Stopped {
        message: "the budget ended during the calibration. What it has found is kept for a day; run the same command again to continue"
            .to_owned(),
        code: OUT_OF_BUDGET,
    })
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune calibrate --db ./hydra.db -- mpirun -n 8
  colltune calibrate --db ./hydra.db --mpi openmpi -- srun -N 2 -n 8 --mpi=pmix
      Everything up to the program's name of a line that starts a job, on two nodes with two ranks
      or more: one pair inside a node and one between nodes are measured, in a few seconds. What the
      simulator finds from that takes one to two minutes of a processor, with as many as there are.
      After an interruption the same command continues, within a day, on the same host and with
      the same library.

Measured are latency, overhead, gap and time per byte of messages on both levels, the time per
byte between nodes while all ranks send, how many bytes an idle link lets through at once, the
size from which a send waits for its receive, what combining and copying cost per byte, and
whether ranks share cores, which then take turns. They go to DB/LIBRARY/calibration.toml; what the
simulator finds from them in each cell goes to prior.json and ratios.json beside it: from then on
variants that are hopeless there (hopeless_factor in colltune.toml) are not drawn before the first
training, and what is left of colltune's own schedules (p2p) is drawn beside the other families,
unless colltune.toml names the families. Run it again after changing the tuning space.")]
pub struct Args {
    /// The tuning database; made where there is none
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: PathBuf,
    /// The MPI library, where the launcher does not tell
    #[arg(long, value_parser = abi(), value_name = "LIBRARY")]
    mpi: Option<Abi>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The launcher with its options, without a program
    #[arg(last = true, required = true, value_name = "mpirun ...")]
    line: Vec<OsString>,
}

/// The contents of `calibrate --json`: what calibration.toml holds, where that is, and what follows from it.
#[derive(Serialize)]
struct Json<'a> {
    file: PathBuf,
    #[serde(flatten)]
    calibration: &'a Calibration,
    variants_expected_hopeless: usize,
}

/// The job takes seconds unless it hangs.
const JOB_TIME_MAX: Duration = Duration::from_secs(300);
/// How often signals are looked for while variants are simulated.
const LOOK: Duration = Duration::from_millis(50);

/// The library of a line, by its launcher unless the user names it.
fn library_of(line: &[OsString], told: Option<Abi>) -> anyhow::Result<Abi> {
    // Something may stand before it, as `chrt -r 1 mpirun`.
    let named = find_launcher(line).map(|place| &line[place]);
    let first = line.first().map_or(OsStr::new(""), OsString::as_os_str);
    let launcher = named.map_or(first, OsString::as_os_str);
    told.or_else(|| of_launcher(launcher).abi()).ok_or_else(|| {
        usage(format!(
            "calibrate: {} does not say which MPI library it starts; say it with --mpi openmpi or --mpi mpich",
            launcher.display()
        ))
    })
}

/// Variables that choose the library's file, and the nodes of a job that does not choose them itself.
const PLACE: [&str; 5] = [
    "LD_LIBRARY_PATH",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS",
    "SLURM_TASKS_PER_NODE",
];

/// What decides beside the line what is measured, as far as that is known before.
fn place_of(line: &[OsString], told: Option<Abi>) -> anyhow::Result<Vec<String>> {
    let abi = library_of(line, told)?;
    let launcher = find_launcher(line).map_or(OsStr::new(""), |place| &line[place]);
    let known = of_launcher(launcher);
    let mut place = vec![format!("{abi:?}"), known.text, host_name()];
    let variables = PLACE.map(|name| std::env::var_os(name).unwrap_or_default());
    place.extend(variables.map(|value| value.to_string_lossy().into_owned()));
    Ok(place)
}

/// What the helper program says.
fn measure(
    line: &[OsString],
    told: Option<Abi>,
    interrupt: &Interrupt,
    until: Option<Instant>,
) -> anyhow::Result<Value> {
    let abi = library_of(line, told)?;
    let (launcher, options) = line
        .split_first()
        .context("calibrate: no launcher is given")?;
    let mut command = Command::new(launcher);
    command.args(options).arg(helper(abi)?).arg("calibrate");
    let ours = |name: &OsStr| name.to_string_lossy().starts_with("COLLTUNE_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
    command.env_remove("LD_PRELOAD");
    // Rank 0 may be on a node that shares no folder with this one.
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let limit = left.map_or(JOB_TIME_MAX, |left| left.min(JOB_TIME_MAX));
    let text = measuring::answer(&mut command, limit, interrupt).map_err(|error| match left {
        Some(_) if until.is_some_and(|until| Instant::now() >= until) => out_of_budget(),
        _ => error,
    })?;
    answer_in(&text).context("read what colltune-mpibench measured; is it as old as this command?")
}
