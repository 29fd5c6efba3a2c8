//! `colltune placement replay`: recorded costs placed by several policies, step by step.
//!
//! ```text
//! $ colltune placement replay telemetry/ --ranks 64 --policies contiguous,lpt-swap --bytes-per-block 65536
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use colltune_placement::curve::neighbours;
use colltune_placement::{Limits, Mesh, PlacementError, Policy, Problem, certify, place};
use serde::Serialize;

use super::plot::{Line, Panel, Scale, svg};
use super::publish::{print, progress, table, write};
use super::recorded::{Recording, Step, read};
use super::scene::{SceneArgs, needs_mesh};

/// Places every step with every policy, writes the files, and prints the totals.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let recording = read(&args.recording, args.scene.dimensions)?;
    let runs = replay(args, &recording)?;
    progress("");
    let report = Report {
        schema: 1,
        ranks: args.ranks,
        steps: recording.steps.len(),
        foresight: args.foresight,
        policies: &runs,
    };
    let json = serde_json::to_string_pretty(&report).context("write JSON")? + "\n";
    write(&args.out, "placement-replay.json", &json)?;
    write(&args.out, "placement-replay.svg", &svg(&panels(&runs))?)?;
    print(&if args.json { json } else { in_columns(&runs) })
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune placement replay costs.csv --ranks 64
  colltune placement replay telemetry/ --ranks 512 --policies contiguous,lpt-swap,cplx:50 --bytes-per-block 65536
  colltune placement replay costs.csv --ranks 64 --foresight none --every 10

RECORDING is one of
  - a CSV file with the columns step,block,cost and, for policies that look at the mesh, x,y,z,level:
    coordinates counted in blocks of the block's own level, level 0 is not refined;
  - a Parquet file of the mini-app's block telemetry, or the folder with its blocks.*.parquet.
A block keeps its number from step to step: what is placed elsewhere than before counts as moved.
With coordinates blocks stand along the Hilbert curve, without by their number.
Blocks are placed anew every N steps and whenever the set of blocks changes. Each step is judged by
what its blocks really cost; what the policy is told is set by --foresight:
  full   the costs of the step itself: what a policy could do at best
  none   the costs of the step before; a block that was not there counts as the mean of the others
Files: placement-replay.json and .svg in the folder of --out.")]
pub struct Args {
    /// A CSV file, a Parquet file, or a folder of telemetry
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// Ranks to place on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: u32,
    /// Policies, as in `colltune placement policies`
    #[arg(long, value_delimiter = ',', value_parser = super::policy, value_name = "POLICY",
          default_value = "contiguous,contiguous-optimal,lpt,lpt-swap,cplx:50")]
    policies: Vec<Policy>,
    /// What the policy knows of a step's costs
    #[arg(long, value_enum, default_value_t = Foresight::Full)]
    foresight: Foresight,
    /// Place anew every N steps
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Size of a block, for the bytes that move
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    bytes_per_block: u64,
    #[command(flatten)]
    scene: SceneArgs,
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    /// Print the JSON instead of the table
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Foresight {
    Full,
    None,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    ranks: u32,
    steps: usize,
    foresight: Foresight,
    policies: &'a [Run],
}

/// One policy over all steps.
#[derive(Serialize)]
struct Run {
    policy: String,
    totals: Totals,
    steps: Vec<Judged>,
}

#[derive(Serialize, Default)]
struct Totals {
    /// The sum of all steps' makespans: the time, if nothing but the costs took any.
    makespan: f64,
    /// The sum of all steps' proved bounds.
    bound: f64,
    gap: f64,
    placements: u64,
    moved_blocks: u64,
    moved_bytes: u64,
    time_ms: f64,
}

#[derive(Serialize)]
struct Judged {
    step: u64,
    blocks: usize,
    makespan: f64,
    bound: f64,
    gap: f64,
    /// Whether blocks were placed anew before this step.
    placed: bool,
    moved_blocks: u64,
    moved_bytes: u64,
    time_ms: f64,
    hash: String,
}

fn replay(args: &Args, recording: &Recording) -> anyhow::Result<Vec<Run>> {
    if recording.root_level.is_none()
        && let Some(policy) = args.policies.iter().find(|policy| needs_mesh(policy))
    {
        bail!(
            "run policy {policy}: {} has no coordinates; add the columns x,y,z,level",
            args.recording.display()
        );
    }
    let mut runs: Vec<Run> = Vec::new();
    for policy in &args.policies {
        progress(&format!("{policy}"));
        runs.push(
            replay_one(args, recording, policy).with_context(|| format!("replay with {policy}"))?,
        );
    }
    Ok(runs)
}

