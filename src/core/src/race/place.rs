//! Where samples stand in the loop that a program goes round.
//!
//! A solver calls a cell twice an iteration: once behind its compute, once straight after. Mixed, the two look like
//! noise far beyond what arms differ by. A call's number modulo the calls of an iteration says which of them it is,
//! before any arm is drawn. What calls of a place take and are followed by beside those of all places is learned from
//! earlier windows alone, so no sample has a part in what it is corrected by.

use super::sample::Sample;

/// The longest loop that is looked for, in calls of the cell.
const LONGEST: usize = 8;
/// Places of the loops of 2 to [`LONGEST`] calls, behind each other.
const PLACES: usize = LONGEST * (LONGEST + 1) / 2 - 1;
/// What was learned counts that much less with each further window.
const KEPT: f64 = 0.95;
/// What another loop leaves of the squares that the present one does, of times and of shifts together, at the most.
const LEAVES: f64 = 0.8;
/// The shortest loop is taken that leaves hardly more than the best.
const HARDLY_MORE: f64 = 1.1;
/// So much a sample is worth that says a place is as all are.
const PRIOR: f64 = 2.0;

/// A number for times and one for shifts.
type Both = [f64; 2];

/// What is known of loops of every length.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// By place, weights and sums of what its samples were off by from their windows' means.
    weights: [Both; PLACES],
    sums: [Both; PLACES],
    /// By length, from 1, the squares that it leaves of samples that came later.
    left: [Both; LONGEST],
    /// The one that tells most; 1 where none tells enough.
    length: usize,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            weights: [[0.0; 2]; PLACES],
            sums: [[0.0; 2]; PLACES],
            left: [[0.0; 2]; LONGEST],
            length: 1,
        }
    }
}

/// Where a call stands in a loop of `length`, among [`PLACES`]; `None` in one of 1.
fn place(call: u64, length: usize) -> Option<usize> {
    (length > 1).then(|| length * (length - 1) / 2 - 1 + (call % length as u64) as usize)
}

impl Places {
    /// Takes another length where it tells much more than the present one.
    fn choose(&mut self) -> bool {
        let left = |length: usize| -> f64 {
            let shares = self.left[length - 1].iter().zip(&self.left[0]);
            shares
                .map(|(left, all)| if *all > 0.0 { left / all } else { 1.0 })
                .sum()
        };
        let least = (1..=LONGEST).map(left).fold(f64::INFINITY, f64::min);
        let shortest = (1..=LONGEST).find(|&length| left(length) <= HARDLY_MORE * least);
        match shortest.filter(|_| least < LEAVES * left(self.length)) {
            Some(length) => {
                self.length = length;
                true
            }
            None => false,
        }
    }

    /// What a call takes, and what follows it, beyond the mean over all places in a loop of `length`; in ns.
    fn beyond(&self, call: u64, length: usize) -> Both {
        let Some(place) = place(call, length) else {
            return [0.0; 2];
        };
        let (weights, sums) = (self.weights[place], self.sums[place]);
        [0, 1].map(|of| sums[of] / (weights[of] + PRIOR))
    }

    /// A sample as it were at a place like all.
    pub fn corrected(&self, sample: &Sample) -> Sample {
        let [time, shift] = self.beyond(sample.call, self.length);
        Sample {
            time_ns: sample.time_ns - time,
            shift_ns: sample.shift_ns.map(|own| own - shift),
            ..*sample
        }
    }

    /// Learns from the samples of a window but for stalls; whether it corrects by another loop from now on.
    pub fn learn<'a>(&mut self, window: impl Iterator<Item = &'a Sample> + Clone) -> bool {
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        for sample in window.clone() {
            for (of, value) in values(sample) {
                sums[of] += value;
                counts[of] += 1.0;
            }
        }
        let all = self.weights.iter_mut().chain(&mut self.sums);
        for number in all.chain(&mut self.left).flatten() {
            *number *= KEPT;
        }
        let away = |sample: &'a Sample| {
            values(sample).map(move |(of, value)| (of, value - sums[of] / counts[of]))
        };
        for sample in window.clone() {
            for length in 1..=LONGEST {
                let expected = self.beyond(sample.call, length);
                for (of, away) in away(sample) {
                    let left = away - expected[of];
                    self.left[length - 1][of] += left * left;
                }
            }
        }
        for sample in window {
            for place in (2..=LONGEST).filter_map(|length| place(sample.call, length)) {
                for (of, away) in away(sample) {
                    self.weights[place][of] += 1.0;
                    self.sums[place][of] += away;
                }
            }
        }
        self.choose()
    }
}

/// What is known of a sample, by its place in [`Both`].
fn values(sample: &Sample) -> impl Iterator<Item = (usize, f64)> {
    let shift = sample.shift_ns.map(|shift| (1, shift));
    [(0, sample.time_ns)].into_iter().chain(shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of 16 samples, every third to fifth call, of a loop of so many calls of which the first takes longer.
    fn learned(length: u64, windows: u64) -> Places {
        let mut places = Places::default();
        let mut call = 0;
        for window in 0..windows {
            let mut one = |k: u64| {
                let dice = crate::select::mix(window, k);
                call += 3 + dice % 3;
                let noise = (dice >> 32) as f64 / f64::from(u32::MAX);
                let first = if call % length == 0 { 30.0 } else { 0.0 };
                Sample {
                    arm: 0,
                    call,
                    time_ns: 20.0 + first + 10.0 * noise,
                    shift_ns: (k != 15).then_some(5.0 + 4.0 * first + 20.0 * noise),
                }
            };
            let samples: Vec<Sample> = (0..16).map(&mut one).collect();
            places.learn(samples.iter());
        }
        places
    }

    #[test]
    fn the_loop_is_found_and_what_its_first_call_takes_more() {
        for length in [2, 3, 5] {
            let places = learned(length, 20);
            assert_eq!(places.length, length as usize);
            let beyond = |call: u64| places.beyond(call, length as usize);
            let (first, second) = (beyond(0), beyond(1));
            assert!(
                (25.0..35.0).contains(&(first[0] - second[0])),
                "{first:?} {second:?}"
            );
            assert!(
                (100.0..140.0).contains(&(first[1] - second[1])),
                "{first:?} {second:?}"
            );
        }
    }

    #[test]
    fn where_no_place_differs_samples_stay_as_they_are() {
        let places = learned(u64::MAX, 40);
        assert_eq!(places.length, 1);
        let sample = Sample {
            call: 3,
            time_ns: 7.0,
            ..Sample::NONE
        };
        assert_eq!(places.corrected(&sample), sample);
        assert_eq!(Places::default().corrected(&sample), sample);
    }
}
