//! `colltune emulate fit`: costs of blocks and phases, from telemetry of the mini-app.

use std::path::PathBuf;

use colltune_emulate::cost::Fit;
use serde_json::json;

use super::recording::{self, Recorded};
use crate::output::{save, table, told};

/// Fits, writes the costs, and says how good they are.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let runs = args.telemetry.iter().map(|folder| recording::read(folder));
    let runs: Vec<Recorded> = runs.collect::<anyhow::Result<_>>()?;
    let uniform = args.uniform.iter().map(|folder| recording::read(folder));
    let uniform: Vec<Recorded> = uniform.collect::<anyhow::Result<_>>()?;
    let (first, last) = args.steps.unwrap_or((0, u64::MAX));
    let fit = recording::fitted(&runs, &uniform, |step| (first..=last).contains(&step))?;
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
The costs hold for one kernel (a stencil, or the gas) on the machine that recorded; a level with fewer than 30 rows of
(step, rank) takes those of the nearest level that has them. Ranks whose blocks stay in the processor's cache are faster.
How much, --uniform measures (cell ns is that of ranks with the dearest memory then); without it all ranks are as fast as
those that were recorded.

Example:
  for n in 2 4 8 16; do
    mpirun -n 2 colltune-amr --deck four-spheres --num_refine 0 --npx 2 --npy $n --npz $n --num_tsteps 9 \\
        --placement contiguous --telemetry u$n --telemetry_blocks
  done
  colltune emulate fit --telemetry t --uniform u2 --uniform u4 --uniform u8 --uniform u16")]
pub struct Args {
    /// Telemetry of the mini-app, recorded with --telemetry_blocks; may be given again, for runs that count alike
    #[arg(long, value_name = "DIR", required = true)]
    telemetry: Vec<PathBuf>,
    /// The same of a run on a mesh of one level (--num_refine 0), for how fast ranks are by what memory their blocks take;
    /// may be given again, for other sizes and other blocks
    #[arg(long, value_name = "DIR")]
    uniform: Vec<PathBuf>,
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
    for one in &fit.costs.memory {
        let [x, y, z] = one.cells;
        text += &format!(
            "blocks of {x} x {y} x {z}, {:.1} MiB a rank: {:.3} ns an update\n",
            one.resident_mib, one.cell_ns
        );
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
