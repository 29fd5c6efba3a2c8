//! Rare calls that take many times as long as the others, and what they cost.
//!
//! A variant either stalls as often as most do in the same runs (the machine's own hiccups), or it is of the few that
//! provoke stalls: then its rate has a weak separate prior. So one stall of an innocent variant does not ban it. A
//! variant that stalls in 1 % of its calls is not taken for fast, nor is one with too few calls to exclude that.

use statrs::distribution::{ContinuousCDF as _, Normal};
use statrs::function::beta::ln_beta;

use crate::ablation::{Mechanism, has};

/// How likely a variant is one that provokes stalls, as so many among so many: few machines have any, some have many,
/// so it takes little evidence to know which it is.
const PROVOKERS: (f64, f64) = (0.1, 2.5);
/// The prior of a provoker's rate, a Beta distribution.
const RATES: (f64, f64) = (1.5, 75.0);
/// Over these of its own its likelihood is summed, in so many steps.
const OWN_RATES: (f64, f64) = (1e-6, 0.9);
const OWN_STEPS: usize = 64;
/// The expected size of a stall before any was seen, in times of a call of the default, and the least there is.
const SIZE_GUESS: f64 = 100.0;
const SIZE_LEAST: f64 = 1e-6;
/// Calls by which a cell's common rate leans on that of all cells.
const COMMON_PRIOR: f64 = 200.0;
/// Rounds in which rates and which variants provoke stalls are estimated (expectation and maximisation).
const ROUNDS: usize = 50;
/// What a disturbed run is known by: variants with so many calls, so many of them, so many stalls of theirs.
const RUN_CALLS_LEAST: u64 = 10;
const RUN_VARIANTS_LEAST: usize = 4;
const RUN_STALLS_LEAST: u64 = 5;
/// What calls in other cells of a collective count for a variant.
const OTHER_CELLS: f64 = 0.3;

/// Calls, and how many of them stalled, at what cost in times of the default's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    pub calls: f64,
    pub stalls: f64,
    pub excess: f64,
    /// How many of them would have stalled had they done so as often as those of most variants in the same runs.
    /// `exposed` counts the calls of which that is known: those in cells of which a run was disturbed.
    pub expected: f64,
    pub exposed: f64,
}

impl Count {
    pub fn add(&mut self, other: Count, share: f64) {
        self.calls += share * other.calls;
        self.stalls += share * other.stalls;
        self.excess += share * other.excess;
        self.expected += share * other.expected;
        self.exposed += share * other.exposed;
    }
}

/// How often the calls of most variants of a run stalled, where that is often: the median of the rates of those with
/// calls enough. Those that provoke stalls are fewer than half, however often one of them ran. `of` holds calls and
/// stalls by variant.
pub fn disturbed(of: &[(u64, u64)]) -> Option<f64> {
    let enough = || of.iter().filter(|(calls, _)| *calls >= RUN_CALLS_LEAST);
    let mut rates: Vec<f64> = enough()
        .map(|&(calls, stalls)| stalls as f64 / calls as f64)
        .collect();
    let stalls: u64 = enough().map(|(_, stalls)| stalls).sum();
    if rates.len() < RUN_VARIANTS_LEAST || stalls < RUN_STALLS_LEAST {
        return None;
    }
    rates.sort_unstable_by(f64::total_cmp);
    Some(rates[(rates.len() - 1) / 2]).filter(|rate| *rate > 0.0)
}

/// What is believed of one variant's stalls.
#[derive(Clone, Copy, Debug)]
pub struct Stalls {
    /// The probability that it provokes them.
    pub provokes: f64,
    /// Its rate, if so: Beta of these.
    pub rate: (f64, f64),
    /// Logarithm of a stall's size, mean and standard deviation.
    pub size: (f64, f64),
    /// What stalls cost all variants alike, which is part of what its own calls showed.
    pub all_pay: f64,
}

/// What is common to all cells: how often calls stall, how many variants provoke it, how long it takes.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    rate: f64,
    provokers: f64,
    size: f64,
}

