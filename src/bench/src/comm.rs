//! `colltune-bench comm`: the messages of an octree's neighbours, really sent, under each policy.
//!
//! ```text
//! $ colltune-bench comm --ranks 2 --blocks 200 --policies contiguous,lpt,rcb
//! ```
//! Messages, meshes and rounds are those of `commbench`, the microbenchmark of the CPLX study (Jain et al. 2025, section
//! VI-C): faces, edges and corners of 20,480, 2,560 and 320 B, ten meshes, 100 rounds on each after some that do not
//! count. Its meshes have one to two blocks a rank (`--blocks`); on few ranks that is next to nothing.
//!
//! The geometry of a seeded octree says which block sends how many bytes to which; a policy says on
//! which ranks they are. What stays on a rank is no message. `colltune-mpibench neighbours` sends the
//! rest in rounds, times them, and counts what arrives; the counts have to be those of the geometry.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use colltune_core::library::Abi;
use colltune_placement::curve::ContactBytes;
use colltune_placement::generate::{Distribution, costs};
use colltune_placement::{Graph, Placement, Policy, Problem, place};
use colltune_statistics::spread;
use serde::Serialize;
use serde_json::{Value, json};

use crate::suites::Bench;
use crate::suites::jobs::{self, Tuner};
use crate::suites::place::Place;
use colltune_lab::placement::policy;
use colltune_lab::placement::scene::{Scene, SceneArgs};
use colltune_lab::plot::{Band, Figure, Line, Panel, Scale, svg};
use colltune_output::parse;
use colltune_output::progress;
use colltune_output::{print, table, write};

/// Places, has the messages sent, compares the counts, and reports.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let patterns = patterns(args)?;
    let bench = Bench::new(&args.out, false)?;
    let plan = write(
        &bench.out,
        "placement-comm.plan.json",
        &plan(args, &patterns).to_string(),
    )?;
    progress::show("colltune-mpibench neighbours");
    let place = Place::node(args.mpi, args.ranks as usize)?;
    let rounds = args.rounds.to_string();
    let words = ["neighbours", "--rounds", &rounds, "--plan"].map(str::to_owned);
    let words = [&words[..], &[plan.display().to_string()]].concat();
    let done = jobs::run(&bench, &place, args.ranks as usize, &Tuner::Bare, &words)?;
    progress::clear();
    let rows = rows(args, &patterns, &done.result)?;
    let report = json!({ "schema": 2, "place": place.describe(), "rounds": args.rounds, "meshes": args.meshes, "rows": &rows });
    let json = serde_json::to_string_pretty(&report).context("write JSON")? + "\n";
    write(&bench.out, "placement-comm.json", &json)?;
    write(&bench.out, "placement-comm.svg", &svg(&figure(&rows))?)?;
    print(&if args.json { json } else { in_columns(&rows) })?;
    match rows.iter().find(|row| !row.counts_agree) {
        None => Ok(()),
        Some(row) => bail!(
            "count the messages of {}: what arrived is not what the geometry says",
            row.policy
        ),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune-bench comm --ranks 2
  colltune-bench comm --ranks 8 --blocks 600 --policies contiguous,lpt,cplx:50,rcb --rounds 500 --meshes 1

As in the CPLX study's commbench: every policy places ten seeded meshes, whose rounds count alike.
Costs, messages and bytes are means over the meshes; the study's meshes have 1.5 blocks a rank
(--blocks). Each round every rank posts all its receives and sends and waits for them; a round's
time is that of the slowest rank. Messages and bytes are per round, for each mesh and rank in the
JSON. Ranks that outnumber the cores need real-time scheduling (root, or an rtprio limit) and Open
MPI.
Files: placement-comm.json, .svg and the plan that was sent, in the folder of --out.")]
pub struct Args {
    /// Ranks, all on this machine
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks: u32,
    /// Blocks of the mesh [default: 24 on each rank]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    blocks: Option<u32>,
    /// Policies, as in `colltune-lab placement policies`
    #[arg(long, value_delimiter = ',', value_parser = policy(), value_name = "POLICY",
          default_value = "contiguous,contiguous-optimal,lpt,lpt-swap,cplx:50,rcb,round-robin")]
    policies: Vec<Policy>,
    /// Seed of the first mesh and its costs; each further mesh has the next one
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Meshes that each policy places
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    meshes: u64,
    /// Rounds that are timed for each policy and mesh
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// MPI library: openmpi, mpich
    #[arg(long, value_parser = parse::abi(), value_name = "LIBRARY", default_value = "openmpi")]
    mpi: Abi,
    #[command(flatten)]
    scene: SceneArgs,
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    /// Print the JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// What a message carries, by default: five variables of 16 x 16 x 16 cells, two layers across a face.
const MESSAGE_BYTES: ContactBytes = ContactBytes {
    face: 20_480,
    edge: 2_560,
    corner: 320,
};

