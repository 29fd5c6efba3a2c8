//! What changed since: level shifts of a cell's runs, which discount what was learned before them.
//!
//! Three kinds of series stand in order of time: what calls take, all variants together; how these compare with the
//! default, all together; and how each does. The largest standardised difference of what lies before and behind a cut
//! (a retrospective CUSUM) is a shift where chance hardly makes one in any of a cell's series at any of their cuts:
//! Student's distribution says how likely one is, Bonferroni's bound how likely any. A run counts by how well its calls
//! tell its mean, beside what runs differ by. The newest shift counts. A cell is looked at again behind new runs, so each
//! look spends a share of what chance may do in all of them (alpha spending; Lan & DeMets, Biometrika 70, 1983).
//!
//! What was learned before is discounted for the whole cell where most variants have shifted together, or the default
//! alone; where another one has, for that one.

mod cut;
mod panel;

use std::collections::{BTreeMap, BTreeSet};

use crate::ablation::{Mechanism, has};
use crate::evidence::{Evidence, Shape};
use cut::{MeanSum, RunMean};
use panel::{Break, PanelData, ShiftTest, differ};

/// Of cells in which nothing ever changes the share that seem to have at any time, by each of the three kinds of series.
const WRONG: f64 = 0.01;
/// The sum of 1 / look^1.5 over all looks.
const LOOKS: f64 = 2.6124;
/// A variant that fewer runs compare with the default is not watched.
const RUNS_LEAST: usize = 6;
/// A smaller shift is not worth forgetting: logarithms of contrasts and of levels.
const CONTRAST_LEAST: f64 = 0.03;
const LEVEL_LEAST: f64 = 0.1;
/// The coefficient of variation of calls, as if two calls had shown it.
const NOISE_GUESS: f64 = 0.3;
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
    /// What runs still say of variants, by both; 1 for missing ones.
    pub weights: BTreeMap<(u32, u16), f64>,
}

/// Watches one cell.
pub fn watch(rows: &[&Evidence]) -> Watched {
    if !has(Mechanism::Breaks) {
        return Watched::default();
    }
    let noises = noises(rows);
    let contrasts = contrasts(rows, &noises);
    let differ = differ(contrasts.values().map(Vec::as_slice));
    let runs: BTreeSet<u32> = rows.iter().map(|row| row.run).collect();
    let wrong = spent_by_look(runs.len());
    let alone = alone(&contrasts, differ, wrong);
    let beside = beside_default(rows, &contrasts, &noises, (differ, wrong));
    let of_rows = |rows: &[&Evidence]| level(rows, &noises, (differ / 2.0, wrong));
    let level = of_rows(rows);
    // Where newer runs hold the default and one other variant alone, neither says which of the two has moved.
    let default = match (beside, level) {
        (None, None) => {
            let own = rows.iter().copied().filter(|row| row.variant == 0);
            of_rows(&own.collect::<Vec<_>>())
        }
        _ => None,
    };

    let mut watched = Watched::default();
    for (variant, shift) in &alone {
        let own = rows.iter().copied().filter(|row| row.variant == *variant);
        watched.discount(&own.collect::<Vec<_>>(), shift.run, HALF_LIFE, shift.kept());
    }
    for shift in [beside, default].into_iter().flatten() {
        watched.discount(rows, shift.run, HALF_LIFE, shift.kept());
    }
    if let Some(shift) = level {
        watched.discount(rows, shift.run, HALF_LIFE_LEVEL, 1.0);
    }
    let all = alone.iter().map(|(_, shift)| *shift);
    let all = all.chain(beside).chain(level).chain(default);
    watched.changed = all.map(|shift| shift.run).max();
    let rise = |shift: Option<Break>| shift.map_or(0.0, |shift| shift.rise);
    watched.drift = (rise(level.or(default)) - rise(beside)) / std::f64::consts::LN_2;
    watched
}

impl Watched {
    /// Discounts the rows of runs before a shift to `most` and less, by half with so many runs.
    fn discount(&mut self, rows: &[&Evidence], from: u32, half_life: f64, most: f64) {
        let older = || rows.iter().filter(move |row| row.run < from);
        let mut runs: Vec<u32> = older().map(|row| row.run).collect();
        runs.sort_unstable();
        runs.dedup();
        for row in older() {
            let age = runs.len() - runs.partition_point(|run| *run < row.run);
            let weight = most * 0.5f64.powf(age as f64 / half_life);
            let old = self.weights.entry((row.run, row.variant)).or_insert(1.0);
            *old = old.min(weight.max(WEIGHT_LEAST));
        }
    }
}

/// Rows that know what calls take that do not stall.
fn bodies<'e>(rows: &[&'e Evidence]) -> impl Iterator<Item = &'e Evidence> {
    let all = rows.iter().copied();
    all.filter(|row| row.time.n > 0 && row.time.mean > 0.0)
}

