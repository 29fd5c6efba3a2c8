//! `colltune placement sedov`: a blast wave under several policies, and where its time goes.
//!
//! ```text
//! $ colltune placement sedov --policies contiguous,cdp,lpt,cplx:50 --repetitions 5
//! ```
//! The mini-app runs the same problem under each policy in turn, several times over, with blocks that
//! cost more near the shock, and places them by what they were measured to cost. What a phase takes is
//! read from the mini-app's telemetry: the mean over the ranks, and for waiting the total over all
//! steps. A run's time is that of the whole time loop.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use colltune_core::library::Abi;
use colltune_placement::Policy;
use colltune_statistics::{Spread, median, spread};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde::Serialize;
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::jobs::{self, Tuner};
use crate::bench::place::{Place, helper};
use crate::output::{print, table, write};
use crate::parse;
use crate::plot::{Bar, bars};
use crate::progress;

/// Runs, writes the files, and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let bench = Bench::new(&args.out, false)?;
    let place = place(args)?;
    let rows = measure(args, &bench, &place)?;
    progress::clear();
    let report = Report {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        place: place.describe(),
        ranks: args.ranks,
        arguments: arguments(args),
        repetitions: args.repetitions,
        rows: &rows,
    };
    let json = serde_json::to_string_pretty(&report).context("write JSON")? + "\n";
    write(&bench.out, "placement-sedov.json", &json)?;
    write(
        &bench.out,
        "placement-sedov.svg",
        &bars("Sedov blast wave", "s, mean over ranks", &as_bars(&rows))?,
    )?;
    print(&if args.json { json } else { in_columns(&rows) })
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune placement sedov
      Four policies on the test cluster: 4 nodes with 2 ranks each, made on this machine (as root).
  colltune placement sedov --on node --ranks 2 --policies contiguous,lpt-swap,cplx:25 --repetitions 5
  colltune placement sedov -- --num_tsteps 40 --num_refine 2

Policies take turns, so that whatever else the machine does meets all of them. Seconds are means
over the ranks and medians over the repetitions; `imbalance` is the most computing rank over the
mean. `wait` is waiting for neighbours' messages, `allreduce` mostly waiting for the slowest rank.
Files: placement-sedov.json and .svg in the folder of --out.")]
pub struct Args {
    /// Where the ranks run
    #[arg(long, value_enum, default_value_t = On::Cluster)]
    on: On,
    /// Ranks; the test cluster has eight
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,
    /// Policies, as in `colltune placement policies`
    #[arg(long, value_delimiter = ',', value_parser = super::policy(), value_name = "POLICY",
          default_value = "contiguous,cdp,lpt,cplx:50")]
    policies: Vec<Policy>,
    /// The mini-app's deck
    #[arg(long, value_name = "NAME", default_value = "sedov-512")]
    deck: String,
    /// How often each policy runs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// MPI library: openmpi, mpich
    #[arg(long, value_parser = parse::abi(), value_name = "LIBRARY", default_value = "openmpi")]
    mpi: Abi,
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    /// Print the JSON instead of the table
    #[arg(long)]
    json: bool,
    /// More options of the mini-app
    #[arg(last = true, value_name = "OPTIONS")]
    more: Vec<String>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum On {
    /// The test cluster: 4 nodes in network namespaces with links of 1 Gbit/s
    Cluster,
    /// This machine's cores
    Node,
}

fn place(args: &Args) -> anyhow::Result<Place> {
    match args.on {
        On::Node => Place::node(args.mpi, args.ranks as usize),
        On::Cluster => {
            ensure!(
                args.ranks == 8 && args.mpi == Abi::OpenMpi,
                "use the test cluster: it has 8 ranks of Open MPI; others run with --on node"
            );
            Place::cluster()
        }
    }
}

/// The mini-app's options but for the policy and the files.
fn arguments(args: &Args) -> Vec<String> {
    let own = [
        "--deck", &args.deck, "--cost", "shock", "--weigh", "measured",
    ];
    let own = own.map(str::to_owned).into_iter();
    own.chain(args.more.iter().cloned()).collect()
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    version: &'static str,
    place: String,
    ranks: u32,
    arguments: Vec<String>,
    repetitions: u32,
    rows: &'a [Row],
}

