//! Whether what is expected of variants before any of them ran puts them into the order in which they were measured.
//!
//! `data/measured.csv` is of two machines whose ranks share cores; the calibrations beside it are all that is known of
//! them. Its first lines say how it was taken.

use std::collections::BTreeMap;

use colltune_core::algorithm::simulate::Cores;
use colltune_core::calibration::Calibration;
use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::prior::cost::{Costs, Layout};
use colltune_core::prior::simulated::HOPELESS_SIMULATED;
use colltune_core::variant::Family;

const MEASURED: &str = include_str!("data/measured.csv");
const MACHINES: [(&str, &str); 2] = [
    ("node", include_str!("data/node.toml")),
    ("cluster", include_str!("data/cluster.toml")),
];
/// Times that differ by less may swap when they are measured again.
const APART: f64 = 1.2;
/// Messages of so many bytes at most are short: their cost is latency, and variants are closer together.
const SHORT_MOST: u64 = 4096;
/// What the rank correlation of short messages alone is above, as a median over their cells.
const SHORT_CORRELATION: f64 = 0.7;

/// Expected and measured times of the variants of one cell.
type Times = Vec<(f64, f64)>;

/// By collective and size.
fn cells(
    machine: &str,
    calibration: &Calibration,
    families: &[Family],
) -> BTreeMap<(usize, u64), Times> {
    let library: Library = calibration.library.parse().unwrap();
    let mut costs = Costs::new(library, calibration.machine());
    let layout = Layout {
        nodes: calibration.nodes,
        ppn: calibration.ppn,
    };
    let mut cells = BTreeMap::<_, Times>::new();
    let lines = MEASURED.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let &[of, collective, bytes, name, ns] = fields.as_slice() else {
            panic!("{line}");
        };
        let collective = Collective::from_name(collective).unwrap();
        let variant = catalogue::find(library, collective, name).expect(line);
        let is_left_out = variant.is_barred() || !families.contains(&variant.name.family);
        if of != machine || is_left_out {
            continue;
        }
        let bytes: u64 = bytes.parse().unwrap();
        let expected = costs.of(&variant, layout, bytes).expect(line);
        let times = (expected, ns.parse().unwrap());
        cells
            .entry((collective.index(), bytes))
            .or_default()
            .push(times);
    }
    cells
}

