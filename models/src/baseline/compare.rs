//! How the variants of one cell compare, beyond the noise of a shared machine.
//!
//! Model: log time = level of the group + effect of the variant + noise. A group is what makes
//! calls comparable: one run, one message size, one layout. So a cell may mix sizes, node counts
//! and quiet and busy runs without favouring the variant that happened to be drawn in the better
//! ones. Levels are medians and effects are means of the middle half, fitted in turns (as in
//! Tukey's median polish), so a quarter of wild outliers on either side changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::baseline::call::Call;
use crate::baseline::robust::{median, trimmed, winsorized};

/// Effects are beyond doubt when they differ by this many standard errors: one wrong choice in
/// about 40 cells with twenty variants each, if noise were all there is.
pub const DOUBT: f64 = 3.0;
/// Fewer samples than this never replace the default, nor are replaced.
pub const SAMPLES_LEAST: u64 = 8;
/// A gain below this is not worth a change.
const GAIN_LEAST: f64 = 0.01;
const ROUNDS: usize = 30;

/// What the calls of a cell say about one variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    pub samples: u64,
    /// Logarithm of its time on the cell's typical call, in ns.
    pub log_time: f64,
    /// Standard errors of `log_time` as far as it differs from other variants.
    pub error: Errors,
    /// As `log_time`, but with the slow tail up to the 95th percentile counted in.
    pub log_time_tail: f64,
    pub error_tail: f64,
}

/// A standard error towards slower and one towards faster: they differ where runs disagree. A variant that
/// is much faster in some runs is no less surely faster than one that is the same in all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    pub slower: f64,
    pub faster: f64,
}

impl Errors {
    fn each(self, change: impl Fn(f64) -> f64) -> Errors {
        Errors {
            slower: change(self.slower),
            faster: change(self.faster),
        }
    }
}

/// What the calls of a cell say.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// By place in the catalogue; `None` where there are no samples.
    pub effects: Vec<Option<Effect>>,
    /// For each size and layout the logarithm of the time, by place in the catalogue.
    pub points: Vec<Point>,
}

/// One variant's log time at one exact size and layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub bytes: u64,
    pub nodes: u32,
    pub ppn: u32,
    pub variant: u16,
    pub samples: u64,
    pub log_time: f64,
}

impl Comparison {
    pub fn samples(&self) -> u64 {
        self.effects
            .iter()
            .flatten()
            .map(|effect| effect.samples)
            .sum()
    }

    /// Whether variant `a` is faster than `b` beyond doubt.
    pub fn beats(&self, a: usize, b: usize) -> bool {
        let (Some(a), Some(b)) = (self.effects[a], self.effects[b]) else {
            return false;
        };
        let enough = a.samples >= SAMPLES_LEAST && b.samples >= SAMPLES_LEAST;
        let middle =
            a.log_time - b.log_time + DOUBT * a.error.slower.hypot(b.error.faster) < -GAIN_LEAST;
        // A variant that is mostly faster but sometimes terrible is not faster.
        let tail = a.log_time_tail - b.log_time_tail <= a.error_tail.hypot(b.error_tail);
        enough && middle && tail
    }
}

/// Compares the variants of one cell; `n_variants` is the length of the catalogue.
pub fn compare(calls: &[Call], n_variants: usize) -> Comparison {
    let (samples, across_jobs) = grouped(calls);
    let fit = fit(&samples, n_variants);
    let level = median(
        &mut samples
            .iter()
            .map(|sample| fit.levels[sample.group])
            .collect::<Vec<_>>(),
    );
    let effects = (0..n_variants)
        .map(|variant| {
            let mut effect = effect(&samples, &fit, variant, level)?;
            if across_jobs {
                let n_jobs = jobs_of(&samples, variant).max(1) as f64;
                effect.error = effect
                    .error
                    .each(|error| error.max(OTHER_CIRCUMSTANCES / n_jobs));
            }
            Some(effect)
        })
        .collect();
    Comparison {
        effects,
        points: points(calls, &samples, &fit),
    }
}

