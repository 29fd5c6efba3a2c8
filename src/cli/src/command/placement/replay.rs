//! `colltune placement replay`: recorded costs placed by several policies, step by step.
//!
//! ```text
//! $ colltune placement replay telemetry/ --ranks 64 --policies contiguous,lpt-swap --bytes-per-block 65536
//! $ colltune placement replay costs.csv --ranks 64 --trigger imbalance:0.1 --foresight smoothed
//! ```

mod follow;

use std::path::PathBuf;

use anyhow::{Context, bail};
use colltune_placement::{Inheritance, MigrationLimit, Policy, Trigger};
use serde::Serialize;

use self::follow::{Judged, Run, follow};
use super::plot::{Line, Panel, Scale, svg};
use super::recorded::{Recording, read};
use super::scene::{SceneArgs, needs_mesh};
use crate::command::output::{print, progress, table, write};

/// Places every step with every policy, writes the files, and prints the totals.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let recording = read(&args.recording, args.scene.dimensions)?;
    let runs = replay(args, &recording)?;
    progress("");
    let report = Report {
        schema: 2,
        ranks: args.ranks,
        steps: recording.steps.len(),
        foresight: args.foresight,
        triggers: args.trigger.iter().map(Trigger::to_string).collect(),
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
  colltune placement replay costs.csv --ranks 64 --foresight smoothed --trigger mesh-change,imbalance:0.2
  colltune placement replay costs.csv --ranks 64 --foresight smoothed --trigger break-even --placing 0.01 \\
      --bytes-per-block 65536 --moving 1e-9 --keep 0.5

RECORDING is one of
  - a CSV file with the columns step,block,cost and, for policies that look at the mesh, x,y,z,level:
    coordinates counted in blocks of the block's own level, level 0 is not refined;
  - a Parquet file of the mini-app's block telemetry, or the folder with its blocks.*.parquet.
A block keeps its number from step to step. With coordinates blocks stand along the Hilbert curve, without
by their number. A block that was not there before starts where what it was refined from (or merged from)
was, without coordinates where the block before it is; what is placed elsewhere counts as moved.
The first step is always placed anew, later ones when any of the triggers says so:
  never, every:N (steps), mesh-change, imbalance:X (makespan above 1 + X times the mean), and break-even:
  what is gained until the mesh changes again exceeds --placing and --moving times the bytes.
Each step is judged by what its blocks really cost; what policy and triggers know is set by --foresight:
  full      the costs of the step itself: what a policy could do at best
  none      the costs of the step before
  smoothed  costs of all steps before: a new one has --weight, outliers beyond four times are damped
Costs are carried through refinement as --inherit says; with nothing known all blocks cost the same.
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
    /// What is known of a step's costs before it
    #[arg(long, value_enum, default_value_t = Foresight::Full)]
    foresight: Foresight,
    /// When blocks are placed anew; any of several
    #[arg(long, value_delimiter = ',', value_parser = trigger, value_name = "WHEN", default_value = "every:1")]
    trigger: Vec<Trigger>,
    /// Weight of a new cost for --foresight smoothed
    #[arg(long, value_name = "0..1", default_value_t = 0.3, value_parser = share)]
    weight: f64,
    /// What a refined block costs: its part of its parent's cost, or as much as that
    #[arg(long, value_enum, default_value_t = Inherit::Repeat)]
    inherit: Inherit,
    /// Time of computing a placement for break-even, in the unit of the costs
    #[arg(long, value_name = "TIME", default_value_t = 0.0, value_parser = at_least_0)]
    placing: f64,
    /// Time of moving a byte for break-even, in the unit of the costs
    #[arg(long, value_name = "TIME", default_value_t = 0.0, value_parser = at_least_0)]
    moving: f64,
    /// Steps that a mesh is first expected to live, for break-even; learned from then on
    #[arg(long, value_name = "STEPS", default_value_t = 10.0, value_parser = at_least_0)]
    mesh_life: f64,
    /// Share of the blocks that stay where they are when blocks are placed anew
    #[arg(long, value_name = "0..1", default_value_t = 0.0, value_parser = share)]
    keep: f64,
    /// The most blocks that move when blocks are placed anew
    #[arg(long, value_name = "BLOCKS")]
    moves_max: Option<u64>,
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

impl Args {
    fn migration_limit(&self) -> MigrationLimit {
        MigrationLimit {
            keep_fraction: self.keep,
            blocks_max: self.moves_max,
            bytes_max: None,
        }
    }
}

fn trigger(name: &str) -> Result<Trigger, String> {
    name.parse().map_err(|error| format!("failed to {error}"))
}

fn share(text: &str) -> Result<f64, String> {
    let read = at_least_0(text).ok().filter(|&share| share <= 1.0);
    read.ok_or_else(|| "a number from 0 to 1".to_owned())
}

fn at_least_0(text: &str) -> Result<f64, String> {
    let read = text.parse().ok();
    read.filter(|&x: &f64| x.is_finite() && x >= 0.0)
        .ok_or_else(|| "a number of at least 0".to_owned())
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Foresight {
    Full,
    None,
    Smoothed,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Inherit {
    Share,
    Repeat,
}

impl From<Inherit> for Inheritance {
    fn from(inherit: Inherit) -> Inheritance {
        match inherit {
            Inherit::Share => Inheritance::Share,
            Inherit::Repeat => Inheritance::Repeat,
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    ranks: u32,
    steps: usize,
    foresight: Foresight,
    triggers: Vec<String>,
    policies: &'a [Run],
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
            follow(args, recording, policy).with_context(|| format!("replay with {policy}"))?,
        );
    }
    Ok(runs)
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
                "--trigger",
                every,
            ];
            replay(&parsed(&words), &recording)
                .unwrap()
                .remove(0)
                .totals
        };
        assert!(with("none", "every:1").makespan > with("full", "every:1").makespan);
        assert_eq!(with("full", "every:3").placements, 1);
        assert_eq!(with("full", "every:3").moved_blocks, 0);
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

    /// Eight blocks; the first is refined into eight in step 2. All cost the same, but those of the
    /// second half of the domain twice as much.
    fn refined(folder: &std::path::Path) -> PathBuf {
        let mut text = "step,block,cost,x,y,z,level\n".to_owned();
        for step in 0..4u64 {
            for block in 0..8u64 {
                let (x, y, z) = (block & 1, block >> 1 & 1, block >> 2);
                if step >= 2 && block == 0 {
                    for child in 0..8u64 {
                        let (i, j, k) = (child & 1, child >> 1 & 1, child >> 2);
                        text += &format!("{step},{},1,{i},{j},{k},1\n", 100 + child);
                    }
                    continue;
                }
                text += &format!("{step},{block},{},{x},{y},{z},0\n", 1 + z);
            }
        }
        let file = folder.join("refined.csv");
        std::fs::write(&file, text).unwrap();
        file
    }

    fn totals(folder: &std::path::Path, words: &[&str]) -> (u64, u64, Vec<f64>) {
        let file = refined(folder);
        let file = file.to_str().unwrap();
        let first = [file, "--ranks", "4", "--policies", "lpt-swap"];
        let run = replay(
            &parsed(&[&first, words].concat()),
            &read(file.as_ref(), 3).unwrap(),
        );
        let run = run.unwrap().remove(0);
        let makespans = run.steps.iter().map(|step| step.makespan).collect();
        (run.totals.placements, run.totals.moved_blocks, makespans)
    }

    #[test]
    fn each_trigger_places_when_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let placements = |trigger: &str| totals(folder.path(), &["--trigger", trigger]).0;
        assert_eq!(placements("every:1"), 4);
        assert_eq!(placements("every:2"), 2);
        assert_eq!(
            placements("never"),
            1,
            "the first step has no owners before"
        );
        assert_eq!(placements("mesh-change"), 2);
        assert_eq!(placements("imbalance:0.1"), 2);
        assert_eq!(placements("imbalance:10"), 1);
        assert_eq!(placements("never,every:3"), 2);
        assert_eq!(
            placements("break-even"),
            2,
            "once more, when blocks are refined"
        );
        let dear = ["--trigger", "break-even", "--placing", "1000"];
        assert_eq!(totals(folder.path(), &dear).0, 1);
    }

    #[test]
    fn refined_blocks_start_where_their_parent_was() {
        let folder = tempfile::tempdir().unwrap();
        let (_, moved, makespans) = totals(folder.path(), &["--trigger", "never"]);
        assert_eq!(moved, 0);
        // Three ranks with 3; the one with the refined block has eight children and two.
        assert_eq!(makespans[..2], [3.0, 3.0]);
        assert!(makespans[2] >= 8.0, "{makespans:?}");
    }

    #[test]
    fn a_limit_of_moves_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let free = totals(folder.path(), &[]);
        let limited = totals(folder.path(), &["--moves-max", "2"]);
        assert!(free.1 > 4 && limited.1 <= 6, "{free:?} {limited:?}");
        assert!(limited.2[2] <= totals(folder.path(), &["--trigger", "never"]).2[2]);
    }

    #[test]
    fn smoothed_costs_are_misled_less_by_a_hiccup() {
        let folder = tempfile::tempdir().unwrap();
        // Block 0 costs 8 but for a hiccup in one step; the others cost 1.
        let mut text = "step,block,cost\n".to_owned();
        for step in 0..8u64 {
            for block in 0..9u64 {
                let cost = if block == 0 && step != 5 { 8 } else { 1 };
                text += &format!("{step},{block},{cost}\n");
            }
        }
        let file = folder.path().join("noise.csv");
        std::fs::write(&file, text).unwrap();
        let with = |foresight: &str| {
            let words = [
                file.to_str().unwrap(),
                "--ranks",
                "2",
                "--policies",
                "lpt",
                "--foresight",
                foresight,
            ];
            let run = replay(&parsed(&words), &read(&file, 3).unwrap())
                .unwrap()
                .remove(0);
            run.steps
                .iter()
                .map(|step| step.makespan)
                .collect::<Vec<_>>()
        };
        assert_eq!(with("full")[4..], [8.0, 5.0, 8.0, 8.0]);
        let none = with("none");
        assert!(
            none[6] > 8.0,
            "the step after the hiccup is misled: {none:?}"
        );
        let smoothed = with("smoothed");
        assert!(smoothed[6] < none[6] && smoothed[6] <= 9.0, "{smoothed:?}");
    }
}