/// One policy; seconds.
#[derive(Serialize, Debug)]
struct Row {
    policy: String,
    /// The time loop, of the slowest rank.
    total: Spread,
    /// Mean over the ranks, median over the repetitions.
    phases: BTreeMap<String, f64>,
    /// Computing of the rank that computes most, over the mean.
    imbalance: f64,
    mesh_hash: String,
    blocks_per_step: f64,
}

/// What one run took.
struct Sample {
    total: f64,
    phases: BTreeMap<String, f64>,
    imbalance: f64,
    mesh_hash: String,
    blocks_per_step: f64,
}

fn measure(args: &Args, bench: &Bench, place: &Place) -> anyhow::Result<Vec<Row>> {
    let mut samples: Vec<Vec<Sample>> = args.policies.iter().map(|_| Vec::new()).collect();
    for repetition in 1..=args.repetitions {
        for (policy, samples) in args.policies.iter().zip(&mut samples) {
            progress::show(&format!(
                "{policy}: run {repetition} of {}",
                args.repetitions
            ));
            samples.push(
                sample(args, bench, place, policy)
                    .with_context(|| format!("run the mini-app with {policy}"))?,
            );
        }
    }
    let rows: Vec<Row> = args
        .policies
        .iter()
        .zip(&samples)
        .map(|(policy, samples)| row(policy, samples))
        .collect();
    // The mesh follows from the gas alone; if it did not, policies would not have solved one problem.
    match rows.iter().find(|row| row.mesh_hash != rows[0].mesh_hash) {
        None => Ok(rows),
        Some(row) => bail!(
            "compare {} with {}: their meshes differ",
            row.policy,
            rows[0].policy
        ),
    }
}

fn sample(args: &Args, bench: &Bench, place: &Place, policy: &Policy) -> anyhow::Result<Sample> {
    let folder = bench.out.join(format!(".sedov.{}", std::process::id()));
    let answer = folder.join("summary.json");
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let mut program = vec![
        helper(place.abi)?
            .with_file_name("colltune-amr")
            .into_os_string(),
    ];
    program.extend(arguments(args).into_iter().map(OsString::from));
    program.extend(["--placement".into(), policy.to_string().into()]);
    program.extend(["--telemetry".into(), folder.clone().into_os_string()]);
    program.extend(["--json".into(), answer.clone().into_os_string()]);
    let done = jobs::run_program(bench, place, args.ranks as usize, &Tuner::Bare, &program);
    let read = done.and_then(|_| {
        let text = std::fs::read_to_string(&answer)
            .with_context(|| format!("read {}", answer.display()))?;
        let summary: Value = serde_json::from_str(&text).context("read the mini-app's summary")?;
        of_run(&summary, &phases(&folder)?)
    });
    let _ = std::fs::remove_dir_all(&folder);
    read
}

/// Seconds of each rank by phase.
type Phases = BTreeMap<String, BTreeMap<i64, f64>>;

/// Reads the telemetry of a run.
fn phases(folder: &Path) -> anyhow::Result<Phases> {
    let mut phases = Phases::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !(name.starts_with("phases.") && name.ends_with(".parquet")) {
            continue;
        }
        let reader = SerializedFileReader::new(File::open(&path)?)?;
        for row in reader.get_row_iter(None)? {
            add(&mut phases, &row?).with_context(|| format!("read {}", path.display()))?;
        }
    }
    ensure!(
        phases.contains_key("compute"),
        "find the phase compute in {}",
        folder.display()
    );
    Ok(phases)
}

/// Columns of the telemetry: step, rank, phase, time_ns, calls.
fn add(phases: &mut Phases, row: &parquet::record::Row) -> anyhow::Result<()> {
    let (rank, phase, time_ns) = (row.get_uint(1)?, row.get_string(2)?, row.get_ulong(3)?);
    let ranks = phases.entry(phase.clone()).or_default();
    *ranks.entry(i64::from(rank)).or_default() += time_ns as f64 * 1e-9;
    Ok(())
}

fn of_run(summary: &Value, phases: &Phases) -> anyhow::Result<Sample> {
    let number = |value: &Value, what: &str| {
        value
            .as_f64()
            .with_context(|| format!("find {what} in the mini-app's summary"))
    };
    let mean = |ranks: &BTreeMap<i64, f64>| ranks.values().sum::<f64>() / ranks.len().max(1) as f64;
    let compute = &phases["compute"];
    let most = compute.values().copied().fold(0.0, f64::max);
    Ok(Sample {
        total: number(&summary["time_s"]["total"], "time_s.total")?,
        phases: phases
            .iter()
            .map(|(phase, ranks)| (phase.clone(), mean(ranks)))
            .collect(),
        imbalance: most / mean(compute),
        mesh_hash: summary["mesh_hash"].as_str().unwrap_or_default().to_owned(),
        blocks_per_step: number(&summary["blocks_per_step"]["avg"], "blocks_per_step.avg")?,
    })
}

