//! `colltune-lab emulate run`: a mesh's time axes under policies, and where the time goes.
//!
//! ```text
//! $ colltune-lab emulate run --mesh four-spheres --costs costs.toml --policy contiguous,lpt --ranks 8 --machine hera \
//!     --axes 3 --out target/emulated
//! ```

mod pictures;
mod report;
mod timeline;

use std::path::PathBuf;

use colltune_emulate::EmulateError;
use colltune_emulate::axes::Network;
use colltune_emulate::mesh::settings;
use colltune_emulate::noise::Noise;
use colltune_emulate::place::Placer;
use colltune_emulate::price::Choices;
use colltune_emulate::run::{Emulated, Keep, Scenario, replicas, run as emulate};

use super::given;
use super::placing::Placing;
use colltune_output::parse;
use colltune_output::{print, write};
use report::{Replicas, Report, Run};

/// Emulates, writes what was asked for into the folder, and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let machine = given::machine(&args.machine)?;
    let costs = given::costs(&args.costs)?;
    let mesh = given::mesh(&args.mesh, &args.more, args.ranks)?;
    let placers: Vec<Placer> = args
        .policy
        .iter()
        .map(|name| Placer::from_name(name))
        .collect::<Result<_, _>>()?;
    let speeds = args.placing.told(&args.policy, &placers);
    let choices = Choices::from_text(&args.collective, &machine.learned)?;
    let noise = (!args.noiseless).then_some(Noise {
        costs: costs.noise,
        seed: args.seed,
    });
    let mut runs = Vec::new();
    let mut files: Vec<(String, String)> = Vec::new();
    for (name, placer) in args.policy.iter().zip(placers) {
        let mut settings = settings(&mesh.words, mesh.ranks, args.ranks)?;
        settings.placement = placer.option();
        let made = mesh.made(&settings)?;
        let scenario = Scenario {
            settings: &settings,
            n_ranks: args.ranks,
            costs: &costs,
            machine: &machine,
            history: mesh.history(&made),
            placer: Some((name.clone(), placer)),
            choices: choices.clone(),
            network: args.network.into(),
            slow: args.placing.slow(),
            noise,
            timer: args.placing.timer(),
        };
        let (run, kept) = typical(args, &scenario)?;
        if args.out.is_some() {
            files.extend(pictures::matrix(name, &machine, args.ranks, &kept)?);
            if let Some(steps) = args.axes {
                anyhow::ensure!(
                    steps.1 <= run.outcome.steps,
                    "find step {} in the run: it has {} steps",
                    steps.1,
                    run.outcome.steps
                );
                files.push(timeline::of_run(name, &machine, args.ranks, &kept.spans)?);
            }
        }
        runs.push(run);
    }
    let report = Report {
        schema: 1,
        machine: &machine.name,
        source: &machine.source,
        costs: &costs.source,
        defaults: machine.defaults.name(),
        mesh: &args.mesh,
        seed: (!args.noiseless).then_some(args.seed),
        ranks: args.ranks,
        network: Network::from(args.network).name(),
        placing: args.placing.priced_by(),
        speeds,
        runs,
    };
    let json = serde_json::to_string_pretty(&report)? + "\n";
    if let Some(folder) = &args.out {
        files.push(("emulate.svg".to_owned(), pictures::phases(&report)?));
        files.push(("emulate.csv".to_owned(), report.in_csv()?));
        files.push(("emulate.json".to_owned(), json.clone()));
        for (name, contents) in &files {
            write(folder, name, contents)?;
        }
    }
    print(&if args.json { json } else { report.in_columns() })
}

