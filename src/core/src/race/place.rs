//! Where samples stand: in the loop that a program goes round, or in a class of calls.
//!
//! A solver calls a cell twice an iteration: once behind its compute, once straight after. Mixed, the two look like
//! noise far beyond what arms differ by. A call's number modulo the calls of an iteration says which of them it is,
//! before any arm is drawn. So does its class, to which some arms may not apply: those calls run the default, whose
//! time they must not pass for. What calls of a place take and are followed by beside those of all places is learned
//! from earlier windows alone, so no sample has a part in what it is corrected by.

use super::sample::Sample;

/// The longest loop that is looked for, in calls of the cell.
const LONGEST: usize = 8;
/// So many classes are distinguished.
const CLASSES: usize = 4;
/// Places of the classes, and behind them of the loops of 2 to [`LONGEST`] calls.
const PLACES: usize = CLASSES + LONGEST * (LONGEST + 1) / 2 - 1;
/// What was learned counts that much less with each further window.
const KEPT: f64 = 0.95;
/// What another way leaves of the squares that the present one does, of times and of shifts together, at the most.
const LEAVES: f64 = 0.8;
/// The first way is taken that leaves hardly more than the best.
const HARDLY_MORE: f64 = 1.1;
/// So much a sample is worth that says a place is as all are.
const PRIOR: f64 = 2.0;

/// A number for times and one for shifts.
type Both = [f64; 2];

/// Ways to tell places apart: not at all, by class, and from 2 on by loops of so many calls.
const WAYS: usize = LONGEST + 1;
const NOT_AT_ALL: usize = 0;
const BY_CLASS: usize = 1;

/// What is known of places, each way to tell them apart.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The classes that were seen first, in order.
    classes: [Option<u8>; CLASSES],
    /// By place, weights and sums of what its samples were off by from their windows' means.
    weights: [Both; PLACES],
    sums: [Both; PLACES],
    /// By way, the squares that it leaves of samples that came later.
    left: [Both; WAYS],
    /// The way that tells most; none where none tells enough.
    way: usize,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            classes: [None; CLASSES],
            weights: [[0.0; 2]; PLACES],
            sums: [[0.0; 2]; PLACES],
            left: [[0.0; 2]; WAYS],
            way: NOT_AT_ALL,
        }
    }
}

impl Places {
    /// Where a sample stands among [`PLACES`]; `None` where it is not distinguished.
    fn place(&self, sample: &Sample, way: usize) -> Option<usize> {
        match way {
            NOT_AT_ALL => None,
            BY_CLASS => {
                let mut known = self.classes.iter();
                known.position(|class| *class == Some(sample.class))
            }
            length => {
                let first = CLASSES + length * (length - 1) / 2 - 1;
                Some(first + (sample.call % length as u64) as usize)
            }
        }
    }

    /// Takes another way where it tells much more than the present one.
    fn choose(&mut self) -> bool {
        let left = |way: usize| -> f64 {
            let shares = self.left[way].iter().zip(&self.left[NOT_AT_ALL]);
            shares
                .map(|(left, all)| if *all > 0.0 { left / all } else { 1.0 })
                .sum()
        };
        let least = (0..WAYS).map(left).fold(f64::INFINITY, f64::min);
        let first = (0..WAYS).find(|&way| left(way) <= HARDLY_MORE * least);
        match first.filter(|_| least < LEAVES * left(self.way)) {
            Some(way) => {
                self.way = way;
                true
            }
            None => false,
        }
    }

    /// What a call takes, and what follows it, beyond the mean over all places; in ns.
    fn beyond(&self, sample: &Sample, way: usize) -> Both {
        let Some(place) = self.place(sample, way) else {
            return [0.0; 2];
        };
        let (weights, sums) = (self.weights[place], self.sums[place]);
        [0, 1].map(|of| sums[of] / (weights[of] + PRIOR))
    }

    /// A sample as it were at a place like all.
    pub fn corrected(&self, sample: &Sample) -> Sample {
        let [time, shift] = self.beyond(sample, self.way);
        Sample {
            time_ns: sample.time_ns - time,
            shift_ns: sample.shift_ns.map(|own| own - shift),
            ..*sample
        }
    }

    /// Learns from the samples of a window but for stalls; whether it corrects another way from now on.
    pub fn learn<'a>(&mut self, window: impl Iterator<Item = &'a Sample> + Clone) -> bool {
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        for sample in window.clone() {
            self.know(sample.class);
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
            for way in 0..WAYS {
                let expected = self.beyond(sample, way);
                for (of, away) in away(sample) {
                    let left = away - expected[of];
                    self.left[way][of] += left * left;
                }
            }
        }
        for sample in window {
            for way in 0..WAYS {
                let Some(place) = self.place(sample, way) else {
                    continue;
                };
                for (of, away) in away(sample) {
                    self.weights[place][of] += 1.0;
                    self.sums[place][of] += away;
                }
            }
        }
        self.choose()
    }

    fn know(&mut self, class: u8) {
        if self.classes.contains(&Some(class)) {
            return;
        }
        if let Some(free) = self.classes.iter_mut().find(|known| known.is_none()) {
            *free = Some(class);
        }
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

    fn at(call: u64, class: u8) -> Sample {
        Sample {
            call,
            class,
            ..Sample::NONE
        }
    }

    /// Windows of 16 samples, every third to fifth call, of a loop of so many calls of which the first takes longer.
    fn learned(length: u64, windows: u64) -> Places {
        learned_of(windows, |call, _| (call % length == 0, 0))
    }

    /// The same of calls that take longer, with their classes, by number and dice.
    fn learned_of(windows: u64, of: impl Fn(u64, u64) -> (bool, u8)) -> Places {
        let mut places = Places::default();
        let mut call = 0;
        for window in 0..windows {
            let mut one = |k: u64| {
                let dice = crate::select::mix(window, k);
                call += 3 + dice % 3;
                let noise = (dice >> 32) as f64 / f64::from(u32::MAX);
                let (is_longer, class) = of(call, dice >> 8);
                let first = if is_longer { 30.0 } else { 0.0 };
                Sample {
                    arm: 0,
                    call,
                    class,
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
            assert_eq!(places.way, length as usize);
            let beyond = |call: u64| places.beyond(&at(call, 0), length as usize);
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
    fn classes_are_told_apart_however_they_follow_each_other_and_rather_than_loops() {
        let by_chance = |_, dice: u64| (dice.is_multiple_of(3), u8::from(dice.is_multiple_of(3)));
        let in_turns = |call: u64, _| (call.is_multiple_of(2), u8::from(call.is_multiple_of(2)));
        for places in [learned_of(20, by_chance), learned_of(20, in_turns)] {
            assert_eq!(places.way, BY_CLASS);
            let [longer, other] = [1, 0].map(|class| places.beyond(&at(0, class), BY_CLASS)[0]);
            assert!((25.0..35.0).contains(&(longer - other)), "{longer} {other}");
            assert_eq!(places.beyond(&at(0, 9), BY_CLASS), [0.0; 2], "never seen");
        }
    }

    #[test]
    fn where_no_place_differs_samples_stay_as_they_are() {
        let places = learned(u64::MAX, 40);
        assert_eq!(places.way, NOT_AT_ALL);
        let sample = Sample {
            call: 3,
            time_ns: 7.0,
            ..Sample::NONE
        };
        assert_eq!(places.corrected(&sample), sample);
        assert_eq!(Places::default().corrected(&sample), sample);
    }
}
