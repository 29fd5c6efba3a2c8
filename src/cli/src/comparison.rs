//! The user's program with and without the tuner: which trials are run, and what their times say.
//!
//! Trials stand in pairs, because what the machine does beside them changes slowly; within a pair a coin decides who
//! is first. The ratio of the whole times is judged on its logarithms, by a mean that one wild pair does not move.

use std::time::Duration;

use colltune_core::account::JobSummary;
use colltune_core::request::Mode;
use colltune_statistics::{Interval, Spread, median, spread, trimmed_mean};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use colltune_launch::trial::{Done, Ended, Trials, Way, interrupted, summary};
use colltune_output::failure::Stopped;

/// With `--until` a comparison has at most so many pairs.
const UNTIL_MOST: usize = 100;
/// Fewer pairs are never clear.
const CLEAR_LEAST: usize = 5;
/// So many times the half width of the interval lie between a clear speed-up and none.
const CLEAR: f64 = 2.5;
/// From so many pairs on, the time in collectives without tuning is taken before, amid and after them.
const PAIRS_TO_ACCOUNT_AGAIN: usize = 4;

/// One trial. Errors: its failure, with its exit code and what it said last.
pub fn tried(trials: &mut Trials, way: Way, how: &str) -> anyhow::Result<Done> {
    let with: Vec<String> = (trials.arms.iter())
        .map(|(name, arm)| format!(", with {name}={arm}"))
        .collect();
    let how = how.to_owned() + &with.concat();
    trials.run(way, &mut || ()).map_err(|ended| match ended {
        Ended::Interrupted(signal) => interrupted(signal),
        Ended::TimedOut(..) => anyhow::Error::new(Stopped {
            message: format!("failed to finish a run {how}: {ended} (--timeout)"),
            code: 124,
        }),
        Ended::NotStarted(error) => error,
        failed => anyhow::anyhow!("finish a run {how}: {failed}"),
    })
}

/// The two sides of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Without,
    With,
}

impl Side {
    /// How a trial of this side runs, if colltune runs in this mode.
    pub const fn way(self, mode: Mode) -> Way {
        match self {
            Side::Without => Way::Bare,
            Side::With => Way::Tuned(mode),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Side::Without => "without colltune",
            Side::With => "with colltune",
        }
    }
}

/// One trial of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The tuner looks where the time goes, which it cannot in the bare program, and runs the default. The whole time
    /// does not count, and the first one warms up what the program reads.
    Account,
    Timed(Side),
}

/// The order of the two trials of one pair after the other, without end.
pub fn orders(seed: u64) -> impl Iterator<Item = [Step; 2]> {
    let mut coin = StdRng::seed_from_u64(seed);
    let order = move || match coin.random::<bool>() {
        true => [Side::With, Side::Without],
        false => [Side::Without, Side::With],
    };
    std::iter::repeat_with(order).map(|order| order.map(Step::Timed))
}

/// The order of the trials of `n_pairs` pairs.
pub fn schedule(n_pairs: usize, seed: u64) -> Vec<Step> {
    let again = n_pairs >= PAIRS_TO_ACCOUNT_AGAIN;
    let mut steps = vec![Step::Account];
    for (pair, order) in orders(seed).take(n_pairs).enumerate() {
        if again && pair == n_pairs / 2 {
            steps.push(Step::Account);
        }
        steps.extend(order);
    }
    if again {
        steps.push(Step::Account);
    }
    steps
}

/// The whole times of one pair, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub first: Side,
    pub without_s: f64,
    pub with_s: f64,
}

/// What the ratio says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Faster,
    Slower,
    /// The interval holds 1.
    NoDifference,
}

/// The findings of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub verdict: Verdict,
    /// The speed-up: the time without over the time with, with its 95 % confidence interval.
    pub ratio: Interval,
    /// The least ratio above 1 that so many pairs of such times show in four of five comparisons.
    pub detectable: f64,
    pub without_s: Spread,
    pub with_s: Spread,
}

