//! `colltune-lab placement bench`: quality and time of policies on seeded random costs.
//!
//! ```text
//! $ colltune-lab placement bench --ranks 512,4096 --policies contiguous,lpt,cplx:50 --out results
//! ```
//! A case is a distribution, a number of ranks, of blocks per rank, and a seed; each policy places
//! every case several times in this process, and only that is timed.

mod row;

mod figure;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use colltune_placement::generate::{Distribution, costs};
use colltune_placement::{PlacementError, Policy, Problem, place};
use serde::Serialize;

use self::figure::figure;
use self::row::{Flat, Row, Time, in_columns, messages, proof};
use super::ranks::RankArgs;
use super::scene::{Scene, SceneArgs, needs_mesh};
use crate::plot::svg;
use colltune_output::parse::named;
use colltune_output::progress;
use colltune_output::{csv, print, write};

/// Measures, writes the files, and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let (rows, skipped) = measure(args)?;
    progress::clear();
    let report = Report {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        repetitions: args.repetitions,
        rows: &rows,
        skipped: &skipped,
    };
    let json = serde_json::to_string_pretty(&report).context("write JSON")? + "\n";
    let flat: Vec<Flat> = rows.iter().map(Flat::from).collect();
    write(&args.out, "placement-bench.json", &json)?;
    write(&args.out, "placement-bench.csv", &csv(&flat)?)?;
    write(&args.out, "placement-bench.svg", &svg(&figure(&rows))?)?;
    print(&if args.json { json } else { in_columns(&rows) })?;
    for skip in &skipped {
        progress::error(format_args!(
            "failed to {} ({} on {} ranks)",
            skip.reason, skip.policy, skip.ranks
        ));
    }
    if !skipped.is_empty() {
        bail!(
            "measure {} of {} cases",
            skipped.len(),
            skipped.len() + rows.len()
        );
    }
    Ok(())
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune-lab placement bench
      The default policies on all distributions, 512 to 131,072 ranks with 1.5 blocks each.
  colltune-lab placement bench --ranks 4096 --blocks-per-rank 1.5,3,8.3 --policies lpt,lpt-swap --seeds 1,2,3
  colltune-lab placement bench --ranks 16384 --policies rcb,grouplb

Costs are whole numbers from 50 to 100; one seed gives the same costs everywhere. Where a policy
needs a mesh, all policies get the leaves of one seeded octree, and locality counts the messages
between its neighbours; otherwise it counts one message for each two consecutive blocks.
With --speeds makespans are times: loads over the speeds of their ranks.
`gap` is makespan / bound - 1; the bound is the best that any of the policies has proved for the
case, so the best possible makespan lies between.
`hash` is the xxh3-64 of the owners as little-endian 32-bit numbers in curve order.
Files: placement-bench.json, .csv and .svg in the folder of --out.")]
pub struct Args {
    /// Policies, as in `colltune-lab placement policies`
    #[arg(long, value_delimiter = ',', value_parser = super::policy(), value_name = "POLICY",
          default_value = "contiguous,contiguous-optimal,lpt,lpt-swap,cplx:0,cplx:25,cplx:50,cplx:75,cplx:100")]
    policies: Vec<Policy>,
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "512,4096,16384,131072",
          value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Vec<u32>,
    /// Blocks per rank; the number of blocks is rounded
    #[arg(long, value_delimiter = ',', value_name = "X", default_value = "1.5", value_parser = blocks_per_rank)]
    blocks_per_rank: Vec<f64>,
    /// Distributions of costs
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "exponential,gaussian,power-law",
          value_parser = named(DISTRIBUTIONS, |name| name.parse::<Distribution>().ok()))]
    distributions: Vec<Distribution>,
    /// Seeds; each is a case of its own
    #[arg(long, value_delimiter = ',', value_name = "SEED", default_value = "1")]
    seeds: Vec<u64>,
    /// How often each case is placed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    #[command(flatten)]
    scene: SceneArgs,
    #[command(flatten)]
    ranks_are: RankArgs,
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = "placement-results")]
    out: PathBuf,
    /// Print the JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// As they are called.
