//! Several series over the same runs (panel data), and their newest shift (a structural break).
//!
//! Only a series with runs on both sides of a cut says by how much values rose there: variants that are no longer drawn
//! say nothing of a later cut, and do not hide it. A rise counts where most of the variants that know it rose by more
//! than half of it; fewer that carry it have moved alone, and the others are looked at without them.

use std::collections::{BTreeMap, BTreeSet};

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::cut::{CutSide, CutSides, MeanSum, RunMean};

/// Fewer runs than this show no shift, and on either side there are at least two.
const RUNS_LEAST: usize = 6;
const SIDE_LEAST: usize = 2;
/// What runs differ by beside the noise of their calls: about, by which pairs of them are weighed, and at the least.
const RUNS_GUESS: f64 = 0.1;
const RUNS_DIFFER_LEAST: f64 = 0.03;
/// The least standard error of a shift.
const ERROR_LEAST: f64 = 1e-3;
/// The least part of all weight that knows both sides of a cut: less is what sums are rounded by.
const KNOWN_LEAST: f64 = 1e-9;
/// Sweeps in which means of runs and of series are fitted.
const SWEEPS: usize = 3;
/// Searches in one panel at the most, each for a later shift or without what moved alone.
const ROUNDS_MOST: u32 = 16;

/// Several series, each of one variant.
#[derive(Clone, Debug)]
pub struct PanelData {
    /// In order of runs.
    points: Vec<PanelPoint>,
    /// By series.
    variants: Vec<u16>,
    /// What runs of a series differ by beside the noise of their calls, as a variance.
    differ: f64,
    /// By run the variance that all of its values have in common.
    shared: BTreeMap<u32, f64>,
}

#[derive(Clone, Copy, Debug)]
struct PanelPoint {
    series: usize,
    mean: RunMean,
}

/// What a shift has to be: so large, seen in so many variants, and made by chance in fewer than the share `wrong` of
/// panels.
#[derive(Clone, Copy, Debug)]
pub struct ShiftTest {
    pub rise_least: f64,
    pub variants_least: usize,
    pub wrong: f64,
}

/// A shift, in logarithms: the first run behind it, by how much values rose, and what runs differ by.
#[derive(Clone, Copy, Debug)]
pub struct Break {
    pub run: u32,
    pub rise: f64,
    noise: f64,
}

impl PanelData {
    pub fn new<'a>(
        series: impl IntoIterator<Item = (u16, &'a [RunMean])>,
        differ: f64,
        shared: BTreeMap<u32, f64>,
    ) -> PanelData {
        let mut points: Vec<PanelPoint> = Vec::new();
        let mut variants = Vec::new();
        for (index, (variant, runs)) in series.into_iter().enumerate() {
            variants.push(variant);
            points.extend(runs.iter().map(|mean| PanelPoint {
                series: index,
                mean: *mean,
            }));
        }
        points.sort_by_key(|point| point.mean.run);
        PanelData {
            points,
            variants,
            differ,
            shared,
        }
    }

    /// The newest shift: what follows the clearest one is searched again.
    pub fn newest_shift(mut self, test: ShiftTest) -> Option<Break> {
        let mut newest = None;
        for round in 1..=ROUNDS_MOST {
            self.leave_out_single_runs();
            // Bonferroni's bound again: the rounds behind the first err in 0.65 times the share that it does.
            let wrong = test.wrong / f64::from(round * round);
            let Some(found) = self.clearest(test.rise_least, wrong) else {
                break;
            };
            let rises = self.rises_of_variants(found.run);
            let moved = rises
                .iter()
                .filter(|(_, rise)| rise.mean() / found.rise > 0.5);
            let moved: BTreeSet<u16> = moved.map(|(variant, _)| *variant).collect();
            if rises.len() >= test.variants_least && 2 * moved.len() > rises.len() {
                newest = Some(found);
                self.points.retain(|point| point.mean.run >= found.run);
            } else {
                let variants = &self.variants;
                self.points
                    .retain(|point| !moved.contains(&variants[point.series]));
            }
        }
        newest
    }

    /// Leaves out series of which a single run is left. Beside its own mean that one is wherever the run was thought to be
    /// before, and would hold the run's mean there.
    fn leave_out_single_runs(&mut self) {
        let mut first = vec![None; self.variants.len()];
        let mut has_several = vec![false; self.variants.len()];
        for one in &self.points {
            let first = *first[one.series].get_or_insert(one.mean.run);
            has_several[one.series] |= one.mean.run != first;
        }
        self.points.retain(|one| has_several[one.series]);
    }