/// By variant the squared coefficient of variation of its calls, which is at least that of a typical variant.
fn noises(rows: &[&Evidence]) -> BTreeMap<u16, f64> {
    let mut sums: BTreeMap<u16, (f64, f64)> = BTreeMap::new();
    for row in bodies(rows) {
        let (squares, freedom) = sums
            .entry(row.variant)
            .or_insert((NOISE_GUESS.powi(2), 1.0));
        *squares += row.time.m2 / row.time.mean.powi(2);
        *freedom += (row.time.n - 1) as f64;
    }
    let own: BTreeMap<u16, f64> = sums
        .into_iter()
        .map(|(variant, (squares, freedom))| (variant, squares / freedom))
        .collect();
    let mut sorted: Vec<f64> = own.values().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let typical = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    own.into_iter()
        .map(|(variant, own)| (variant, own.max(typical)))
        .collect()
}

/// What the noise of its calls leaves the logarithm of a row's mean, as a variance.
fn variance(row: &Evidence, noises: &BTreeMap<u16, f64>) -> f64 {
    let noise = noises.get(&row.variant).copied().unwrap_or_default();
    noise / row.time.n as f64
}

/// By variant what it takes beside the default, of those that enough runs know.
fn contrasts(rows: &[&Evidence], noises: &BTreeMap<u16, f64>) -> BTreeMap<u16, Vec<RunMean>> {
    let place = |row: &Evidence| (row.run, row.shape, row.component);
    let defaults = bodies(rows).filter(|row| row.variant == 0);
    let defaults: BTreeMap<(u32, Shape, u16), &Evidence> =
        defaults.map(|row| (place(row), row)).collect();
    let mut sums: BTreeMap<u16, BTreeMap<u32, MeanSum>> = BTreeMap::new();
    for row in bodies(rows).filter(|row| row.variant != 0 && row.time.n > 1) {
        let Some(default) = defaults.get(&place(row)) else {
            continue;
        };
        let contrast = row.time.mean.ln() - default.time.mean.ln();
        let both = variance(row, noises) + variance(default, noises);
        let runs = sums.entry(row.variant).or_default();
        let of_run = runs.entry(row.run).or_default();
        of_run.add(contrast, 1.0 / both);
    }
    sums.into_iter()
        .filter(|(_, runs)| runs.len() >= RUNS_LEAST)
        .map(|(variant, runs)| (variant, in_order(runs)))
        .collect()
}

fn in_order(runs: BTreeMap<u32, MeanSum>) -> Vec<RunMean> {
    runs.into_iter().map(|(run, of)| of.of_run(run)).collect()
}

/// What the look behind so many runs may spend of [`WRONG`]. Every run adds a look at most, and looks without end spend
/// no more than all of it.
fn spent_by_look(runs: usize) -> f64 {
    let look = (runs + 1).saturating_sub(RUNS_LEAST).max(1) as f64;
    WRONG / (LOOKS * look.powf(1.5))
}

/// The shifts of variants beside the default, each for itself.
fn alone(contrasts: &BTreeMap<u16, Vec<RunMean>>, differ: f64, wrong: f64) -> Vec<(u16, Break)> {
    let test = ShiftTest {
        rise_least: CONTRAST_LEAST,
        variants_least: 1,
        wrong: wrong / contrasts.len().max(1) as f64,
    };
    let shift = |(variant, series): (&u16, &Vec<RunMean>)| {
        let own = [(*variant, series.as_slice())];
        let panel = PanelData::new(own, differ, BTreeMap::new());
        Some((*variant, panel.newest_shift(test)?))
    };
    contrasts.iter().filter_map(shift).collect()
}

/// The shift of all variants beside the default, whose own noise is in all of them. One variant does not say which of
/// the two has moved.
fn beside_default(
    rows: &[&Evidence],
    contrasts: &BTreeMap<u16, Vec<RunMean>>,
    noises: &BTreeMap<u16, f64>,
    (differ, wrong): (f64, f64),
) -> Option<Break> {
    let mut known: BTreeMap<u32, f64> = BTreeMap::new();
    for row in bodies(rows).filter(|row| row.variant == 0) {
        *known.entry(row.run).or_default() += 1.0 / variance(row, noises);
    }
    let shared = known.into_iter().map(|(run, known)| (run, 1.0 / known));
    let series = contrasts.iter();
    let series = series.map(|(variant, series)| (*variant, series.as_slice()));
    PanelData::new(series, differ, shared.collect()).newest_shift(ShiftTest {
        rise_least: CONTRAST_LEAST,
        variants_least: 2,
        wrong,
    })
}

/// The shift of what calls take, all variants and sizes together.
fn level(
    rows: &[&Evidence],
    noises: &BTreeMap<u16, f64>,
    (differ, wrong): (f64, f64),
) -> Option<Break> {
    let mut times: BTreeMap<(u16, Shape), Vec<RunMean>> = BTreeMap::new();
    for row in bodies(rows) {
        times
            .entry((row.variant, row.shape))
            .or_default()
            .push(RunMean {
                run: row.run,
                value: row.time.mean.ln() + row.level_ns.ln(),
                variance: variance(row, noises),
            });
    }
    let series = times.iter().filter(|(_, runs)| runs.len() > 1);
    let series = series.map(|((variant, _), runs)| (*variant, runs.as_slice()));
    PanelData::new(series, differ, BTreeMap::new()).newest_shift(ShiftTest {
        rise_least: LEVEL_LEAST,
        variants_least: 1,
        wrong,
    })
}
