//! What changed since: level shifts of a cell's runs, which discount what was learned before them.
//!
//! For each variant the runs' contrasts, and for the default the runs' levels, stand in order of time. The largest
//! standardised difference of what lies before and behind a cut (a retrospective CUSUM) is a shift where it is far
//! beyond noise.

use std::collections::BTreeMap;

use crate::evidence::{Evidence, Shape};

/// A shift is beyond this many standard errors, and more of them where few runs say what noise is.
const ERRORS: f64 = 4.5;
const ERRORS_FEW: f64 = 20.0;
/// Fewer runs than this show no shift, and on either side there are at least two.
const RUNS_LEAST: usize = 6;
const SIDE_LEAST: usize = 2;
/// A smaller shift is not worth forgetting: logarithms of contrasts and of levels.
const CONTRAST_LEAST: f64 = 0.03;
const LEVEL_LEAST: f64 = 0.1;
/// Runs before a shift of contrasts lose half of their weight with every run, those before one of levels in four.
const HALF_LIFE: f64 = 1.0;
const HALF_LIFE_LEVEL: f64 = 4.0;
const WEIGHT_LEAST: f64 = 1e-3;

/// What is seen of one cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// Octaves by which the default's time rose, where it did.
    pub drift: f64,
    /// The first run behind the last shift.
    pub changed: Option<u32>,
    /// What the runs still weigh; 1 for those that are not in it.
    pub weights: BTreeMap<u32, f64>,
}

/// Watches one cell.
pub fn watch(rows: &[&Evidence]) -> Watched {
    let mut defaults: BTreeMap<(u32, Shape, u16), (f64, f64)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.variant == 0 && row.time.n > 0) {
        defaults.insert(
            (row.run, row.shape, row.component),
            (row.time.mean.ln(), row.level_ns.ln()),
        );
    }
    let mut levels: BTreeMap<Shape, BTreeMap<u32, f64>> = BTreeMap::new();
    for ((run, shape, _), (mean, level)) in &defaults {
        levels.entry(*shape).or_default().insert(*run, mean + level);
    }
    let mut contrasts: BTreeMap<u16, BTreeMap<u32, (f64, f64)>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.variant != 0 && row.time.n > 1) {
        let Some((default, _)) = defaults.get(&(row.run, row.shape, row.component)) else {
            continue;
        };
        let entry = contrasts
            .entry(row.variant)
            .or_default()
            .entry(row.run)
            .or_default();
        let n = row.time.n as f64;
        *entry = (entry.0 + n * (row.time.mean.ln() - default), entry.1 + n);
    }
    let mut runs: Vec<u32> = rows.iter().map(|row| row.run).collect();
    runs.sort_unstable();
    runs.dedup();
    let mut watched = Watched::default();
    let mut discount = |from: u32, half_life: f64, most: f64| {
        let cut = runs.partition_point(|run| *run < from);
        for (age, run) in runs[..cut].iter().rev().enumerate() {
            let weight = most * 0.5f64.powf((age as f64 + 1.0) / half_life);
            let weight = weight.max(WEIGHT_LEAST);
            let old = watched.weights.entry(*run).or_insert(1.0);
            *old = old.min(weight);
        }
    };
    let series = contrasts.values().map(|runs| {
        runs.iter()
            .map(|(run, (sum, n))| (*run, sum / n))
            .collect::<Vec<_>>()
    });
    let (mut watchable, mut shifts) = (0, Vec::new());
    for series in series.filter(|series| series.len() >= RUNS_LEAST) {
        watchable += 1;
        shifts.extend(shift(&series, CONTRAST_LEAST));
    }
    let newest = shifts.iter().map(|shift| shift.run).max();
    let mut watched_from = newest;
    if let Some(run) = newest {
        // As a witness of what is now, a run before is off by the rise beside its own noise.
        let clearest = shifts.iter().filter(|shift| shift.run == run);
        let weights = clearest.map(|shift| 1.0 / (1.0 + (shift.rise / shift.noise).powi(2)));
        discount(run, HALF_LIFE, weights.fold(1.0, f64::min));
    }
    // Where most variants moved alike beside the default, it is the default that moved.
    let mut rises: Vec<f64> = shifts.iter().map(|shift| shift.rise).collect();
    rises.sort_unstable_by(f64::total_cmp);
    let alike = rises.first().zip(rises.last());
    let of_default = if 2 * rises.len() > watchable && alike.is_some_and(|(a, b)| a * b > 0.0) {
        -rises[rises.len() / 2]
    } else {
        0.0
    };
    let of_levels = levels.values().filter_map(|level| {
        shift(
            &level
                .iter()
                .map(|(run, log)| (*run, *log))
                .collect::<Vec<_>>(),
            LEVEL_LEAST,
        )
    });
    let of_levels = of_levels.max_by_key(|shift| shift.run);
    watched_from = watched_from.max(of_levels.map(|shift| shift.run));
    of_levels
        .into_iter()
        .for_each(|shift| discount(shift.run, HALF_LIFE_LEVEL, 1.0));
    watched.changed = watched_from;
    watched.drift = of_levels.map_or(of_default, |shift| shift.rise) / std::f64::consts::LN_2;
    watched
}

/// A shift of a series (a structural break), in logarithms: the first run behind it, by how much values rose, and what
/// runs differ by.
#[derive(Clone, Copy, Debug)]
struct Break {
    run: u32,
    rise: f64,
    noise: f64,
}

/// The clearest shift.
fn shift(series: &[(u32, f64)], least: f64) -> Option<Break> {
    let n = series.len();
    if n < RUNS_LEAST {
        return None;
    }
    // Differences of neighbours know nothing of a shift, but for one of them.
    let mut steps: Vec<f64> = series
        .windows(2)
        .map(|pair| (pair[1].1 - pair[0].1).abs())
        .collect();
    steps.sort_unstable_by(f64::total_cmp);
    let noise = (1.4826 * steps[steps.len() / 2] / 2f64.sqrt()).max(1e-3);
    let sums = |values: &[(u32, f64)]| {
        values
            .iter()
            .fold((0.0, 0.0), |(sum, squares), (_, value)| {
                (sum + value, squares + value * value)
            })
    };
    let all = sums(series);
    let before = series.iter().scan((0.0, 0.0), |sums, (_, value)| {
        let before = *sums;
        *sums = (sums.0 + value, sums.1 + value * value);
        Some(before)
    });
    let at = |(cut, before): (usize, (f64, f64))| {
        let (older, newer) = (cut as f64, (n - cut) as f64);
        let rise = (all.0 - before.0) / newer - before.0 / older;
        // A few wild runs on one side are no shift: either side's own spread counts, too.
        let within =
            |(sum, squares): (f64, f64), n: f64| (squares - sum * sum / n).max(0.0) / (n - 1.0) / n;
        let own = within(before, older) + within((all.0 - before.0, all.1 - before.1), newer);
        let error = (noise * noise * (1.0 / older + 1.0 / newer))
            .max(own)
            .sqrt();
        (rise.abs() / error, rise, series[cut].0)
    };
    let cuts = before.enumerate().skip(SIDE_LEAST);
    let (errors, rise, run) = cuts
        .take_while(|(cut, _)| *cut <= n - SIDE_LEAST)
        .map(at)
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (errors > ERRORS + ERRORS_FEW / n as f64 && rise.abs() > least).then_some(Break {
        run,
        rise,
        noise,
    })
}
