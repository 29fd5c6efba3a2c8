//! One cell on one communicator: how often it was called, what its next sampled call runs, what was seen of it.

use std::collections::TryReserveError;

use crate::race::{Finding, Race, Sample, Standing};
use crate::record::CallTimes;
use crate::review::{self, Observed, Progress};
use crate::select::{Chooser, key, mix, word};
use crate::settings::Settings;
use crate::thin::{next_sampled, rehearsals};

use super::DEFAULT;
use super::agreed::{Agreed, Membership};
use super::beat::Beat;
use super::rules::Rules;
use super::watch::Watch;

/// A review comes after that many samples at the latest.
pub(super) const FRESH_MAX: usize = 64;

/// How often is drawn anew where what was drawn waits for the review of its first sample; then `default` runs.
const DRAWS: u64 = 4;

/// Samples between two reviews of a cell in which nothing is left to choose from, and the mean distance of its samples.
const REVIEWED_SETTLED: usize = 16;
const SETTLED_GAP: u64 = 64;
/// Of so few arms the first review comes when each may have been sampled.
const FEW_ARMS: u64 = 6;

/// What samples may cost, in millionths of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub explore_ppm: u64,
    pub watch_ppm: u64,
    /// What agreements may cost on all communicators together, and what they have cost the rank that they cost most.
    pub job_ppm: u64,
    pub spent_ppm: u64,
}

/// One cell on one communicator.
#[derive(Clone, Debug)]
pub struct CellState {
    /// Place in the model's cells.
    pub model_cell: u32,
    /// Calls of this cell so far.
    pub(super) calls: u64,
    /// Calls before this one run `best`, and nothing more.
    pub(super) quiet_until: u64,
    /// From this call on to the sampled one, calls run what is drawn for that.
    next_drawn: u64,
    /// The number of the next sampled call.
    pub(super) next_sample: u64,
    /// The arm that is drawn for it.
    next_arm: Option<usize>,
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
    learning: Learning,
    beat: Beat,
    first_ns: u64,
    /// The least message size of the cell.
    least_bytes: u64,
    /// The samples since the last review.
    fresh: Vec<Fresh>,
}

/// What is learned from the samples during the job.
#[derive(Clone, Debug)]
enum Learning {
    Nothing,
    Explore(Race, Standing),
    Exploit(Watch),
}

/// Whether the choice of a cell was left for the default, since it had become slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Stays,
    Demoted,
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
    /// Its number among the cell's calls.
    call: u64,
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
/// Words of the review itself, of which the largest is wanted.
pub(super) const OF_REVIEW: usize = 3;

impl Words {
    /// Room for those of any review.
    pub(super) fn reserve(&mut self) -> Result<(), TryReserveError> {
        self.largest.try_reserve(OF_REVIEW + LARGEST * FRESH_MAX)?;
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
        let entry = rules.terms.cells.cell(model_cell);
        let mut best = rules.best(model_cell, membership);
        let is_forced = rules.is_forced(entry.collective);
        let watch_gap = rules
            .watch_gap(membership)
            .filter(|_| !is_forced && best != DEFAULT);
        let mut weights = match watch_gap {
            Some(_) => vec![(DEFAULT, 0.5), (best, 0.5)],
            None => rules.weights(model_cell, membership, agreed),
        };
        let sampling = watch_gap.is_some() || (!is_forced && rules.terms.mode.records());
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
        let races = sampling && weights.len() > 1;
        if races && !weights.iter().any(|(variant, _)| *variant == DEFAULT) {
            weights.push((DEFAULT, 0.0)); // It is in every contrast.
        }
        let rehearsals = rehearsals(weights.len(), entry.bytes.lo);
        let mut cell = CellState {
            model_cell,
            calls: 0,
            quiet_until: u64::MAX,
            next_drawn: u64::MAX,
            next_sample: u64::MAX,
            next_arm: None,
            best,
            told: rules.told(entry.collective, entry.bytes),
            key,
            rehearsals,
            samples: 0,
            gap_least: 1,
            chooser: Chooser::default(),
            arms: Vec::new(),
            default_arm: None,
            learning: Learning::Nothing,
            beat: Beat::NEVER,
            first_ns: 0,
            least_bytes: entry.bytes.lo,
            fresh: Vec::new(),
        };
        if sampling {
            cell.take_arms(weights)?;
        }
        let control = cell.default_arm.filter(|_| races);
        if let Some(control) = control {
            let shares = cell.arms.iter().map(|arm| arm.weight);
            let race = Race::new(shares, control)?;
            cell.learning = match watch_gap {
                Some(gap) => Learning::Exploit(Watch::new(race, gap)),
                None => Learning::Explore(race, Standing::Open),
            };
        }
        match &cell.learning {
            Learning::Exploit(watch) => {
                cell.next_sample = watch.next_sample(key, 0, rehearsals, 0);
                cell.next_drawn = cell.next_sample - rehearsals;
            }
            Learning::Explore(..) => cell.begin_late(&rules.terms.settings, agreed.spent_ppm),
            Learning::Nothing => {}
        }
        cell.next_arm = cell.drawn();
        if let Some(every_ns) = rules.heed_ns(membership).filter(|_| best != DEFAULT) {
            cell.beat = Beat::new(every_ns, entry.bytes.lo);
        }
        cell.keep_quiet();
        Ok(cell)
    }

