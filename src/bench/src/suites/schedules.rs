//! Our schedules against the library's own version of the same algorithm.
//!
//! The library runs its version, set by its variables, without the shim; ours is forced. The k-th pairs of all
//! collectives share their jobs, which run side by side in alternated order.

use std::collections::BTreeMap;

use anyhow::Context;
use colltune_core::catalogue::{self, Variant};
use colltune_core::collective::Collective::{self, Allgather, Allreduce, Alltoall, Bcast, Reduce};
use colltune_core::library::Abi;
use colltune_core::request::Mode;
use colltune_core::variant::Size;
use colltune_statistics::{geometric_mean_over_rounds, ratios};

use super::jobs::{self, Cell, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::{Bench, database};

/// Open MPI's name of an algorithm, and ours.
type Pair = (Collective, &'static str, &'static str);

const PAIRS: [Pair; 11] = [
    (
        Allreduce,
        "native:recursive_doubling",
        "p2p:recursive_doubling",
    ),
    (Allreduce, "native:ring", "p2p:ring"),
    (Allreduce, "native:rabenseifner", "p2p:rabenseifner"),
    // Open MPI's broadcast doubles distances, its reduce halves them on the way down.
    (Bcast, "native:binomial", "p2p:binomial_doubling"),
    (
        Bcast,
        "native:scatter_allgather_ring",
        "p2p:scatter_allgather_ring",
    ),
    (Allgather, "native:ring", "p2p:ring"),
    (
        Allgather,
        "native:recursive_doubling",
        "p2p:recursive_doubling",
    ),
    (Allgather, "native:bruck", "p2p:bruck:radix=2"),
    (Alltoall, "native:pairwise", "p2p:pairwise"),
    (Alltoall, "native:modified_bruck", "p2p:bruck:radix=2"),
    (Reduce, "native:binomial", "p2p:binomial"),
];

const SIZES: [u64; 7] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 4 << 20];
const SIZES_QUICK: [u64; 3] = [8, 4 << 10, 256 << 10];
/// Where every rank has a block the message is as long as that of the others.
const MESSAGE_MAX: u64 = 4 << 20;
const RANKS: usize = 8;
/// Of the elements that the helper program sends.
const ELEMENT_BYTES: u64 = 8;

/// A pair of the catalogue's variants.
type Both = [Variant; 2];

/// The times of a pair in one cell, native and ours, one for each round.
type Times = BTreeMap<(Cell, String), [Vec<f64>; 2]>;

pub fn run_on_node(bench: &Bench) -> anyhow::Result<Report> {
    run(bench, || Place::node(Abi::OpenMpi, RANKS))
}

pub fn run_on_cluster(bench: &Bench) -> anyhow::Result<Report> {
    run(bench, Place::cluster)
}

fn run(bench: &Bench, place: impl FnOnce() -> anyhow::Result<Place>) -> anyhow::Result<Report> {
    let mut report = Report::comparing("native, us per call", "p2p, us per call");
    match place() {
        Ok(place) => measure(bench, &place, &mut report)?,
        Err(error) => report.skipped.push(format!("failed to {error:#}")),
    }
    Ok(report)
}

fn measure(bench: &Bench, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let rounds = bench.pick(6, 2);
    let times = times(bench, place, rounds)?;
    for ((cell, name), [native, own]) in &times {
        let micro = |values: &[f64]| values.iter().map(|value| value / 1e3).collect::<Vec<_>>();
        let case = format!("{} {name} {}", cell.0, Size(cell.1));
        let row = Row::of_rounds(case, &micro(native), &micro(own));
        report.rows.push(row);
    }
    let over = |bytes: std::ops::Range<u64>| {
        let cells = times
            .iter()
            .filter(|((cell, _), _)| bytes.contains(&cell.1));
        let columns: Vec<Vec<f64>> = cells
            .map(|(_, [native, own])| ratios(native, own))
            .collect();
        let by_round: Vec<Vec<f64>> = (0..rounds)
            .map(|round| columns.iter().map(|column| column[round]).collect())
            .collect();
        geometric_mean_over_rounds(&by_round)
    };
    let finding = |what: String, bytes, target| Finding {
        what,
        found: over(bytes),
        unit: "x",
        target,
    };
    let n = times.len();
    report.findings = vec![
        finding(
            format!("native over p2p, geometric mean of {n} cells"),
            0..u64::MAX,
            Target::AtLeast(0.95),
        ),
        finding("to 4 KiB".to_owned(), 0..(4 << 10) + 1, Target::None),
        finding(
            "above 4 KiB".to_owned(),
            (4 << 10) + 1..u64::MAX,
            Target::None,
        ),
    ];
    report
        .notes
        .push(format!("{}; {rounds} rounds", place.describe()));
    Ok(())
}

