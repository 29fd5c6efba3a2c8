//! Rows C0 to C11: what the paper says, what was found, and what may be called a reproduction of it.
//!
//! Tolerances stood before the study was run. A row that was fitted is not judged.

mod found;
mod messages;
mod runs;

use super::scale::{BASELINE, Totals};
use crate::study::finding::Finding;
pub use found::{COMMBENCH_RANKS, Found, Timed, Wire};
use messages::{commbench, measured, messages, slow_node, tradeoff, wires};
use runs::{baseline, mesh, policies};

/// Standard errors of the baseline's mean step, as text.
pub fn errors(found: &Found) -> String {
    let of = |runs: &Vec<Totals>| format!("{:.1} %", 100.0 * runs[BASELINE].error);
    found.scales.iter().map(of).collect::<Vec<_>>().join(", ")
}

pub fn judge(found: &Found) -> Vec<Finding> {
    let mut all = vec![mesh(found)];
    all.extend(baseline(found));
    all.extend(policies(found));
    all.extend(tradeoff(found));
    all.extend(messages(found));
    all.extend(commbench(found));
    all.extend(measured(found));
    all.extend(slow_node(found));
    all.extend(wires(found));
    all
}

#[cfg(test)]
mod tests;