const DISTRIBUTIONS: [&str; Distribution::ALL.len()] = ["exponential", "gaussian", "power-law"];

fn blocks_per_rank(text: &str) -> Result<f64, String> {
    let read = text
        .parse()
        .ok()
        .filter(|&x: &f64| x.is_finite() && x > 0.0 && x <= 1e6);
    read.ok_or_else(|| "a number above 0 and up to 1000000".to_owned())
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    version: &'static str,
    repetitions: u32,
    rows: &'a [Row],
    skipped: &'a [Skipped],
}

#[derive(Serialize)]
struct Skipped {
    policy: String,
    ranks: u32,
    reason: String,
}

/// A distribution with everything that a case's costs follow from.
struct Case {
    ranks: u32,
    blocks_per_rank: f64,
    distribution: Distribution,
    seed: u64,
}

/// Errors: speeds of ranks that there are not.
fn measure(args: &Args) -> anyhow::Result<(Vec<Row>, Vec<Skipped>)> {
    let on_mesh = args.policies.iter().any(needs_mesh);
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for &ranks in &args.ranks {
        let speeds = args.ranks_are.speeds(ranks)?;
        for &blocks_per_rank in &args.blocks_per_rank {
            for &seed in &args.seeds {
                let blocks = (f64::from(ranks) * blocks_per_rank).round().max(1.0) as usize;
                let scene = on_mesh.then(|| Scene::new(seed, blocks, &args.scene));
                for &distribution in &args.distributions {
                    let case = Case {
                        ranks,
                        blocks_per_rank,
                        distribution,
                        seed,
                    };
                    let costs = costs(distribution, seed, blocks);
                    let first = rows.len();
                    for policy in &args.policies {
                        progress::show(&format!(
                            "{ranks} ranks, {distribution}, seed {seed}: {policy}"
                        ));
                        match row_of(
                            args,
                            &case,
                            speeds.as_deref(),
                            &costs,
                            scene.as_ref(),
                            policy,
                        ) {
                            Ok(row) => rows.push(row),
                            Err(error) => skipped.push(Skipped {
                                policy: policy.to_string(),
                                ranks,
                                reason: error.to_string(),
                            }),
                        }
                    }
                    share_bound(&mut rows[first..]);
                }
            }
        }
    }
    Ok((rows, skipped))
}

/// What one placement has proved holds for all of the same case.
fn share_bound(rows: &mut [Row]) {
    let bound = rows.iter().map(|row| row.bound).fold(0.0, f64::max);
    for row in rows.iter_mut().filter(|row| row.bound < bound) {
        row.bound = bound;
        row.gap = (row.makespan / bound - 1.0).max(0.0);
    }
}