/// The run in the middle of all replicas, with what its files show of it.
fn typical(args: &Args, scenario: &Scenario) -> Result<(Run, Emulated), EmulateError> {
    let drawn = Keep {
        pairs: args.out.is_some(),
        steps: args.axes,
        ..Keep::SUMS
    };
    // Of many runs, only the one that is drawn is kept.
    let keep = match args.replicas {
        1 => drawn,
        _ => Keep::SUMS,
    };
    let total_s = |emulated: &Emulated| emulated.outcome.total_s;
    let mut all = replicas(scenario, args.replicas, |one| emulate(one, keep), total_s)?;
    let (min_s, max_s) = (total_s(&all[0].1), total_s(&all[all.len() - 1].1));
    let (noise, mut found) = all.swap_remove(all.len() / 2);
    if keep != drawn {
        let middle = Scenario {
            noise,
            ..scenario.clone()
        };
        found = emulate(&middle, drawn)?;
    }
    let run = Run {
        outcome: found.outcome.clone(),
        replicas: Replicas {
            n: args.replicas,
            seed: noise.map(|noise| noise.seed),
            min_s,
            max_s,
        },
    };
    Ok((run, found))
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune-lab emulate run --mesh four-spheres --costs costs.toml --policy contiguous,lpt,cplx:50 --ranks 8 --machine hera
  colltune-lab emulate run --mesh t --costs costs.toml --policy lpt-swap --ranks 64 --machine m.toml -- --weigh measured
  colltune-lab emulate run --mesh four-spheres --costs costs.toml --policy contiguous,lpt --ranks 8 --machine hera \\
      --replicas 9 --axes 3-4 --out target/emulated
  colltune-lab emulate run --mesh shell:blast-512 --costs costs.toml --policy contiguous,cplx:50 --ranks 512 \\
      --machine qdr-psm -- --num_tsteps 200
  colltune-lab emulate run --mesh octree:1 --costs costs.toml --policy contiguous,lpt --ranks 64 --machine hera \\
      -- --npx 8 --npy 8 --npz 8 --num_refine 3
  colltune-lab emulate run --mesh four-spheres --costs costs.toml --policy contiguous,lpt-swap,rcb --ranks 64 \\
      --machine hera --slow 1:4 --tell-speeds

Seconds are means over the ranks but for `total`, which is the last rank's. `late` and `sync` are
waiting for others, `transit` for messages on their way and, where ranks share cores, for taking
them. `lbr` is the load balance ratio: the ranks' mean computing over the most. Of the time of
collectives `meas/regr/sim` says which shares have prices that were measured, that a training
predicts, and that were simulated (family node, where it was not measured, by a formula and the
schedule between nodes). What the machine's numbers are (measured or assumed) stands in the first
line and in every file. `--out` writes JSON, CSV, phases by policy, and who sends how much to
whom; with `--axes` what every rank does in those steps as well, as a file for Perfetto and the
Firefox profiler.")]
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
    /// Policies: those of `colltune-lab placement policies`, rcb, morton, hilbert, and published:baseline, cdp, lpt, cplx:X
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "contiguous"
    )]
    policy: Vec<String>,
    /// Ranks
    #[arg(long, value_name = "N", value_parser = parse::ranks)]
    ranks: usize,
    /// A preset (qdr-psm, abe, hera, gemini), a file, or a tuning database that was calibrated
    #[arg(long, value_name = "FILE|DB|NAME")]
    machine: String,
    /// Variants of collectives: allreduce=p2p:ring,bcast=native:binomial,barrier=node:shm; of a tuning database whatever it
    /// has measured
    #[arg(long, value_name = "CHOICES", default_value = "default")]
    collective: String,
    /// How messages between nodes travel
    #[arg(long, value_enum, default_value_t = NetworkName::Events)]
    network: NetworkName,
    #[command(flatten)]
    placing: Placing,
    /// Without the noise that the costs were fitted with
    #[arg(long)]
    noiseless: bool,
    /// Seed of the noise
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Emulate so many times, each with other noise; the run in the middle is told, and the least and greatest total
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with_all = ["noiseless", "time_placement"],
        value_parser = clap::value_parser!(u64).range(1..=1000)
    )]
    replicas: u64,
    /// Write what every rank does in these steps, as in 3 or 3-4, counted from 1
    #[arg(long, value_name = "STEPS", value_parser = steps, requires = "out")]
    axes: Option<(u64, u64)>,
    /// Write emulate.json, emulate.csv and pictures into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON instead of the table
    #[arg(long)]
    json: bool,
    /// More options of the mini-app
    #[arg(last = true, value_name = "OPTIONS")]
    more: Vec<String>,
}

fn steps(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if 1 <= first && first <= last => Ok((first, last)),
        _ => Err("a step, or two as in 3-4, counted from 1, are needed".to_owned()),
    }
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