/// What one policy makes of one mesh.
struct Pattern {
    policy: String,
    hash: u64,
    makespan: f64,
    /// From, to, bytes: one for each contact of blocks on two ranks, in the order of the graph.
    messages: Vec<(u32, u32, u64)>,
}

/// Policy by policy, and in each mesh by mesh.
fn patterns(args: &Args) -> anyhow::Result<Vec<Pattern>> {
    let mut by_policy: Vec<Vec<Pattern>> = args.policies.iter().map(|_| Vec::new()).collect();
    for mesh in 0..args.meshes {
        let seed = args.seed.wrapping_add(mesh);
        let scene = scene(args, seed);
        let costs = costs(Distribution::Exponential, seed, scene.n_blocks());
        let problem = Problem::new(&costs, args.ranks)
            .and_then(|problem| problem.with_ranks_per_node(args.scene.ranks_per_node))
            .and_then(|problem| problem.with_machine(args.scene.message_time))
            .and_then(|problem| scene.add_to(problem))?;
        for (policy, patterns) in args.policies.iter().zip(&mut by_policy) {
            let placement = place(policy, &problem)?;
            patterns.push(Pattern {
                policy: policy.to_string(),
                hash: placement.hash(),
                makespan: placement.certify(&problem)?.makespan,
                messages: messages(scene.graph(), &placement),
            });
        }
    }
    Ok(by_policy.into_iter().flatten().collect())
}

fn scene(args: &Args, seed: u64) -> Scene {
    let blocks = args.blocks.unwrap_or(24 * args.ranks) as usize;
    let bytes = args.scene.message_bytes.unwrap_or(MESSAGE_BYTES);
    let asked = SceneArgs {
        message_bytes: Some(bytes),
        ..args.scene
    };
    Scene::new(seed, blocks, &asked)
}

fn messages(graph: Graph, placement: &Placement) -> Vec<(u32, u32, u64)> {
    let owner = |block: u32| placement.owners[block as usize];
    let blocks = 0..placement.owners.len() as u32;
    let sent = |block: u32| {
        graph
            .row(block as usize)
            .map(move |(to, bytes)| (block, to, bytes))
    };
    blocks
        .flat_map(sent)
        .map(|(from, to, bytes)| (owner(from), owner(to), bytes))
        .filter(|(from, to, _)| from != to)
        .collect()
}

fn plan(args: &Args, patterns: &[Pattern]) -> Value {
    let pattern =
        |pattern: &Pattern| json!({ "name": pattern.policy, "messages": pattern.messages });
    json!({ "ranks": args.ranks, "patterns": patterns.iter().map(pattern).collect::<Vec<_>>() })
}

/// A policy: means over its meshes, and the times of all their rounds.
#[derive(Serialize)]
struct Row {
    policy: String,
    makespan: f64,
    messages: f64,
    bytes: f64,
    round_us: Spread,
    counts_agree: bool,
    meshes: Vec<OfMesh>,
    #[serde(skip)]
    rounds_us: Vec<f64>,
}

#[derive(Serialize)]
struct OfMesh {
    hash: String,
    makespan: f64,
    messages: u64,
    bytes: u64,
    ranks: Vec<Counts>,
    #[serde(skip)]
    rounds_us: Vec<f64>,
    #[serde(skip)]
    counts_agree: bool,
}

