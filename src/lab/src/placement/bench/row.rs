//! The rows of the benchmark, and how they are shown.

use colltune_placement::{Certificate, Locality, Proof};
use serde::Serialize;

use colltune_output::table;

#[derive(Serialize)]
pub struct Row {
    pub policy: String,
    pub ranks: u32,
    pub blocks_per_rank: f64,
    pub blocks: usize,
    pub distribution: String,
    pub seed: u64,
    pub time_ms: Time,
    pub makespan: f64,
    pub mean: f64,
    pub bound: f64,
    pub gap: f64,
    /// What proves that no placement is better, or `null`.
    pub optimal: Option<&'static str>,
    pub locality: Messages,
    pub hash: String,
}

#[derive(Serialize, Clone, Copy)]
pub struct Time {
    pub min: f64,
    pub median: f64,
}

/// Messages of one exchange, and the score of the CPLX study over the curve.
#[derive(Serialize)]
pub struct Messages {
    pub of: &'static str,
    pub same_rank: u64,
    pub same_node: u64,
    pub remote: u64,
    pub remote_bytes: u64,
    pub curve_score: f64,
}

/// A row without nesting, for CSV.
#[derive(Serialize)]
pub struct Flat<'a> {
    policy: &'a str,
    ranks: u32,
    blocks_per_rank: f64,
    blocks: usize,
    distribution: &'a str,
    seed: u64,
    time_ms_min: f64,
    time_ms_median: f64,
    makespan: f64,
    mean: f64,
    bound: f64,
    gap: f64,
    optimal: Option<&'static str>,
    locality_of: &'static str,
    same_rank: u64,
    same_node: u64,
    remote: u64,
    remote_bytes: u64,
    curve_score: f64,
    hash: &'a str,
}

impl<'a> From<&'a Row> for Flat<'a> {
    fn from(row: &'a Row) -> Self {
        Flat {
            policy: &row.policy,
            ranks: row.ranks,
            blocks_per_rank: row.blocks_per_rank,
            blocks: row.blocks,
            distribution: &row.distribution,
            seed: row.seed,
            time_ms_min: row.time_ms.min,
            time_ms_median: row.time_ms.median,
            makespan: row.makespan,
            mean: row.mean,
            bound: row.bound,
            gap: row.gap,
            optimal: row.optimal,
            locality_of: row.locality.of,
            same_rank: row.locality.same_rank,
            same_node: row.locality.same_node,
            remote: row.locality.remote,
            remote_bytes: row.locality.remote_bytes,
            curve_score: row.locality.curve_score,
            hash: &row.hash,
        }
    }
}

pub fn proof(certificate: &Certificate) -> Option<&'static str> {
    certificate.optimal.map(|proof| match proof {
        Proof::LowerBound => "lower bound",
        Proof::Policy => "policy",
    })
}

pub fn messages(locality: &Locality, on_mesh: bool) -> Messages {
    Messages {
        of: if on_mesh { "graph" } else { "curve" },
        same_rank: locality.same_rank.messages,
        same_node: locality.same_node.messages,
        remote: locality.remote.messages,
        remote_bytes: locality.remote.bytes,
        curve_score: locality.curve_score,
    }
}

pub fn in_columns(rows: &[Row]) -> String {
    let header = [
        "policy",
        "ranks",
        "blocks/rank",
        "costs",
        "seed",
        "min ms",
        "median ms",
        "makespan",
        "bound",
        "gap %",
        "remote %",
        "curve score",
    ];
    let cells = |row: &Row| {
        let all = row.locality.same_rank + row.locality.same_node + row.locality.remote;
        vec![
            row.policy.clone(),
            row.ranks.to_string(),
            row.blocks_per_rank.to_string(),
            row.distribution.clone(),
            row.seed.to_string(),
            format!("{:.3}", row.time_ms.min),
            format!("{:.3}", row.time_ms.median),
            format!("{:.1}", row.makespan),
            format!("{:.1}", row.bound),
            format!("{:.2}", 100.0 * row.gap),
            format!(
                "{:.1}",
                100.0 * row.locality.remote as f64 / all.max(1) as f64
            ),
            format!("{:.2}", row.locality.curve_score),
        ]
    };
    table(&header, &rows.iter().map(cells).collect::<Vec<_>>())
}
