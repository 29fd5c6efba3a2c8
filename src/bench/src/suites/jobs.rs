//! Starting one job and reading what it measured.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use colltune_core::catalogue::{Facts, Steering, Variant};
use colltune_core::collective::Collective;
use colltune_core::environment;
use colltune_core::request::Mode;
use colltune_core::variant::Size;
use colltune_statistics as statistics;
use serde_json::Value;

use super::Bench;
use super::place::Place;
use colltune_launch::measuring::helper;
use colltune_launch::own;

/// A collective and a message size in bytes.
pub type Cell = (Collective, u64);

/// What stands between the program and the library.
#[derive(Clone, Default)]
pub enum Tuner {
    /// Nothing, the shim is not loaded.
    #[default]
    Bare,
    /// Nothing; the library's own variables set the algorithm.
    Library(Vec<Variant>),
    /// The shim, by `colltune run`.
    Shim {
        db: Option<PathBuf>,
        mode: Mode,
        seed: u64,
        settings: Vec<(&'static str, String)>,
    },
}

impl Tuner {
    pub fn shim(db: &std::path::Path, mode: Mode, seed: u64) -> Tuner {
        Tuner::Shim {
            db: Some(db.to_owned()),
            mode,
            seed,
            settings: Vec::new(),
        }
    }
}

/// A finished job.
pub struct Done {
    /// What rank 0 of the helper program wrote; null for other programs.
    pub result: Value,
    /// From the start of mpirun to its end.
    pub wall: Duration,
}

/// No job of a benchmark takes this long unless it hangs.
const JOB_SECONDS: &str = "600";

/// Runs the helper program on `n_ranks` ranks.
pub fn run(
    bench: &Bench,
    place: &Place,
    n_ranks: usize,
    tuner: &Tuner,
    arguments: &[String],
) -> anyhow::Result<Done> {
    let answer = bench
        .out
        .join(format!(".answer.{}.json", std::process::id()));
    let _ = std::fs::remove_file(&answer);
    let mut program = vec![helper(place.abi)?.into_os_string()];
    program.extend(arguments.iter().map(OsString::from));
    program.extend([OsString::from("--json"), answer.clone().into_os_string()]);
    let wall = run_program(bench, place, n_ranks, tuner, &program)?;
    let text =
        std::fs::read_to_string(&answer).with_context(|| format!("read {}", answer.display()))?;
    let _ = std::fs::remove_file(&answer);
    let result = serde_json::from_str(&text).context("read what colltune-mpibench wrote")?;
    Ok(Done { result, wall })
}

/// Runs any program, and returns the whole time of the job.
///
/// Errors: for an exit code other than 0 and for a job that hangs, with the end of what it printed.
pub fn run_program(
    bench: &Bench,
    place: &Place,
    n_ranks: usize,
    tuner: &Tuner,
    program: &[OsString],
) -> anyhow::Result<Duration> {
    output_of(bench, place, n_ranks, tuner, program).map(|(wall, _)| wall)
}

/// The same, with what the job printed on its standard output.
pub fn output_of(
    bench: &Bench,
    place: &Place,
    n_ranks: usize,
    tuner: &Tuner,
    program: &[OsString],
) -> anyhow::Result<(Duration, String)> {
    let line = place.line(n_ranks, &library_options(place, tuner), program);
    let mut words: Vec<OsString> = ["--foreground", "-k", "2", JOB_SECONDS]
        .map(OsString::from)
        .to_vec();
    words.extend(place.scheduler().iter().map(OsString::from));
    let mut command = Command::new("timeout");
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(name)) {
        command.env_remove(name);
    }
    if let Tuner::Shim {
        db,
        mode,
        seed,
        settings,
    } = tuner
    {
        words.push(own::colltune()?.into_os_string());
        words.extend(
            ["run", "--mode", mode.name(), "--seed", &seed.to_string()].map(OsString::from),
        );
        if let Some(db) = db {
            words.extend([OsString::from("--db"), db.clone().into_os_string()]);
        }
        words.push("--".into());
        command.envs(settings.iter().map(|(name, value)| (*name, value)));
    }
    words.extend(line);
    command
        .args(&words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
        .envs(place.variables.iter().cloned())
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");

    let start = Instant::now();
    let output = command.output().context("start a job")?;
    let wall = start.elapsed();
    let stderr = String::from_utf8_lossy(&output.stderr);
    bench.note_warnings(&stderr);
    if !output.status.success() {
        let shown = words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ");
        let end: Vec<&str> = stderr.lines().rev().take(8).collect();
        let end = end.into_iter().rev().collect::<Vec<_>>().join("\n  ");
        bail!("finish a job ({}): {shown}\n  {end}", output.status);
    }
    Ok((wall, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// The variables that would steer a job from outside; where the shim lies is no such thing.
fn is_ours(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    (name.starts_with(environment::PREFIX) && name != environment::LIB) || name == "LD_PRELOAD"
}

/// How the launcher passes a choice of algorithms to the library.
fn library_options(place: &Place, tuner: &Tuner) -> Vec<String> {
    let Tuner::Library(variants) = tuner else {
        return Vec::new();
    };
    let mut options = Vec::new();
    if place.abi == colltune_core::library::Abi::OpenMpi {
        options.extend(["--mca", "coll_tuned_use_dynamic_rules", "1"].map(str::to_owned));
    }
    for variant in variants {
        let collective = variant.collective.name();
        match variant.steering {
            Steering::None => {}
            Steering::OpenMpi { algorithm, .. } => {
                let segsize = variant.name.segsize.unwrap_or(0);
                for (key, value) in [
                    ("", algorithm.to_string()),
                    ("_segmentsize", segsize.to_string()),
                ] {
                    options.extend([
                        "--mca".to_owned(),
                        format!("coll_tuned_{collective}_algorithm{key}"),
                        value,
                    ]);
                }
            }
            Steering::Mpich { algorithm } => {
                let name = format!("MPIR_CVAR_{}_INTRA_ALGORITHM", collective.to_uppercase());
                options.extend(["-genv".to_owned(), name, algorithm.to_owned()]);
            }
            Steering::Intel { preset } => {
                let name = format!("I_MPI_ADJUST_{}", collective.to_uppercase());
                options.extend(["-genv".to_owned(), name, preset.to_string()]);
            }
        }
    }
    options
}

/// The helper's `--cells`.
pub fn cells_argument(cells: &[Cell]) -> Vec<String> {
    let cells: Vec<String> = cells
        .iter()
        .map(|(collective, bytes)| format!("{collective}:{}", Size(*bytes)))
        .collect();
    vec!["--cells".to_owned(), cells.join(",")]
}

/// The helper's arguments for timing cells in `repetitions` blocks each, in the order of a seed.
pub fn collectives(
    cells: &[Cell],
    repetitions: usize,
    warmup: usize,
    order_seed: u64,
) -> Vec<String> {
    let mut arguments = vec!["collectives".to_owned()];
    arguments.extend(cells_argument(cells));
    let numbers = [
        ("--repetitions", repetitions as u64),
        ("--warmup", warmup as u64),
        ("--order-seed", order_seed),
    ];
    for (name, value) in numbers {
        arguments.extend([name.to_owned(), value.to_string()]);
    }
    arguments
}

/// The median over blocks of each cell, in nanoseconds.
pub fn medians(result: &Value) -> anyhow::Result<BTreeMap<Cell, f64>> {
    let cells = result["cells"]
        .as_array()
        .context("read what colltune-mpibench wrote: it has no cells")?;
    let cell = |cell: &Value| {
        let collective = Collective::from_name(cell["collective"].as_str()?)?;
        let times: Vec<f64> = cell["time_ns"]
            .as_array()?
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        Some((
            (collective, cell["bytes"].as_u64()?),
            statistics::median(&times),
        ))
    };
    cells
        .iter()
        .map(cell)
        .collect::<Option<_>>()
        .context("read what colltune-mpibench wrote: a cell is malformed")
}

/// The facts of the helper's call of a cell.
pub fn facts(place: &Place, (collective, bytes): Cell) -> Facts {
    Facts::usual(collective, bytes, place.n_ranks as u32, place.nodes as u32)
}