impl Common {
    /// `defaults` are among `all`: where the default hardly stalls, others that do provoke it, however many they are.
    pub fn new(all: &[Count], defaults: &[Count]) -> Common {
        let sum_of = |counts: &[Count]| {
            let mut sum = Count::default();
            counts.iter().for_each(|count| sum.add(*count, 1.0));
            sum
        };
        let (sum, of_default) = (sum_of(all), sum_of(defaults));
        let most = match of_default.calls {
            0.0 => 1.0,
            calls => (of_default.stalls + 1.0) / calls,
        };
        let size = if sum.stalls > 0.0 {
            sum.excess / sum.stalls
        } else {
            SIZE_GUESS
        };
        // Those that provoke stalls are few, so the middle variant begins as the common one.
        let mut rates: Vec<f64> = all
            .iter()
            .filter(|count| count.calls >= 1.0)
            .map(|count| count.stalls / count.calls)
            .collect();
        rates.sort_unstable_by(f64::total_cmp);
        let middle = rates
            .get(rates.len().saturating_sub(1) / 2)
            .copied()
            .unwrap_or(0.0);
        let mut common = Common {
            rate: middle.max(0.1 / (sum.calls + 1e3)),
            provokers: PROVOKERS.0 / PROVOKERS.1,
            size,
        };
        for _ in 0..if has(Mechanism::StallRounds) {
            ROUNDS
        } else {
            1
        } {
            let (mut innocent, mut provokers) = (Count::default(), 0.0);
            for count in all {
                let provokes = common.provokes(*count, common.rate);
                innocent.add(*count, 1.0 - provokes);
                provokers += provokes;
            }
            common.rate = ((innocent.stalls + 0.1) / (innocent.calls + 1e3)).min(most);
            common.provokers = (PROVOKERS.0 + provokers) / (PROVOKERS.1 + all.len() as f64);
        }
        common
    }

    /// The probability that so many stalls are the variant's own, where all variants stall at this rate, or as often as
    /// the others do in its runs.
    fn provokes(&self, count: Count, rate: f64) -> f64 {
        // Between the two rates, the one that its own stalls fit best: runs differ, and it ran in some of them only.
        let rate = match count.calls {
            0.0 => rate,
            calls => {
                let around = (count.expected + rate * (calls - count.exposed).max(0.0)) / calls;
                (count.stalls / calls)
                    .clamp(rate.min(around), rate.max(around))
                    .max(1e-9)
            }
        };
        let (stalls, calm) = (count.stalls, (count.calls - count.stalls).max(0.0));
        let own = own_likelihood(stalls, calm, rate);
        let as_all = stalls * rate.ln() + calm * (-rate).ln_1p();
        let odds = (own - as_all).min(500.0).exp() * self.provokers / (1.0 - self.provokers);
        odds / (1.0 + odds)
    }

    /// Of one cell, whose first variant is the default: by variant what is believed, and what stalls cost all of them alike. `others` holds the same
    /// variants' counts in other cells of the collective.
    pub fn of_cell(&self, counts: &[Count], others: &[Count]) -> (Vec<Stalls>, f64) {
        let (mut stalls, mut calls) = (COMMON_PRIOR * self.rate, COMMON_PRIOR);
        for count in counts {
            let innocent = 1.0 - self.provokes(*count, self.rate);
            stalls += innocent * count.stalls;
            calls += innocent * count.calls;
        }
        let default =
            (COMMON_PRIOR * self.rate + counts[0].stalls + 1.0) / (COMMON_PRIOR + counts[0].calls);
        let rate = (stalls / calls).min(default);
        let all_pay = rate * self.size;
        let of = |(own, other): (&Count, &Count)| {
            let mut count = *own;
            count.add(*other, OTHER_CELLS);
            let size = match count.stalls {
                0.0 => (self.size.max(SIZE_LEAST).ln(), 1.0),
                seen => (
                    (count.excess / seen).max(SIZE_LEAST).ln(),
                    (1.0 / (1.0 + seen)).sqrt(),
                ),
            };
            Stalls {
                provokes: self.provokes(count, rate),
                rate: (
                    RATES.0 + count.stalls,
                    RATES.1 + (count.calls - count.stalls).max(0.0),
                ),
                size,
                all_pay,
            }
        };
        (counts.iter().zip(others).map(of).collect(), all_pay)
    }
}

/// The logarithm of the likelihood of so many stalls of a variant that provokes them, beside those that all have at this
/// rate: who stalls less than most provokes nothing.
fn own_likelihood(stalls: f64, calm: f64, rate: f64) -> f64 {
    let (a, b) = RATES;
    if stalls == 0.0 {
        return ln_beta(a, b + calm) - ln_beta(a, b) + calm * (-rate).ln_1p();
    }
    // The integral over the rate of its own, by its logarithm.
    let step = (OWN_RATES.1 / OWN_RATES.0).ln() / OWN_STEPS as f64;
    let terms: Vec<f64> = (0..OWN_STEPS)
        .map(|k| OWN_RATES.0 * ((k as f64 + 0.5) * step).exp())
        .map(|own| {
            let density = a * own.ln() + (b - 1.0) * (-own).ln_1p() - ln_beta(a, b);
            let all = (rate + own).min(1.0 - 1e-9);
            density + stalls * all.ln() + calm * (-all).ln_1p()
        })
        .collect();
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = terms.iter().map(|term| (term - most).exp()).sum();
    most + (sum * step).ln()
}

