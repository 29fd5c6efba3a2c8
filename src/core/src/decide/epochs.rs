//! A job's gain, measured while it runs: now and then a communicator makes an epoch of calls with the library's own
//! choices, and one with the tuned choices beside it. How long either takes, with all that the program does between the
//! calls, is what the choices are worth to the program.
//!
//! The number of a communicator's call alone says what it belongs to, so all members run the same; whose times count
//! decides nothing. Which of a pair comes first is drawn, and so is the distance between pairs, so that no pattern of the
//! program's own stays in step.

use crate::account::PairOfEpochs;
use crate::select::word;

/// Calls of a communicator that an epoch is long.
const EPOCH_CALLS: u64 = 128;
/// Calls before an epoch that run what it runs and count for neither: caches are still the others', and connections that
/// were idle begin slowly.
const LEAD_CALLS: u64 = 16;
/// Calls of a pair that run the library's own choices.
const DEFAULT_CALLS: u64 = EPOCH_CALLS + LEAD_CALLS;
/// The least mean distance of pairs: a sixth of the calls run the library's own choices then.
const GAP_LEAST: u64 = 4 * DEFAULT_CALLS;

/// The epochs of one communicator.
#[derive(Clone, Debug)]
pub(super) struct Epochs {
    /// The number of calls before the one with which the next stage begins.
    pub next: u64,
    /// The same while the tuned choices run; 0 while the library's own do.
    pub tuned_until: u64,
    pub runs_default: bool,
    /// Whether any call so far ran the library's own choice in place of another.
    pub has_replaced: bool,
    stage: Stage,
    comm: u64,
    key: u64,
    /// The mean distance of pairs in calls.
    gap: u64,
    pairs: u64,
    /// The number of calls before the pair.
    pair_began: u64,
    /// When the present epoch began.
    began_ns: u64,
    first_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    BetweenPairs,
    Lead(Place),
    Epoch(Place),
}

/// The place of an epoch in its pair.
#[derive(Clone, Copy, Debug)]
enum Place {
    First,
    Second,
}

impl Epochs {
    pub const NEVER: Epochs = Epochs {
        next: u64::MAX,
        tuned_until: u64::MAX,
        runs_default: false,
        has_replaced: false,
        stage: Stage::BetweenPairs,
        comm: 0,
        key: 0,
        gap: 0,
        pairs: 0,
        pair_began: 0,
        began_ns: 0,
        first_ns: 0,
    };

    /// Those of the communicator with this number behind its first `calls` calls. There are `default_gap` calls for each
    /// that runs the library's own choice.
    pub fn new(comm: u64, key: u64, default_gap: u64, calls: u64) -> Epochs {
        let gap = default_gap.saturating_mul(DEFAULT_CALLS);
        let mut epochs = Epochs {
            comm,
            key,
            gap: gap.max(GAP_LEAST),
            ..Epochs::NEVER
        };
        epochs.wait_for_pair(calls);
        epochs
    }

    /// The next stage begins behind so many calls; the pair that has ended, unless nothing was ever replaced.
    pub fn advance(&mut self, calls: u64, now_ns: u64) -> Option<PairOfEpochs> {
        let epoch_ns = now_ns.saturating_sub(self.began_ns);
        let mut ended = None;
        match self.stage {
            Stage::BetweenPairs => {
                self.runs_default = word(self.key, 2 * self.pairs) & 1 == 0;
                self.stage = Stage::Lead(Place::First);
            }
            Stage::Lead(place) => {
                self.stage = Stage::Epoch(place);
                self.began_ns = now_ns;
                if let Place::First = place {
                    self.pair_began = calls;
                }
            }
            Stage::Epoch(Place::First) => {
                self.first_ns = epoch_ns;
                self.runs_default = !self.runs_default;
                self.stage = Stage::Lead(Place::Second);
            }
            Stage::Epoch(Place::Second) => {
                let (default_ns, tuned_ns) = match self.runs_default {
                    true => (epoch_ns, self.first_ns),
                    false => (self.first_ns, epoch_ns),
                };
                ended = self.has_replaced.then_some(PairOfEpochs {
                    comm: self.comm,
                    began: self.pair_began,
                    ended: calls,
                    epoch_calls: EPOCH_CALLS,
                    tuned_ns,
                    default_ns,
                });
                self.pairs += 1;
                self.wait_for_pair(calls);
                return ended;
            }
        }
        self.stage_ends_at(match self.stage {
            Stage::Lead(_) => calls + LEAD_CALLS,
            _ => calls + EPOCH_CALLS,
        });
        ended
    }

    fn wait_for_pair(&mut self, calls: u64) {
        self.stage = Stage::BetweenPairs;
        self.runs_default = false;
        // Of the distance half is certain.
        let further = word(self.key, 2 * self.pairs + 1) % self.gap;
        self.stage_ends_at(calls.saturating_add(self.gap / 2 + further));
    }