fn replay_one(args: &Args, recording: &Recording, policy: &Policy) -> anyhow::Result<Run> {
    let mut run = Run {
        policy: policy.to_string(),
        totals: Totals::default(),
        steps: Vec::new(),
    };
    let mut before: Option<Before> = None;
    for (index, step) in recording.steps.iter().enumerate() {
        let is_due = (index as u64).is_multiple_of(args.every);
        let keeps = before
            .as_ref()
            .filter(|b| !is_due && b.blocks == step.blocks);
        let (owners, time_ms) = match keeps {
            Some(before) => (before.owners.clone(), None),
            None => {
                let told = told(args.foresight, step, before.as_ref());
                let (owners, time_ms) =
                    place_step(args, recording, step, &told, policy, before.as_ref())?;
                (owners, Some(time_ms))
            }
        };
        let judged = judge(args, step, &owners, time_ms, before.as_ref())?;
        run.totals.add(&judged);
        run.steps.push(judged);
        before = Some(Before::new(step, owners));
    }
    let totals = &mut run.totals;
    totals.gap = if totals.bound > 0.0 {
        totals.makespan / totals.bound - 1.0
    } else {
        0.0
    };
    Ok(run)
}

/// What is known from the step before.
struct Before {
    blocks: Vec<u64>,
    owners: Vec<u32>,
    /// Owner and cost by block.
    known: HashMap<u64, (u32, f64)>,
    mean_cost: f64,
}

impl Before {
    fn new(step: &Step, owners: Vec<u32>) -> Before {
        let facts = owners.iter().copied().zip(step.costs.iter().copied());
        Before {
            blocks: step.blocks.clone(),
            known: step.blocks.iter().copied().zip(facts).collect(),
            owners,
            mean_cost: step.costs.iter().sum::<f64>() / step.costs.len().max(1) as f64,
        }
    }
}

/// The costs that a policy is told.
fn told(foresight: Foresight, step: &Step, before: Option<&Before>) -> Vec<f64> {
    match (foresight, before) {
        (Foresight::Full, _) => step.costs.clone(),
        (Foresight::None, None) => vec![1.0; step.costs.len()],
        (Foresight::None, Some(before)) => {
            let cost = |block| {
                before
                    .known
                    .get(block)
                    .map_or(before.mean_cost, |&(_, cost)| cost)
            };
            step.blocks.iter().map(cost).collect()
        }
    }
}

fn place_step(
    args: &Args,
    recording: &Recording,
    step: &Step,
    costs: &[f64],
    policy: &Policy,
    before: Option<&Before>,
) -> Result<(Vec<u32>, f64), PlacementError> {
    let graph;
    let mut problem = Problem::new(costs, args.ranks)?
        .with_ranks_per_node(args.scene.ranks_per_node)?
        .with_machine(args.scene.message_time)?
        .with_limits(limits(args))?;
    let mesh = recording.root_level.map(|root_level| Mesh {
        dimensions: args.scene.dimensions,
        root_level,
        octants: &step.octants,
    });
    if let Some(mesh) = mesh.filter(|_| needs_mesh(policy)) {
        graph = neighbours(mesh, args.scene.message_bytes);
        problem = problem.with_mesh(mesh)?.with_graph(graph.as_graph())?;
    }
    // A block that was not there before has no owner yet: it counts as the rank of the block before it.
    let owners = before.map(|before| {
        let mut last = 0;
        let owner = |block| {
            last = before.known.get(block).map_or(last, |&(owner, _)| owner);
            last
        };
        step.blocks.iter().map(owner).collect::<Vec<u32>>()
    });
    if let Some(owners) = &owners {
        problem = problem.with_owners(owners)?;
    }
    let start = Instant::now();
    let placement = place(policy, &problem)?;
    Ok((placement.owners, start.elapsed().as_secs_f64() * 1e3))
}

fn limits(args: &Args) -> Limits {
    Limits {
        blocks_per_rank: None,
        bytes_per_block: args.bytes_per_block,
    }
}

fn judge(
    args: &Args,
    step: &Step,
    owners: &[u32],
    time_ms: Option<f64>,
    before: Option<&Before>,
) -> Result<Judged, PlacementError> {
    let problem = Problem::new(&step.costs, args.ranks)?;
    let certificate = certify(&problem, owners)?;
    let moved = |(block, owner): &(&u64, &u32)| {
        let known = before.and_then(|before| before.known.get(*block));
        known.is_some_and(|(was, _)| was != *owner)
    };
    let moved_blocks = step.blocks.iter().zip(owners).filter(moved).count() as u64;
    Ok(Judged {
        step: step.step,
        blocks: step.blocks.len(),
        makespan: certificate.makespan,
        bound: certificate.bound,
        gap: certificate.gap,
        placed: time_ms.is_some(),
        moved_blocks,
        moved_bytes: moved_blocks.saturating_mul(args.bytes_per_block),
        time_ms: time_ms.unwrap_or(0.0),
        hash: format!("{:016x}", colltune_placement::hash(owners)),
    })
}

