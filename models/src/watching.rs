//! What changed since: level shifts of a cell's runs, which discount what was learned before them.
//!
//! Three kinds of series stand in order of time: what calls take, all variants together; how these compare with the
//! default, all together; and how each does. The largest standardised difference of what lies before and behind a cut
//! (a retrospective CUSUM) is a shift where chance hardly makes one in any of a cell's series at any of their cuts:
//! Student's distribution says how likely one is, Bonferroni's bound how likely any. A run counts by how well its calls
//! tell its mean, beside what runs differ by.
//!
//! What was learned before is discounted for the whole cell where all variants together have shifted, or several at one
//! run; where one has alone, for that one.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::evidence::{Evidence, Shape};

/// Of cells in which nothing has changed the share that seem to have, by each of the three kinds of series.
const WRONG: f64 = 0.001;
/// Fewer runs than this show no shift, and on either side there are at least two.
const RUNS_LEAST: usize = 6;
const SIDE_LEAST: usize = 2;
/// A smaller shift is not worth forgetting: logarithms of contrasts and of levels.
const CONTRAST_LEAST: f64 = 0.03;
const LEVEL_LEAST: f64 = 0.1;
/// The coefficient of variation of calls, as if two calls had shown it.
const NOISE_GUESS: f64 = 0.3;
/// What runs differ by beside the noise of their calls: about, by which pairs of them are weighed, and at the least.
const RUNS_GUESS: f64 = 0.1;
const RUNS_DIFFER_LEAST: f64 = 0.03;
/// The least standard error of a shift.
const ERROR_LEAST: f64 = 1e-3;
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
    /// What runs still say of variants, by both; 1 for what is not in it.
    pub weights: BTreeMap<(u32, u16), f64>,
}

