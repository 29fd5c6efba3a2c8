//! Which ranks lost their processor, and whether one core is to blame.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cells::OfStep;
use crate::rows::Place;
use crate::text::percent;

/// A share of work without a processor that makes costs useless.
pub(super) const OFF_MUCH: f64 = 0.1;
/// A core is to blame where its ranks lose it for so many times as long as the others lose theirs.
const OVER_OTHERS: f64 = 3.0;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Processor {
    pub rank: u32,
    pub host: Option<String>,
    /// Share of its work without a processor.
    pub off: f64,
    /// Switches a step that the system forced, where they are known.
    pub involuntary_per_step: Option<f64>,
    pub cores: usize,
    /// The core that it stayed on.
    pub core: Option<u32>,
    /// Nanoseconds of work, with or without a processor.
    #[serde(skip)]
    pub work: f64,
}

/// A core whose ranks were without it for longer than others were without theirs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Burdened {
    pub host: Option<String>,
    pub core: u32,
    pub ranks: Vec<u32>,
    /// Share of their work without a processor, and the share of all other ranks.
    pub off: f64,
    pub others: f64,
    /// Whether it has more ranks than another core, which take it from one another.
    pub has_more_ranks: bool,
}

pub(super) fn processors(
    cells: &BTreeMap<(u32, u64), OfStep>,
    places: &[Place],
    host_of: &BTreeMap<u32, &str>,
) -> Vec<Processor> {
    let mut by_rank: BTreeMap<u32, (f64, f64, u64)> = BTreeMap::new();
    for (&(rank, _), cell) in cells {
        let (off, work, steps) = by_rank.entry(rank).or_default();
        *off += cell.off;
        *work += cell.work;
        *steps += 1;
    }
    let of_rank = |(rank, (off, work, steps)): (u32, (f64, f64, u64))| {
        let of: Vec<&Place> = places.iter().filter(|place| place.rank == rank).collect();
        let switches: u64 = of.iter().map(|place| place.involuntary).sum();
        let cores: BTreeSet<u32> = of.iter().map(|place| place.core).collect();
        Processor {
            rank,
            host: host_of.get(&rank).map(|host| (*host).to_owned()),
            off: off / work.max(1.0),
            work,
            involuntary_per_step: (!of.is_empty()).then(|| switches as f64 / steps.max(1) as f64),
            core: match cores.len() {
                1 => cores.first().copied(),
                _ => None,
            },
            cores: cores.len(),
        }
    };
    by_rank.into_iter().map(of_rank).collect()
}

/// Share of these ranks' work without a processor.
pub(super) fn off<'a>(ranks: impl Iterator<Item = &'a Processor>) -> f64 {
    let (off, work) = ranks.fold((0.0, 0.0), |sum, of| {
        (sum.0 + of.off * of.work, sum.1 + of.work)
    });
    off / f64::max(work, 1.0)
}

/// How many ranks did not stay on one core.
pub(super) fn wanderers(processors: &[Processor]) -> usize {
    processors.iter().filter(|of| of.cores > 1).count()
}

/// The core to blame, of those whose ranks stayed on them. Where all ranks are on one core there is nothing to compare
/// with; where all cores lose as much, as where each has several ranks, no core is to blame.
pub(super) fn burdened(processors: &[Processor]) -> Option<Burdened> {
    let mut by_core: BTreeMap<(&Option<String>, u32), Vec<&Processor>> = BTreeMap::new();
    for of in processors {
        if let Some(core) = of.core {
            by_core.entry((&of.host, core)).or_default().push(of);
        }
    }
    let fewest = by_core.values().map(Vec::len).min()?;
    let found = by_core.iter().filter_map(|(&(host, core), on_core)| {
        let is_other = |of: &&Processor| (&of.host, of.core) != (host, Some(core));
        let found = Burdened {
            host: host.clone(),
            core,
            ranks: on_core.iter().map(|of| of.rank).collect(),
            off: off(on_core.iter().copied()),
            others: off(processors.iter().filter(is_other)),
            has_more_ranks: on_core.len() > fewest,
        };
        let stands_out = found.off >= OFF_MUCH && found.off >= OVER_OTHERS * found.others;
        (stands_out && on_core.len() < processors.len()).then_some(found)
    });
    found.max_by(|a, b| a.off.total_cmp(&b.off))
}

impl Burdened {
    pub fn text(&self) -> String {
        let ranks: Vec<String> = self.ranks.iter().map(u32::to_string).collect();
        let (whose, who) = match ranks.len() {
            1 => ("its rank", ranks.concat()),
            _ => ("its ranks", ranks.join(", ")),
        };
        let host = self.host.as_ref();
        let host = host.map_or(String::new(), |host| format!(" of {host}"));
        format!(
            "core {}{host} is shared: {whose} {who} had no processor for {} of the work, others for {}: {}",
            self.core,
            percent(self.off),
            percent(self.others),
            match self.has_more_ranks {
                true => "it has more ranks than another core",
                false => "end what else runs there, or leave the core out",
            }
        )
    }
}