    /// The clearest shift, where chance makes one in fewer than the share `wrong` of such panels.
    fn clearest(&self, rise_least: f64, wrong: f64) -> Option<Break> {
        let joint = self.joint();
        let n = joint.len();
        if n < RUNS_LEAST {
            return None;
        }
        let differ = differ(std::iter::once(joint.as_slice()));
        let all = joint
            .iter()
            .fold(CutSide::default(), |sum, one| sum.with(one, differ));
        let before = joint.iter().scan(CutSide::default(), |sum, one| {
            let before = *sum;
            *sum = before.with(one, differ);
            Some(before)
        });
        let rises = self.rises();
        let points = self.points.iter();
        let all_known: f64 = points.map(|one| self.weight(one)).sum();
        let first = self.points[0].series;
        let is_several = self.points.iter().any(|one| one.series != first);
        let freedom = (n - 2) as f64;
        let at = |(cut, older): (usize, CutSide)| {
            let newer = all.without(older);
            let squares = (older.scatter() + newer.scatter()) / freedom;
            let pooled = squares * (1.0 / older.weight + 1.0 / newer.weight);
            // A few wild runs on one side are no shift: either side's own spread counts, too.
            let own = older.own_variance() + newer.own_variance();
            // What few series know of both sides is no better than these are, however many others a run has.
            let of_series = if is_several {
                1.0 / rises[cut].weight
            } else {
                0.0
            };
            let found = Break {
                run: joint[cut].run,
                rise: rises[cut].mean(),
                noise: (squares * n as f64 / all.weight).sqrt().max(ERROR_LEAST),
            };
            let error = pooled.max(own).max(of_series).sqrt().max(ERROR_LEAST);
            (found.rise.abs() / error, found)
        };
        let n_cuts = n + 1 - 2 * SIDE_LEAST;
        let cuts = before.enumerate().skip(SIDE_LEAST).take(n_cuts);
        let cuts = cuts.filter(|(cut, _)| rises[*cut].weight > KNOWN_LEAST * all_known);
        let (errors, found) = cuts.map(at).max_by(|a, b| a.0.total_cmp(&b.0))?;
        // Nor is it better than the few runs that know it.
        let typical = all.weight / n as f64;
        let noises = joint.iter().map(|one| typical / one.weight(differ));
        let of_runs = found.noise * self.share_of_runs(found.run, noises).sqrt();
        let errors = errors.min(found.rise.abs() / of_runs.max(ERROR_LEAST));
        let is_shift =
            found.rise.abs() > rise_least && n_cuts as f64 * chance(errors, freedom) < wrong;
        is_shift.then_some(found)
    }

    /// By run the mean of all series, each beside its own mean where what runs take is off: a two-way fit.
    fn joint(&self) -> Vec<RunMean> {
        let nothing = |run: &[PanelPoint]| RunMean {
            run: run[0].mean.run,
            value: 0.0,
            variance: 0.0,
        };
        let mut joint: Vec<RunMean> = self.by_run().map(nothing).collect();
        for _ in 0..SWEEPS {
            let mut series = vec![MeanSum::default(); self.variants.len()];
            for (run, joint) in self.by_run().zip(&joint) {
                for one in run {
                    series[one.series].add(one.mean.value - joint.value, self.weight(one));
                }
            }
            let of_run = |run: &[PanelPoint]| {
                let mut sum = MeanSum::default();
                for one in run {
                    let beside = one.mean.value - series[one.series].mean();
                    sum.add(beside, self.weight(one));
                }
                sum.of_run(run[0].mean.run)
            };
            joint = self.by_run().map(of_run).collect();
        }
        for one in &mut joint {
            one.variance += self.shared.get(&one.run).copied().unwrap_or_default();
        }
        joint
    }

    /// By how much values rose at the cut before each run, by the series that know both sides.
    fn rises(&self) -> Vec<MeanSum> {
        let mut sides = self.sides(0);
        let mut all = MeanSum::default();
        let rise = |run: &[PanelPoint]| {
            let before = all;
            for one in run {
                let sides = &mut sides[one.series];
                let known = sides.rise();
                sides.age(&one.mean, self.differ);
                let rise = sides.rise();
                all.weight += rise.weight - known.weight;
                all.sum += rise.sum - known.sum;
            }
            before
        };
        self.by_run().map(rise).collect()
    }