impl Totals {
    fn add(&mut self, step: &Judged) {
        self.makespan += step.makespan;
        self.bound += step.bound;
        self.placements += u64::from(step.placed);
        self.moved_blocks += step.moved_blocks;
        self.moved_bytes += step.moved_bytes;
        self.time_ms += step.time_ms;
    }
}

fn in_columns(runs: &[Run]) -> String {
    let header = [
        "policy",
        "makespan",
        "bound",
        "gap %",
        "placements",
        "moved blocks",
        "moved bytes",
        "time ms",
    ];
    let cells = |run: &Run| {
        let totals = &run.totals;
        vec![
            run.policy.clone(),
            format!("{:.6}", totals.makespan),
            format!("{:.6}", totals.bound),
            format!("{:.2}", 100.0 * totals.gap),
            totals.placements.to_string(),
            totals.moved_blocks.to_string(),
            totals.moved_bytes.to_string(),
            format!("{:.3}", totals.time_ms),
        ]
    };
    table(&header, &runs.iter().map(cells).collect::<Vec<_>>())
}

fn panels(runs: &[Run]) -> Vec<Panel> {
    let panel = |title: &str, y, value: &dyn Fn(&Judged) -> f64| Panel {
        title: title.to_owned(),
        x: "step",
        y,
        scale: Scale::Linear,
        lines: runs
            .iter()
            .map(|run| Line {
                name: run.policy.clone(),
                points: run
                    .steps
                    .iter()
                    .map(|step| (step.step as f64, value(step)))
                    .collect(),
            })
            .collect(),
    };
    vec![
        panel("Makespan of each step", "unit of the costs", &|step| {
            step.makespan
        }),
        panel("Blocks that moved", "blocks", &|step| {
            step.moved_blocks as f64
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(words: &[&str]) -> Args {
        Line::parse_from([&["replay"], words].concat()).args
    }

    /// Eight blocks in a row over three steps; the dear one wanders.
    fn recorded(folder: &std::path::Path) -> PathBuf {
        let mut text = "step,block,cost,x,y,z,level\n".to_owned();
        for step in 0..3u64 {
            for block in 0..8u64 {
                let cost = if block == 3 * step { 5.0 } else { 1.0 };
                text += &format!("{step},{block},{cost},{block},0,0,0\n");
            }
        }
        let file = folder.join("costs.csv");
        std::fs::write(&file, text).unwrap();
        file
    }

    #[test]
    fn makespans_and_moves_are_those_of_the_owners() {
        let folder = tempfile::tempdir().unwrap();
        let file = recorded(folder.path());
        let out = folder.path().to_str().unwrap();
        let args = parsed(&[
            file.to_str().unwrap(),
            "--ranks",
            "3",
            "--policies",
            "contiguous,lpt,rcb",
            "--bytes-per-block",
            "100",
            "--out",
            out,
        ]);
        let runs = replay(&args, &read(&file, 3).unwrap()).unwrap();
        assert_eq!(runs.len(), 3);
        let contiguous = &runs[0];
        assert_eq!(contiguous.totals.moved_blocks, 0);
        assert!(contiguous.steps.iter().all(|step| step.makespan >= 6.0));
        let lpt = &runs[1];
        assert_eq!(
            lpt.totals.makespan, 15.0,
            "the dear block alone, three and four on the others"
        );
        assert_eq!(lpt.totals.moved_bytes, 100 * lpt.totals.moved_blocks);
        assert!(lpt.totals.moved_blocks > 0);
        run(&args).unwrap();
        let json = std::fs::read_to_string(folder.path().join("placement-replay.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["policies"][1]["totals"]["makespan"], 15.0);
        assert_eq!(json["policies"][1]["steps"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn without_foresight_a_policy_is_a_step_late() {
        let folder = tempfile::tempdir().unwrap();
        let file = recorded(folder.path());
        let recording = read(&file, 3).unwrap();
        let with = |foresight: &str, every: &str| {
            let words = [
                file.to_str().unwrap(),
                "--ranks",
                "3",
                "--policies",
                "lpt",
                "--foresight",
                foresight,
                "--every",
                every,
            ];
            replay(&parsed(&words), &recording)
                .unwrap()
                .remove(0)
                .totals
        };
        assert!(with("none", "1").makespan > with("full", "1").makespan);
        assert_eq!(with("full", "3").placements, 1);
        assert_eq!(with("full", "3").moved_blocks, 0);
    }

    #[test]
    fn a_policy_that_looks_at_the_mesh_asks_for_coordinates() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("costs.csv");
        std::fs::write(&file, "step,block,cost\n0,0,1\n").unwrap();
        let args = parsed(&[
            file.to_str().unwrap(),
            "--ranks",
            "2",
            "--policies",
            "hierarchical:rcb",
        ]);
        let error = replay(&args, &read(&file, 3).unwrap())
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("hierarchical:rcb") && error.contains("x,y,z,level"),
            "{error}"
        );
    }
}