/// The least error, in logarithms of times, of what was measured in one run that shares nothing with
/// the others. Few runs may agree by chance, so it falls with their number and no faster.
const OTHER_CIRCUMSTANCES: f64 = 0.5;

#[derive(Clone, Copy)]
struct Sample {
    log_time: f64,
    variant: usize,
    group: usize,
    job: u32,
    /// Whether its group holds several variants and so says how they differ.
    telling: bool,
}

/// What a variant is compared with: calls of one job, or of all of them, which the flag says.
fn grouped(calls: &[Call]) -> (Vec<Sample>, bool) {
    // Many sizes with few calls each are binned to a quarter of an octave: over random draws
    // the difference inside a bin falls on all variants alike.
    let sizes: BTreeSet<u64> = calls.iter().map(|call| call.bytes).collect();
    let coarse = sizes.len() > 16 && calls.len() < 50 * sizes.len();
    let size = |bytes: u64| {
        if coarse {
            (4.0 * (bytes as f64 + 1.0).log2()) as u64
        } else {
            bytes
        }
    };
    let group_with = |by_job: bool| {
        let mut numbers = BTreeMap::new();
        for call in calls {
            let key = (
                by_job.then_some(call.job),
                call.nodes,
                call.ppn,
                call.n_ranks,
                size(call.bytes),
            );
            let next = numbers.len();
            numbers.entry(key).or_insert(next);
        }
        let group_of = |call: &Call| {
            numbers[&(
                by_job.then_some(call.job),
                call.nodes,
                call.ppn,
                call.n_ranks,
                size(call.bytes),
            )]
        };
        let mut first_variant = vec![None; numbers.len()];
        let mut telling = vec![false; numbers.len()];
        for call in calls {
            let group = group_of(call);
            telling[group] |= *first_variant[group].get_or_insert(call.variant) != call.variant;
        }
        calls
            .iter()
            .map(|call| {
                let group = group_of(call);
                let (variant, job) = (usize::from(call.variant), call.job);
                Sample {
                    log_time: call.time_ns.ln(),
                    variant,
                    group,
                    job,
                    telling: telling[group],
                }
            })
            .collect::<Vec<_>>()
    };
    let samples = group_with(true);
    // Runs that each forced one variant, or began with one, can only be compared with each other.
    if are_linked(&samples) {
        (samples, false)
    } else {
        (group_with(false), true)
    }
}

/// Whether groups of several variants link all variants to each other that have enough samples to be
/// judged: a variant that shares no group with the others has no place on their scale.
fn are_linked(samples: &[Sample]) -> bool {
    let mut counts = BTreeMap::<usize, u64>::new();
    let mut variants_of = BTreeMap::<usize, BTreeSet<usize>>::new();
    for sample in samples {
        *counts.entry(sample.variant).or_default() += 1;
        let group = variants_of.entry(sample.group).or_default();
        group.insert(sample.variant);
    }
    counts.retain(|_, count| *count >= SAMPLES_LEAST);
    let mut linked = BTreeSet::new();
    linked.extend(counts.keys().next().copied());
    loop {
        let before = linked.len();
        for group in variants_of.values() {
            if !group.is_disjoint(&linked) {
                linked.extend(group);
            }
        }
        if linked.len() == before {
            break;
        }
    }
    let telling = samples.iter().any(|sample| sample.telling);
    telling && counts.keys().all(|variant| linked.contains(variant))
}

/// In how many jobs a variant ran.
fn jobs_of(samples: &[Sample], variant: usize) -> usize {
    let own = samples.iter().filter(|sample| sample.variant == variant);
    own.map(|sample| sample.job).collect::<BTreeSet<_>>().len()
}

struct Fit {
    levels: Vec<f64>,
    effects: Vec<f64>,
    /// Corrects standard errors for the levels that were fitted to the same samples.
    freedom: f64,
}

