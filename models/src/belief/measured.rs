//! What is known of a cell that was measured.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::collective::Collective;

use crate::evidence::{Evidence, Moments};
use crate::predict::Place;

/// A cell with evidence.
pub struct Measured<'a> {
    /// Its place in the model.
    pub cell: usize,
    pub collective: Collective,
    pub rows: Vec<&'a Evidence>,
    /// What its runs still count, by run; 1 where nothing is said.
    pub weights: BTreeMap<u32, f64>,
    /// Every variant that has evidence or may be drawn, but the default, with its place, sorted.
    pub variants: Vec<(u16, Place)>,
}

/// The coefficient of variation of calls of which only the sum is known.
const NOISE_GUESS: f64 = 0.3;

/// Variants most of whose calls took many times as long as a typical one. In a run with few calls of a variant each of
/// them passes for a stall; that they all do says that it is slow.
pub(super) fn slow(rows: &[&Evidence]) -> BTreeSet<u16> {
    let mut counts = BTreeMap::<u16, (u64, u64)>::new();
    for row in rows.iter().filter(|row| row.stalls > 0) {
        counts.insert(row.variant, (0, 0));
    }
    for row in rows {
        if let Some(count) = counts.get_mut(&row.variant) {
            *count = (count.0 + row.calls, count.1 + row.stalls);
        }
    }
    let is_slow = |(variant, (calls, stalls))| (2 * stalls > calls).then_some(variant);
    counts.into_iter().filter_map(is_slow).collect()
}

/// What a run says of a variant that is slow: its stalls are calls as any other.
pub(super) fn without_stalls(row: &Evidence) -> Evidence {
    let (bodies, stalls) = (row.time.n as f64, row.stalls as f64);
    let n = row.time.n + row.stalls;
    let mean = (bodies * row.time.mean + stalls + row.stall_excess) / (n as f64).max(1.0);
    Evidence {
        time: Moments {
            n,
            mean,
            m2: row.time.m2.max(n as f64 * (NOISE_GUESS * mean).powi(2)),
        },
        stalls: 0,
        stall_excess: 0.0,
        ..*row
    }
}