#[derive(Serialize)]
struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

/// Of one rank in one round: what the geometry says, and what arrived.
#[derive(Serialize, Default, PartialEq, Clone, Debug)]
struct Counts {
    sends: u64,
    bytes_sent: u64,
    receives: u64,
    bytes_received: u64,
}

fn counts(ranks: u32, messages: &[(u32, u32, u64)]) -> Vec<Counts> {
    let mut counts = vec![Counts::default(); ranks as usize];
    for &(from, to, bytes) in messages {
        counts[from as usize].sends += 1;
        counts[from as usize].bytes_sent += bytes;
        counts[to as usize].receives += 1;
        counts[to as usize].bytes_received += bytes;
    }
    counts
}

fn rows(args: &Args, patterns: &[Pattern], result: &Value) -> anyhow::Result<Vec<Row>> {
    let answers = result["patterns"]
        .as_array()
        .context("read what colltune-mpibench wrote: it has no patterns")?;
    ensure!(
        answers.len() == patterns.len(),
        "read what colltune-mpibench wrote: patterns are missing"
    );
    let of_mesh = |(pattern, answer): (&Pattern, &Value)| {
        let ranks = counts(args.ranks, &pattern.messages);
        let rounds = numbers(&answer["time_ns"]);
        let all =
            |value: fn(&Counts) -> u64| ranks.iter().map(|r| value(r) as f64).collect::<Vec<f64>>();
        let counts_agree = numbers(&answer["sends"]) == all(|r| r.sends)
            && numbers(&answer["bytes_sent"]) == all(|r| r.bytes_sent)
            && numbers(&answer["receives"]) == all(|r| r.receives)
            && numbers(&answer["bytes_received"]) == all(|r| r.bytes_received);
        OfMesh {
            hash: format!("{:016x}", pattern.hash),
            makespan: pattern.makespan,
            messages: pattern.messages.len() as u64,
            bytes: pattern.messages.iter().map(|message| message.2).sum(),
            ranks,
            rounds_us: rounds.iter().map(|ns| ns / 1e3).collect(),
            counts_agree,
        }
    };
    let mut meshes = patterns.iter().zip(answers).map(of_mesh);
    let names = patterns.iter().step_by(args.meshes as usize);
    let row = |first: &Pattern| {
        let meshes: Vec<OfMesh> = meshes.by_ref().take(args.meshes as usize).collect();
        let mean =
            |value: fn(&OfMesh) -> f64| meshes.iter().map(value).sum::<f64>() / meshes.len() as f64;
        let rounds_us: Vec<f64> = meshes
            .iter()
            .flat_map(|mesh| mesh.rounds_us.clone())
            .collect();
        let found = spread(&rounds_us);
        Row {
            policy: first.policy.clone(),
            makespan: mean(|mesh| mesh.makespan),
            messages: mean(|mesh| mesh.messages as f64),
            bytes: mean(|mesh| mesh.bytes as f64),
            round_us: Spread {
                min: found.min,
                median: found.median,
                max: found.max,
            },
            counts_agree: meshes.iter().all(|mesh| mesh.counts_agree),
            rounds_us,
            meshes,
        }
    };
    Ok(names.map(row).collect())
}

fn numbers(values: &Value) -> Vec<f64> {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    values.iter().filter_map(Value::as_f64).collect()
}

fn in_columns(rows: &[Row]) -> String {
    let header = [
        "policy",
        "makespan",
        "messages",
        "bytes",
        "min us",
        "median us",
        "max us",
        "counts",
    ];
    let cells = |row: &Row| {
        vec![
            row.policy.clone(),
            format!("{:.1}", row.makespan),
            format!("{:.1}", row.messages),
            format!("{:.0}", row.bytes),
            format!("{:.1}", row.round_us.min),
            format!("{:.1}", row.round_us.median),
            format!("{:.1}", row.round_us.max),
            if row.counts_agree {
                "as planned"
            } else {
                "DIFFER"
            }
            .to_owned(),
        ]
    };
    table(&header, &rows.iter().map(cells).collect::<Vec<_>>())
}