fn fit(samples: &[Sample], n_variants: usize) -> Fit {
    let n_groups = samples
        .iter()
        .map(|sample| sample.group + 1)
        .max()
        .unwrap_or(0);
    let mut by_group = vec![Vec::new(); n_groups];
    let mut by_variant = vec![Vec::new(); n_variants];
    for (index, sample) in samples.iter().enumerate() {
        by_group[sample.group].push(index);
        if sample.telling {
            by_variant[sample.variant].push(index);
        }
    }
    let mut levels = vec![0.0; n_groups];
    let mut effects = vec![0.0; n_variants];
    let mut values = Vec::new();
    for _ in 0..ROUNDS {
        for (level, group) in levels.iter_mut().zip(&by_group) {
            values.clear();
            values.extend(
                group
                    .iter()
                    .map(|&index| samples[index].log_time - effects[samples[index].variant]),
            );
            *level = median(&mut values);
        }
        let mut change = 0f64;
        for (effect, variant) in effects
            .iter_mut()
            .zip(&by_variant)
            .filter(|(_, variant)| !variant.is_empty())
        {
            values.clear();
            values.extend(
                variant
                    .iter()
                    .map(|&index| samples[index].log_time - levels[samples[index].group]),
            );
            let fitted = trimmed(&mut values, 0.25).mean;
            change = change.max((fitted - *effect).abs());
            *effect = fitted;
        }
        if change < 1e-4 {
            break;
        }
    }
    // A variant without telling samples stands where its own calls put it.
    for variant in (0..n_variants).filter(|&variant| by_variant[variant].is_empty()) {
        let mut values: Vec<f64> = samples
            .iter()
            .filter(|sample| sample.variant == variant)
            .map(|sample| sample.log_time - levels[sample.group])
            .collect();
        effects[variant] = if values.is_empty() {
            0.0
        } else {
            trimmed(&mut values, 0.25).mean
        };
    }
    let telling = samples.iter().filter(|sample| sample.telling).count() as f64;
    let groups = by_group
        .iter()
        .filter(|group| group.iter().any(|&index| samples[index].telling))
        .count() as f64;
    let freedom = if telling > groups + 1.0 {
        (telling / (telling - groups)).sqrt()
    } else {
        10.0
    };
    Fit {
        levels,
        effects,
        freedom,
    }
}

fn effect(samples: &[Sample], fit: &Fit, variant: usize, level: f64) -> Option<Effect> {
    let own: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.variant == variant)
        .collect();
    if own.is_empty() {
        return None;
    }
    let residual =
        |sample: &&Sample| sample.log_time - fit.levels[sample.group] - fit.effects[sample.variant];
    let telling: Vec<&Sample> = own
        .iter()
        .copied()
        .filter(|sample| sample.telling)
        .collect();
    let used = if telling.is_empty() { &own } else { &telling };
    let mut values: Vec<f64> = used.iter().map(residual).collect();
    let middle = trimmed(&mut values, 0.25);
    let tail = winsorized(&mut values, 0.05);
    let mut error = middle.error;
    if used.len() < 2 * SAMPLES_LEAST as usize {
        // A handful of samples may agree by chance: the spread of all variants counts as well.
        let mut all: Vec<f64> = samples.iter().map(|sample| residual(&sample)).collect();
        let pooled = trimmed(&mut all, 0.25);
        error = error.max(pooled.error * (all.len() as f64 / used.len() as f64).sqrt());
    }
    let error = errors_between_jobs(used, residual).each(|between| {
        let mut error = error.max(between) * fit.freedom;
        if telling.is_empty() {
            error = error.max(OTHER_CIRCUMSTANCES); // other runs, other circumstances: nothing tells them apart
        }
        (error * (1.0 + 2.0 / used.len() as f64)).max(1e-3)
    });
    let log_time = level + fit.effects[variant];
    Some(Effect {
        samples: own.len() as u64,
        log_time,
        error,
        log_time_tail: log_time + tail.mean,
        error_tail: tail.error.max(error.slower),
    })
}