impl Stalls {
    /// The mean cost, in typical times of a call, beyond what all pay.
    pub fn mean(&self) -> f64 {
        let (mean, deviation) = self.size;
        let rate = self.rate.0 / (self.rate.0 + self.rate.1);
        self.provokes * self.beyond(rate, (mean + deviation * deviation / 2.0).exp())
    }

    /// What that is not above but with this probability: how often it stalls and how long is known as well as the stalls
    /// that were seen tell.
    pub fn at_most(&self, tail: f64) -> f64 {
        if self.provokes <= tail {
            return 0.0;
        }
        let away = Normal::standard().inverse_cdf(1.0 - tail / self.provokes);
        let (size, deviation) = self.size;
        let (stalled, calm) = self.rate;
        let deviation = (1.0 / stalled + deviation * deviation).sqrt();
        self.beyond(stalled / (stalled + calm), (size + away * deviation).exp())
    }

    /// The same where it provokes stalls, so often and of this size.
    pub fn beyond(&self, rate: f64, size: f64) -> f64 {
        (rate * size - self.all_pay).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_disturbed_where_most_of_its_variants_stall_and_not_where_a_few_provoke_it() {
        // Of the solver's sixth job on a machine that other work disturbed.
        let solver = [
            (280, 8),
            (188, 0),
            (21, 0),
            (23, 1),
            (13, 1),
            (220, 2),
            (16, 0),
            (7, 1),
        ];
        assert_eq!(disturbed(&solver), Some(2.0 / 220.0));
        let a_third_provokes = [(60, 0), (60, 2), (60, 0), (60, 3), (60, 0), (60, 0)];
        assert_eq!(disturbed(&a_third_provokes), None);
        let one_that_ran_most = [(400, 9), (12, 0), (12, 0), (12, 0)];
        assert_eq!(disturbed(&one_that_ran_most), None);
    }

    #[test]
    fn stalls_that_all_have_in_a_disturbed_run_are_nobodys_own() {
        let calm = |calls| Count {
            calls,
            ..Count::default()
        };
        let mut all = vec![calm(2000.0); 8];
        // Three of 150 calls in a run in which every fiftieth call stalled.
        let disturbed = Count {
            stalls: 3.0,
            excess: 300.0,
            expected: 3.0,
            exposed: 150.0,
            ..calm(150.0)
        };
        let own = Count {
            expected: 0.0,
            exposed: 0.0,
            ..disturbed
        };
        all.push(disturbed);
        let common = Common::new(&all, &all[..1]);
        assert!(common.provokes(disturbed, common.rate) < 0.2);
        assert!(common.provokes(own, common.rate) > 0.5);
    }

    #[test]
    fn on_a_machine_on_which_all_stall_nobody_provokes_it_and_least_of_all_who_stalls_less() {
        let often = |calls: f64, stalls: f64| Count {
            calls,
            stalls,
            excess: 1500.0 * stalls,
            ..Count::default()
        };
        // Of a broadcast among two ranks beside four compilers.
        let own = [often(2493.0, 10.0), often(2228.0, 1.0), often(704.0, 1.0)];
        let mut all = vec![often(2000.0, 12.0); 20];
        all.extend(own);
        let common = Common::new(&all, &all[..1]);
        let (stalls, all_pay) = common.of_cell(&own, &[Count::default(); 3]);
        assert!((3.0..12.0).contains(&all_pay), "{all_pay}");
        for one in stalls {
            assert!(one.provokes < 0.05 && one.mean() < 0.2, "{one:?}");
        }
    }

    #[test]
    fn the_worst_that_is_stated_of_few_stalls_is_worse_than_their_mean() {
        let stalls = |seen: f64| Stalls {
            provokes: 0.99,
            rate: (1.5 + seen, 75.0 + 250.0),
            size: (5.6, (1.0 / (1.0 + seen)).sqrt()),
            all_pay: 0.0,
        };
        let (few, many) = (stalls(2.5), stalls(200.0));
        assert!(few.at_most(0.025) > 2.5 * few.mean());
        assert!(many.at_most(0.025) < 1.4 * many.mean());
        let innocent = Stalls {
            provokes: 0.02,
            ..few
        };
        assert_eq!(innocent.at_most(0.025), 0.0);
    }
}