fn times(bench: &Bench, place: &Place, rounds: usize) -> anyhow::Result<Times> {
    let db = database::empty(bench, "schedules")?;
    let groups = groups(place)?;
    let mut times = Times::new();
    for round in 0..rounds {
        for (k, group) in groups.iter().enumerate() {
            let cells = cells(bench, place, group);
            for side in [round % 2, 1 - round % 2] {
                bench.progress(&format!(
                    "schedules: round {} of {rounds}, group {} of {}",
                    round + 1,
                    k + 1,
                    groups.len()
                ));
                let variants: Vec<&Variant> = group.iter().map(|pair| &pair[side]).collect();
                let tuner = match side {
                    0 => Tuner::Library(variants.into_iter().cloned().collect()),
                    _ => forced(&db, &variants),
                };
                let arguments = jobs::collectives(&cells, bench.pick(8, 5), 5, round as u64);
                let done = jobs::run(bench, place, place.n_ranks, &tuner, &arguments)?;
                for (cell, time) in jobs::medians(&done.result)? {
                    let pair = group.iter().find(|pair| pair[0].collective == cell.0);
                    let name = pair.map(|pair| pair[1].name.algorithm.clone());
                    let both = times.entry((cell, name.unwrap_or_default())).or_default();
                    both[side].push(time);
                }
            }
        }
    }
    let _ = std::fs::remove_dir_all(&db);
    Ok(times)
}

/// The k-th pairs of all collectives at once, to keep jobs few.
fn groups(place: &Place) -> anyhow::Result<Vec<Vec<Both>>> {
    let mut groups: Vec<Vec<Both>> = Vec::new();
    for (collective, native, own) in PAIRS {
        let find = |name: &str| {
            catalogue::find(place.library, collective, name)
                .with_context(|| format!("find {collective}={name} in the catalogue"))
        };
        let both = [find(native)?, find(own)?];
        let free = groups
            .iter_mut()
            .find(|group| group.iter().all(|pair| pair[0].collective != collective));
        match free {
            Some(group) => group.push(both),
            None => groups.push(vec![both]),
        }
    }
    Ok(groups)
}

/// The cells that both variants of a pair take.
fn cells(bench: &Bench, place: &Place, group: &[Both]) -> Vec<Cell> {
    let sizes: &[u64] = if bench.quick { &SIZES_QUICK } else { &SIZES };
    let of_pair = |pair: &Both| {
        let collective = pair[0].collective;
        let blocks = match collective {
            Allgather | Alltoall => place.n_ranks as u64,
            _ => 1,
        };
        let cells = sizes
            .iter()
            .map(|&bytes| (collective, bytes.min(MESSAGE_MAX / blocks)));
        let applies = |cell: &Cell| {
            let facts = jobs::facts(place, *cell);
            // With fewer elements than ranks Open MPI scatters nothing, and sends to each.
            let scatters = pair[1].name.algorithm.starts_with("scatter");
            if scatters && cell.1 < ELEMENT_BYTES * place.n_ranks as u64 {
                return false;
            }
            pair.iter().all(|variant| variant.applies(&facts))
        };
        cells.filter(applies).collect::<Vec<_>>()
    };
    group.iter().flat_map(of_pair).collect()
}

fn forced(db: &std::path::Path, variants: &[&Variant]) -> Tuner {
    let force: Vec<String> = variants
        .iter()
        .map(|variant| format!("{}={}", variant.collective, variant.name))
        .collect();
    Tuner::Shim {
        db: Some(db.to_owned()),
        mode: Mode::Exploit,
        seed: 1,
        settings: vec![("COLLTUNE_FORCE", force.join(";"))],
    }
}
