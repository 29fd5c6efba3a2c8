//! What a job's choices gained it, by epochs with them and without them in turns.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An epoch of a communicator's calls with the tuned choices, and one with the library's own beside it: how long either
/// took, with all that the program did between the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairOfEpochs {
    /// The communicator's number.
    pub comm: u64,
    /// The number of the communicator's calls before the pair, and at its end.
    pub began: u64,
    pub ended: u64,
    /// Calls of one epoch.
    pub epoch_calls: u64,
    pub tuned_ns: u64,
    pub default_ns: u64,
}

/// What one rank has seen of pairs, by communicator.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    by_comm: BTreeMap<u64, Sums>,
}

/// Sums over a communicator's pairs.
#[derive(Clone, Copy, Debug)]
struct Sums {
    n: u64,
    /// The calls before the first pair, up to the end of the last one, and of one epoch.
    began: u64,
    ended: u64,
    epoch_calls: u64,
    /// Of how much longer the library's own choices took, and of its square.
    more_ns: i64,
    squares_ns2: u128,
}

/// How many times as fast the program was as it would have been with the library's own choices, with an interval that
/// holds for 95 % of jobs however long they go on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredGain {
    pub gain: f64,
    pub low: f64,
    pub high: f64,
    pub pairs: u64,
}

impl MeasuredGain {
    /// For the person who ran the job.
    pub fn sentence(&self) -> String {
        let MeasuredGain {
            gain,
            low,
            high,
            pairs,
        } = self;
        let says = match (*low > 1.0, *high < 1.0) {
            (true, _) => "the choices made it",
            (_, true) => "the choices made it slower: it was",
            _ => "whether the choices help is within noise: with them it was",
        };
        format!(
            "{says} {gain:.3} [{low:.3}, {high:.3}] times as fast, by {pairs} pairs of epochs with and without them"
        )
    }
}

/// Those of more communicators are not kept: 64 bytes each.
const COMMS_MOST: usize = 1 << 12;
/// Of a communicator with fewer pairs nothing is said.
const PAIRS_LEAST: u64 = 10;
/// One minus the confidence.
const ALPHA: f64 = 0.05;
/// The number of pairs for which the interval is narrowest beside one of a fixed number.
const NARROW_AT: f64 = 100.0;

impl Pairs {
    pub fn add(&mut self, pair: PairOfEpochs) {
        if self.by_comm.len() >= COMMS_MOST && !self.by_comm.contains_key(&pair.comm) {
            return;
        }
        let sums = self.by_comm.entry(pair.comm).or_insert(Sums {
            n: 0,
            began: pair.began,
            ended: 0,
            epoch_calls: pair.epoch_calls.max(1),
            more_ns: 0,
            squares_ns2: 0,
        });
        let [default_ns, tuned_ns] = [pair.default_ns, pair.tuned_ns].map(u64::cast_signed);
        let more_ns = default_ns.saturating_sub(tuned_ns);
        let square = u128::from(more_ns.unsigned_abs()).pow(2);
        sums.n += 1;
        sums.ended = pair.ended;
        sums.more_ns = sums.more_ns.saturating_add(more_ns);
        sums.squares_ns2 = sums.squares_ns2.saturating_add(square);
    }

    /// How many there are.
    pub fn n(&self) -> u64 {
        self.by_comm.values().map(|sums| sums.n).sum()
    }

    /// What they say of a job that took so long; `None` while they are too few.
    ///
    /// A call saves in the mean what epochs differ by. What communicators save adds up: the epochs of one have all that
    /// the program does meanwhile, and those of others are drawn without regard to them. Of calls before a communicator's
    /// first pair and behind its last one nothing is claimed.
    pub fn gain(&self, wall_ns: u64) -> Option<MeasuredGain> {
        let (mut saved_ns, mut squares, mut n) = (0.0, 0.0, 0);
        for sums in self.by_comm.values().filter(|sums| sums.n >= PAIRS_LEAST) {
            let (mean_ns, half_width_ns) = sums.more_per_epoch();
            let epochs = sums.ended.saturating_sub(sums.began) as f64 / sums.epoch_calls as f64;
            saved_ns += mean_ns * epochs;
            squares += (half_width_ns * epochs).powi(2);
            n += sums.n;
        }
        let (gain, half_width) = (
            1.0 + saved_ns / wall_ns as f64,
            squares.sqrt() / wall_ns as f64,
        );
        (n > 0 && wall_ns > 0).then_some(MeasuredGain {
            gain: gain.max(0.0),
            low: (gain - half_width).max(0.0),
            high: (gain + half_width).max(0.0),
            pairs: n,
        })
    }
}

