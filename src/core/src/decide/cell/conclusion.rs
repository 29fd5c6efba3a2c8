//! What the ranks conclude together from the samples of a cell.

use crate::account::Cause;
use crate::race::{Finding, Sample, Standing};
use crate::record::CallTimes;
use crate::review::{self, Observed, Progress};
use crate::select::mix;

use super::{Arm, Budget, CellState, Choice, Learning, SETTLED_EARLY_GAP, SETTLED_GAP, chooser_of};
use crate::decide::DEFAULT;
use crate::decide::agreed::Membership;
use crate::decide::hopeless::KnownHopeless;
use crate::decide::times::{LARGEST, OF_REVIEW, SUMS, Words, agreed, class};

impl CellState {
    /// The words of a review: of the time since the first sample, of an arm that is known to be hopeless, and of every
    /// fresh sample.
    pub(in crate::decide) fn tell(&self, now_ns: u64, hopeless: &KnownHopeless, words: &mut Words) {
        words.largest.push(now_ns.saturating_sub(self.first_ns));
        let all = hopeless.all();
        let known = |place: &usize| all.has(self.model_cell, self.arms[*place].variant);
        let last = (0..self.arms.len()).rfind(|place| self.is_untried(*place) && known(place));
        words.largest.push(last.map_or(0, |place| place as u64 + 1));
        for fresh in &self.fresh {
            let (largest, sums) = fresh.words();
            words.largest.extend(largest);
            words.sums.extend(sums);
        }
    }

    /// Whether an arm beside the default and the choice may be drawn, and has not been yet. All ranks see that alike.
    fn is_untried(&self, place: usize) -> bool {
        let explores = matches!(self.learning, Learning::Explore(..));
        let is_other = self.default_arm != Some(place) && self.choice_arm() != Some(place);
        let arm = self.arms.get(place);
        explores && is_other && arm.is_some_and(|arm| arm.weight > 0.0 && arm.seen.samples == 0)
    }

    /// Takes what the words of all ranks say of the fresh samples; `correct` gets the places of this rank's records
    /// of them. There is room for all of them in `window`: threads may have little stack.
    pub(in crate::decide) fn hear(
        &mut self,
        words: &Words,
        members: &Membership,
        window: &mut Vec<Sample>,
        mut correct: impl FnMut(usize, CallTimes),
    ) {
        let samples = words.largest[OF_REVIEW..].chunks_exact(LARGEST);
        let samples = samples.zip(words.sums.chunks_exact(SUMS));
        window.clear();
        for (fresh, (largest, sums)) in self.fresh.drain(..).zip(samples) {
            let times = agreed(largest, sums, members);
            if let Some(record) = fresh.timing.record {
                correct(record, times);
            }
            if let Some(arm) = fresh.arm {
                self.arms[arm].take(&times);
                let class = class(largest);
                window.push(sample((arm, fresh.call, class), &times, sums, members));
            }
        }
        let run = self.choice_arm().or(self.default_arm).unwrap_or(0);
        let race = match &mut self.learning {
            Learning::Nothing => return,
            Learning::Explore(race, _) => race,
            Learning::Exploit(watch) => &mut watch.race,
        };
        race.learn(window, run, self.calls);
    }

    /// Concludes from all ranks' samples which arms are drawn on, what runs otherwise, and how far apart samples are.
    /// `found` gets the cell's place in the model and each variant that turns out to be hopeless.
    pub(in crate::decide) fn conclude(
        &mut self,
        (elapsed_ns, told): (u64, u64),
        budget: Budget,
        found: impl Fn(u32, u16),
    ) -> Choice {
        let told = usize::try_from(told)
            .ok()
            .and_then(|told| told.checked_sub(1));
        let told = told.filter(|&place| self.is_untried(place));
        let progress = Progress {
            calls: self.calls,
            calls_per_sample: self.warmups + 1,
            elapsed_ns,
            budget_ppm: match &self.learning {
                Learning::Exploit(_) => budget.watch_ppm,
                Learning::Nothing | Learning::Explore(..) => budget.explore_ppm,
            },
        };
        match &mut self.learning {
            Learning::Nothing => Choice::Stays,
            Learning::Explore(..) => {
                self.conclude_race(progress, budget, (told, found));
                Choice::Stays
            }
            Learning::Exploit(watch) => {
                let allowed_ns = progress.allowed_per_call_ns();
                if watch.judge(progress.calls_per_sample, allowed_ns) != Finding::Slower {
                    return Choice::Stays;
                }
                self.best = DEFAULT;
                self.left_out.add(Cause::Demoted);
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

    /// Drops what these samples say is hopeless, and the arm that a rank reported as hopeless elsewhere.
    fn conclude_race(
        &mut self,
        progress: Progress,
        budget: Budget,
        (told, found): (Option<usize>, impl Fn(u32, u16)),
    ) {
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
            let arm = &self.arms[place];
            // Each review finds it again.
            if place != control && arm.weight > 0.0 {
                found(self.model_cell, arm.variant);
            }
        }
        if let Some(told) = told {
            race.drop_arm(told);
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
        if verdict.standing == Standing::Settled {
            self.gap_least = self
                .gap_least
                .max(match self.samples < review::LEARNING_SAMPLES {
                    true => SETTLED_EARLY_GAP,
                    false => SETTLED_GAP,
                });
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
    (arm, call, class): (usize, u64, u8),
    times: &CallTimes,
    sums: &[u64],
    members: &Membership,
) -> Sample {
    let mean = |sum: u64| sum as f64 / f64::from(members.layout.n_ranks.max(1));
    Sample {
        arm,
        call,
        class,
        time_ns: mean(sums[0]),
        shift_ns: times.shift_ns.map(|_| mean(sums[1])),
    }
}
