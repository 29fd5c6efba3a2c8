//! `colltune-bench validate`: emulated runs of the mini-app beside real ones on this machine.
//!
//! ```text
//! $ colltune-bench validate --machine ./db --repetitions 5
//! ```
//! Every deck runs under every policy, and for each kernel the first steps of one deck under `contiguous`, to which costs
//! are fitted: all in turns, so that whatever else the machine does meets what is fitted and what is predicted alike.
//! Where a kernel's decks are several, runs of other sizes with their blocks say what updates cost by the memory that ranks
//! reach into: uniform meshes, and the deck of the fit with fewer levels and fewer variables at a time.
//! Then time loops, phases, messages and bytes are held against the emulated ones.

mod args;
mod compare;
mod measure;
mod protocol;
mod report;
mod scaling;

use std::path::Path;

use crate::suites::Bench;
use crate::suites::place::Place;
use anyhow::Context;
pub use args::Args;
use args::{DECKS, FIT_POLICY, Measuring};
use colltune_amr::settings::Settings;
use colltune_amr::shape::BlockShape;
use colltune_emulate::machine::Machine;
use colltune_emulate::mesh::settings;
use colltune_emulate::place::Placer;
use colltune_emulate::program::needs_cells;
use colltune_lab::emulate::given;
use colltune_lab::emulate::recording::{self, Recorded};
use colltune_output::progress;
use colltune_output::{print, write};
use compare::{Row, compare};
use measure::{Problem, Sample, measured, recorded};
use protocol::file;
pub use protocol::{FILE, SCHEMA};
use report::Report;