fn row(policy: &Policy, samples: &[Sample]) -> Row {
    let of = |value: &dyn Fn(&Sample) -> f64| samples.iter().map(value).collect::<Vec<f64>>();
    let first = &samples[0];
    let phase = |name: &String| {
        let value = |sample: &Sample| sample.phases.get(name).copied().unwrap_or(0.0);
        (name.clone(), median(&of(&value)))
    };
    Row {
        policy: policy.to_string(),
        total: spread(&of(&|sample| sample.total)),
        phases: first.phases.keys().map(phase).collect(),
        imbalance: median(&of(&|sample| sample.imbalance)),
        mesh_hash: first.mesh_hash.clone(),
        blocks_per_step: first.blocks_per_step,
    }
}

/// What the table and the plot show: phases of the telemetry, gathered.
const SHOWN: [(&str, &[&str]); 5] = [
    ("compute", &["compute"]),
    ("wait", &["wait"]),
    ("allreduce", &["allreduce"]),
    ("copy", &["pack", "unpack"]),
    ("place", &["refine", "place", "migrate"]),
];

fn shown(row: &Row) -> Vec<(&'static str, f64)> {
    let seconds = |names: &[&str]| names.iter().filter_map(|&name| row.phases.get(name)).sum();
    SHOWN
        .iter()
        .map(|(name, phases)| (*name, seconds(phases)))
        .collect()
}

fn as_bars(rows: &[Row]) -> Vec<Bar> {
    let bar = |row: &Row| Bar {
        name: row.policy.clone(),
        parts: shown(row),
    };
    rows.iter().map(bar).collect()
}

fn in_columns(rows: &[Row]) -> String {
    let mut header = vec!["policy"];
    header.extend(SHOWN.iter().map(|(name, _)| *name));
    header.extend(["total", "min", "max", "imbalance"]);
    let cells = |row: &Row| {
        let mut cells = vec![row.policy.clone()];
        cells.extend(
            shown(row)
                .iter()
                .map(|(_, seconds)| format!("{seconds:.3}")),
        );
        let Spread { min, median, max } = row.total;
        cells.extend([median, min, max, row.imbalance].map(|value| format!("{value:.3}")));
        cells
    };
    table(&header, &rows.iter().map(cells).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn seconds_are_means_over_ranks_and_medians_over_runs() {
        let summary = |total: f64| json!({ "time_s": { "total": total }, "mesh_hash": "ab", "blocks_per_step": { "avg": 12.5 } });
        let ranks = |values: [f64; 2]| (0..).zip(values).collect::<BTreeMap<i64, f64>>();
        let run = |total: f64, compute: [f64; 2]| {
            let phases = [
                ("compute", ranks(compute)),
                ("wait", ranks([0.5, 0.0])),
                ("pack", ranks([0.1, 0.1])),
            ];
            let phases: Phases = phases.map(|(name, ranks)| (name.to_owned(), ranks)).into();
            of_run(&summary(total), &phases).unwrap()
        };
        let samples = [
            run(2.0, [1.0, 3.0]),
            run(9.0, [4.0, 4.0]),
            run(3.0, [1.0, 2.0]),
        ];
        let row = row(&"lpt".parse().unwrap(), &samples);
        assert_eq!(
            (row.total.min, row.total.median, row.total.max),
            (2.0, 3.0, 9.0)
        );
        assert_eq!((row.phases["compute"], row.phases["wait"]), (2.0, 0.25));
        assert!((row.imbalance - 4.0 / 3.0).abs() < 1e-12);
        let shown = shown(&row);
        assert_eq!(shown[0], ("compute", 2.0));
        assert!((shown[3].1 - 0.1).abs() < 1e-12 && shown[4].1 == 0.0);
        assert!(
            of_run(
                &json!({}),
                &[("compute".to_owned(), ranks([1.0, 1.0]))].into()
            )
            .is_err()
        );
    }
}
