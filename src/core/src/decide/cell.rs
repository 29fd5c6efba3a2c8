//! One cell on one communicator: how often it was called, what its next sampled call runs, what was seen of it.

use std::collections::TryReserveError;

use crate::model::CellModel;
use crate::record::CallTimes;
use crate::review::{self, Observed, Progress};
use crate::select::{Chooser, key, word};
use crate::thin::{next_sampled, rehearsals};

use super::DEFAULT;
use super::agreed::{Agreed, Membership};
use super::rules::Rules;

/// A review comes after that many samples at the latest.
pub(super) const FRESH_MAX: usize = 64;

/// How often is drawn anew where what was drawn waits for the review of its first sample; then `default` runs.
const DRAWS: u64 = 4;

/// One cell on one communicator.
#[derive(Clone, Debug)]
pub struct CellState {
    /// Place in the model's cells.
    pub model_cell: u32,
    /// Calls of this cell so far.
    pub(super) calls: u64,
    /// From this call on to the sampled one, calls run what is drawn for that.
    pub(super) next_drawn: u64,
    /// The number of the next sampled call.
    pub(super) next_sample: u64,
    /// The variant that runs when nothing is sampled, by its place in the collective's variants.
    pub(super) best: u16,
    /// What the library's own choice is in this run: DEFAULT, or what was chosen before the job began.
    pub(super) told: u16,
    /// Key of the counter-based random numbers.
    key: u64,
    /// Calls before a sampled one that run its variant.
    rehearsals: u64,
    pub(super) samples: u64,
    gap_least: u64,
    /// Draws a place in `arms`.
    chooser: Chooser,
    arms: Vec<Arm>,
    /// The place of `default` in `arms`.
    default_arm: Option<usize>,
    first_ns: u64,
    /// The least message size of the cell.
    least_bytes: u64,
    /// The samples since the last review.
    fresh: Vec<Fresh>,
}

/// A variant that sampled calls may draw, and what this rank saw of it.
#[derive(Clone, Copy, Debug)]
struct Arm {
    variant: u16,
    /// 0 once it is dropped.
    weight: f64,
    seen: Observed,
    /// Whether a review that knew the default has seen a sample of it.
    judged: bool,
}

/// When a sampled call began and ended on this rank, on its node's clock, and where its record lies, if there is
/// one: that is this rank's affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub start_ns: u64,
    pub end_ns: u64,
    pub record: Option<usize>,
}

/// A sample since the last review.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    arm: Option<usize>,
    timing: Timing,
    /// From its end to this rank's next call; [`UNKNOWN`] until that comes.
    shift_ns: u64,
}

const UNKNOWN: u64 = u64::MAX;
/// Beyond these a call, or what comes behind it, counts as that long: sums over 2^23 ranks stay within a word.
const SPAN_NS_MAX: u64 = 1 << 40;

impl Fresh {
    fn time_ns(&self) -> u64 {
        let Timing {
            start_ns, end_ns, ..
        } = self.timing;
        end_ns.saturating_sub(start_ns).min(SPAN_NS_MAX)
    }

    /// What this rank tells of it: words of which the largest is wanted, and words that are added up.
    fn words(&self) -> ([u64; LARGEST], [u64; SUMS]) {
        let (time_ns, shift_ns) = (self.time_ns(), self.shift_ns);
        let Timing {
            start_ns, end_ns, ..
        } = self.timing;
        let largest = [start_ns, end_ns, !time_ns, time_ns, shift_ns];
        (largest, [time_ns, shift_ns.min(SPAN_NS_MAX)])
    }
}

/// What this rank tells the others in a review, as many words on every rank: of some the largest of all is wanted,
/// of the others the sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    pub largest: Vec<u64>,
    pub sums: Vec<u64>,
}

/// Words of a sample in a review.
const LARGEST: usize = 5;
const SUMS: usize = 2;

impl Words {
    /// Room for those of any review.
    pub(super) fn reserve(&mut self) -> Result<(), TryReserveError> {
        self.largest.try_reserve(2 + LARGEST * FRESH_MAX)?;
        self.sums.try_reserve(SUMS * FRESH_MAX)
    }
}

/// What the words of all ranks say of one sample.
fn agreed(largest: &[u64], sums: &[u64], members: &Membership) -> CallTimes {
    let [
        start_ns,
        end_ns,
        not_shortest_ns,
        slowest_ns,
        longest_shift_ns,
    ] = largest
    else {
        unreachable!("there are so many words of a sample")
    };
    let n_ranks = u64::from(members.layout.n_ranks.max(1));
    CallTimes {
        time_ns: sums[0] / n_ranks,
        shift_ns: (*longest_shift_ns != UNKNOWN).then_some(sums[1] / n_ranks),
        slowest_ns: *slowest_ns,
        work_ns: match members.layout.nodes {
            // Ranks of one node read one clock.
            1 => end_ns.saturating_sub(*start_ns),
            _ => !not_shortest_ns,
        },
    }
}

