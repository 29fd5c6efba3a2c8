//! `colltune-lab emulate whatif`: policies by variants of allreduce, and which lever gives how much.
//!
//! ```text
//! $ colltune-lab emulate whatif --mesh four-spheres --policies contiguous,lpt --allreduce default,p2p:ring \
//!     --cells 4,8,16 --ranks 8,64 --machine hera
//! ```

mod case;
mod picture;

use std::path::PathBuf;

use colltune_core::algorithm::pattern::Pattern;
use colltune_emulate::axes::Network;
use colltune_emulate::cost::Costs;
use colltune_emulate::machine::Machine;
use colltune_emulate::mesh::settings;
use colltune_emulate::place::Placer;
use colltune_emulate::price::Choices;
use colltune_emulate::run::{Collectives, Scenario};
use colltune_emulate::whatif::{Grid, row};
use serde::Serialize;

use super::given::{self, Mesh};
use super::placing::{Placing, Told};
use case::Case;
use colltune_output::{print, table, write};

/// Emulates the grids, writes them as JSON and as a picture, and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let machine = given::machine(&args.machine)?;
    let costs = given::costs(&args.costs)?;
    let placers: Vec<Placer> = args
        .policies
        .iter()
        .map(|name| Placer::from_name(name))
        .collect::<Result<_, _>>()?;
    let choices: Vec<Choices> = args
        .allreduce
        .iter()
        .map(|variant| {
            let mut choices = Choices::default();
            let set = choices.set(Pattern::Allreduce, variant, &machine.learned);
            set.map(|()| choices)
        })
        .collect::<Result<_, _>>()?;
    let cells: Vec<Option<u32>> = match args.cells.is_empty() {
        true => vec![None],
        false => args.cells.iter().copied().map(Some).collect(),
    };
    let mut cases = Vec::new();
    for cells in cells {
        for &ranks in &args.ranks {
            let mesh = mesh(args, cells, ranks)?;
            let total_s = grid(&mesh, ranks, &costs, &machine, (args, &placers, &choices))?;
            let grid = Grid {
                policies: args.policies.clone(),
                variants: args.allreduce.clone(),
                total_s,
            };
            let levers = grid.levers();
            cases.push(Case {
                cells,
                ranks,
                levers,
                grid,
            });
        }
    }
    let report = Report {
        schema: 1,
        machine: &machine.name,
        source: &machine.source,
        costs: &costs.source,
        mesh: &args.mesh,
        placing: args.placing.priced_by(),
        speeds: args.placing.told(&args.policies, &placers),
        cases,
    };
    let json = serde_json::to_string_pretty(&report)? + "\n";
    if let Some(folder) = &args.out {
        let title = format!("What each lever gives: {} on {}", args.mesh, machine.name);
        let picture = picture::svg(&report.cases, &title);
        write(folder, "emulate-whatif.json", &json)?;
        write(folder, "emulate-whatif.svg", &picture)?;
    }
    print(&if args.json { json } else { in_columns(&report) })
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
The first policy and the first variant are what runs today. `placement` is what the best policy
gives with today's variant, `algorithm` what the best variant gives under today's policy, `both`
what the best pair gives; shares of today's time. `interaction` is what the pair takes beyond the
sum of its levers: negative where they help each other. With `--time-placement` each policy is
timed once for each number of cells and ranks, whatever the variant.")]
pub struct Args {
    /// A folder of telemetry with blocks, a deck of the mini-app whose objects decide, a blast (--problem sedov) whose
    /// exact shock does, from where its energy is at first until --time in --num_tsteps steps, or a random octree that
    /// stays as it is, of four blocks for each root block. Meshes of other codes, which have other blocks, are run by
    /// `colltune-bench study art` (cosmology) and `study shamrock` (quadrant) alone
    #[arg(long, value_name = "DIR|DECK|shell:DECK|octree:SEED")]
    mesh: String,
    /// Costs that `colltune-lab emulate fit` wrote
    #[arg(long, value_name = "FILE", default_value = "costs.toml")]
    costs: PathBuf,
    /// Policies, today's first
    #[arg(long, value_delimiter = ',', value_name = "NAME", required = true)]
    policies: Vec<String>,
    /// Variants of allreduce, today's first: with schedules (p2p:ring, native:ring, node:shm+ring), and of a tuning database
    /// whatever it has measured
    #[arg(long, value_delimiter = ',', value_name = "VARIANT", required = true)]
    allreduce: Vec<String>,
    /// Cells to a block's edge, instead of the mesh's own
    #[arg(long, value_delimiter = ',', value_name = "CELLS", value_parser = clap::value_parser!(u32).range(2..=128))]
    cells: Vec<u32>,
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = colltune_output::parse::ranks, required = true)]
    ranks: Vec<usize>,
    /// A preset (qdr-psm, abe, hera, gemini), a file, or a tuning database that was calibrated
    #[arg(long, value_name = "FILE|DB|NAME")]
    machine: String,
    #[command(flatten)]
    placing: Placing,
    /// Write emulate-whatif.json and its picture into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON instead of the table
    #[arg(long)]
    json: bool,
    /// More options of the mini-app
    #[arg(last = true, value_name = "OPTIONS")]
    more: Vec<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    machine: &'a str,
    source: &'a str,
    costs: &'a str,
    mesh: &'a str,
    /// What placing takes: by `leaves` of the mesh under every policy, or by `this machine's clock`.
    placing: &'static str,
    /// Who is told how fast ranks are, with `--tell-speeds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    speeds: Option<Told>,
    cases: Vec<Case>,
}

