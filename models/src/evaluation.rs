//! What a way to choose would have cost, by calls that were drawn in another way: inverse propensity scoring.
//!
//! A call counts as many times as the target would have run its variant more often than it was drawn. Sums are divided
//! by the sum of these counts, so what could not be drawn in some calls is judged by the others. Runs differ by more than
//! their calls do, so they are what intervals are made of: each is left out once.
//!
//! Source: Horvitz & Thompson, J. Am. Stat. Assoc. 47, 1952; self-normalised as in Hajek 1971; Tukey's jackknife (Ann. Math.
//! Stat. 29, 1958) over runs, of logarithms.

use std::collections::{BTreeMap, BTreeSet};

use statrs::distribution::{ContinuousCDF, StudentsT};

/// One recorded call whose probability is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    pub run: u32,
    pub cell: usize,
    pub variant: u16,
    /// With which the variant was drawn, above 0.
    pub probability: f64,
    pub time_ns: f64,
}

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimated {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// One target in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellEstimate {
    /// Calls of the cell, and to how many equally weighted ones those come that count for the target.
    pub calls: usize,
    pub effective: f64,
    /// Mean time of a call under the target, and its ratio to that under the reference. `None` where fewer than two runs
    /// have calls that count.
    pub time_ns: Option<Estimated>,
    pub ratio: Option<Estimated>,
}

/// One target in all cells together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    pub cells: BTreeMap<usize, CellEstimate>,
    /// Cells with a ratio, their calls, and the ratio of the whole times there.
    pub judged: usize,
    pub calls: usize,
    pub ratio: Option<Estimated>,
}

/// Sums of counts and of counted times, by run.
#[derive(Clone, Debug, Default)]
struct Sums {
    by_run: BTreeMap<u32, (f64, f64)>,
    squares: f64,
}

/// A cell with its calls' sums under the target and under the reference.
struct Pair {
    calls: usize,
    target: Sums,
    reference: Sums,
}

/// Judges a target beside a reference. Both say with which probability they would have run the variant of a trial in
/// its place. These may differ from run to run, as when each is judged by runs that it has not learned from.
pub fn evaluate(
    trials: &[Trial],
    target: impl Fn(&Trial) -> f64,
    reference: impl Fn(&Trial) -> f64,
) -> Evaluation {
    let mut pairs: BTreeMap<usize, Pair> = BTreeMap::new();
    for trial in trials {
        let pair = pairs.entry(trial.cell).or_insert_with(|| Pair {
            calls: 0,
            target: Sums::default(),
            reference: Sums::default(),
        });
        pair.calls += 1;
        pair.target.add(trial, target(trial));
        pair.reference.add(trial, reference(trial));
    }
    let cells: BTreeMap<usize, CellEstimate> = pairs
        .iter()
        .map(|(&cell, pair)| (cell, pair.estimate()))
        .collect();
    let judged: Vec<&Pair> = pairs
        .iter()
        .filter(|(cell, _)| cells[cell].ratio.is_some())
        .map(|(_, pair)| pair)
        .collect();
    Evaluation {
        judged: judged.len(),
        calls: judged.iter().map(|pair| pair.calls).sum(),
        ratio: ratio_of_all(&judged),
        cells,
    }
}

impl Sums {
    fn add(&mut self, trial: &Trial, probability: f64) {
        assert!(trial.probability > 0.0, "its probability is known");
        let count = probability / trial.probability;
        if count > 0.0 {
            let sum = self.by_run.entry(trial.run).or_default();
            *sum = (sum.0 + count, sum.1 + count * trial.time_ns);
            self.squares += count * count;
        }
    }

    /// The logarithm of the mean time without a run; `None` where no other one counts.
    fn ln_mean(&self, without: Option<u32>) -> Option<f64> {
        let others = self.by_run.iter().filter(|(run, _)| Some(**run) != without);
        let (count, time) = others.fold((0.0, 0.0), |all, (_, of)| (all.0 + of.0, all.1 + of.1));
        (count > 0.0 && time > 0.0).then(|| f64::ln(time / count))
    }

    fn effective(&self) -> f64 {
        let sum: f64 = self.by_run.values().map(|(count, _)| count).sum();
        if self.squares > 0.0 {
            sum * sum / self.squares
        } else {
            0.0
        }
    }

    fn runs(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_run.keys().copied()
    }
}

impl Pair {
    fn estimate(&self) -> CellEstimate {
        let Pair {
            calls,
            target,
            reference,
        } = self;
        let both: BTreeSet<u32> = target.runs().chain(reference.runs()).collect();
        let ratio = |without| Some(target.ln_mean(without)? - reference.ln_mean(without)?);
        CellEstimate {
            calls: *calls,
            effective: target.effective(),
            time_ns: jackknife(&target.runs().collect(), |without| target.ln_mean(without)),
            ratio: jackknife(&both, ratio),
        }
    }
}

/// The ratio of whole times, each cell by its number of calls.
fn ratio_of_all(judged: &[&Pair]) -> Option<Estimated> {
    let sums = judged
        .iter()
        .flat_map(|pair| [&pair.target, &pair.reference]);
    let runs: BTreeSet<u32> = sums.flat_map(Sums::runs).collect();
    let whole = |of: fn(&Pair) -> &Sums, without| {
        let time = |pair: &&Pair| Some(pair.calls as f64 * of(pair).ln_mean(without)?.exp());
        let times: Option<Vec<f64>> = judged.iter().map(time).collect();
        times.map(|times| times.iter().sum::<f64>())
    };
    jackknife(&runs, |without| {
        let [target, reference]: [fn(&Pair) -> &Sums; 2] =
            [|pair| &pair.target, |pair| &pair.reference];
        Some((whole(target, without)? / whole(reference, without)?).ln())
    })
}

/// The exponential of a statistic with its interval, from what it is with all runs and without each.
fn jackknife(
    runs: &BTreeSet<u32>,
    statistic: impl Fn(Option<u32>) -> Option<f64>,
) -> Option<Estimated> {
    let whole = statistic(None)?;
    let n = runs.len() as f64;
    let without: Option<Vec<f64>> = runs.iter().map(|&run| statistic(Some(run))).collect();
    let without = without.filter(|all| all.len() > 1)?;
    let mean = without.iter().sum::<f64>() / n;
    let squares: f64 = without.iter().map(|one| (one - mean).powi(2)).sum();
    let deviation = ((n - 1.0) / n * squares).sqrt();
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let reach = student.inverse_cdf(0.975) * deviation;
    Some(Estimated {
        value: whole.exp(),
        low: (whole - reach).exp(),
        high: (whole + reach).exp(),
    })
}