impl Sums {
    /// How much longer the library's own choices take in an epoch, and half the width of its interval, which holds at all
    /// numbers of pairs at once.
    ///
    /// Source: Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas, Annals of Statistics 52 (2024), equation 7 (asymptotic
    ///         confidence sequence).
    fn more_per_epoch(&self) -> (f64, f64) {
        let n = self.n as f64;
        let mean = self.more_ns as f64 / n;
        let variance = (self.squares_ns2 as f64 - n * mean * mean).max(0.0) / (n - 1.0);
        let log = -2.0 * ALPHA.ln();
        let rho2 = (log + log.ln() + 1.0) / NARROW_AT;
        let spread = n * rho2 + 1.0;
        let bound = (2.0 * spread / (n * n * rho2) * (spread.sqrt() / ALPHA).ln()).sqrt();
        (mean, variance.sqrt() * bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::mix;

    /// One of calls that take 1 us, of which there are 1,000 to a pair.
    fn pair(comm: u64, number: u64, [tuned_ns, default_ns]: [u64; 2]) -> PairOfEpochs {
        PairOfEpochs {
            comm,
            began: 1000 * number,
            ended: 1000 * (number + 1),
            epoch_calls: 100,
            tuned_ns,
            default_ns,
        }
    }

    /// About normal, with mean 0 and deviation 1.
    fn noise(seed: u64, index: u64) -> f64 {
        let uniform = |k| mix(seed, 12 * index + k) as f64 / u64::MAX as f64;
        (0..12).map(uniform).sum::<f64>() - 6.0
    }

    #[test]
    fn an_interval_holds_however_long_a_job_goes_on() {
        let (mut missed, jobs) = (0, 400);
        for seed in 0..jobs {
            let mut pairs = Pairs::default();
            let holds = (0..400u64).all(|number| {
                let times = [0, 1].map(|arm| {
                    let mean = [100_000.0, 110_000.0][arm as usize];
                    (mean * (0.2 * noise(seed, 2 * number + arm) - 0.02).exp()) as u64
                });
                pairs.add(pair(1, number, times));
                let found = pairs.gain(1_000_000 * (number + 1));
                found.is_none_or(|found| (found.low..=found.high).contains(&1.1))
            });
            missed += u64::from(!holds);
        }
        // 5 in 100, and what chance adds to 400 jobs.
        assert!(missed * 13 <= jobs, "{missed} of {jobs} at some length");
    }

    #[test]
    fn what_two_communicators_save_adds_up_and_only_where_they_were_seen() {
        let mut pairs = Pairs::default();
        for number in 0..100 {
            pairs.add(pair(1, number, [100_000, 110_000]));
            if number >= 50 {
                pairs.add(pair(2, number, [100_000, 120_000]));
            }
        }
        let found = pairs.gain(100_000_000).unwrap();
        // A tenth over all of the job, and a fifth over its second half.
        assert!(
            (found.gain - 1.2).abs() < 1e-9 && found.pairs == 150,
            "{found:?}"
        );
        assert!((found.high - found.low).abs() < 1e-6, "nothing varies");
        let longer = pairs.gain(200_000_000).unwrap();
        assert!((longer.gain - 1.1).abs() < 1e-9, "{longer:?}");
    }

    #[test]
    fn few_pairs_say_nothing_and_no_time_divides_by_nothing() {
        let mut pairs = Pairs::default();
        for number in 0..PAIRS_LEAST - 1 {
            pairs.add(pair(1, number, [100, 110]));
        }
        assert_eq!(pairs.gain(1000), None);
        pairs.add(pair(1, PAIRS_LEAST, [u64::MAX, 0]));
        pairs.add(pair(1, PAIRS_LEAST, [0, u64::MAX]));
        assert_eq!(pairs.gain(0), None);
        assert!(pairs.gain(1000).is_some_and(|found| found.gain.is_finite()));
        assert_eq!(Pairs::default().gain(0), None);
        (0..COMMS_MOST as u64 + 5).for_each(|comm| pairs.add(pair(comm, 0, [1, 1])));
        assert_eq!(pairs.by_comm.len(), COMMS_MOST);
    }
}