fn mesh(args: &Args, cells: Option<u32>, ranks: usize) -> anyhow::Result<Mesh> {
    let mut more = args.more.clone();
    if let Some(cells) = cells {
        let names = ["--nx", "--ny", "--nz"];
        more.extend(
            names
                .iter()
                .flat_map(|name| [(*name).to_owned(), cells.to_string()]),
        );
    }
    given::mesh(&args.mesh, &more, ranks)
}

fn grid(
    mesh: &Mesh,
    ranks: usize,
    costs: &Costs,
    machine: &Machine,
    (args, placers, choices): (&Args, &[Placer], &[Choices]),
) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut total_s = Vec::new();
    for (name, placer) in args.policies.iter().zip(placers) {
        let mut settings = settings(&mesh.words, mesh.ranks, ranks)?;
        settings.placement = placer.option();
        let made = mesh.made(&settings)?;
        let scenario = Scenario {
            settings: &settings,
            n_ranks: ranks,
            costs,
            machine,
            history: mesh.history(&made),
            placer: Some((name.clone(), placer.clone())),
            choices: Choices::default(),
            network: Network::Events,
            collectives: Collectives::Gate,
            slow: args.placing.slow(),
            noise: None,
            timer: args.placing.timer(),
        };
        total_s.push(row(&scenario, choices)?);
    }
    Ok(total_s)
}

fn in_columns(report: &Report) -> String {
    let mut text = format!(
        "{} on {} ({}); costs: {}\n",
        report.mesh, report.machine, report.source, report.costs
    );
    text.extend(report.speeds.iter().map(Told::line));
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let rows = report.cases.iter().map(|case| {
        let levers = &case.levers;
        vec![
            case.cells
                .map_or_else(|| "own".to_owned(), |cells| cells.to_string()),
            case.ranks.to_string(),
            format!("{:.4}", case.grid.total_s[0][0]),
            levers.best_policy.clone(),
            levers.best_variant.clone(),
            percent(levers.placement),
            percent(levers.algorithm),
            percent(levers.both),
            format!("{:+.4}", levers.interaction_s),
        ]
    });
    let header = [
        "cells",
        "ranks",
        "today s",
        "best policy",
        "best variant",
        "placement %",
        "algorithm %",
        "both %",
        "interaction s",
    ];
    text += &table(&header, &rows.collect::<Vec<_>>());
    for case in &report.cases {
        let cells = case
            .cells
            .map_or_else(|| "own".to_owned(), |cells| cells.to_string());
        text += &format!("\nseconds at {cells} cells on {} ranks\n", case.ranks);
        let header: Vec<&str> = std::iter::once("policy")
            .chain(case.grid.variants.iter().map(String::as_str))
            .collect();
        let pairs = case.grid.policies.iter().zip(&case.grid.total_s);
        let rows = pairs.map(|(policy, times)| {
            let times = times.iter().map(|time| format!("{time:.4}"));
            std::iter::once(policy.clone()).chain(times).collect()
        });
        text += &table(&header, &rows.collect::<Vec<Vec<String>>>());
    }
    text
}
