//! The arguments of `colltune-lab placement replay`.

use std::path::PathBuf;

use colltune_placement::{Inheritance, Matching, MigrationLimit, Policy, Trigger};
use serde::Serialize;

use crate::placement::ranks::{MemoryArgs, RankArgs};
use crate::placement::scene::SceneArgs;

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune-lab placement replay costs.csv --ranks 64
  colltune-lab placement replay telemetry/ --ranks 512 --policies contiguous,lpt-swap,cplx:50 --bytes-per-block 65536
  colltune-lab placement replay costs.csv --ranks 64 --foresight smoothed --trigger mesh-change,imbalance:0.2
  colltune-lab placement replay costs.csv --ranks 64 --speeds 16-31:0.25 --rank-memory 8000000 --bytes-per-block 65536
  colltune-lab placement replay costs.csv --ranks 64 --foresight smoothed --trigger break-even --placing 0.01 \\
      --bytes-per-block 65536 --moving 1e-9 --keep 0.5

RECORDING is one of
  - a CSV file with the columns step,block,cost and, for policies that look at the mesh,
    x,y,z,level: coordinates counted in blocks of the block's own level, level 0 is not refined;
    and, for --rank-memory, memory;
  - a Parquet file of the mini-app's block telemetry, or the folder with its blocks.*.parquet.
A block keeps its number from step to step. With coordinates blocks stand along the Hilbert curve,
without by their number. A block that was not there before starts where what it was refined from
(or merged from) was, without coordinates where the block before it is; what is placed elsewhere
counts as moved. The first step is always placed anew, later ones when any of the triggers says
so:
  never, every:N (steps), mesh-change, imbalance:X (makespan above 1 + X times the mean), and
  break-even: what is gained until the mesh changes again exceeds --placing and --moving times the
  bytes.
Each step is judged by what its blocks really cost; what policy and triggers know is set by
--foresight:
  full      the costs of the step itself: what a policy could do at best
  none      the costs of the step before
  smoothed  costs of all steps before: a new one has --weight, outliers beyond four times are damped
New owners are matched to the present ones: ranks of a placement are renumbered so that much stays
where it is, which costs no load and at most 1 % more messages between nodes; see --matching.
Makespans are times: loads over the speeds of their ranks. What blocks need of --rank-memory is
the column memory, or --bytes-per-block; blocks that fit on no rank, or not all together, are an
error.
Costs are carried through refinement as --inherit says; with nothing known all blocks cost the same.
File: placement-replay.json in the folder of --out.")]
pub struct Args {
    /// A CSV file, a Parquet file, or a folder of telemetry
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// Ranks to place on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: u32,
    /// Policies, as in `colltune-lab placement policies`
    #[arg(long, value_delimiter = ',', value_parser = crate::placement::policy(), value_name = "POLICY",
          default_value = "contiguous,contiguous-optimal,lpt,lpt-swap,cplx:0,cplx:25,cplx:50,cplx:75,cplx:100")]
    pub policies: Vec<Policy>,
    /// What is known of a step's costs before it
    #[arg(long, value_enum, default_value_t = Foresight::Full)]
    pub foresight: Foresight,
    /// When blocks are placed anew; any of several
    #[arg(long, value_delimiter = ',', value_parser = trigger, value_name = "WHEN", default_value = "every:1")]
    pub trigger: Vec<Trigger>,
    /// Weight of a new cost for --foresight smoothed
    #[arg(long, value_name = "0..1", default_value_t = 0.3, value_parser = share)]
    pub weight: f64,
    /// What a refined block costs: its part of its parent's cost, or as much as that
    #[arg(long, value_enum, default_value_t = Inherit::Repeat)]
    pub inherit: Inherit,
    /// Time of computing a placement for break-even, in the unit of the costs
    #[arg(long, value_name = "TIME", default_value_t = 0.0, value_parser = at_least_0)]
    pub placing: f64,
    /// Time of moving a byte for break-even, in the unit of the costs
    #[arg(long, value_name = "TIME", default_value_t = 0.0, value_parser = at_least_0)]
    pub moving: f64,
    /// Steps that a mesh is first expected to live, for break-even; learned from then on
    #[arg(long, value_name = "STEPS", default_value_t = 10.0, value_parser = at_least_0)]
    pub mesh_life: f64,
    /// Share of the blocks that stay where they are when blocks are placed anew
    #[arg(long, value_name = "0..1", default_value_t = 0.0, value_parser = share)]
    pub keep: f64,
    /// The most blocks that move when blocks are placed anew
    #[arg(long, value_name = "BLOCKS")]
    pub moves_max: Option<u64>,
    /// Whether ranks are renumbered so that little moves
    #[arg(long, value_enum, default_value_t = MatchingArg::KeepOrder, value_name = "HOW")]
    pub matching: MatchingArg,
    /// Size of a block, for the bytes that move
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub bytes_per_block: u64,
    #[command(flatten)]
    pub scene: SceneArgs,
    #[command(flatten)]
    pub ranks_are: RankArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Where the file goes
    #[arg(long, value_name = "DIR", default_value = "placement-results")]
    pub out: PathBuf,
    /// Print the JSON instead of the table
    #[arg(long)]
    pub json: bool,
}

impl Args {
    pub fn migration_limit(&self) -> MigrationLimit {
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
pub enum Foresight {
    Full,
    None,
    Smoothed,
}

/// As [`Matching`], in words of the command line.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
pub enum MatchingArg {
    /// Ranks have the numbers that the policy gives them
    Off,
    /// As free, but what follows the curve from rank to rank goes on doing so
    KeepOrder,
    /// What a rank keeps decides which part of the placement it gets
    Free,
}

impl From<MatchingArg> for Matching {
    fn from(matching: MatchingArg) -> Matching {
        match matching {
            MatchingArg::Off => Matching::Off,
            MatchingArg::KeepOrder => Matching::KeepOrder,
            MatchingArg::Free => Matching::Free,
        }
    }
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
pub enum Inherit {
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