/// The standard errors that the runs' disagreement shows: samples of one run share its
/// circumstances and count as less than independent ones. Each is the whole error if the runs on
/// the other side were as far away as those on its own.
fn errors_between_jobs(samples: &[&Sample], residual: impl Fn(&&Sample) -> f64) -> Errors {
    let mut by_job: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for sample in samples {
        by_job.entry(sample.job).or_default().push(residual(sample));
    }
    let (n, n_jobs) = (samples.len() as f64, by_job.len() as f64);
    let mut sums = [0.0; 2];
    for mut values in by_job.into_values() {
        let away = values.len() as f64 / n * trimmed(&mut values, 0.25).mean;
        sums[usize::from(away < 0.0)] += 2.0 * away.powi(2);
    }
    let [slower, faster] = sums.map(|sum| {
        let fair = if n_jobs < 2.0 {
            0.0
        } else {
            n_jobs / (n_jobs - 1.0)
        };
        (sum * fair).sqrt()
    });
    Errors { slower, faster }
}

fn points(calls: &[Call], samples: &[Sample], fit: &Fit) -> Vec<Point> {
    let mut levels: BTreeMap<(u64, u32, u32), Vec<f64>> = BTreeMap::new();
    let mut counts: BTreeMap<(u64, u32, u32, u16), u64> = BTreeMap::new();
    for (call, sample) in calls.iter().zip(samples) {
        // An eighth of an octave is finer than any cell and keeps the regressions small.
        let bytes = if call.bytes < 16 {
            call.bytes
        } else {
            ((8.0 * (call.bytes as f64).log2()).round() / 8.0).exp2() as u64
        };
        levels
            .entry((bytes, call.nodes, call.ppn))
            .or_default()
            .push(fit.levels[sample.group]);
        *counts
            .entry((bytes, call.nodes, call.ppn, call.variant))
            .or_default() += 1;
    }
    let levels: BTreeMap<_, f64> = levels
        .into_iter()
        .map(|(key, mut values)| (key, median(&mut values)))
        .collect();
    counts
        .into_iter()
        .map(|((bytes, nodes, ppn, variant), samples)| {
            let log_time = levels[&(bytes, nodes, ppn)] + fit.effects[usize::from(variant)];
            Point {
                bytes,
                nodes,
                ppn,
                variant,
                samples,
                log_time,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::collective::Collective;
    use colltune_core::select::mix;

    /// A uniform number in (0, 1) for a counter.
    fn uniform(seed: u64, index: u64) -> f64 {
        (mix(seed, index) >> 11) as f64 / (1u64 << 53) as f64 + 1e-12
    }

    /// Calls of three variants with the given relative times in a cell that mixes two sizes and
    /// ten runs of different speed; a tenth of the calls are five times slower.
    fn noisy(seed: u64, times: [f64; 3], per_job: u64) -> Vec<Call> {
        (0..10 * per_job)
            .map(|index| {
                let job = (index / per_job) as u32;
                let variant = (mix(seed, 3 * index) % 3) as u16;
                let large = uniform(seed, 5 * index + 1) < 0.2 + 0.6 * f64::from(job % 2);
                let slow_run = 1.0 + 2.0 * uniform(seed + 9, job.into());
                let noise = (0.2
                    * (-2.0 * uniform(seed, 7 * index + 2).ln()).sqrt()
                    * (std::f64::consts::TAU * uniform(seed, 11 * index + 3)).cos())
                .exp();
                let outlier = if uniform(seed, 13 * index + 4) < 0.1 {
                    5.0
                } else {
                    1.0
                };
                let time_ns = 1e4
                    * times[usize::from(variant)]
                    * if large { 4.0 } else { 1.0 }
                    * slow_run
                    * noise
                    * outlier;
                let bytes = if large { 4096 } else { 1024 };
                Call {
                    collective: Collective::Allreduce,
                    variant,
                    job,
                    bytes,
                    nodes: 2,
                    ppn: 4,
                    n_ranks: 8,
                    time_ns,
                }
            })
            .collect()
    }

    #[test]
    fn a_gain_of_a_tenth_is_taken_in_noise_with_enough_samples() {
        for seed in 0..20 {
            let comparison = compare(&noisy(seed, [1.0, 0.9, 1.05], 200), 3);
            assert!(
                comparison.beats(1, 0),
                "seed {seed}: {:?}",
                comparison.effects
            );
            assert!(!comparison.beats(2, 0) && !comparison.beats(0, 1));
        }
    }

    #[test]
    fn equal_variants_are_hardly_ever_told_apart() {
        let wrong = (0..400u64)
            .map(|seed| compare(&noisy(seed, [1.0, 1.0, 1.0], 30), 3))
            .filter(|comparison| comparison.beats(1, 0) || comparison.beats(2, 0))
            .count();
        assert!(
            wrong <= 4,
            "{wrong} of 400 cells replaced a default that was as good"
        );
    }

    #[test]
    fn runs_in_which_a_variant_is_much_faster_are_no_doubt_about_it() {
        let mut calls = noisy(3, [1.0, 0.7, 1.0], 60);
        let fast = |call: &&mut Call| call.variant == 1 && call.job.is_multiple_of(5);
        let much_faster = |call: &mut Call| call.time_ns /= 100.0;
        calls.iter_mut().filter(fast).for_each(much_faster);
        let comparison = compare(&calls, 3);
        let error = comparison.effects[1].unwrap().error;
        assert!(comparison.beats(1, 0), "{:?}", comparison.effects);
        assert!(error.faster > 2.0 * error.slower, "{error:?}");
        // Where the default is the one that is now and then much faster, that is doubt.
        assert!(!comparison.beats(0, 1) && !comparison.beats(2, 1));
        let swapped = |call: &mut Call| call.variant = [1, 0, 2][usize::from(call.variant)];
        calls.iter_mut().for_each(swapped);
        let comparison = compare(&calls, 3);
        assert!(!comparison.beats(1, 0), "{:?}", comparison.effects);
    }

    #[test]
    fn a_variant_that_is_sometimes_terrible_does_not_win() {
        let calls: Vec<Call> = noisy(3, [1.0, 0.95, 1.0], 200)
            .into_iter()
            .enumerate()
            .map(|(index, call)| {
                let terrible = call.variant == 1 && mix(77, index as u64).is_multiple_of(5);
                Call {
                    time_ns: call.time_ns * if terrible { 30.0 } else { 1.0 },
                    ..call
                }
            })
            .collect();
        assert!(!compare(&calls, 3).beats(1, 0));
    }

    #[test]
    fn few_samples_lone_variants_and_nothing_are_no_proof() {
        let calls: Vec<Call> = noisy(1, [1.0, 0.1, 1.0], 200)
            .into_iter()
            .take(12)
            .collect();
        assert!(!compare(&calls, 3).beats(1, 0));
        let only: Vec<Call> = noisy(1, [1.0, 0.1, 1.0], 50)
            .into_iter()
            .filter(|call| call.variant == 1)
            .collect();
        let comparison = compare(&only, 3);
        assert!(!comparison.beats(1, 0) && comparison.effects[0].is_none());
        assert_eq!(compare(&[], 3).effects, [None; 3]);
    }

    #[test]
    fn runs_that_each_force_one_variant_are_compared_with_caution() {
        let forced = |times| {
            let calls: Vec<Call> = noisy(5, times, 100)
                .into_iter()
                .map(|call| Call {
                    variant: (call.job % 2) as u16,
                    ..call
                })
                .collect();
            compare(&calls, 3)
        };
        assert!(!forced([1.0, 1.0, 1.0]).beats(1, 0));
    }

    #[test]
    fn variants_that_never_ran_in_one_job_with_the_default_are_not_on_its_scale() {
        for seed in 0..20 {
            // Every second run knows the default alone, the others two variants that differ much.
            let calls: Vec<Call> = noisy(seed, [1.0, 1.0, 10.0], 200)
                .into_iter()
                .filter(|call| (call.variant == 0) == call.job.is_multiple_of(2))
                .collect();
            let comparison = compare(&calls, 3);
            assert!(!comparison.beats(1, 0), "seed {seed}");
            assert!(!comparison.beats(0, 1), "seed {seed}");
        }
    }
}