/// What a call runs by the cell alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub variant: u16,
    pub sampled: bool,
    /// The arm that was drawn.
    pub arm: Option<usize>,
}

impl CellState {
    pub(super) fn new(
        rules: &Rules,
        model_cell: u32,
        membership: Membership,
        agreed: Agreed,
    ) -> Result<CellState, TryReserveError> {
        let entry: &CellModel = &rules.terms.model.cells[model_cell as usize];
        let mut weights = rules.weights(entry, membership, agreed);
        let mut best = rules.best(entry, membership);
        let sampling = !rules.is_forced(entry.cell.collective) && rules.terms.mode.records();
        // One draw per cell and run: the same on every communicator, hence without its number.
        let once = rules.draws_once();
        let key = key(
            rules.terms.seed,
            if once { 0 } else { agreed.id },
            model_cell.into(),
        );
        if once && sampling {
            best = Chooser::new(&weights)
                .draw(|| word(key, 0))
                .unwrap_or(DEFAULT);
            weights = vec![(best, 1.0)];
        }
        let mut arms = Vec::new();
        let mut fresh = Vec::new();
        if sampling {
            arms.try_reserve_exact(weights.len())?;
            fresh.try_reserve_exact(FRESH_MAX)?;
        }
        let rehearsals = rehearsals(weights.len(), entry.cell.bytes.lo);
        if sampling {
            // What there is no choice of, or is run anyway, waits for no review.
            let alone = weights.len() == 1;
            arms.extend(weights.into_iter().map(|(variant, weight)| Arm {
                variant,
                weight,
                seen: Observed::default(),
                judged: alone || variant == best,
            }));
        }
        let first = if sampling { 0 } else { u64::MAX };
        Ok(CellState {
            model_cell,
            calls: 0,
            next_drawn: first,
            next_sample: first,
            best,
            told: rules.told(entry.cell.collective, entry.cell.bytes),
            key,
            rehearsals,
            samples: 0,
            gap_least: 1,
            chooser: chooser_of(&arms),
            default_arm: arms.iter().position(|arm| arm.variant == DEFAULT),
            arms,
            first_ns: 0,
            least_bytes: entry.cell.bytes.lo,
            fresh,
        })
    }

    /// What call `index` runs.
    #[inline(always)]
    pub(super) fn wish(&self, index: u64) -> Wish {
        let sampled = index == self.next_sample;
        if index < self.next_drawn {
            return Wish {
                variant: self.best,
                sampled,
                arm: None,
            };
        }
        // Counts that all ranks share decide.
        let may_be_drawn = |arm: &usize| {
            let Arm { seen, judged, .. } = &self.arms[*arm];
            review::may_be_drawn(seen.samples, *judged)
        };
        let mut draws = (0..DRAWS).filter_map(|turn| {
            let drawn = self
                .chooser
                .draw(|| word(self.key, self.next_sample | turn << 56));
            drawn.map(usize::from)
        });
        let arm = draws.find(may_be_drawn).or(self.default_arm);
        Wish {
            variant: arm.map_or(DEFAULT, |arm| self.arms[arm].variant),
            sampled,
            arm,
        }
    }

    /// The arm that a call counts for which fell back to the library's own choice.
    pub(super) fn default_arm(&self) -> Option<usize> {
        self.default_arm
    }

    /// Takes a sample into account; whether the ranks review the cell now.
    #[inline]
    pub(super) fn add(&mut self, arm: Option<usize>, timing: Timing) -> bool {
        if self.samples == 0 {
            self.first_ns = timing.start_ns;
        }
        self.samples += 1;
        if self.fresh.len() < FRESH_MAX {
            self.fresh.push(Fresh {
                arm,
                timing,
                shift_ns: UNKNOWN,
            });
        }
        if let Some(arm) = arm {
            self.arms[arm].seen.samples += 1;
        }
        review::due(self.samples, self.least_bytes)
    }

    /// Takes how long it was from the end of the last sample to this rank's next call.
    pub(super) fn close_gap(&mut self, shift_ns: u64) {
        if let Some(last) = self.fresh.last_mut() {
            last.shift_ns = shift_ns.min(SPAN_NS_MAX);
        }
    }

    /// Forgets the samples since the last review, where there is nobody to compare them with.
    pub(super) fn forget(&mut self) {
        self.fresh.clear();
    }

    /// Says which call is sampled next, after call `index` was.
    #[inline]
    pub(super) fn plan(&mut self, index: u64, samples_per_cell: u32) {
        self.next_sample = next_sampled(
            self.key,
            index,
            self.rehearsals,
            samples_per_cell,
            self.gap_least,
        );
        self.next_drawn = self.next_sample.saturating_sub(self.rehearsals);
    }

    /// The words of a review: of the time since the first sample, and of every fresh one.
    pub(super) fn tell(&self, now_ns: u64, words: &mut Words) {
        words.largest.push(now_ns.saturating_sub(self.first_ns));
        for fresh in &self.fresh {
            let (largest, sums) = fresh.words();
            words.largest.extend(largest);
            words.sums.extend(sums);
        }
    }