    /// Where agreements have cost more than their share before the cell's first call, that is not sampled.
    fn begin_late(&mut self, settings: &Settings, spent_ppm: u64) {
        let budget_ppm = settings.explore_budget_ppm();
        if spent_ppm <= budget_ppm {
            return;
        }
        let gap = review::LEARNING_GAP * (self.rehearsals + 1);
        self.gap_least = review::stretched(gap, spent_ppm, budget_ppm);
        self.plan(0, settings.samples_per_cell);
    }

    /// Behind every change of what happens at which call.
    #[inline]
    fn keep_quiet(&mut self) {
        self.quiet_until = self.next_drawn.min(self.beat.next);
    }

    /// Whether the ranks ask each other at call `index` whether the job was switched off.
    #[inline(always)]
    pub(super) fn heeds_at(&self, index: u64) -> bool {
        index >= self.quiet_until && index >= self.beat.next
    }

    /// How long it has been since they last asked.
    pub(super) fn unheeded_ns(&self, now_ns: u64) -> u64 {
        self.beat.elapsed_ns(now_ns)
    }

    /// They did, at call `index`, and agreed on how long it had been.
    pub(super) fn heed(&mut self, index: u64, elapsed_ns: u64, now_ns: u64) {
        self.beat.plan(index, elapsed_ns, now_ns);
        self.keep_quiet();
    }

    /// The variants that are drawn, from the cell's first call on.
    fn take_arms(&mut self, weights: Vec<(u16, f64)>) -> Result<(), TryReserveError> {
        self.arms.try_reserve_exact(weights.len())?;
        self.fresh.try_reserve_exact(FRESH_MAX)?;
        // What there is no choice of, or is run anyway, waits for no review.
        let alone = weights.len() == 1;
        let best = self.best;
        self.arms
            .extend(weights.into_iter().map(|(variant, weight)| Arm {
                variant,
                weight,
                seen: Observed::default(),
                judged: alone || variant == best,
            }));
        self.default_arm = self.arms.iter().position(|arm| arm.variant == DEFAULT);
        self.chooser = chooser_of(&self.arms);
        (self.next_drawn, self.next_sample) = (0, 0);
        Ok(())
    }

    /// What call `index` runs.
    #[inline(always)]
    pub(super) fn wish(&self, index: u64) -> Wish {
        let sampled = index == self.next_sample;
        if index < self.quiet_until || index < self.next_drawn {
            return Wish {
                variant: self.best,
                sampled,
                arm: None,
            };
        }
        let arm = self.next_arm;
        Wish {
            variant: arm.map_or(DEFAULT, |arm| self.arms[arm].variant),
            sampled,
            arm,
        }
    }

