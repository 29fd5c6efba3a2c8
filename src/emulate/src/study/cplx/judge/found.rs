//! What the study found, and how a row says it.

use crate::study::cplx::fit::Fitted;
use crate::study::cplx::scale::{PERCENT, Totals};
use crate::study::finding::{Finding, Verdict};

/// Ranks of the emulated commbench.
pub const COMMBENCH_RANKS: [usize; 5] = [128, 256, 512, 2048, 4096];

/// What the study found.
pub struct Found {
    pub fitted: Fitted,
    pub n_blocks: [usize; 4],
    /// By deck, then by policy.
    pub scales: Vec<Vec<Totals>>,
    pub wires: Vec<Wire>,
    /// The baseline at 512 ranks without and with a slow node.
    pub slow: [Totals; 2],
    /// By [`COMMBENCH_RANKS`], then by X.
    pub latency_ms: Vec<[f64; PERCENT.len()]>,
    /// The published code's and ours, by distribution; percent.
    pub shares: [Vec<f64>; 2],
    pub timed: Option<Timed>,
}

/// 4,096 ranks on another network.
pub struct Wire {
    pub name: &'static str,
    pub last: Vec<Totals>,
}

/// Seconds of a policy: the published code and ours, by number of ranks.
pub struct Timed {
    pub ranks: [u32; 2],
    pub seconds: [[f64; 2]; 2],
}

pub struct Row<'a> {
    pub id: &'static str,
    pub what: &'a str,
    pub paper: &'a [Option<f64>],
    pub ours: Vec<f64>,
    pub tolerance: &'a str,
    pub verdict: Verdict,
    pub note: &'a str,
}

pub fn finding(row: Row) -> Finding {
    Finding {
        id: row.id,
        what: row.what.to_owned(),
        paper: row.paper.to_vec(),
        ours: row.ours,
        tolerance: row.tolerance.to_owned(),
        verdict: row.verdict,
        note: row.note.to_owned(),
    }
}

pub fn share(part: f64, run: &Totals) -> f64 {
    100.0 * part / run.times.total()
}

pub fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}