/// The share of rounds that are done within a time.
fn figure(rows: &[Row]) -> Figure {
    let line = |row: &Row| {
        let mut sorted = row.rounds_us.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let share = |(index, time): (usize, f64)| (time, 100.0 * (index + 1) as f64 / n);
        Line {
            name: row.policy.clone(),
            points: sorted.into_iter().enumerate().map(share).collect(),
        }
    };
    let panel = Panel {
        title: "All rounds".to_owned(),
        x: "time of a round (us)",
        y: "rounds done (%)",
        scale: Scale::LogX,
        lines: rows.iter().map(line).collect(),
    };
    Figure {
        title: "Rounds of neighbours' messages done within a time".to_owned(),
        bands: vec![Band {
            panels: vec![panel],
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(words: &[&str]) -> Args {
        Line::parse_from([&["comm"], words].concat()).args
    }

    #[test]
    fn the_plan_has_every_message_that_crosses_ranks_and_no_other() {
        let args = parsed(&[
            "--ranks",
            "5",
            "--blocks",
            "150",
            "--policies",
            "contiguous,lpt,round-robin",
        ]);
        let scene = scene(&args, 1);
        let patterns = patterns(&args).unwrap();
        assert_eq!(patterns.len(), 3 * 10);
        let faces = scene.graph().bytes.iter().filter(|&&bytes| bytes == 20_480);
        assert!(faces.count() > 100);
        for pattern in patterns.iter().step_by(10) {
            assert!(
                pattern
                    .messages
                    .iter()
                    .all(|&(from, to, bytes)| from != to && from < 5 && to < 5 && bytes > 0)
            );
            // The exchange is symmetric: what goes one way comes back.
            let between = |a: u32, b: u32| {
                let same = pattern
                    .messages
                    .iter()
                    .filter(|&&(from, to, _)| (from, to) == (a, b));
                same.map(|message| message.2).sum::<u64>()
            };
            assert!((0..5).all(|a| (0..5).all(|b| between(a, b) == between(b, a))));
            let of_all: u64 = counts(5, &pattern.messages)
                .iter()
                .map(|rank| rank.receives)
                .sum();
            assert_eq!(of_all, pattern.messages.len() as u64);
            assert!(pattern.messages.len() < scene.graph().neighbours.len());
        }
    }

    #[test]
    fn counts_that_differ_are_seen() {
        let line = "--ranks 2 --blocks 20 --policies contiguous --meshes 2";
        let args = parsed(&line.split(' ').collect::<Vec<_>>());
        let patterns = patterns(&args).unwrap();
        assert_ne!(patterns[0].makespan, patterns[1].makespan, "two meshes");
        let answer = |pattern: &Pattern| {
            let counts = counts(2, &pattern.messages);
            let all = |value: fn(&Counts) -> u64| counts.iter().map(value).collect::<Vec<u64>>();
            json!({
                "time_ns": [1000.0, 3000.0], "sends": all(|r| r.sends), "bytes_sent": all(|r| r.bytes_sent),
                "receives": all(|r| r.receives), "bytes_received": all(|r| r.bytes_received),
            })
        };
        let mut answers: Vec<Value> = patterns.iter().map(answer).collect();
        let read = |answers: &[Value]| {
            let mut rows = rows(&args, &patterns, &json!({ "patterns": answers })).unwrap();
            assert_eq!(rows.len(), 1);
            rows.remove(0)
        };
        let row = read(&answers);
        assert!(row.counts_agree);
        assert_eq!((row.round_us.median, row.rounds_us.len()), (2.0, 4));
        let sent: usize = patterns.iter().map(|pattern| pattern.messages.len()).sum();
        assert_eq!(row.messages, sent as f64 / 2.0);
        answers[1]["bytes_received"][1] = json!(0);
        assert!(!read(&answers).counts_agree);
    }
}