    /// The arm that is drawn for the next sampled call.
    fn drawn(&self) -> Option<usize> {
        if let Learning::Exploit(watch) = &self.learning {
            return Some(watch.arm(self.key, self.samples));
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
        draws.find(may_be_drawn).or(self.default_arm)
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
                call: self.calls,
                timing,
                shift_ns: UNKNOWN,
            });
        }
        if let Some(arm) = arm {
            self.arms[arm].seen.samples += 1;
        }
        match &self.learning {
            Learning::Exploit(_) => Watch::is_due(self.samples),
            Learning::Explore(_, Standing::Settled) => {
                self.fresh.len() >= REVIEWED_SETTLED || review::due(self.samples, self.least_bytes)
            }
            Learning::Explore(_, Standing::Open) | Learning::Nothing => {
                review::due(self.samples, self.least_bytes) || self.has_seen_few()
            }
        }
    }

    /// Whether all of few arms may have been sampled for the first time.
    fn has_seen_few(&self) -> bool {
        let arms = self.arms.len() as u64;
        self.samples == arms + 1 && (2..=FEW_ARMS).contains(&arms)
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
        let (key, rehearsals) = (self.key, self.rehearsals);
        self.next_sample = match &self.learning {
            Learning::Exploit(watch) => watch.next_sample(key, index, rehearsals, self.samples),
            Learning::Nothing | Learning::Explore(..) => {
                next_sampled(key, index, rehearsals, samples_per_cell, self.gap_least)
            }
        };
        self.next_drawn = self.next_sample.saturating_sub(self.rehearsals);
        self.next_arm = self.drawn();
        self.keep_quiet();
    }

    /// Samples nothing more, and runs nothing that could be switched off.
    pub(super) fn end_samples(&mut self) {
        (self.next_drawn, self.next_sample) = (u64::MAX, u64::MAX);
        self.next_arm = None;
        self.beat = Beat::NEVER;
        self.keep_quiet();
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
        let samples = words.largest[OF_REVIEW..].chunks_exact(LARGEST);
        let samples = samples.zip(words.sums.chunks_exact(SUMS));
        let (mut window, mut known) = ([Sample::NONE; FRESH_MAX], 0);
        for (fresh, (largest, sums)) in self.fresh.drain(..).zip(samples) {
            let times = agreed(largest, sums, members);
            if let Some(record) = fresh.timing.record {
                correct(record, times);
            }
            if let Some(arm) = fresh.arm {
                self.arms[arm].take(&times);
                window[known] = sample((arm, fresh.call), &times, sums, members);
                known += 1;
            }
        }
        let run = self.choice_arm().or(self.default_arm).unwrap_or(0);
        let race = match &mut self.learning {
            Learning::Nothing => return,
            Learning::Explore(race, _) => race,
            Learning::Exploit(watch) => &mut watch.race,
        };
        race.learn(&window[..known], run, self.calls);
    }

    /// Concludes from the samples that all ranks have told of: who is drawn on, what runs otherwise, and how far apart
    /// samples are.
    pub(super) fn conclude(&mut self, elapsed_ns: u64, budget: Budget) -> Choice {
        let progress = Progress {
            calls: self.calls,
            calls_per_sample: self.rehearsals + 1,
            elapsed_ns,
            budget_ppm: match &self.learning {
                Learning::Exploit(_) => budget.watch_ppm,
                Learning::Nothing | Learning::Explore(..) => budget.explore_ppm,
            },
        };
        match &mut self.learning {
            Learning::Nothing => Choice::Stays,
            Learning::Explore(..) => {
                self.conclude_race(progress, budget);
                Choice::Stays
            }
            Learning::Exploit(watch) => {
                let allowed_ns = progress.allowed_per_call_ns();
                if watch.judge(progress.calls_per_sample, allowed_ns) != Finding::Slower {
                    return Choice::Stays;
                }
                self.best = DEFAULT;
                self.learning = Learning::Nothing;
                (self.default_arm, self.arms) = (None, Vec::new());
                Choice::Demoted
            }
        }
    }

    /// The place of the choice among the arms.
    fn choice_arm(&self) -> Option<usize> {
        self.arms.iter().position(|arm| arm.variant == self.best)
    }

    fn conclude_race(&mut self, progress: Progress, budget: Budget) {
        let run = self.choice_arm();
        let Learning::Explore(race, standing) = &mut self.learning else {
            return;
        };
        let Some(control) = self.default_arm else {
            return;
        };
        if self.arms[control].seen.samples > 0 {
            for arm in self.arms.iter_mut().filter(|arm| arm.seen.samples > 0) {
                arm.judged = true;
            }
        }
        let observed: Vec<Observed> = self.arms.iter().map(|arm| arm.seen).collect();
        for place in review::hopeless(&observed, control) {
            race.drop_arm(place);
        }
        let verdict = race.judge(run.unwrap_or(control), mix(self.key, self.samples));
        // What the model knows to be best may be none of the arms.
        if run.is_some() || verdict.best != control {
            self.best = self.arms[verdict.best].variant;
        }
        *standing = verdict.standing;
        for (arm, share) in self.arms.iter_mut().zip(race.shares()) {
            arm.weight = share;
        }
        let gap = review::gap_least(verdict.excess_ns as u64, self.samples, progress);
        self.gap_least = review::stretched(gap, budget.spent_ppm, budget.job_ppm);
        if verdict.standing == Standing::Settled && self.samples >= review::LEARNING_SAMPLES {
            self.gap_least = self.gap_least.max(SETTLED_GAP);
        }
        self.chooser = chooser_of(&self.arms);
    }
}

impl Arm {
    fn take(&mut self, times: &CallTimes) {
        let seen = &mut self.seen;
        let slowest_ns = times.slowest_ns;
        seen.fastest_ns = match seen.total_ns {
            0 => slowest_ns,
            _ => seen.fastest_ns.min(slowest_ns),
        };
        seen.total_ns = seen.total_ns.saturating_add(slowest_ns);
    }
}

/// What a race learns from: means over the ranks.
fn sample(
    (arm, call): (usize, u64),
    times: &CallTimes,
    sums: &[u64],
    members: &Membership,
) -> Sample {
    let mean = |sum: u64| sum as f64 / f64::from(members.layout.n_ranks.max(1));
    Sample {
        arm,
        call,
        time_ns: mean(sums[0]),
        shift_ns: times.shift_ns.map(|_| mean(sums[1])),
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
                call: 0,
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
