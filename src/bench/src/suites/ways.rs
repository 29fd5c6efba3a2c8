//! The ways to run a cell that are compared, and running them in alternated order.

use colltune_core::catalogue::{self, Steering, Variant};
use colltune_core::collective::Collective;
use colltune_core::request::Mode;
use colltune_core::select::mix;
use colltune_core::variant::DEFAULT;
use std::collections::BTreeMap;
use std::ops::Range;

use super::Bench;
use super::database::Batches;
use super::jobs::{self, Cell, Tuner};
use super::place::Place;

/// A job that measures some cells in one way.
pub struct Way {
    pub tuner: Tuner,
    pub cells: Vec<Cell>,
    /// The variant that it runs in each of its cells.
    pub names: BTreeMap<Collective, String>,
}

/// Place of the bare library in a list of ways.
pub const DEFAULT_WAY: usize = 0;
/// Place of the tuned library.
pub const TUNED_WAY: usize = 1;
/// Place of the bare library once more: how far two jobs of one kind differ.
pub const CONTROL_WAY: usize = 2;
/// Place of the library as one batch tuned it.
pub const ONE_BATCH_WAY: usize = 3;
/// The collectives that the benches of tuning measure: the ones that programs spend their time in.
pub const MEASURED: [Collective; 5] = [
    Collective::Allreduce,
    Collective::Bcast,
    Collective::Allgather,
    Collective::Alltoall,
    Collective::Reduce,
];
/// The ways that are held against each other job by job.
const PAIRED: usize = 4;

/// The default, tuned, the default again, tuned by one batch, then the k-th native variant of all collectives at once, to
/// keep jobs few.
pub fn ways(place: &Place, batches: &Batches, cells: &[Cell]) -> Vec<Way> {
    let all = |tuner, name: &str| {
        let names = MEASURED
            .iter()
            .map(|collective| (*collective, name.to_owned()))
            .collect();
        Way {
            tuner,
            cells: cells.to_vec(),
            names,
        }
    };
    let mut ways = vec![
        all(Tuner::Bare, DEFAULT),
        all(Tuner::shim(&batches.two, Mode::Exploit, 7), "tuned"),
        all(Tuner::Bare, DEFAULT),
        all(Tuner::shim(&batches.one, Mode::Exploit, 7), "tuned"),
    ];
    // A variant that calls other collectives inside must not find them steered too.
    let alone =
        |variant: &Variant| matches!(variant.steering, Steering::OpenMpi { alone: true, .. });
    let (single, joint): (Vec<_>, Vec<_>) = catalogue::all(place.library)
        .into_iter()
        .filter(|variant| variant.steering != Steering::None)
        .filter(|variant| MEASURED.contains(&variant.collective))
        .partition(alone);
    let mut groups: Vec<Vec<Variant>> = single.into_iter().map(|variant| vec![variant]).collect();
    for collective in MEASURED {
        let start = groups.iter().take_while(|group| alone(&group[0])).count();
        let of_collective = joint
            .iter()
            .filter(|variant| variant.collective == collective);
        for (k, variant) in of_collective.enumerate() {
            match groups.get_mut(start + k) {
                Some(group) => group.push(variant.clone()),
                None => groups.push(vec![variant.clone()]),
            }
        }
    }
    ways.extend(groups.into_iter().map(|group| {
        let applies = |cell: &&Cell| {
            group
                .iter()
                .any(|v| v.collective == cell.0 && v.applies(&jobs::facts(place, **cell)))
        };
        let names = group
            .iter()
            .map(|variant| (variant.collective, variant.name.to_string()))
            .collect();
        Way {
            cells: cells.iter().filter(applies).copied().collect(),
            tuner: Tuner::Library(group),
            names,
        }
    }));
    ways.retain(|way| !way.cells.is_empty());
    ways
}

/// How much is run at a place.
pub struct Effort {
    /// Blocks of each cell in one explore run.
    pub training: usize,
    pub rounds: usize,
    /// Blocks of each cell in one measured job, and untimed calls before them.
    pub repetitions: usize,
    pub warmup: usize,
}

/// Per way and cell, one time in nanoseconds for each round.
pub type Times = BTreeMap<(usize, Cell), Vec<f64>>;

/// Runs every way once in each of these rounds, each round in another order. The paired ways run one after another,
/// their order rotated, so that what the machine does meanwhile meets them alike.
pub fn rounds(
    bench: &Bench,
    place: &Place,
    effort: &Effort,
    ways: &[Way],
    seed: u64,
    rounds: Range<u64>,
) -> anyhow::Result<Times> {
    let mut times = Times::new();
    for round in rounds.clone() {
        let order = order_of(ways.len(), seed, round);
        for (done, way) in order.into_iter().enumerate() {
            bench.progress(&format!(
                "measuring: round {} of {}, job {} of {}",
                round + 1,
                rounds.end,
                done + 1,
                ways.len()
            ));
            let arguments = jobs::collectives(
                &ways[way].cells,
                effort.repetitions,
                effort.warmup,
                mix(seed, round) >> 1,
            );
            let done = jobs::run(bench, place, place.n_ranks, &ways[way].tuner, &arguments)?;
            for (cell, time) in jobs::medians(&done.result)? {
                times.entry((way, cell)).or_default().push(time);
            }
        }
    }
    Ok(times)
}

fn order_of(n_ways: usize, seed: u64, round: u64) -> Vec<usize> {
    let paired = PAIRED.min(n_ways);
    let mut order: Vec<usize> = (0..paired)
        .map(|place| (place + round as usize) % paired)
        .collect();
    if (round / paired as u64) % 2 == 1 {
        order.reverse();
    }
    let mut others: Vec<usize> = (paired..n_ways).collect();
    others.sort_by_key(|way| mix(mix(seed, round), *way as u64));
    order.extend(others);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_runs_once_a_round_and_paired_ones_side_by_side_in_every_order() {
        let mut starts = std::collections::BTreeSet::new();
        for round in 0..8 {
            let order = order_of(9, 1, round);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..9).collect::<Vec<_>>());
            assert!(order[..PAIRED].iter().all(|way| *way < PAIRED));
            starts.insert(order[..PAIRED].to_vec());
        }
        assert_eq!(starts.len(), 8);
    }
}
