//! `colltune emulate run`: a mesh's time axes under policies, and where the time goes.

use std::path::PathBuf;

use colltune_emulate::axes::Network;
use colltune_emulate::cost::Costs;
use colltune_emulate::machine::Machine;
use colltune_emulate::mesh::settings;
use colltune_emulate::noise::Noise;
use colltune_emulate::outcome::Outcome;
use colltune_emulate::place::Placer;
use colltune_emulate::price::Choices;
use colltune_emulate::program::History;
use colltune_emulate::run::{Collectives, Keep, Scenario, run as emulate};
use serde::Serialize;

use super::given;
use crate::output::{print, table, write};

/// Emulates, writes `emulate.json`, and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let machine = given::machine(&args.machine)?;
    let costs = given::costs(&args.costs)?;
    let mesh = given::mesh(&args.mesh, &args.more, args.ranks)?;
    let placers: Vec<Placer> = args
        .policy
        .iter()
        .map(|name| Placer::from_name(name))
        .collect::<Result<_, _>>()?;
    let choices = Choices::from_text(&args.collective)?;
    let noise = (!args.noiseless).then_some(Noise {
        costs: costs.noise,
        seed: args.seed,
    });
    let mut runs = Vec::new();
    for (name, placer) in args.policy.iter().zip(placers) {
        let mut settings = settings(&mesh.words, mesh.ranks, args.ranks)?;
        settings.placement = placer.option();
        let scenario = Scenario {
            settings: &settings,
            n_ranks: args.ranks,
            costs: &costs,
            machine: &machine,
            history: mesh
                .recording
                .as_ref()
                .map_or(History::Objects, History::Recorded),
            placer: Some((name.clone(), placer)),
            choices: choices.clone(),
            network: args.network.into(),
            collectives: args.collectives.into(),
            slow: args.slow,
            noise,
        };
        runs.push(emulate(&scenario, Keep::Sums)?.outcome);
    }
    let report = report(args, &machine, &costs, runs);
    let json = serde_json::to_string_pretty(&report)? + "\n";
    if let Some(folder) = &args.out {
        write(folder, "emulate.json", &json)?;
    }
    print(&if args.json { json } else { in_columns(&report) })
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune emulate run --mesh four-spheres --costs costs.toml --policy contiguous,lpt,cplx:50 --ranks 8 --machine hera
  colltune emulate run --mesh t --costs costs.toml --policy lpt-swap --ranks 64 --machine m.toml -- --weigh measured

Seconds are means over the ranks but for `total`, which is the last rank's. `late` and `sync` are waiting for others,
`transit` for messages on their way. What the machine's numbers are (measured or assumed) stands in the first line.")]
pub struct Args {
    /// A folder of telemetry with blocks, or a deck of the mini-app whose objects decide
    #[arg(long, value_name = "DIR|DECK")]
    mesh: String,
    /// Costs that `colltune emulate fit` wrote
    #[arg(long, value_name = "FILE", default_value = "costs.toml")]
    costs: PathBuf,
    /// Policies: those of `colltune placement policies`, rcb, morton, hilbert, and published:baseline, cdp, lpt, cplx:X
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "contiguous"
    )]
    policy: Vec<String>,
    /// Ranks
    #[arg(long, value_name = "N", value_parser = ranks)]
    ranks: usize,
    /// A preset (qdr-psm, abe, hera, gemini), a file, or a tuning database that was calibrated
    #[arg(long, value_name = "FILE|DB|NAME")]
    machine: String,
    /// Variants of collectives: allreduce=p2p:ring,bcast=native:binomial
    #[arg(long, value_name = "CHOICES", default_value = "default")]
    collective: String,
    /// How messages between nodes travel
    #[arg(long, value_enum, default_value_t = NetworkName::Events)]
    network: NetworkName,
    /// How collectives end
    #[arg(long, value_enum, default_value_t = CollectivesName::Gate)]
    collectives: CollectivesName,
    /// Let a node compute so many times as long, as in 3:4
    #[arg(long, value_name = "NODE:FACTOR", value_parser = slow)]
    slow: Option<(u32, f64)>,
    /// Without the noise that the costs were fitted with
    #[arg(long)]
    noiseless: bool,
    /// Seed of the noise
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write emulate.json into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON instead of the table
    #[arg(long)]
    json: bool,
    /// More options of the mini-app
    #[arg(last = true, value_name = "OPTIONS")]
    more: Vec<String>,
}

/// More ranks than this are more than any machine has.
const RANKS_MAX: usize = 1 << 20;

fn ranks(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=RANKS_MAX).contains(n));
    number.ok_or_else(|| format!("1 to {RANKS_MAX} ranks are possible"))
}

fn slow(text: &str) -> Result<(u32, f64), String> {
    let pair = text.split_once(':').and_then(|(node, factor)| {
        let factor = factor
            .parse()
            .ok()
            .filter(|f: &f64| f.is_finite() && *f > 0.0)?;
        Some((node.parse().ok()?, factor))
    });
    pair.ok_or_else(|| "a node and a positive factor are needed, as in 3:4".to_owned())
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum NetworkName {
    /// Each message alone
    Axes,
    /// Through the ports of the nodes, in the order of time
    Events,
}

impl From<NetworkName> for Network {
    fn from(name: NetworkName) -> Network {
        match name {
            NetworkName::Axes => Network::Axes,
            NetworkName::Events => Network::Events,
        }
    }
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum CollectivesName {
    /// A collective's time after the last rank came
    Gate,
    /// Allreduces by their schedules, from each rank's arrival on
    Skewed,
}

impl From<CollectivesName> for Collectives {
    fn from(name: CollectivesName) -> Collectives {
        match name {
            CollectivesName::Gate => Collectives::Gate,
            CollectivesName::Skewed => Collectives::Skewed,
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    machine: &'a str,
    /// What the machine's numbers are: measured, or assumed and why.
    source: &'a str,
    costs: &'a str,
    mesh: &'a str,
    seed: Option<u64>,
    ranks: usize,
    network: &'static str,
    runs: Vec<Outcome>,
}

fn report<'a>(
    args: &'a Args,
    machine: &'a Machine,
    costs: &'a Costs,
    runs: Vec<Outcome>,
) -> Report<'a> {
    Report {
        schema: 1,
        machine: &machine.name,
        source: &machine.source,
        costs: &costs.source,
        mesh: &args.mesh,
        seed: (!args.noiseless).then_some(args.seed),
        ranks: args.ranks,
        network: Network::from(args.network).name(),
        runs,
    }
}

fn in_columns(report: &Report) -> String {
    let mut text = format!(
        "{} on {} ranks of {} ({}); costs: {}\n",
        report.mesh, report.ranks, report.machine, report.source, report.costs
    );
    let Some(first) = report.runs.first() else {
        return text;
    };
    let names = first.phases_s.iter().map(|(name, _)| name.as_str());
    let header: Vec<&str> = ["policy", "total s", "max/mean", "wait %"]
        .into_iter()
        .chain(names)
        .chain(["remote", "moved"])
        .collect();
    let rows = report.runs.iter().map(|run| {
        let mut row = vec![
            run.policy.clone(),
            format!("{:.4}", run.total_s),
            format!("{:.3}", run.makespan_over_mean),
            format!("{:.1}", 100.0 * run.sync_share),
        ];
        row.extend(
            run.phases_s
                .iter()
                .map(|(_, seconds)| format!("{seconds:.4}")),
        );
        row.push(run.messages.remote.to_string());
        row.push(run.moved_blocks.to_string());
        row
    });
    text += &table(&header, &rows.collect::<Vec<_>>());
    text
}
