//! `colltune-lab emulate fit`: costs of blocks and phases, from telemetry of the mini-app.

use std::path::PathBuf;

use colltune_emulate::cost::Fit;
use serde_json::json;

use super::recording::{self, Recorded};
use colltune_output::{save, table, told};

/// Fits, writes the costs, and says how good they are.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let runs = args.telemetry.iter().map(|folder| recording::read(folder));
    let runs: Vec<Recorded> = runs.collect::<anyhow::Result<_>>()?;
    let sizes = args.sizes.iter().map(|folder| recording::read(folder));
    let sizes: Vec<Recorded> = sizes.collect::<anyhow::Result<_>>()?;
    let (first, last) = args.steps.unwrap_or((0, u64::MAX));
    let fit = recording::fitted(&runs, &sizes, |step| (first..=last).contains(&step))?;
    let text = fit.costs.to_toml();
    save(&args.output, &text)?;
    let said = match args.json {
        true => in_json(&fit)?,
        false => in_columns(&fit),
    };
    told(&args.output, &said)
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
The costs hold for one kernel (a stencil, or the gas) on the machine that recorded; a level with
fewer than 30 rows of (step, rank) takes those of the nearest level that has them. Ranks whose
blocks stay in the processor's cache are faster. How much, runs of other --sizes tell: those on a
mesh of one level what an update costs by the memory of a rank's blocks, refined ones what one
beside finer neighbours costs besides by the memory of the variables that are exchanged together
(the levels' costs are those of ranks with the dearest memory then). Without them all ranks are as
fast as those that were recorded.

Example:
  run='mpirun -n 2 colltune-amr --deck four-spheres --placement contiguous --telemetry_blocks'
  for n in 2 4 8 16; do
    $run --num_refine 0 --npx 2 --npy $n --npz $n --num_tsteps 9 --telemetry u$n
  done
  $run --num_refine 2 --comm_vars 1 --num_tsteps 4 --telemetry r1
  $run --num_refine 2 --comm_vars 4 --num_tsteps 4 --telemetry r4
  colltune-lab emulate fit --telemetry t --sizes u2 --sizes u4 --sizes u8 --sizes u16 --sizes r1 --sizes r4")]
pub struct Args {
    /// Telemetry of the mini-app, recorded with --telemetry_blocks; may be given again, for runs that count alike
    #[arg(long, value_name = "DIR", required = true)]
    telemetry: Vec<PathBuf>,
    /// The same of a run with more or fewer blocks or variables, for how fast ranks are by the memory that they reach
    /// into; may be given again, for other sizes and other blocks
    #[arg(long, value_name = "DIR")]
    sizes: Vec<PathBuf>,
    /// Where the costs go; `-` is standard output
    #[arg(long, short, value_name = "FILE", default_value = "costs.toml")]
    output: PathBuf,
    /// The steps that count: FIRST-LAST
    #[arg(long, value_name = "STEPS", value_parser = steps)]
    steps: Option<(u64, u64)>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn steps(text: &str) -> Result<(u64, u64), String> {
    let range = text.split_once('-').unwrap_or((text, text));
    let numbers = range.0.parse().ok().zip(range.1.parse().ok());
    numbers
        .filter(|(first, last)| first <= last)
        .ok_or_else(|| "it looks like 1-10".to_owned())
}

fn in_columns(fit: &Fit) -> String {
    let rows = fit
        .levels
        .iter()
        .zip(&fit.costs.levels)
        .map(|(quality, costs)| {
            vec![
                quality.level.to_string(),
                format!("{:.3}", costs.cell_ns),
                format!("{:.3}", costs.iteration_ns),
                format!("{:.3}", costs.finer_ns),
                quality.rows.to_string(),
                format!("{:.3}", quality.r2),
                format!("{:.3}", quality.residual_cv),
                if quality.borrowed {
                    "another level's"
                } else {
                    ""
                }
                .to_owned(),
            ]
        });
    let header = [
        "level",
        "cell ns",
        "iteration ns",
        "finer ns",
        "rows",
        "R2",
        "residual",
        "",
    ];
    let mut text = table(&header, &rows.collect::<Vec<_>>());
    let noise = fit.costs.noise;
    text += &format!(
        "noise: blocks {:.3}, from step to step {:.3}, ranks {:.3}, {:.2} % of blocks take {:.2} times as long; ranks' \
         pace differs by {:.3}, within a step by {:.3}, and each is stopped for {:.2} % of its work alone, {:.3} ms each time\n",
        noise.block_cv,
        noise.step_cv,
        noise.rank_cv,
        100.0 * noise.spike_share,
        noise.spike_factor,
        noise.pace_cv,
        noise.window_cv,
        100.0 * noise.stop_share,
        1e-6 * noise.stop_ns
    );
    let memory = &fit.costs.memory;
    for (sizes, what) in [
        (&memory.updates, ""),
        (&memory.beside_finer, " beside finer neighbours"),
    ] {
        for one in sizes {
            let [x, y, z] = one.cells;
            text += &format!(
                "blocks of {x} x {y} x {z}, {:.1} MiB a rank: {:.3} ns an update{what}\n",
                one.working_set_mib, one.update_ns
            );
        }
    }
    let components = &fit.components;
    for (explained, weights) in components.explained.iter().zip(&components.weights) {
        let parts = components.names.iter().zip(weights);
        let parts: Vec<String> = parts.map(|(name, w)| format!("{w:+.2} {name}")).collect();
        text += &format!(
            "component: {:.1} % of the variance of counts, {}\n",
            100.0 * explained,
            parts.join(" ")
        );
    }
    text
}

fn in_json(fit: &Fit) -> anyhow::Result<String> {
    let json = json!({
        "schema": 1,
        "costs": fit.costs,
        "levels": fit.levels,
        "components": fit.components,
    });
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}