/// Spearman's rank correlation.
fn correlation(times: &Times) -> f64 {
    let ranks = |of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let rank = |value: f64| {
            let below = times.iter().filter(|other| of(other) < value).count();
            let equal = times.iter().filter(|other| of(other) == value).count();
            below as f64 + (equal as f64 - 1.0) / 2.0
        };
        times.iter().map(|time| rank(of(time))).collect()
    };
    let (a, b) = (ranks(|time| time.0), ranks(|time| time.1));
    let mean = (times.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

/// The share of pairs that differ when they are measured whose order is the expected one.
fn in_order(times: &Times) -> f64 {
    let (mut right, mut all) = (0.0, 0.0);
    for a in times {
        for b in times.iter().filter(|b| b.1 > APART * a.1) {
            all += 1.0;
            right += if b.0 > a.0 { 1.0 } else { 0.0 };
        }
    }
    if all == 0.0 { 1.0 } else { right / all }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What was found of a machine's cells.
struct Found {
    /// Median over the cells.
    correlation: f64,
    /// Of pairs in order: the median over the cells, and the least of a cell.
    in_order: f64,
    in_order_least: f64,
}

fn found(machine: &str, calibration: &Calibration, families: &[Family]) -> Found {
    found_up_to(u64::MAX, machine, calibration, families)
}

/// The same of messages of so many bytes at most.
fn found_up_to(
    bytes_most: u64,
    machine: &str,
    calibration: &Calibration,
    families: &[Family],
) -> Found {
    let mut cells = cells(machine, calibration, families);
    cells.retain(|(_, bytes), _| *bytes <= bytes_most);
    println!("{machine}, {families:?}: variants, rank correlation, pairs in order");
    let (mut correlations, mut shares) = (Vec::new(), Vec::new());
    for ((collective, bytes), times) in cells.iter().filter(|(_, times)| times.len() > 2) {
        let (rho, share) = (correlation(times), in_order(times));
        let name = Collective::from_index(*collective).unwrap();
        println!("{name} {bytes}: {}, {rho:.2}, {share:.2}", times.len());
        correlations.push(rho);
        shares.push(share);
    }
    let found = Found {
        correlation: median(correlations),
        in_order_least: shares.iter().copied().fold(1.0, f64::min),
        in_order: median(shares),
    };
    let Found {
        correlation,
        in_order,
        in_order_least,
    } = found;
    println!("medians {correlation:.2} and {in_order:.2}, least share {in_order_least:.2}");
    found
}

fn calibrations() -> impl Iterator<Item = (&'static str, Calibration)> {
    let read = |(machine, text)| (machine, Calibration::from_toml(text).unwrap());
    MACHINES.into_iter().map(read)
}

#[test]
fn schedules_are_expected_in_the_order_in_which_they_are_measured() {
    for (machine, calibration) in calibrations() {
        let found = found(machine, &calibration, &[Family::P2p]);
        assert!(found.correlation > 0.85, "{machine}: {}", found.correlation);
        assert!(found.in_order > 0.93, "{machine}: {}", found.in_order);
        let least = found.in_order_least;
        assert!(least > 0.65, "{machine}: {least}");
    }
}

#[test]
fn algorithms_of_the_library_are_expected_in_the_order_in_which_they_are_measured() {
    for (machine, calibration) in calibrations() {
        let found = found(machine, &calibration, &[Family::Native]);
        assert!(found.correlation > 0.8, "{machine}: {}", found.correlation);
        assert!(found.in_order > 0.85, "{machine}: {}", found.in_order);
        let least = found.in_order_least;
        assert!(least > 0.6, "{machine}: {least}");
    }
}

#[test]
fn families_are_expected_in_the_order_in_which_they_are_measured() {
    let families = [Family::P2p, Family::Native];
    for (machine, calibration) in calibrations() {
        let found = found(machine, &calibration, &families);
        assert!(found.correlation > 0.75, "{machine}: {}", found.correlation);
        assert!(found.in_order > 0.85, "{machine}: {}", found.in_order);
    }
}

#[test]
fn short_messages_alone_are_expected_in_the_order_in_which_they_are_measured() {
    let mut medians = Vec::new();
    for (machine, calibration) in calibrations() {
        for family in [Family::P2p, Family::Native] {
            let found = found_up_to(SHORT_MOST, machine, &calibration, &[family]);
            medians.push((machine, family, found.correlation));
        }
    }
    println!("up to {SHORT_MOST} B: {medians:?}");
    let is_above = |(.., median): &(&str, Family, f64)| *median > SHORT_CORRELATION;
    assert!(medians.iter().all(is_above), "{medians:?}");
}

#[test]
fn with_a_core_for_each_rank_another_order_would_be_expected() {
    for (machine, calibration) in calibrations() {
        let alone = Calibration {
            cores: Some(Cores::ENOUGH),
            ..calibration
        };
        let found = found(machine, &alone, &[Family::P2p]);
        assert!(found.correlation < 0.8, "{machine}: {}", found.correlation);
    }
}

#[test]
fn what_is_expected_to_take_twice_as_long_as_another_variant_is_never_the_best() {
    let families = [Family::P2p, Family::Native];
    for (machine, calibration) in calibrations() {
        for ((collective, bytes), times) in cells(machine, &calibration, &families) {
            let least =
                |of: fn(&(f64, f64)) -> f64| times.iter().map(of).fold(f64::INFINITY, f64::min);
            let (expected, measured) = (least(|time| time.0), least(|time| time.1));
            let hopeless = times
                .iter()
                .filter(|time| time.0 > HOPELESS_SIMULATED * expected);
            let best = hopeless
                .map(|time| time.1 / measured)
                .fold(f64::INFINITY, f64::min);
            let name = Collective::from_index(collective).unwrap();
            assert!(best > 1.1, "{machine} {name} {bytes}: {best:.2}");
        }
    }
}
