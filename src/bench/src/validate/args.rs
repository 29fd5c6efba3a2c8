//! What `validate` is asked, and what all its parts measure with.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use colltune_core::library::Abi;
use colltune_emulate::machine::Machine;

use super::protocol::PROTOCOLS;
use crate::suites::Bench;
use crate::suites::place::Place;
use colltune_output::parse;

/// The decks, and the one whose first steps the costs of its kernel are fitted to.
pub(super) const DECKS: [(&str, &str, &[&str]); 4] = [
    ("four-spheres", "four-spheres", &[]),
    ("sphere-hits-block", "four-spheres", &[]),
    ("expanding-sphere", "four-spheres", &[]),
    ("sedov-512", "sedov-512", &["--cost", "shock"]),
];
/// Under this policy runs the one that costs are fitted to.
pub(super) const FIT_POLICY: &str = "contiguous";

/// What all parts measure with.
#[derive(Clone, Copy)]
pub(super) struct Measuring<'a> {
    pub(super) args: &'a Args,
    pub(super) bench: &'a Bench,
    pub(super) place: &'a Place,
    pub(super) machine: &'a Machine,
}

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Ranks are pinned, and run in real time with yielding where they outnumber cores. Runs that costs
are fitted to are made in turns with those that are predicted, once for each repetition; so are,
where a deck has other blocks or fewer than that of the fit, runs of other sizes with its blocks:
on meshes of one level with up to 256 a rank (150 MB), and the deck of the fit with fewer levels
and fewer variables at a time. `noise` is half the range of the measured totals over their median:
no model can be expected to come nearer. `counts` says whether messages and bytes of every step,
rank and kind are equal. `alone` is what the emulated total changes with `--network axes`. Each
row counts as validated within 12 %, all within 5 % on the average; on the test cluster within
25 % and 12 %. Emulated runs have the noise of the fitted one, and are the middle of five.
`--row` runs what a row of the validation prescribes: V1 all decks under all policies on 2 ranks,
V2 on the test cluster's 8, V3 on 4 of them (2 nodes x 2, which costs are fitted on, and 4 nodes
x 1), V4 LPT over contiguous, V8 strong scaling; V5 (counts), V6 (phases) and V9 (`alone`) are
judged in every run, and V7, pairs of a policy and an allreduce, by the benches `levers-*`.
A row's findings go to emulate-validate-ROW.json, which `colltune-bench evidence` shows; those
of a run without a row to emulate-validate.json.

Examples:
  colltune-bench validate --machine ./db --row V1
  colltune-bench validate --machine ./db --repetitions 5
  colltune-bench validate --machine ./db --cluster --ranks 8 --policies contiguous,lpt --decks sedov-512
  colltune-bench validate --machine ./db --decks four-spheres --policies contiguous --scaling 1,2,4,8")]
pub struct Args {
    /// A preset, a file, or a tuning database that was calibrated here
    #[arg(long, value_name = "FILE|DB|NAME")]
    pub(super) machine: String,
    /// What a row of the validation prescribes, instead of the options that it stands for
    #[arg(
        long,
        value_name = "ROW",
        value_parser = PossibleValuesParser::new(PROTOCOLS.iter().map(|row| row.name)),
        conflicts_with_all = [
            "ranks", "cluster", "ranks_per_node", "scaling", "policies", "decks"
        ]
    )]
    pub(super) row: Option<String>,
    /// Ranks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parse::ranks)]
    pub(super) ranks: usize,
    /// On the test cluster of 4 nodes x 2 ranks instead of on this machine alone
    #[arg(long)]
    pub(super) cluster: bool,
    /// Ranks on each node of the test cluster, 1 or 2; with 1,2 everything runs on either layout
    #[arg(
        long = "ranks-per-node",
        value_delimiter = ',',
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=2),
        requires = "cluster"
    )]
    pub(super) ranks_per_node: Vec<u32>,
    /// Strong scaling of the first deck as well: `contiguous` on each of these numbers of ranks
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = parse::ranks)]
    pub(super) scaling: Vec<usize>,
    /// Policies
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "contiguous,lpt-swap,cplx:50,round-robin"
    )]
    pub(super) policies: Vec<String>,
    /// Only these of the four decks
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(DECKS.map(|(deck, ..)| deck))
    )]
    pub(super) decks: Vec<String>,
    /// Steps of each run
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) steps: u64,
    /// The first steps, to which costs are fitted
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) fit_steps: u64,
    /// How often each policy runs
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..)
    )]
    pub(super) repetitions: usize,
    /// MPI library: openmpi, mpich
    #[arg(long, value_parser = parse::abi(), value_name = "LIBRARY", default_value = "openmpi")]
    pub(super) mpi: Abi,
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    pub(super) out: PathBuf,
    /// Print the JSON instead of the table
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    /// The layouts that all decks and policies run on; none: as the place has it.
    pub(super) fn layouts(&self) -> Vec<Option<u32>> {
        match &self.ranks_per_node[..] {
            [] => vec![None],
            some => some.iter().copied().map(Some).collect(),
        }
    }

    /// With what the row prescribes, where one is given.
    pub(super) fn of_row(&self) -> Args {
        let mut args = self.clone();
        let named = |name: &String| PROTOCOLS.iter().find(|row| row.name == name);
        let Some(row) = self.row.as_ref().and_then(named) else {
            return args;
        };
        let words = |all: &[&str]| all.iter().map(|&word| word.to_owned()).collect();
        args.ranks = row.ranks;
        args.cluster = row.cluster;
        args.decks = words(row.decks);
        args.scaling = row.scaling.to_vec();
        args.ranks_per_node = row.ranks_per_node.to_vec();
        if !row.policies.is_empty() {
            args.policies = words(row.policies);
        }
        args
    }
}