fn row_of(
    args: &Args,
    case: &Case,
    speeds: Option<&[f64]>,
    costs: &[f64],
    scene: Option<&Scene>,
    policy: &Policy,
) -> Result<Row, PlacementError> {
    let mut problem = Problem::new(costs, case.ranks)?
        .with_ranks_per_node(args.scene.ranks_per_node)?
        .with_machine(args.scene.message_time)?;
    if let Some(speeds) = speeds {
        problem = problem.with_speeds(speeds)?;
    }
    if let Some(scene) = scene {
        problem = scene.add_to(problem)?;
    }
    let mut times_ms = Vec::new();
    let mut placement = None;
    for _ in 0..args.repetitions {
        let start = Instant::now();
        placement = Some(place(policy, &problem)?);
        times_ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let placement = placement.expect("at least one repetition");
    let certificate = placement.certify(&problem)?;
    times_ms.sort_by(f64::total_cmp);
    let time_ms = Time {
        min: times_ms[0],
        median: colltune_statistics::median(&times_ms),
    };
    Ok(Row {
        policy: policy.to_string(),
        ranks: case.ranks,
        blocks_per_rank: case.blocks_per_rank,
        blocks: costs.len(),
        distribution: case.distribution.to_string(),
        seed: case.seed,
        time_ms,
        makespan: certificate.makespan,
        mean: certificate.mean,
        bound: certificate.bound,
        gap: certificate.gap,
        optimal: proof(&certificate),
        locality: messages(&certificate.locality, scene.is_some()),
        hash: format!("{:016x}", placement.hash()),
    })
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
        Line::parse_from([&["bench"], words].concat()).args
    }

    #[test]
    fn a_seed_gives_the_same_rows_and_files_have_them_all() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().to_str().unwrap();
        let words = [
            "--policies",
            "contiguous,lpt,rcb,grouplb",
            "--ranks",
            "7,64",
            "--blocks-per-rank",
            "1.5,8",
            "--seeds",
            "1,2",
            "--repetitions",
            "2",
            "--out",
            out,
        ];
        let args = parsed(&words);
        let (first, skipped) = measure(&args).unwrap();
        assert!(skipped.is_empty());
        assert_eq!(first.len(), 4 * 2 * 2 * 2 * 3);
        let (second, _) = measure(&args).unwrap();
        for (a, b) in first.iter().zip(&second) {
            assert_eq!(
                (&a.hash, a.makespan, a.bound),
                (&b.hash, b.makespan, b.bound)
            );
            assert!(a.makespan >= a.bound * (1.0 - 1e-12) && a.time_ms.min <= a.time_ms.median);
            assert_eq!(a.locality.of, "graph");
        }
        run(&args).unwrap();
        let json = std::fs::read_to_string(folder.path().join("placement-bench.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let rows = json["rows"].as_array().unwrap();
        assert_eq!(rows.len(), first.len());
        for key in [
            "policy",
            "ranks",
            "blocks_per_rank",
            "distribution",
            "seed",
            "makespan",
            "bound",
            "gap",
            "hash",
        ] {
            assert!(!rows[0][key].is_null(), "{key}");
        }
        assert!(rows[0]["time_ms"]["min"].is_number() && rows[0]["locality"]["remote"].is_number());
        let csv = std::fs::read_to_string(folder.path().join("placement-bench.csv")).unwrap();
        assert_eq!(csv.lines().count(), first.len() + 1);
        assert!(folder.path().join("placement-bench.svg").is_file());
    }

    #[test]
    fn the_picture_has_every_distribution_and_every_share_of_cplx() {
        let words = [
            "--ranks",
            "8,64",
            "--blocks-per-rank",
            "4",
            "--repetitions",
            "1",
        ];
        let (rows, skipped) = measure(&parsed(&words)).unwrap();
        assert!(skipped.is_empty());
        let figure = figure(&rows);
        assert_eq!(figure.bands.len(), 4);
        for band in &figure.bands {
            let titles: Vec<&str> = band
                .panels
                .iter()
                .map(|panel| panel.title.split(':').next().unwrap_or(""))
                .collect();
            assert_eq!(titles, ["exponential", "gaussian", "power-law"]);
        }
        let policies: Vec<&str> = figure.bands[0].panels[1]
            .lines
            .iter()
            .map(|line| line.name.as_str())
            .collect();
        assert_eq!(policies.len(), 9, "{policies:?}");
        for panel in &figure.bands[2].panels {
            for line in &panel.lines {
                let shares: Vec<f64> = line.points.iter().map(|point| point.0).collect();
                assert_eq!(shares, [0.0, 25.0, 50.0, 75.0, 100.0], "{}", panel.title);
                assert!(
                    line.points[4].1 <= line.points[0].1,
                    "all by LPT is better balanced than none: {:?}",
                    line.points
                );
            }
            assert_eq!(panel.lines.len(), 2);
        }
    }

    #[test]
    fn the_hash_is_that_of_the_library() {
        let args = parsed(&[
            "--policies",
            "lpt",
            "--ranks",
            "512",
            "--distributions",
            "gaussian",
            "--repetitions",
            "1",
        ]);
        let (rows, _) = measure(&args).unwrap();
        let costs = costs(Distribution::Gaussian, 1, 768);
        let problem = Problem::new(&costs, 512).unwrap();
        let placement = place(&"lpt".parse().unwrap(), &problem).unwrap();
        assert_eq!(rows[0].hash, format!("{:016x}", placement.hash()));
    }
}
