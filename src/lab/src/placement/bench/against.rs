//! `colltune-lab placement bench --against-published`: our policies and the published ones, side by side.
//!
//! Every instance is placed by both; what is compared is the makespan, ours over theirs. Nothing here
//! is timed, so the result is the same everywhere. Where the published code refuses an instance, it is
//! counted and not compared.

use std::path::Path;

use anyhow::{Context, bail};
use colltune_placement::generate::Distribution;
use colltune_placement::published::{Published, RIVALS, instance};
use colltune_placement::{Policy, Problem, makespan, place};
use serde::Serialize;

use colltune_output::progress;
use colltune_output::{csv, print, table, write};

/// Compares, writes the files, prints the table, and fails if a policy is worse on average.
pub fn run(instances: u64, out: &Path, json: bool) -> anyhow::Result<()> {
    let rows = compare(instances)?;
    progress::clear();
    let report = Report {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        instances,
        rows: &rows,
    };
    let text = serde_json::to_string_pretty(&report).context("write JSON")? + "\n";
    write(out, "placement-published.json", &text)?;
    write(out, "placement-published.csv", &csv(&rows)?)?;
    print(&if json { text } else { in_columns(&rows) })?;
    let worse: Vec<&Row> = rows.iter().filter(|row| row.mean_ratio > 1.0).collect();
    match worse.first() {
        None => Ok(()),
        Some(row) => bail!(
            "be as good as the published policies on average: {} of {} comparisons are worse, first {} against {} on {} costs",
            worse.len(),
            rows.len(),
            row.policy,
            row.published,
            row.distribution
        ),
    }
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    version: &'static str,
    instances: u64,
    rows: &'a [Row],
}

/// One policy against one published one on one distribution.
#[derive(Serialize, Debug, PartialEq)]
struct Row {
    policy: String,
    published: String,
    distribution: String,
    compared: usize,
    /// The published code returns an error or aborts.
    refused: usize,
    /// Makespan of ours over theirs, arithmetic mean.
    mean_ratio: f64,
    best_ratio: f64,
    worst_ratio: f64,
    better: usize,
    equal: usize,
    worse: usize,
    /// The seed of the worst ratio, to look at it.
    worst_seed: Option<u64>,
}

fn compare(instances: u64) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for distribution in Distribution::ALL {
        let mut ratios = vec![Vec::new(); RIVALS.len()];
        for seed in 0..instances {
            progress::show(&format!("{distribution}: instance {seed} of {instances}"));
            for (ratios, ratio) in ratios.iter_mut().zip(ratios_of(distribution, seed)?) {
                ratios.extend(ratio.map(|ratio| (ratio, seed)));
            }
        }
        for ((policy, published), ratios) in RIVALS.iter().zip(&ratios) {
            rows.push(row(policy, *published, distribution, ratios, instances));
        }
    }
    Ok(rows)
}

/// The ratio of each pair of rivals on one instance; `None` where the published one refuses it.
fn ratios_of(distribution: Distribution, seed: u64) -> anyhow::Result<Vec<Option<f64>>> {
    let (costs, ranks) = instance(distribution, seed);
    let problem = Problem::new(&costs, ranks)?;
    let ratio = |(name, published): &(&str, Published)| {
        let Some(theirs) = published.place(&costs, ranks) else {
            return Ok(None);
        };
        let ours = place(&name.parse::<Policy>()?, &problem)?.owners;
        Ok(Some(
            makespan(&problem, &ours) / makespan(&problem, &theirs),
        ))
    };
    RIVALS.iter().map(ratio).collect()
}

fn row(
    policy: &str,
    published: Published,
    distribution: Distribution,
    ratios: &[(f64, u64)],
    instances: u64,
) -> Row {
    let count = |test: fn(f64) -> bool| ratios.iter().filter(|(ratio, _)| test(*ratio)).count();
    let by_ratio = |a: &&(f64, u64), b: &&(f64, u64)| a.0.total_cmp(&b.0);
    let (best, worst) = (
        ratios.iter().min_by(by_ratio),
        ratios.iter().max_by(by_ratio),
    );
    Row {
        policy: policy.to_owned(),
        published: published.to_string(),
        distribution: distribution.to_string(),
        compared: ratios.len(),
        refused: instances as usize - ratios.len(),
        mean_ratio: ratios.iter().map(|(ratio, _)| ratio).sum::<f64>() / ratios.len() as f64,
        best_ratio: best.map_or(f64::NAN, |best| best.0),
        worst_ratio: worst.map_or(f64::NAN, |worst| worst.0),
        better: count(|ratio| ratio < 1.0),
        equal: count(|ratio| ratio == 1.0),
        worse: count(|ratio| ratio > 1.0),
        worst_seed: worst.filter(|worst| worst.0 > 1.0).map(|worst| worst.1),
    }
}

fn in_columns(rows: &[Row]) -> String {
    let header = [
        "policy",
        "published",
        "costs",
        "compared",
        "refused",
        "mean ratio",
        "best",
        "worst",
        "better",
        "equal",
        "worse",
        "worst seed",
    ];
    let cells = |row: &Row| {
        vec![
            row.policy.clone(),
            row.published.clone(),
            row.distribution.clone(),
            row.compared.to_string(),
            row.refused.to_string(),
            format!("{:.4}", row.mean_ratio),
            format!("{:.4}", row.best_ratio),
            format!("{:.4}", row.worst_ratio),
            row.better.to_string(),
            row.equal.to_string(),
            row.worse.to_string(),
            row.worst_seed
                .map_or("-".to_owned(), |seed| seed.to_string()),
        ]
    };
    table(&header, &rows.iter().map(cells).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_compared_or_counted_as_refused_and_twice_the_same() {
        let rows = compare(12).unwrap();
        assert_eq!(rows.len(), 3 * RIVALS.len());
        for row in &rows {
            assert_eq!(row.compared + row.refused, 12);
            assert_eq!(row.better + row.equal + row.worse, row.compared);
            assert_eq!(row.worst_seed.is_some(), row.worse > 0);
        }
        assert!(
            rows.iter().any(|row| row.refused > 0),
            "chunks refuse 30 ranks"
        );
        assert_eq!(compare(12).unwrap(), rows);
    }
}