impl Comparison {
    /// `None` for no pairs.
    pub fn of(pairs: &[Pair]) -> Option<Comparison> {
        if pairs.is_empty() {
            return None;
        }
        let logs = pairs.iter().map(|pair| (pair.without_s / pair.with_s).ln());
        let found = trimmed_mean(&logs.collect::<Vec<_>>());
        let (low, high) = (found.mean - found.half, found.mean + found.half);
        let side = |time: fn(&Pair) -> f64| spread(&pairs.iter().map(time).collect::<Vec<_>>());
        Some(Comparison {
            verdict: if low > 0.0 {
                Verdict::Faster
            } else if high < 0.0 {
                Verdict::Slower
            } else {
                Verdict::NoDifference
            },
            ratio: Interval {
                low: low.exp(),
                value: found.mean.exp(),
                high: high.exp(),
            },
            detectable: found.detectable.exp(),
            without_s: side(|pair| pair.without_s),
            with_s: side(|pair| pair.with_s),
        })
    }

    /// The ratio so far, as a part of a sentence; empty where so few pairs tell nothing.
    pub fn so_far(&self) -> String {
        let Interval { low, value, high } = self.ratio;
        match high.is_finite() {
            true => {
                format!(
                    ", speed-up so far {value:.3} (95 % confidence interval {low:.3} to {high:.3})"
                )
            }
            false => String::new(),
        }
    }

    /// The finding as a sentence.
    pub fn sentence(&self) -> String {
        let Interval { low, value, high } = self.ratio;
        let known = format!("{value:.3} (95 % confidence interval {low:.3} to {high:.3})");
        match self.verdict {
            Verdict::Faster => {
                format!("With colltune the program is faster: speed-up {known}.")
            }
            Verdict::Slower => {
                format!("With colltune the program is SLOWER: speed-up {known}.")
            }
            Verdict::NoDifference if self.ratio.high.is_infinite() => {
                "One pair of runs tells no difference from noise: no difference can be shown."
                    .to_owned()
            }
            Verdict::NoDifference => format!(
                "No difference can be shown: speed-up {known}.\n\
                 So many runs, as noisy as these, show a difference of {} in four of five comparisons.",
                percent(self.detectable - 1.0)
            ),
        }
    }
}

/// Whether so few pairs show a speed-up beyond doubt, so that others can be left out: 1 is outside of an interval of
/// [`CLEAR`] times the width. Asked after each pair, it takes normal noise for a speed-up in 0.8 % of comparisons.
pub fn is_clear(pairs: &[Pair]) -> bool {
    let ratio = Comparison::of(pairs).map(|found| found.ratio);
    let is_clear =
        |Interval { value, high, .. }: Interval| value.ln() > CLEAR * (high / value).ln();
    pairs.len() >= CLEAR_LEAST && ratio.is_some_and(is_clear)
}

/// How well a ratio is to be known: half the width of its 95 % interval, as a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until(pub f64);

impl Until {
    /// Whether a comparison of so many pairs or rounds goes on.
    pub fn wants_more(self, n: usize, ratio: Option<Interval>) -> bool {
        n < UNTIL_MOST && ratio.is_none_or(|ratio| half_width(ratio) > self.0)
    }

    /// What there is to say of a comparison that ended before.
    pub fn missed(self, n: usize, ratio: Option<Interval>) -> Option<String> {
        let half = ratio.map_or(f64::INFINITY, half_width);
        (half > self.0).then(|| {
            format!(
                "After {n} runs on each side the ratio is known to {}, not to {} (--until).",
                percent(half),
                percent(self.0)
            )
        })
    }
}

fn half_width(ratio: Interval) -> f64 {
    (ratio.high - ratio.low) / (2.0 * ratio.value)
}

/// Where the time of one side's jobs went: medians over its trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Account {
    pub trials: usize,
    /// Mean over the ranks.
    pub collectives_s: f64,
    pub collectives_share: f64,
    pub waiting_share: Option<f64>,
    pub tuned_share: Option<f64>,
    pub beyond_waiting: Option<f64>,
}

impl Account {
    /// `None` where no job left a summary.
    pub fn of(summaries: &[JobSummary]) -> Option<Account> {
        if summaries.is_empty() {
            return None;
        }
        let middle = |number: &dyn Fn(&JobSummary) -> Option<f64>| {
            let told: Vec<f64> = summaries.iter().filter_map(number).collect();
            (!told.is_empty()).then(|| median(&told))
        };
        Some(Account {
            trials: summaries.len(),
            collectives_s: middle(&|one| Some(one.collectives_s.mean))?,
            collectives_share: middle(&|one| Some(summary::collectives_share(one)))?,
            waiting_share: middle(&|one| one.waiting_share),
            tuned_share: middle(&|one| Some(one.tuned_share)),
            beyond_waiting: middle(&|one| Some(summary::beyond_waiting(one))),
        })
    }
}

