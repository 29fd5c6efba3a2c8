//! `colltune-lab placement replay`: recorded costs placed by several policies, step by step.
//!
//! ```text
//! $ colltune-lab placement replay telemetry/ --ranks 64 --policies contiguous,lpt-swap --bytes-per-block 65536
//! $ colltune-lab placement replay costs.csv --ranks 64 --trigger imbalance:0.1 --foresight smoothed
//! ```

mod args;
mod follow;

use anyhow::{Context, bail};
use colltune_placement::Trigger;
use serde::Serialize;

pub use self::args::Args;
use self::args::Foresight;
use self::follow::{Ranks, Run, follow};
use super::recorded::{Recording, read};
use super::scene::needs_mesh;
use colltune_output::progress;
use colltune_output::{print, table, write};

/// Places every step with every policy, writes the file, and prints the totals.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let recording = read(&args.recording, args.scene.dimensions)?;
    let runs = replay(args, &recording)?;
    progress::clear();
    let report = Report {
        schema: 2,
        ranks: args.ranks,
        steps: recording.steps.len(),
        foresight: args.foresight,
        triggers: args.trigger.iter().map(Trigger::to_string).collect(),
        policies: &runs,
    };
    let json = serde_json::to_string_pretty(&report).context("write JSON")? + "\n";
    write(&args.out, "placement-replay.json", &json)?;
    print(&if args.json { json } else { in_columns(&runs) })
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    ranks: u32,
    steps: usize,
    foresight: Foresight,
    triggers: Vec<String>,
    policies: &'a [Run],
}

fn replay(args: &Args, recording: &Recording) -> anyhow::Result<Vec<Run>> {
    if recording.root_level.is_none()
        && let Some(policy) = args.policies.iter().find(|policy| needs_mesh(policy))
    {
        bail!(
            "run policy {policy}: {} has no coordinates; add the columns x,y,z,level",
            args.recording.display()
        );
    }
    let ranks = Ranks::new(args, recording)?;
    let mut runs: Vec<Run> = Vec::new();
    for policy in &args.policies {
        progress::show(&format!("{policy}"));
        runs.push(
            follow(args, &ranks, recording, policy)
                .with_context(|| format!("replay with {policy}"))?,
        );
    }
    Ok(runs)
}

fn in_columns(runs: &[Run]) -> String {
    let header = [
        "policy",
        "makespan",
        "bound",
        "gap %",
        "placements",
        "moved blocks",
        "moved bytes",
        "time ms",
    ];
    let cells = |run: &Run| {
        let totals = &run.totals;
        vec![
            run.policy.clone(),
            format!("{:.6}", totals.makespan),
            format!("{:.6}", totals.bound),
            format!("{:.2}", 100.0 * totals.gap),
            totals.placements.to_string(),
            totals.moved_blocks.to_string(),
            totals.moved_bytes.to_string(),
            format!("{:.3}", totals.time_ms),
        ]
    };
    table(&header, &runs.iter().map(cells).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