    /// By variant by how much it rose at the cut before a run, of those that know both sides.
    fn rises_of_variants(&self, run: u32) -> BTreeMap<u16, MeanSum> {
        let mut rises: BTreeMap<u16, MeanSum> = BTreeMap::new();
        for (variant, sides) in self.variants.iter().zip(self.sides(run)) {
            let rise = sides.rise();
            if rise.weight > 0.0 {
                let of_variant = rises.entry(*variant).or_default();
                of_variant.weight += rise.weight;
                of_variant.sum += rise.sum;
            }
        }
        rises
    }

    /// The variance of a rise where each run errs as a whole, by `noises` beside the typical one.
    fn share_of_runs(&self, cut: u32, noises: impl Iterator<Item = f64>) -> f64 {
        let sides = self.sides(cut);
        let pull = |one: &PanelPoint| {
            let CutSides { older, newer } = sides[one.series];
            let other = if one.mean.run < cut { newer } else { older };
            self.weight(one) * other.weight / (older.weight + newer.weight)
        };
        let (mut squares, mut both_sides) = (0.0f64, 0.0f64);
        for (run, noise) in self.by_run().zip(noises) {
            let pull: f64 = run.iter().map(pull).sum();
            squares += noise * pull * pull;
            both_sides += pull;
        }
        squares / (both_sides / 2.0).powi(2)
    }

    /// By series what lies before a run and what from there on.
    fn sides(&self, cut: u32) -> Vec<CutSides> {
        let mut sides = vec![CutSides::default(); self.variants.len()];
        for one in &self.points {
            let CutSides { older, newer } = &mut sides[one.series];
            let side = if one.mean.run < cut { older } else { newer };
            *side = side.with(&one.mean, self.differ);
        }
        sides
    }

    fn by_run(&self) -> impl Iterator<Item = &[PanelPoint]> {
        self.points.chunk_by(|a, b| a.mean.run == b.mean.run)
    }

    fn weight(&self, point: &PanelPoint) -> f64 {
        point.mean.weight(self.differ)
    }
}

impl Break {
    /// What a run before it still counts at the most: as a witness of what is now it is off by the rise beside its own
    /// noise.
    pub fn kept(self) -> f64 {
        1.0 / (1.0 + (self.rise / self.noise).powi(2))
    }
}

/// The variance by which runs differ beside the noise of their calls, by what neighbours do: these know nothing of a
/// shift but for one pair.
pub fn differ<'a>(series: impl Iterator<Item = &'a [RunMean]>) -> f64 {
    let mut pairs = MeanSum::default();
    for pair in series.flat_map(|series| series.windows(2)) {
        let noise = (pair[0].variance + pair[1].variance) / 2.0;
        let squared = (pair[1].value - pair[0].value).powi(2) / 2.0;
        pairs.add(squared - noise, 1.0 / (noise + RUNS_GUESS.powi(2)));
    }
    let found = pairs.sum / pairs.weight.max(f64::MIN_POSITIVE);
    found.max(RUNS_DIFFER_LEAST.powi(2))
}

/// How likely chance makes a difference of so many standard errors or more, to either side.
fn chance(errors: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom).ok();
    let student = student.filter(|_| errors.is_finite());
    student.map_or(1.0, |student| 2.0 * student.sf(errors))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Series of so many variants: all of them up to run 10, at which they rise, and the first two alone from there on,
    /// which rise again at run 12.
    fn twice_risen(n_variants: u16) -> Vec<Vec<RunMean>> {
        let mean = |variant: u16, run: u32| RunMean {
            run,
            value: match run {
                0..10 => 0.0,
                10..12 => 1.0,
                _ => 1.5,
            } + [0.01, -0.01, 0.015, -0.02, 0.005]
                [(usize::from(variant) + run as usize) % 5],
            variance: 1e-4,
        };
        let last = |variant: u16| if variant < 2 { 24 } else { 10 };
        (0..n_variants)
            .map(|variant| (0..=last(variant)).map(|run| mean(variant, run)).collect())
            .collect()
    }

    #[test]
    fn series_of_which_a_single_run_is_left_do_not_hide_a_shift_behind_it() {
        for n_variants in [2, 40] {
            let series = twice_risen(n_variants);
            let series = (0..).zip(series.iter().map(Vec::as_slice));
            let panel = PanelData::new(series, RUNS_DIFFER_LEAST.powi(2), BTreeMap::new());
            let found = panel.newest_shift(ShiftTest {
                rise_least: 0.03,
                variants_least: 2,
                wrong: 0.001,
            });
            let found = found.expect("it rose");
            assert_eq!(found.run, 12, "{n_variants} variants: {found:?}");
            assert!(
                (found.rise - 0.5).abs() < 0.03,
                "{n_variants} variants: {found:?}"
            );
        }
    }
}