/// A share as people read it: 31 %, 2.4 %, 0.12 %.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = match percent.abs() {
        size if size >= 10.0 => 0,
        size if size >= 1.0 => 1,
        _ => 2,
    };
    format!("{percent:.digits$} %")
}

/// A time as people read it: 0.213 s, 4.21 s, 2 min 14 s.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{s:.3} s"),
        s if s < 100.0 => format!("{s:.2} s"),
        s => {
            let whole = Duration::from_secs(s.round() as u64);
            let text = humantime::format_duration(whole).to_string();
            let spaced = text.replace('h', " h").replace('m', " min");
            spaced
                .strip_suffix('s')
                .map_or(spaced.clone(), |rest| format!("{rest} s"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(times: &[(f64, f64)]) -> Vec<Pair> {
        let pair = |&(without_s, with_s): &(f64, f64)| Pair {
            first: Side::With,
            without_s,
            with_s,
        };
        times.iter().map(pair).collect()
    }

    #[test]
    fn each_pair_has_both_sides_and_a_coin_decides_who_is_first() {
        for n in [1, 3, 4, 10, 41] {
            let steps = schedule(n, 7);
            assert_eq!(steps, schedule(n, 7), "a seed repeats the order");
            let timed: Vec<Side> = steps
                .iter()
                .filter_map(|step| match step {
                    Step::Timed(side) => Some(*side),
                    Step::Account => None,
                })
                .collect();
            assert_eq!(timed.len(), 2 * n);
            assert!(timed.chunks(2).all(|pair| pair[0] != pair[1]));
            assert_eq!(steps[0], Step::Account);
            let accounts = steps.len() - timed.len();
            assert_eq!(accounts, if n < 4 { 1 } else { 3 });
        }
        let firsts = |seed| {
            let steps = schedule(40, seed);
            let is_with = |step: &&Step| **step == Step::Timed(Side::With);
            let timed = steps.iter().filter(|step| **step != Step::Account);
            timed.step_by(2).filter(is_with).count()
        };
        assert!((8..=32).contains(&firsts(1)) && (8..=32).contains(&firsts(2)));
        assert_ne!(schedule(40, 1), schedule(40, 2));
    }

    #[test]
    fn a_shift_of_all_pairs_is_shown_whatever_the_machine_does_beside_them() {
        // The machine slows down by half during the comparison: unpaired, the times of both sides overlap.
        let drifting: Vec<(f64, f64)> = (0..10)
            .map(|i| {
                let level = 4.0 + 0.2 * f64::from(i);
                (level * (1.05 + 0.002 * f64::from(i % 3)), level)
            })
            .collect();
        let found = Comparison::of(&pairs(&drifting)).unwrap();
        assert_eq!(found.verdict, Verdict::Faster);
        assert!((found.ratio.value - 1.052).abs() < 0.001, "{found:?}");
        assert!(found.sentence().contains("faster"), "{}", found.sentence());
        let swapped: Vec<(f64, f64)> = drifting.iter().map(|&(a, b)| (b, a)).collect();
        let found = Comparison::of(&pairs(&swapped)).unwrap();
        assert_eq!(found.verdict, Verdict::Slower);
        assert!(found.sentence().contains("SLOWER"), "{}", found.sentence());
    }

    /// Who stops at a narrow interval stops a little too often where it is narrow by chance.
    #[test]
    fn a_comparison_that_goes_on_ends_at_a_narrow_interval_that_holds_the_truth() {
        let mut random = StdRng::seed_from_u64(3);
        let mut noise = || (0..12).map(|_| random.random::<f64>() - 0.5).sum::<f64>();
        let until = Until(0.01);
        let (mut held, mut longest) = (0, 0);
        for _ in 0..500 {
            let mut times = Vec::new();
            let wants_more = |times: &[(f64, f64)]| {
                let ratio = Comparison::of(&pairs(times)).map(|found| found.ratio);
                until.wants_more(times.len(), ratio)
            };
            while times.len() < 10 || wants_more(&times) {
                times.push((1.05 + 0.02 * noise(), 1.0));
            }
            let found = Comparison::of(&pairs(&times)).unwrap();
            assert!(half_width(found.ratio) <= 0.01);
            held += usize::from(found.ratio.low <= 1.05 && 1.05 <= found.ratio.high);
            longest = longest.max(times.len());
        }
        assert!(held >= 465, "{held} of 500");
        assert!(longest > 15 && longest < UNTIL_MOST, "{longest}");
        let [wide, narrow] = [0.5, 1.0].map(|low| Interval {
            low,
            value: 1.0,
            high: 2.0 - low,
        });
        assert!(until.wants_more(UNTIL_MOST - 1, Some(wide)) && until.wants_more(1, None));
        assert!(!until.wants_more(UNTIL_MOST, Some(wide)), "not for ever");
        let said = until.missed(UNTIL_MOST, Some(wide)).unwrap();
        assert!(said.contains("known to 50 %, not to 1.0 %"), "{said}");
        assert_eq!(until.missed(9, Some(narrow)), None);
    }

    #[test]
    fn what_is_clear_early_is_no_noise_and_its_interval_holds_the_truth() {
        let mut random = StdRng::seed_from_u64(4);
        let mut noise = || (0..12).map(|_| random.random::<f64>() - 0.5).sum::<f64>();
        let mut compared = |truth: f64| {
            let mut times = Vec::new();
            while times.len() < 10 && !is_clear(&pairs(&times)) {
                times.push((truth * (0.03 * noise()).exp(), 1.0));
            }
            (Comparison::of(&pairs(&times)).unwrap().ratio, times.len())
        };
        let of_noise: Vec<_> = (0..1000).map(|_| compared(1.0)).collect();
        let n_fooled = of_noise.iter().filter(|found| found.1 < 10).count();
        assert!(n_fooled <= 15, "{n_fooled} of 1000");
        let shown: Vec<_> = (0..1000).map(|_| compared(1.12)).collect();
        let held = |found: &&(Interval, usize)| found.0.low <= 1.12 && 1.12 <= found.0.high;
        let n_held = shown.iter().filter(held).count();
        assert!(n_held >= 930, "{n_held} of 1000");
        let n_pairs: usize = shown.iter().map(|found| found.1).sum();
        assert!(n_pairs <= 7000, "{n_pairs} pairs where 10000 were allowed");
        assert!(!is_clear(&pairs(&[(2.0, 1.0); 4])) && is_clear(&pairs(&[(2.0, 1.0); 5])));
        assert!(
            !is_clear(&pairs(&[(1.0, 2.0); 9])),
            "a slowdown is compared in full"
        );
    }

    #[test]
    fn one_wild_run_neither_makes_nor_hides_a_difference() {
        let mut times: Vec<(f64, f64)> = (0..10)
            .map(|i| (1.05 + 0.003 * f64::from(i % 4), 1.0))
            .collect();
        times[6] = (1.05, 3.0);
        assert_eq!(
            Comparison::of(&pairs(&times)).unwrap().verdict,
            Verdict::Faster
        );
        let mut equal: Vec<(f64, f64)> = (0..10)
            .map(|i| {
                (
                    1.0 + 0.01 * (f64::from(i % 3) - 1.0),
                    1.0 + 0.005 * f64::from(i % 2),
                )
            })
            .collect();
        equal[2] = (9.0, 1.0);
        let found = Comparison::of(&pairs(&equal)).unwrap();
        assert_eq!(found.verdict, Verdict::NoDifference, "{found:?}");
    }

    #[test]
    fn equal_times_show_no_difference_and_say_what_could_have_been_seen() {
        let equal: Vec<(f64, f64)> = (0..10)
            .map(|i| (1.0 + 0.02 * (f64::from(i % 5) - 2.0), 1.0))
            .collect();
        let found = Comparison::of(&pairs(&equal)).unwrap();
        assert_eq!(found.verdict, Verdict::NoDifference);
        assert!(
            found.detectable > found.ratio.high && found.detectable < 1.1,
            "{found:?}"
        );
        let sentence = found.sentence();
        assert!(
            sentence.starts_with("No difference can be shown"),
            "{sentence}"
        );
        assert!(
            sentence.contains(&percent(found.detectable - 1.0)),
            "{sentence}"
        );
        let one = Comparison::of(&pairs(&[(2.0, 1.0)])).unwrap();
        assert_eq!(one.verdict, Verdict::NoDifference);
        assert!(
            one.sentence().contains("no difference can be shown"),
            "{}",
            one.sentence()
        );
        assert_eq!(Comparison::of(&[]), None);
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        assert_eq!(
            [0.313, 0.0241, 0.0012].map(percent),
            ["31 %", "2.4 %", "0.12 %"]
        );
        assert_eq!(
            [0.2134, 4.211, 134.4, 3723.0].map(seconds),
            ["0.213 s", "4.21 s", "2 min 14 s", "1 h 2 min 3 s"]
        );
    }
}
