//! Whether the simulator puts variants into the order in which they are measured, and how long an
//! allreduce on 32,768 ranks takes it.
//!
//! The cluster is calibrated, then every variant of our own is forced, and its time compared with what
//! the simulator says from that calibration. The rank correlation (Spearman) of the two orders counts:
//! the simulator has to tell what is hopeless, not how long anything takes.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Context;
use colltune_core::algorithm::pattern::Pattern;
use colltune_core::algorithm::registry;
use colltune_core::algorithm::simulate::{Known, Machine, estimate_ns};
use colltune_core::catalogue::{self, Own, Variant};
use colltune_core::collective::Collective;
use colltune_core::request::Mode;
use colltune_statistics::{Interval, median, ratios, spearman, spread};

use super::jobs::{self, Cell, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::{Bench, database};
use colltune_launch::measuring::calibration;

const COLLECTIVES: [Collective; 5] = [
    Collective::Allreduce,
    Collective::Bcast,
    Collective::Reduce,
    Collective::Allgather,
    Collective::Alltoall,
];
const SIZES: [u64; 4] = [8, 4 << 10, 64 << 10, 256 << 10];
/// No simulation of so few ranks takes more.
const STEPS_MAX: usize = 1 << 22;

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("measured, ns", "simulated, ns");
    match Place::cluster() {
        Ok(place) => correlate(bench, &place, &mut report)?,
        Err(error) => report
            .skipped
            .push(format!("the cluster: failed to {error:#}")),
    }
    large(bench, &mut report);
    Ok(report)
}

fn correlate(bench: &Bench, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    bench.progress("simulator: calibrating");
    let arguments = ["calibrate".to_owned()];
    let measured = jobs::run(bench, place, place.n_ranks, &Tuner::Bare, &arguments)?;
    let machine = calibration(&measured.result, "bench".to_owned())?.machine();
    let measured = measure(bench, place)?;
    report.notes.push(format!(
        "{}; a and b are medians over the variants of a cell, ratio is that of one variant's measured to its simulated time",
        place.describe()
    ));
    report.notes.push(format!("calibration: {machine:?}"));
    let ppn = (place.n_ranks / place.nodes) as u32;
    let node_of: Vec<u32> = (0..place.n_ranks as u32).map(|rank| rank / ppn).collect();
    let mut correlations = Vec::new();
    for (cell, variants) in measured {
        let simulated = variants.iter().map(|(variant, _)| {
            let own = variant.own.as_ref().and_then(Own::schedule);
            let own = own.context("simulate what is no schedule")?;
            let known = &mut Known::default();
            estimate_ns(
                known,
                own.row(),
                own.values,
                &node_of,
                cell.1,
                &machine,
                STEPS_MAX,
            )
            .with_context(|| format!("simulate {}", variant.name))
        });
        let simulated = simulated.collect::<anyhow::Result<Vec<f64>>>()?;
        let row = row(cell, &variants, &simulated);
        correlations.extend(row.1);
        report.rows.push(row.0);
    }
    let found = spread(&correlations);
    report.findings.push(Finding {
        what: "rank correlation of simulated and measured order, over the cells".to_owned(),
        found: Interval {
            low: found.min,
            value: found.median,
            high: found.max,
        },
        unit: "",
        target: Target::None,
    });
    Ok(())
}

/// One cell, with its rank correlation.
fn row(cell: Cell, variants: &[(Variant, f64)], simulated: &[f64]) -> (Row, Option<f64>) {
    let measured: Vec<f64> = variants.iter().map(|(_, time)| *time).collect();
    let least = |times: &[f64]| {
        let best = times.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        best.map(|(place, _)| place)
    };
    // Two are always in one order or the other.
    let correlation = spearman(&measured, simulated).filter(|_| measured.len() >= 3);
    let mut row = Row {
        case: format!("{} {} B", cell.0, cell.1),
        a: median(&measured),
        b: median(simulated),
        ratio: spread(&ratios(&measured, simulated)),
        n: variants.len(),
        more: Vec::new(),
    };
    if let (Some(best), Some(expected)) = (least(&measured), least(simulated)) {
        row = row
            .with(
                "correlation",
                correlation.map(|rho| (rho * 100.0).round() / 100.0),
            )
            .with("best", variants[best].0.name.to_string())
            .with("expected", variants[expected].0.name.to_string())
            .with("loss", measured[expected] / measured[best]);
    }
    (row, correlation)
}

