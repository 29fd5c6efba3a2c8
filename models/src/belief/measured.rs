//! What is known of a cell that was measured.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::collective::Collective;

use crate::evidence::{Evidence, Moments, STALL};
use crate::predict::Place;

/// A cell with evidence.
pub struct Measured<'a> {
    /// Its place in the model.
    pub cell: usize,
    pub collective: Collective,
    pub rows: Vec<&'a Evidence>,
    /// What its rows still count, by run and variant; 1 where nothing is said.
    pub weights: BTreeMap<(u32, u16), f64>,
    /// Every variant that has evidence or may be drawn, but the default, with its place, sorted.
    pub variants: Vec<(u16, Place)>,
}

/// The coefficient of variation of calls of which only the sum is known.
const NOISE_GUESS: f64 = 0.3;

/// Variants of which what passed for stalls is how long they take. In a run with few calls of a variant any that takes
/// many times as long as other variants' is taken for a stall; what the variant typically takes all runs say together.
pub(super) fn slow(rows: &[&Evidence]) -> BTreeSet<u16> {
    #[derive(Default)]
    struct Sum {
        bodies: f64,
        time: f64,
        stalls: f64,
        stalled: f64,
    }
    let mut sums = BTreeMap::<u16, Sum>::new();
    for row in rows.iter().filter(|row| row.stalls > 0) {
        sums.insert(row.variant, Sum::default());
    }
    for row in rows {
        if let Some(sum) = sums.get_mut(&row.variant) {
            sum.bodies += row.time.n as f64;
            sum.time += row.time.n as f64 * row.time.mean;
            sum.stalls += row.stalls as f64;
            sum.stalled += row.stalls as f64 + row.stall_excess;
        }
    }
    let is_slow = |(variant, sum): (u16, Sum)| {
        let typical = sum.time / sum.bodies.max(1.0);
        let stall = sum.stalled / sum.stalls;
        (sum.stalls > sum.bodies || stall < STALL * typical).then_some(variant)
    };
    sums.into_iter().filter_map(is_slow).collect()
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
