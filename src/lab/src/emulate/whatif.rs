//! `colltune-lab emulate whatif`: policies by variants of allreduce, and which lever gives how much.
//!
//! ```text
//! $ colltune-lab emulate whatif --mesh four-spheres --policies contiguous,lpt --allreduce default,p2p:ring \
//!     --cells 4,8,16 --ranks 8,64 --machine hera
//! ```

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use colltune_core::algorithm::pattern::Pattern;
use colltune_core::levers::asked::LeverPlace;
use colltune_db::levers::{Expected, expect};
use colltune_emulate::axes::Network;
use colltune_emulate::clock::Timer;
use colltune_emulate::cost::Costs;
use colltune_emulate::machine::Machine;
use colltune_emulate::mesh::settings;
use colltune_emulate::place::Placer;
use colltune_emulate::price::Choices;
use colltune_emulate::run::{Scenario, SlowNode};
use colltune_emulate::whatif::{Grid, Levers, row};
use serde::Serialize;

use super::given::{self, Mesh};
use super::placing::{Placing, Told};
use colltune_output::failure::usage;
use colltune_output::{print, progress, table, write};

/// Emulates the grids, writes them as JSON, and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let names = &args.policies;
    let twice = (1..names.len()).find(|&place| names[..place].contains(&names[place]));
    if let Some(place) = twice {
        return Err(usage(format!("--policies names {} twice", names[place])));
    }
    let machine = given::machine(&args.machine)?;
    if args.first_weights {
        // An hour of emulating is not lost to a database that is none.
        given::calibrated(Path::new(&args.machine)).context("weigh first draws there")?;
    }
    let costs = given::costs(&args.costs)?;
    let placers: Vec<Placer> = args
        .policies
        .iter()
        .map(|name| Placer::from_name(name))
        .collect::<Result<_, _>>()?;
    let cells: Vec<Option<u32>> = match args.cells.is_empty() {
        true => vec![None],
        false => args.cells.iter().copied().map(Some).collect(),
    };
    let mut cases = Vec::new();
    for cells in cells {
        for &ranks in &args.ranks {
            let mesh = mesh(args, cells, ranks)?;
            let grid = Question {
                mesh: &mesh,
                ranks,
                costs: &costs,
                machine: &machine,
                policies: &args.policies,
                allreduce: &args.allreduce,
                slow: args.placing.slow(),
                timer: args.placing.timer(),
            }
            .grid()?;
            if args.first_weights {
                first_weights(Path::new(&args.machine), &machine, &grid, ranks)?;
            }
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
        write(folder, "emulate-whatif.json", &json)?;
    }
    print(&if args.json { json } else { in_columns(&report) })
}

/// Which pairs of a policy and a variant of allreduce are emulated. The first of each is what runs today.
pub struct Question<'a> {
    pub mesh: &'a Mesh,
    pub ranks: usize,
    pub costs: &'a Costs,
    pub machine: &'a Machine,
    pub policies: &'a [String],
    pub allreduce: &'a [String],
    pub slow: Option<SlowNode>,
    /// Who times the policies; none: what placing takes is in the costs.
    pub timer: Option<Timer<'a>>,
}

impl Question<'_> {
    /// Errors: those of the policies, variants and options.
    pub fn grid(&self) -> anyhow::Result<Grid> {
        let choices = self.allreduce.iter().map(|variant| {
            let mut choices = Choices::default();
            let set = choices.set(Pattern::Allreduce, variant, &self.machine.learned);
            set.map(|()| choices)
        });
        let choices: Vec<Choices> = choices.collect::<Result<_, _>>()?;
        let mut total_s = Vec::new();
        for name in self.policies {
            let placer = Placer::from_name(name)?;
            let mut settings = settings(&self.mesh.words, self.mesh.ranks, self.ranks)?;
            settings.placement = placer.option();
            let made = self.mesh.made(&settings)?;
            let scenario = Scenario {
                settings: &settings,
                n_ranks: self.ranks,
                costs: self.costs,
                machine: self.machine,
                history: self.mesh.history(&made),
                placer: Some((name.clone(), placer.clone())),
                choices: Choices::default(),
                network: Network::Events,
                slow: self.slow,
                noise: None,
                timer: self.timer,
            };
            total_s.push(row(&scenario, &choices)?);
        }
        Ok(Grid {
            policies: self.policies.to_vec(),
            variants: self.allreduce.to_vec(),
            total_s,
        })
    }
}

/// The program and the lever whose first draws an emulated grid can weigh.
const PROGRAM: &str = "colltune-amr";
const LEVER: &str = "placement";

/// Weighs the first draws of `colltune-amr --placement tuned` in a database by the grid's times with today's variant.
///
/// Errors: a database that is none, has not one calibrated library, or is training.
pub fn first_weights(
    db: &Path,
    machine: &Machine,
    grid: &Grid,
    ranks: usize,
) -> anyhow::Result<()> {
    let (db, library) = given::calibrated(db)?;
    let ppn = u64::from(machine.shape.ppn).min(ranks as u64).max(1);
    let arms = grid.policies.iter().zip(&grid.total_s);
    let arms = arms.map(|(policy, total_s)| {
        let arm = Placer::from_name(policy)?.option().to_string();
        Ok((arm, total_s[0]))
    });
    let arms = arms.collect::<anyhow::Result<Vec<_>>>()?;
    let place = LeverPlace {
        lever: LEVER.to_owned(),
        class: 0,
        nodes: (ranks as u64).div_ceil(ppn),
        ppn,
        ranks: ranks as u64,
    };
    let expected = Expected {
        program: PROGRAM,
        library: &library.to_string(),
        place,
        arms: &arms,
    };
    expect(&db, &expected)?;
    progress::tell(&format!(
        "First draws of {PROGRAM} --placement tuned on {ranks} ranks are weighed in {}; what epochs tell goes before that.",
        db.root().display()
    ));
    Ok(())
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
The first policy and the first variant are what runs today. `placement` is what the best policy
gives with today's variant, `algorithm` what the best variant gives under today's policy, `both`
what the best pair gives; shares of today's time. `interaction` is what the pair takes beyond the
sum of its levers: negative where they help each other. With `--time-placement` each policy is
timed once for each number of cells and ranks, whatever the variant. With `--first-weights` jobs of
`colltune-amr --placement tuned:POLICIES` that explore with the database of `--machine` begin with
what is expected here; what their epochs tell goes before it.")]
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
    /// Weigh the first draws of --placement tuned, in the database that --machine names
    #[arg(long, conflicts_with = "cells")]
    first_weights: bool,
    /// Write emulate-whatif.json into this folder
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

/// One grid of policies by variants.
#[derive(Serialize)]
struct Case {
    /// To a block's edge; `None` for the mesh's own.
    cells: Option<u32>,
    ranks: usize,
    levers: Levers,
    grid: Grid,
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