/// Each cell's variants with their measured times.
type Measured = BTreeMap<Cell, Vec<(Variant, f64)>>;

/// Runs the k-th variants of all collectives at once, to keep jobs few.
fn measure(bench: &Bench, place: &Place) -> anyhow::Result<Measured> {
    let db = database::empty(bench, "simulator")?;
    let own = COLLECTIVES.map(|collective| {
        let all = catalogue::variants(place.library, collective);
        let own = all
            .into_iter()
            .filter(|variant| variant.own.as_ref().and_then(Own::schedule).is_some());
        own.collect::<Vec<_>>()
    });
    let longest = own.iter().map(Vec::len).max().unwrap_or(0);
    let mut measured = Measured::new();
    for k in 0..longest {
        let group: Vec<&Variant> = own.iter().filter_map(|of| of.get(k)).collect();
        bench.progress(&format!("simulator: job {} of {longest}", k + 1));
        let cells: Vec<Cell> = group
            .iter()
            .flat_map(|variant| SIZES.map(|bytes| (variant.collective, bytes)))
            .filter(|cell| {
                let facts = jobs::facts(place, *cell);
                let of = |variant: &&&Variant| variant.collective == cell.0;
                group.iter().find(of).is_some_and(|v| v.applies(&facts))
            })
            .collect();
        if cells.is_empty() {
            continue;
        }
        let force: Vec<String> = group
            .iter()
            .map(|variant| format!("{}={}", variant.collective, variant.name))
            .collect();
        let tuner = Tuner::Shim {
            db: Some(db.clone()),
            mode: Mode::Exploit,
            seed: 1,
            settings: vec![("COLLTUNE_FORCE", force.join(";"))],
        };
        let arguments = jobs::collectives(&cells, bench.pick(10, 3), 3, k as u64);
        let done = jobs::run(bench, place, place.n_ranks, &tuner, &arguments)?;
        for (cell, time) in jobs::medians(&done.result)? {
            if let Some(variant) = group.iter().find(|variant| variant.collective == cell.0) {
                let of_cell = measured.entry(cell).or_default();
                of_cell.push(((*variant).clone(), time));
            }
        }
    }
    let _ = std::fs::remove_dir_all(&db);
    Ok(measured)
}

const NODES: u32 = 1024;
const PPN: u32 = 32;
const LARGE: [&str; 6] = [
    "recursive_doubling",
    "rabenseifner",
    "circulant",
    "recursive_multiplying",
    "reduce_bcast",
    "swing",
];

/// How long each allreduce of O(log ranks) rounds takes on 32,768 ranks.
fn large(bench: &Bench, report: &mut Report) {
    let node_of: Vec<u32> = (0..NODES * PPN).map(|rank| rank / PPN).collect();
    let mut seconds = Vec::new();
    for row in registry::rows(Pattern::Allreduce).filter(|row| LARGE.contains(&row.name)) {
        for values in row.values() {
            let name = row.variant(values);
            bench.progress(&format!("simulator: {name} on {} ranks", node_of.len()));
            let start = Instant::now();
            let time = estimate_ns(
                &mut Known::default(),
                row,
                values,
                &node_of,
                1 << 20,
                &Machine::TYPICAL,
                usize::MAX,
            );
            let took = start.elapsed().as_secs_f64();
            seconds.push(took);
            let time = time.unwrap_or(f64::NAN);
            report.notes.push(format!(
                "allreduce of 1 MiB on {NODES} x {PPN} ranks by {name}: {:.0} us, simulated in {took:.2} s",
                time / 1e3
            ));
        }
    }
    let found = spread(&seconds);
    report.findings.push(Finding {
        what: format!("simulating an allreduce on {} ranks", node_of.len()),
        found: Interval {
            low: found.min,
            value: found.max,
            high: found.max,
        },
        unit: " s",
        target: Target::AtMost(1.0),
    });
}