    fn stage_ends_at(&mut self, next: u64) {
        self.next = next;
        self.tuned_until = if self.runs_default { 0 } else { next };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Pairs;
    use crate::select::mix;

    /// Of calls one in so many runs the library's own choice, by default.
    const DEFAULT_GAP: u64 = 100;

    /// Runs calls of which each takes what `takes` says of its number and of whether it runs the library's own choice;
    /// the pairs, how many calls ran that, and the time in all.
    fn run(seed: u64, calls: u64, takes: impl Fn(u64, bool) -> u64) -> (Pairs, u64, u64) {
        let mut epochs = Epochs::new(7, seed, DEFAULT_GAP, 0);
        let (mut pairs, mut default_calls, mut now_ns) = (Pairs::default(), 0, 0);
        for call in 0..calls {
            if call >= epochs.next {
                if let Some(pair) = epochs.advance(call, now_ns) {
                    pairs.add(pair);
                }
                assert!(call < epochs.next, "stages are not empty");
            }
            if epochs.runs_default {
                epochs.has_replaced = true;
                default_calls += 1;
            }
            now_ns += takes(call, epochs.runs_default);
        }
        (pairs, default_calls, now_ns)
    }

    /// A time of some 100 us that varies by half, with a thousandth of stalls.
    fn varying(seed: u64, call: u64) -> u64 {
        let stall = u64::from(mix(seed ^ 1, call).is_multiple_of(1000)) * 2_000_000;
        50_000 + mix(seed, call) % 100_000 + stall
    }

    #[test]
    fn epochs_run_the_librarys_own_choices_in_a_hundredth_of_the_calls() {
        let (pairs, default_calls, _) = run(3, 16_000_000, |_, _| 100);
        let share = default_calls as f64 / 16e6;
        assert!((0.008..0.012).contains(&share), "{share}");
        assert!((1_000..1_300).contains(&pairs.n()), "{}", pairs.n());
    }

    #[test]
    fn a_program_is_told_what_its_choices_gain_and_one_that_gains_nothing_is_told_so() {
        // A program whose calls and computing come in a pattern of 144, as long as an epoch with its lead.
        for period in [1, 7, 144] {
            for (more_ns, gain) in [(0, 1.0), (20_000, 1.2), (5_000, 1.05)] {
                let (mut covered, mut width) = (0, 0.0);
                for seed in 0..40 {
                    let takes = |call, default| {
                        let long = u64::from(call % period == 0) * 30_000;
                        let own = varying(seed, call) - 25_000;
                        let more = if default { more_ns } else { 0 };
                        own + long.min(30_000 / period * period) + more
                    };
                    let (pairs, _, wall_ns) = run(seed, 1_200_000, takes);
                    let found = pairs.gain(wall_ns).expect("there are 80 pairs");
                    let mean_ns = wall_ns as f64 / 1.2e6;
                    // The choices' own time is the mean, but for a hundredth of the calls.
                    let truth = 1.0 + more_ns as f64 / (mean_ns - 0.01 * more_ns as f64);
                    covered += u64::from((found.low..=found.high).contains(&truth));
                    width += found.high - found.low;
                }
                assert!(covered >= 38, "{period}, {gain}: {covered} of 40");
                assert!(width / 40.0 < 0.2, "{period}, {gain}: {}", width / 40.0);
            }
        }
    }

    #[test]
    fn rare_work_outside_and_phases_without_tuned_calls_are_no_gain() {
        let calls = 1_200_000u64;
        for has_phases in [false, true] {
            let mut covered = 0;
            for seed in 0..40 {
                let takes = |call: u64, default| {
                    // A checkpoint takes as long as 100,000 calls; or every other 60,000 calls are of another size.
                    let rare =
                        u64::from(!has_phases && call.is_multiple_of(100_000)) * 10_000_000_000;
                    let is_tuned = !has_phases || (call / 60_000).is_multiple_of(2);
                    let more = if default && is_tuned { 20_000 } else { 0 };
                    varying(seed, call) + rare + more
                };
                let (pairs, _, wall_ns) = run(seed, calls, takes);
                let found = pairs.gain(wall_ns).expect("there are 80 pairs");
                let tuned = if has_phases { calls / 2 } else { calls };
                let truth = 1.0 + 20_000.0 * tuned as f64 / wall_ns as f64;
                covered += u64::from((found.low..=found.high).contains(&truth));
            }
            assert!(covered >= 36, "{has_phases}: {covered} of 40");
        }
    }

    #[test]
    fn what_replaces_nothing_says_nothing() {
        let mut epochs = Epochs::new(7, 1, DEFAULT_GAP, 0);
        for call in 0..400_000 {
            if call >= epochs.next {
                assert_eq!(epochs.advance(call, call), None);
            }
        }
        assert!(epochs.pairs > 20);
    }
}