/// Measures, emulates, writes `emulate-validate-ROW.json`, and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let args = &args.of_row();
    let layouts = args.layouts();
    let machine = given::machine(&args.machine)?;
    let problems: Vec<Problem> = DECKS
        .iter()
        .filter(|(deck, ..)| args.decks.is_empty() || args.decks.iter().any(|d| d == deck))
        .map(|(deck, like, more)| Problem::new(deck, like, more, args.steps))
        .collect();
    let first = laid_out(&machine, layouts[0]);
    check(args, &problems)?;
    let kernels = kernels(args, &problems);
    let others = other_sizes(args, &kernels, &problems)?;
    // What is wrong with the line is known by now: nothing was made or started for it.
    let mut place = place(args)?;
    place.ranks_per_node = layouts[0];
    let bench = Bench::new(&args.out, false)?;
    let mut recordings = Vec::new();
    for problem in &problems {
        recordings.push(history(args, &bench, &place, problem)?);
    }
    let mut fits: Vec<Vec<Recorded>> = kernels.iter().map(|_| Vec::new()).collect();
    let mut sizes: Vec<Vec<Recorded>> = kernels.iter().map(|_| Vec::new()).collect();
    let of_layout = || vec![vec![Vec::new(); args.policies.len()]; problems.len()];
    let mut samples: Vec<Vec<Vec<Vec<Sample>>>> = layouts.iter().map(|_| of_layout()).collect();
    for turn in 1..=args.repetitions {
        place.ranks_per_node = layouts[0];
        for (kernel, runs) in kernels.iter().zip(&mut fits) {
            progress::show(&format!("{}: run {turn} to fit to", kernel.deck));
            runs.push(recorded(&bench, &place, args.ranks, kernel, FIT_POLICY)?);
        }
        for problem in &others {
            progress::show(&format!("{}, other sizes: run {turn}", problem.deck));
            let run = recorded(&bench, &place, args.ranks, problem, FIT_POLICY)?;
            sizes[kernel_of(&kernels, problem)].push(run);
        }
        for (&layout, samples) in layouts.iter().zip(&mut samples) {
            place.ranks_per_node = layout;
            for (problem, samples) in problems.iter().zip(samples) {
                measured(
                    (&bench, &place, args.ranks),
                    problem,
                    &args.policies,
                    (turn, args.repetitions),
                    samples,
                )?;
            }
        }
    }
    let mut costs = Vec::new();
    for problem in &problems {
        let kernel = kernel_of(&kernels, problem);
        costs.push(recording::fitted(&fits[kernel], &sizes[kernel], |_| true)?.costs);
    }
    let mut rows = Vec::new();
    for (&layout, samples) in layouts.iter().zip(&samples) {
        let machine = laid_out(&machine, layout);
        for (nth, problem) in problems.iter().enumerate() {
            for (policy, samples) in args.policies.iter().zip(&samples[nth]) {
                let recording = recordings[nth].as_ref();
                let costs = &costs[nth];
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
    let measuring = Measuring {
        args,
        bench: &bench,
        place: &place,
        machine: &first,
    };
    let scaling = scaling::scaling(measuring, &problems[0], recordings[0].as_ref(), &costs[0])?;
    progress::clear();
    let report = Report::new(measuring, rows, scaling);
    let json = serde_json::to_string_pretty(&report)? + "\n";
    write(&bench.out, &file(args.row.as_deref()), &json)?;
    print(&if args.json { json } else { report.in_columns() })
}

/// Whether the policies are known, and every deck runs under each of them on so many ranks.
///
/// Errors: those of [`Placer::from_name`] and of the mini-app's options.
fn check(args: &Args, problems: &[Problem]) -> anyhow::Result<()> {
    for policy in &args.policies {
        Placer::from_name(policy)?;
        for problem in problems {
            settings_of(problem, policy, args.ranks)?;
        }
    }
    for &ranks in &args.scaling {
        settings_of(&problems[0], FIT_POLICY, ranks)?;
    }
    Ok(())
}

/// What a problem's words mean under a policy.
fn settings_of(problem: &Problem, policy: &str, n_ranks: usize) -> anyhow::Result<Settings> {
    let words = problem.words(policy, Path::new("telemetry"));
    settings(&words, n_ranks, n_ranks)
        .with_context(|| format!("set up the deck {} on {n_ranks} ranks", problem.deck))
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

/// The mesh through a problem, where cells decide about it.
fn history(
    args: &Args,
    bench: &Bench,
    place: &Place,
    problem: &Problem,
) -> anyhow::Result<Option<Recorded>> {
    if !needs_cells(&settings_of(problem, FIT_POLICY, args.ranks)?) {
        return Ok(None);
    }
    progress::show(&format!("{}: recording its mesh", problem.deck));
    recorded(bench, place, args.ranks, problem, FIT_POLICY).map(Some)
}

/// The decks that costs are fitted to, for so many steps: one for each kernel among the problems.
fn kernels(args: &Args, problems: &[Problem]) -> Vec<Problem> {
    let wanted = |deck: &str| problems.iter().any(|problem| problem.like == deck);
    let decks = DECKS.iter().filter(|(deck, ..)| wanted(deck));
    decks
        .map(|(deck, like, more)| Problem::new(deck, like, more, args.fit_steps))
        .collect()
}

/// Blocks of each rank of a uniform mesh along y and z, and steps: from what any cache holds to what none does.
const UNIFORM: [([usize; 2], u64); 4] = [([2, 2], 100), ([4, 4], 25), ([8, 8], 7), ([16, 16], 4)];

/// Levels, variables that are exchanged together, and steps of the deck of the fit.
const REFINED: [(u64, u64, u64); 4] = [(2, 1, 4), (2, 4, 4), (3, 2, 3), (3, 8, 3)];

fn kernel_of(kernels: &[Problem], problem: &Problem) -> usize {
    let of_kernel = kernels
        .iter()
        .position(|kernel| kernel.deck == problem.like);
    of_kernel.expect("every problem has a kernel")
}

/// Runs of other sizes with the blocks of all decks, of those kernels whose costs hold for several.
fn other_sizes(
    args: &Args,
    kernels: &[Problem],
    problems: &[Problem],
) -> anyhow::Result<Vec<Problem>> {
    let mut all = Vec::new();
    for shape in shapes(args, kernels, problems)? {
        let uniform = UNIFORM.map(|(blocks, steps)| shape.uniform(args.ranks, blocks, steps));
        let cells = settings_of(shape, FIT_POLICY, args.ranks)?.shape.cells;
        let kernel = &kernels[kernel_of(kernels, shape)];
        all.extend(uniform);
        all.extend(REFINED.map(|size| kernel.refined(cells, size)));
    }
    for problem in &all {
        settings_of(problem, FIT_POLICY, args.ranks)?;
    }
    Ok(all)
}

/// A problem for each shape of blocks, where a kernel's costs hold for several decks. What is predicted of the very deck
/// that is fitted needs none.
fn shapes<'p>(
    args: &Args,
    kernels: &'p [Problem],
    problems: &'p [Problem],
) -> anyhow::Result<Vec<&'p Problem>> {
    let mut found: Vec<(&Problem, BlockShape)> = Vec::new();
    // The fitted deck stands for its own blocks, whatever objects the others have.
    for problem in kernels.iter().chain(problems) {
        let of_kernel = |other: &&Problem| other.like == problem.like;
        if problems
            .iter()
            .filter(of_kernel)
            .all(|other| other.deck == problem.like)
        {
            continue;
        }
        let shape = settings_of(problem, FIT_POLICY, args.ranks)?.shape;
        if !found
            .iter()
            .any(|(other, known)| other.like == problem.like && *known == shape)
        {
            found.push((problem, shape));
        }
    }
    Ok(found.into_iter().map(|(problem, _)| problem).collect())
}
