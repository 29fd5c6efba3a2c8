//! `colltune emulate validate`: emulated runs of the mini-app beside real ones on this machine.
//!
//! ```text
//! $ colltune emulate validate --machine ./db --repetitions 5
//! ```
//! Costs are fitted to the first steps of one run for each kernel, placed by `contiguous`. Then every deck runs under
//! every policy, in turns, and its time loop, phases, messages and bytes are held against the emulated ones.

mod args;
mod compare;
mod measure;
mod pairs;
mod protocol;
mod report;
mod scaling;

use super::given;
use super::recording::Recorded;
use crate::bench::Bench;
use crate::bench::place::Place;
use crate::output::{print, write};
use crate::progress;
use anyhow::Context;
pub use args::Args;
use args::{DECKS, FIT_POLICY, Measuring};
use colltune_emulate::cost::Costs;
use colltune_emulate::machine::Machine;
use compare::{Row, compare};
use measure::{Problem, measured, recorded};
use report::Report;

/// Measures, emulates, writes `emulate-validate.json`, and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let args = &args.of_row();
    let bench = Bench::new(&args.out, false)?;
    let mut place = place(args)?;
    let layouts = args.layouts();
    place.ranks_per_node = layouts[0];
    let machine = given::machine(&args.machine)?;
    let problems: Vec<Problem> = DECKS
        .iter()
        .filter(|(deck, ..)| args.decks.is_empty() || args.decks.iter().any(|d| d == deck))
        .map(|(deck, like, more)| Problem::new(deck, like, more, args.steps))
        .collect();
    let mut recordings = Vec::new();
    for problem in &problems {
        progress::show(&format!("{}: recording", problem.deck));
        recordings.push(recorded(&bench, &place, args.ranks, problem, FIT_POLICY)?);
    }
    let costs = fitted(args, &bench, &place, &problems, &recordings)?;
    let mut rows = Vec::new();
    for &layout in &layouts {
        place.ranks_per_node = layout;
        let machine = laid_out(&machine, layout);
        for ((problem, recording), costs) in problems.iter().zip(&recordings).zip(&costs) {
            let runs = measured(
                &bench,
                &place,
                args.ranks,
                problem,
                &args.policies,
                args.repetitions,
            )?;
            for (policy, samples) in args.policies.iter().zip(&runs) {
                let row = compare(
                    problem, policy, samples, recording, costs, &machine, args.ranks,
                );
                let row = row.with_context(|| format!("emulate {} with {policy}", problem.deck))?;
                rows.push(Row {
                    ranks_per_node: layout,
                    ..row
                });
            }
        }
    }
    place.ranks_per_node = layouts[0];
    let machine = laid_out(&machine, layouts[0]);
    let measuring = Measuring {
        args,
        bench: &bench,
        place: &place,
        machine: &machine,
    };
    let scaling = scaling::scaling(measuring, &problems[0], &recordings[0], &costs[0])?;
    let pairs = pairs::pairs(measuring, &costs[0])?;
    progress::clear();
    let report = Report::new(measuring, rows, scaling, pairs);
    let json = serde_json::to_string_pretty(&report)? + "\n";
    write(&bench.out, "emulate-validate.json", &json)?;
    print(&if args.json { json } else { report.in_columns() })
}

fn place(args: &Args) -> anyhow::Result<Place> {
    if args.cluster {
        let place = Place::cluster()?;
        let per_node = args.ranks_per_node.iter().min();
        let most = per_node.map_or(place.n_ranks, |&n| place.nodes * n as usize);
        let wanted = args.scaling.iter().copied().chain([args.ranks]).max();
        anyhow::ensure!(
            wanted.is_none_or(|n| n <= most),
            "run {} ranks on the test cluster: it has {most} in this layout",
            wanted.unwrap_or(0)
        );
        return Ok(place);
    }
    let most = args.scaling.iter().copied().max().unwrap_or(0);
    Place::node(args.mpi, args.ranks.max(most))
}

/// The machine with so many ranks on a node.
fn laid_out(machine: &Machine, ranks_per_node: Option<u32>) -> Machine {
    let mut machine = machine.clone();
    if let Some(ppn) = ranks_per_node {
        machine.shape.ppn = ppn;
    }
    machine
}

/// The costs of each problem: of its own kernel, from the one run that may be looked at.
fn fitted(
    args: &Args,
    bench: &Bench,
    place: &Place,
    problems: &[Problem],
    recordings: &[Recorded],
) -> anyhow::Result<Vec<Costs>> {
    let wanted = |step: u64| step <= args.fit_steps;
    let of =
        |recording: &Recorded| -> anyhow::Result<Costs> { Ok(recording.fitted(wanted)?.costs) };
    let costs = problems.iter().map(|problem| {
        let own = problems.iter().position(|other| other.deck == problem.like);
        match own {
            Some(place) => of(&recordings[place]),
            None => {
                let (deck, like, more) = DECKS
                    .into_iter()
                    .find(|(deck, ..)| *deck == problem.like)
                    .expect("a deck of the table");
                let other = Problem::new(deck, like, more, args.fit_steps);
                of(&recorded(bench, place, args.ranks, &other, FIT_POLICY)?)
            }
        }
    });
    costs.collect()
}
