//! How long ranks wait for messages, and how much that varies.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::OfStep;
use crate::statistics::{mad, median};
use crate::text::{percent, time};

/// Waiting for messages; the order of sends and a library's queues show in it before they show in anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Waiting {
    /// Of the ranks' time before collectives.
    pub share: f64,
    /// How much a rank's waiting varies from step to step, in nanoseconds: the median rank's deviation.
    pub jitter: f64,
}

pub(super) fn waiting(cells: &BTreeMap<(u32, u64), OfStep>) -> Waiting {
    let mut by_rank: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let (mut waited, mut all) = (0.0, 0.0);
    for (&(rank, _), cell) in cells {
        by_rank.entry(rank).or_default().push(cell.wait);
        waited += cell.wait;
        all += cell.wait + cell.work;
    }
    let deviations: Vec<f64> = by_rank.values().map(|waits| mad(waits)).collect();
    Waiting {
        share: waited / f64::max(all, 1.0),
        jitter: median(&deviations),
    }
}

impl Waiting {
    pub fn text(&self) -> String {
        format!(
            "waiting for messages takes {} of the time; from step to step a rank's varies by {}\n",
            percent(self.share),
            time(self.jitter)
        )
    }
}