/// Watches one cell.
pub fn watch(rows: &[&Evidence]) -> Watched {
    let noises = noises(rows);
    let contrasts = contrasts(rows, &noises);
    let differ = differ(contrasts.values().map(Vec::as_slice));
    let each = WRONG / contrasts.len().max(1) as f64;
    let alone: Vec<(u16, Break)> = contrasts
        .iter()
        .filter_map(|(variant, series)| {
            Some((*variant, shift(series, differ, CONTRAST_LEAST, each)?))
        })
        .collect();
    // One variant beside the default does not say which of the two has moved.
    let beside = (contrasts.len() > 1).then(|| beside_default(rows, &contrasts, &noises, differ));
    let beside = beside.and_then(|series| shift_alone(&series, CONTRAST_LEAST));
    let level = shift_alone(&levels(rows, &noises, differ / 2.0), LEVEL_LEAST);
    let mut watched = Watched::default();
    let at = |run: u32| alone.iter().filter(move |(_, shift)| shift.run == run);
    let several = alone.iter().map(|(_, shift)| shift.run);
    let several = several.filter(|run| at(*run).count() > 1);
    let together = several.chain(beside.map(|shift| shift.run)).max();
    if let Some(run) = together {
        let here = beside.filter(|shift| shift.run == run);
        let clearest = at(run).map(|(_, shift)| *shift).chain(here);
        let kept = clearest.map(Break::kept).fold(1.0, f64::min);
        watched.discount(rows, run, HALF_LIFE, kept);
    }
    for (variant, shift) in &alone {
        let own = rows.iter().copied().filter(|row| row.variant == *variant);
        watched.discount(&own.collect::<Vec<_>>(), shift.run, HALF_LIFE, shift.kept());
    }
    if let Some(shift) = level {
        watched.discount(rows, shift.run, HALF_LIFE_LEVEL, 1.0);
    }
    let newest = alone.iter().map(|(_, shift)| shift.run).max();
    let of_all = beside.into_iter().chain(level).map(|shift| shift.run).max();
    watched.changed = newest.max(of_all);
    let of_default = beside.map_or(0.0, |shift| -shift.rise);
    watched.drift = level.map_or(of_default, |shift| shift.rise) / std::f64::consts::LN_2;
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

/// The mean of a run in a series: a logarithm, and the variance that the noise of its calls leaves it.
#[derive(Clone, Copy, Debug)]
struct RunMean {
    run: u32,
    value: f64,
    variance: f64,
}

impl RunMean {
    /// Where runs differ by so much more, as a variance.
    fn weight(&self, differ: f64) -> f64 {
        1.0 / (differ + self.variance)
    }
}

/// A weighted mean in the making.
#[derive(Clone, Copy, Debug, Default)]
struct MeanSum {
    weight: f64,
    sum: f64,
}

impl MeanSum {
    fn add(&mut self, value: f64, weight: f64) {
        self.weight += weight;
        self.sum += weight * value;
    }

    fn of_run(self, run: u32) -> RunMean {
        RunMean {
            run,
            value: self.sum / self.weight,
            variance: 1.0 / self.weight,
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

/// What all variants together take beside the default. Its own noise is in all of them.
fn beside_default(
    rows: &[&Evidence],
    contrasts: &BTreeMap<u16, Vec<RunMean>>,
    noises: &BTreeMap<u16, f64>,
    differ: f64,
) -> Vec<RunMean> {
    let mut defaults: BTreeMap<u32, f64> = BTreeMap::new();
    for row in bodies(rows).filter(|row| row.variant == 0) {
        *defaults.entry(row.run).or_default() += 1.0 / variance(row, noises);
    }
    let mut series = together(contrasts.values(), differ);
    for one in &mut series {
        one.variance += defaults.get(&one.run).map_or(0.0, |known| 1.0 / known);
    }
    series
}

/// What calls take, all variants and sizes together.
fn levels(rows: &[&Evidence], noises: &BTreeMap<u16, f64>, differ: f64) -> Vec<RunMean> {
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
    together(times.values().filter(|runs| runs.len() > 1), differ)
}

/// By run the mean of several series, each beside its own mean, where runs differ by so much.
fn together<'a>(series: impl Iterator<Item = &'a Vec<RunMean>>, differ: f64) -> Vec<RunMean> {
    let mut sums: BTreeMap<u32, MeanSum> = BTreeMap::new();
    for series in series {
        let mut all = MeanSum::default();
        for one in series {
            all.add(one.value, one.weight(differ));
        }
        let mean = all.sum / all.weight;
        for one in series {
            let of_run = sums.entry(one.run).or_default();
            of_run.add(one.value - mean, one.weight(differ));
        }
    }
    in_order(sums)
}

/// The variance by which runs differ beside the noise of their calls, by what neighbours do: these know nothing of a
/// shift but for one pair.
fn differ<'a>(series: impl Iterator<Item = &'a [RunMean]>) -> f64 {
    let mut pairs = MeanSum::default();
    for pair in series.flat_map(|series| series.windows(2)) {
        let noise = (pair[0].variance + pair[1].variance) / 2.0;
        let squared = (pair[1].value - pair[0].value).powi(2) / 2.0;
        pairs.add(squared - noise, 1.0 / (noise + RUNS_GUESS.powi(2)));
    }
    let found = pairs.sum / pairs.weight.max(f64::MIN_POSITIVE);
    found.max(RUNS_DIFFER_LEAST.powi(2))
}

/// A shift of a series (a structural break), in logarithms: the first run behind it, by how much values rose, and what
/// runs differ by.
#[derive(Clone, Copy, Debug)]
struct Break {
    run: u32,
    rise: f64,
    noise: f64,
}

impl Break {
    /// What a run before it still counts at the most: as a witness of what is now it is off by the rise beside its own
    /// noise.
    fn kept(self) -> f64 {
        1.0 / (1.0 + (self.rise / self.noise).powi(2))
    }
}

/// Sums over the runs on one side of a cut.
#[derive(Clone, Copy, Debug, Default)]
struct CutSide {
    runs: f64,
    weight: f64,
    sum: f64,
    squares: f64,
}

impl CutSide {
    fn with(self, value: f64, weight: f64) -> CutSide {
        CutSide {
            runs: self.runs + 1.0,
            weight: self.weight + weight,
            sum: self.sum + weight * value,
            squares: self.squares + weight * value * value,
        }
    }

    fn without(self, other: CutSide) -> CutSide {
        CutSide {
            runs: self.runs - other.runs,
            weight: self.weight - other.weight,
            sum: self.sum - other.sum,
            squares: self.squares - other.squares,
        }
    }

    fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    /// Squared distances from the mean, in sum.
    fn scatter(&self) -> f64 {
        (self.squares - self.sum * self.sum / self.weight).max(0.0)
    }

    /// The variance of the mean as these runs alone have it.
    fn own_variance(&self) -> f64 {
        self.scatter() / (self.runs - 1.0) / self.weight
    }
}

/// The clearest shift of a series that stands for itself.
fn shift_alone(series: &[RunMean], least: f64) -> Option<Break> {
    shift(series, differ(std::iter::once(series)), least, WRONG)
}

/// The clearest shift, where chance makes one in fewer than the share `wrong` of such series.
fn shift(series: &[RunMean], differ: f64, least: f64, wrong: f64) -> Option<Break> {
    let n = series.len();
    if n < RUNS_LEAST {
        return None;
    }
    let with = |sum: CutSide, one: &RunMean| sum.with(one.value, one.weight(differ));
    let all = series.iter().fold(CutSide::default(), with);
    let before = series.iter().scan(CutSide::default(), |sum, one| {
        let before = *sum;
        *sum = with(before, one);
        Some(before)
    });
    let freedom = (n - 2) as f64;
    let at = |(cut, older): (usize, CutSide)| {
        let newer = all.without(older);
        let squares = (older.scatter() + newer.scatter()) / freedom;
        let pooled = squares * (1.0 / older.weight + 1.0 / newer.weight);
        // A few wild runs on one side are no shift: either side's own spread counts, too.
        let own = older.own_variance() + newer.own_variance();
        let found = Break {
            run: series[cut].run,
            rise: newer.mean() - older.mean(),
            noise: (squares * n as f64 / all.weight).sqrt().max(ERROR_LEAST),
        };
        let error = pooled.max(own).sqrt().max(ERROR_LEAST);
        (found.rise.abs() / error, found)
    };
    let n_cuts = n + 1 - 2 * SIDE_LEAST;
    let cuts = before.enumerate().skip(SIDE_LEAST).take(n_cuts);
    let (errors, found) = cuts.map(at).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let is_shift = found.rise.abs() > least && n_cuts as f64 * chance(errors, freedom) < wrong;
    is_shift.then_some(found)
}

/// How likely chance makes a difference of so many standard errors or more, to either side.
fn chance(errors: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom).ok();
    let student = student.filter(|_| errors.is_finite());
    student.map_or(1.0, |student| 2.0 * student.sf(errors))
}