    /// Takes what the words of all ranks say of the fresh samples; `correct` gets the places of this rank's records
    /// of them.
    pub(super) fn hear(
        &mut self,
        words: &Words,
        members: &Membership,
        mut correct: impl FnMut(usize, CallTimes),
    ) {
        let samples = words.largest[2..].chunks_exact(LARGEST);
        let samples = samples.zip(words.sums.chunks_exact(SUMS));
        for (fresh, (largest, sums)) in self.fresh.drain(..).zip(samples) {
            let times = agreed(largest, sums, members);
            if let Some(record) = fresh.timing.record {
                correct(record, times);
            }
            if let Some(arm) = fresh.arm {
                self.arms[arm].take(&times, sums, members);
            }
        }
    }

    /// Concludes from the samples that all ranks have told of: hopeless arms go, and the distance of samples follows
    /// the budget.
    pub(super) fn conclude(&mut self, elapsed_ns: u64, budget_ppm: u64) {
        let observed: Vec<Observed> = self.arms.iter().map(|arm| arm.seen).collect();
        let progress = Progress {
            calls: self.calls,
            calls_per_sample: self.rehearsals + 1,
            elapsed_ns,
            budget_ppm,
        };
        let knows_default = self.default_arm;
        if knows_default.is_none_or(|default| observed[default].samples > 0) {
            for arm in self.arms.iter_mut().filter(|arm| arm.seen.samples > 0) {
                arm.judged = true;
            }
        }
        let verdict = review::review(&observed, self.default_arm, progress);
        for (arm, dropped) in self.arms.iter_mut().zip(verdict.dropped) {
            if dropped && arm.variant != DEFAULT {
                arm.weight = 0.0;
            }
        }
        self.gap_least = verdict.gap_least;
        self.chooser = chooser_of(&self.arms);
    }
}

impl Arm {
    fn take(&mut self, times: &CallTimes, sums: &[u64], members: &Membership) {
        let seen = &mut self.seen;
        let slowest_ns = times.slowest_ns;
        seen.fastest_ns = match seen.time.n {
            0 => slowest_ns,
            _ => seen.fastest_ns.min(slowest_ns),
        };
        seen.total_ns = seen.total_ns.saturating_add(slowest_ns);
        let mean = |sum: u64| sum as f64 / f64::from(members.layout.n_ranks.max(1));
        seen.time.add(mean(sums[0]));
        if times.shift_ns.is_some() {
            seen.cost.add(mean(sums[0]) + mean(sums[1]));
        }
    }
}

fn chooser_of(arms: &[Arm]) -> Chooser {
    let weights = arms.iter().zip(0u16..);
    let weights: Vec<(u16, f64)> = weights.map(|(arm, place)| (place, arm.weight)).collect();
    Chooser::new(&weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two ranks agree on that start and end a call at these times and have these shifts.
    fn told(nodes: u32, [one, other]: [(u64, u64, u64); 2]) -> CallTimes {
        let members = Membership::of((0..2).map(|rank| rank % nodes));
        let words = |(start_ns, end_ns, shift_ns): (u64, u64, u64)| {
            let timing = Timing {
                start_ns,
                end_ns,
                record: None,
            };
            let arm = None;
            Fresh {
                arm,
                timing,
                shift_ns,
            }
            .words()
        };
        let (one, other) = (words(one), words(other));
        let largest: [u64; LARGEST] = std::array::from_fn(|at| one.0[at].max(other.0[at]));
        let sums: [u64; SUMS] = std::array::from_fn(|at| one.1[at] + other.1[at]);
        agreed(&largest, &sums, &members)
    }

    #[test]
    fn ranks_agree_on_means_and_on_what_was_no_waiting() {
        let late = [(100, 900, 50), (700, 1000, 10)];
        let times = CallTimes {
            time_ns: 550,
            shift_ns: Some(30),
            slowest_ns: 800,
            work_ns: 300,
        };
        assert_eq!(
            told(1, late),
            times,
            "from 700, when the last one came, to 1000"
        );
        let shortest = CallTimes {
            work_ns: 250,
            ..times
        };
        let clocks_apart = [(5_000, 5_850, 50), (700, 950, 10)];
        assert_eq!(
            told(2, clocks_apart),
            CallTimes {
                slowest_ns: 850,
                ..shortest
            }
        );
        let one_does_not_know = [(100, 900, UNKNOWN), (700, 1000, 10)];
        let unknown = CallTimes {
            shift_ns: None,
            ..times
        };
        assert_eq!(told(1, one_does_not_know), unknown);
        let (year, most): (u64, u64) = (365 * 86_400_000_000_000, SPAN_NS_MAX);
        let long = told(1, [(0, year, most), (0, year, most)]);
        assert_eq!((long.time_ns, long.shift_ns), (most, Some(most)));
    }
}
