//! One cell on one communicator: how often it was called, what its next sampled call runs, what was seen of it.

mod conclusion;

use std::collections::TryReserveError;

use crate::account::{Cause, Causes};
use crate::race::{Race, Standing};
use crate::record::Probability;
use crate::review::{self, Observed};
use crate::select::{Chooser, key, word};
use crate::settings::Settings;
use crate::thin::{next_sampled, warmups};

use super::DEFAULT;
use super::agreed::{Agreed, Membership};
use super::decision::Chosen;
use super::hopeless::Hopeless;
use super::rules::Rules;
use super::times::{FRESH_MAX, Fresh, GapPart, SPAN_NS_MAX, Timing, UNKNOWN};
use super::watch::Watch;

/// How often is drawn anew where what was drawn waits for the review of its first sample; then `default` runs.
const DRAWS: u64 = 4;

/// Samples between two reviews of a cell in which nothing is left to choose from, and the mean distance of its samples.
const REVIEWED_SETTLED: usize = 16;
const SETTLED_GAP: u64 = 64;
/// The latter while few samples say that nothing is left.
const SETTLED_EARLY_GAP: u64 = 24;
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
    /// Calls before this one run `best`, and nothing more; from it on to the sampled one, what is drawn for that.
    pub(super) quiet_until: u64,
    /// The number of the next sampled call.
    pub(super) next_sample: u64,
    /// The arm that is drawn for it.
    next_arm: Option<usize>,
    /// The variant that runs when nothing is sampled, by its place in the collective's variants.
    pub(super) best: u16,
    /// What the library's own choice is in this run: DEFAULT, or what was chosen before the job began.
    pub(super) told: u16,
    /// What is left out of its draws and choice, or was at some time, and why.
    pub(super) left_out: Causes,
    /// Key of the counter-based random numbers.
    key: u64,
    /// With which what runs was drawn, where that was once for the whole run.
    drawn_once: Option<Probability>,
    /// Calls before a sampled one that run its variant.
    warmups: u64,
    pub(super) samples: u64,
    gap_least: u64,
    /// Draws a place in `arms`.
    chooser: Chooser,
    arms: Vec<Arm>,
    /// The place of `default` in `arms`.
    default_arm: Option<usize>,
    learning: Learning,
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

/// What a review makes of a cell's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Stays,
    /// It was left for the default, since it had become slower.
    Demoted,
    /// The job was switched off: the whole communicator runs `default`.
    SwitchedOff,
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
        (agreed, hopeless): (Agreed, &Hopeless),
    ) -> Result<CellState, TryReserveError> {
        let entry = rules.terms.cells.cell(model_cell);
        let mut left_out = Causes::default();
        let mut best = rules
            .chosen(model_cell, membership)
            .unwrap_or_else(|cause| {
                left_out.add(cause);
                DEFAULT
            });
        if best != DEFAULT {
            let cause = agreed.rules_out(rules.variant(entry.collective, best));
            cause.into_iter().for_each(|cause| left_out.add(cause));
        }
        let is_forced = rules.is_forced(entry.collective);
        let watch_gap = rules
            .watch_gap(membership)
            .filter(|_| !is_forced && best != DEFAULT);
        let explores = !is_forced && rules.terms.mode.records();
        let mut of_draws = Causes::default();
        let mut weights = match watch_gap {
            Some(_) => vec![(DEFAULT, 0.5), (best, 0.5)],
            None => rules.weights(model_cell, membership, agreed, &mut of_draws),
        };
        if explores {
            of_draws.iter().for_each(|cause| left_out.add(cause));
        }
        let sampling = watch_gap.is_some() || explores;
        // One draw per cell and run: the same on every communicator, hence without its number.
        let once = rules.draws_once();
        let key = key(
            rules.terms.seed,
            if once { 0 } else { agreed.id },
            model_cell.into(),
        );
        let mut drawn_once = None;
        if once && sampling {
            let chooser = Chooser::new(&weights);
            best = chooser.draw(|| word(key, 0)).unwrap_or(DEFAULT);
            let own = chooser.shares().find(|(variant, _)| *variant == best);
            drawn_once = Probability::of_parts(own.map_or(1 << 32, |(_, share)| share));
            weights = vec![(best, 1.0)];
        }
        let as_published = rules.draws_as_published();
        let races = sampling && weights.len() > 1 && !as_published;
        if races && !weights.iter().any(|(variant, _)| *variant == DEFAULT) {
            weights.push((DEFAULT, 0.0)); // It is in every contrast.
        }
        if races && watch_gap.is_none() {
            // Where the default alone is left it races alone, which is settled at the first review.
            let is_kept = |variant| [DEFAULT, best].contains(&variant);
            let is_hopeless = |variant| !is_kept(variant) && hopeless.has(model_cell, variant);
            if weights.iter().any(|(variant, _)| is_hopeless(*variant)) {
                left_out.add(Cause::Hopeless);
            }
            weights.retain(|(variant, _)| !is_hopeless(*variant));
        }
        let warmups = match as_published {
            true => 0,
            false => warmups(weights.len(), entry.bytes.lo),
        };
        let mut cell = CellState {
            model_cell,
            calls: 0,
            quiet_until: u64::MAX,
            next_sample: u64::MAX,
            next_arm: None,
            best,
            told: rules.told(entry.collective, entry.bytes),
            left_out,
            key,
            drawn_once,
            warmups,
            samples: 0,
            gap_least: 1,
            chooser: Chooser::default(),
            arms: Vec::new(),
            default_arm: None,
            learning: Learning::Nothing,
            first_ns: 0,
            least_bytes: entry.bytes.lo,
            fresh: Vec::new(),
        };
        if sampling {
            cell.take_arms(weights, races)?;
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
                cell.next_sample = watch.next_sample(key, 0, warmups, 0);
                cell.quiet_until = cell.next_sample - warmups;
            }
            Learning::Explore(..) => cell.begin_late(&rules.terms.settings, agreed.spent_ppm),
            Learning::Nothing => {}
        }
        cell.next_arm = cell.drawn();
        if membership.layout.n_ranks == 1 {
            cell.left_out = Causes::default();
            cell.left_out.add(Cause::OneRank);
        }
        Ok(cell)
    }

    /// What it holds, about.
    pub(super) fn bytes(&self) -> u64 {
        let of_arm = size_of::<Arm>() + Race::ARM_BYTES;
        let arms = of_arm * self.arms.capacity();
        (size_of::<CellState>() + arms + size_of::<Fresh>() * self.fresh.capacity()) as u64
    }

    /// Where agreements have cost more than their share before the cell's first call, that is not sampled.
    fn begin_late(&mut self, settings: &Settings, spent_ppm: u64) {
        let budget_ppm = settings.explore_budget_ppm();
        if spent_ppm <= budget_ppm {
            return;
        }
        let gap = review::LEARNING_GAP * (self.warmups + 1);
        self.left_out.add(Cause::Unpaid);
        self.gap_least = review::stretched(gap, spent_ppm, budget_ppm);
        self.plan(0, settings.samples_per_cell);
    }

    /// The variants that are drawn, from the cell's first call on.
    fn take_arms(&mut self, weights: Vec<(u16, f64)>, races: bool) -> Result<(), TryReserveError> {
        self.arms.try_reserve_exact(weights.len())?;
        self.fresh.try_reserve_exact(FRESH_MAX)?;
        // What drops out of no race, or is run anyway, waits for no review.
        let best = self.best;
        self.arms
            .extend(weights.into_iter().map(|(variant, weight)| Arm {
                variant,
                weight,
                seen: Observed::default(),
                judged: !races || variant == best,
            }));
        self.default_arm = self.arms.iter().position(|arm| arm.variant == DEFAULT);
        self.chooser = chooser_of(&self.arms);
        (self.quiet_until, self.next_sample) = (0, 0);
        Ok(())
    }

    /// What call `index` runs.
    #[inline(always)]
    pub(super) fn wish(&self, index: u64) -> Wish {
        let sampled = index == self.next_sample;
        if index < self.quiet_until {
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

    /// Whether an arm may be drawn now. Counts that all ranks share decide.
    fn may_be_drawn(&self, arm: usize) -> bool {
        let Arm { seen, judged, .. } = &self.arms[arm];
        review::may_be_drawn(seen.samples, *judged)
    }

    /// With which probability an arm is drawn for the next sampled call, all else being as it is; for `None`, that no
    /// arm is drawn.
    pub(super) fn probability(&self, arm: Option<usize>) -> Option<Probability> {
        if self.drawn_once.is_some() {
            return self.drawn_once;
        }
        const ALL: u128 = 1 << 32;
        if let Learning::Exploit(_) = self.learning {
            return Probability::of_parts(1 << 31); // the first of a pair or its second
        }
        let (mut own, mut unfit, mut any) = (0, 0, false);
        for (place, share) in self.chooser.shares() {
            let place = usize::from(place);
            any = true;
            if !self.may_be_drawn(place) {
                unfit += u128::from(share);
            } else if Some(place) == arm {
                own = u128::from(share);
            }
        }
        let unfit = if any { unfit } else { ALL };
        // The first of `DRAWS` that may be drawn; behind them the default.
        let (mut turns, mut none) = (0, ALL);
        for _ in 0..DRAWS {
            turns += none;
            none = none * unfit / ALL;
        }
        let by_turn = own * turns / ALL;
        let left = if arm == self.default_arm { none } else { 0 };
        Probability::of_parts((by_turn + left).min(ALL) as u64)
    }

    /// The arm that is drawn for the next sampled call.
    fn drawn(&self) -> Option<usize> {
        if let Learning::Exploit(watch) = &self.learning {
            return Some(watch.arm(self.key, self.samples));
        }
        let may_be_drawn = |arm: &usize| self.may_be_drawn(*arm);
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
    pub(super) fn add(&mut self, chosen: &Chosen, timing: Timing) -> bool {
        let arm = chosen.arm;
        if self.samples == 0 {
            self.first_ns = timing.start_ns;
        }
        self.samples += 1;
        if self.fresh.len() < FRESH_MAX {
            self.fresh.push(Fresh {
                arm,
                call: self.calls,
                class: chosen.class,
                timing,
                behind_ns: [UNKNOWN; 2],
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

    /// Takes how long something behind the last sample took this rank; false where it is not kept. What the last sample
    /// pushes into another call of this cell is in its time: a variant's calls come in a row.
    pub(super) fn close_gap(&mut self, part: GapPart, ns: u64) -> bool {
        let Some(last) = self.fresh.last_mut() else {
            return part == GapPart::Shift;
        };
        let told = part == GapPart::Shift || self.calls == last.call;
        if told {
            last.behind_ns[part as usize] = ns.min(SPAN_NS_MAX);
        }
        told
    }

    /// Forgets the samples since the last review, where there is no other rank to compare them with.
    pub(super) fn forget(&mut self) {
        self.fresh.clear();
    }

    /// Says which call is sampled next, after call `index` was.
    #[inline]
    pub(super) fn plan(&mut self, index: u64, samples_per_cell: u32) {
        let (key, warmups) = (self.key, self.warmups);
        self.next_sample = match &self.learning {
            Learning::Exploit(watch) => watch.next_sample(key, index, warmups, self.samples),
            Learning::Nothing | Learning::Explore(..) => {
                next_sampled(key, index, warmups, samples_per_cell, self.gap_least)
            }
        };
        self.quiet_until = self.next_sample.saturating_sub(self.warmups);
        self.next_arm = self.drawn();
    }

    /// Samples nothing more.
    pub(super) fn end_samples(&mut self) {
        (self.quiet_until, self.next_sample) = (u64::MAX, u64::MAX);
        self.next_arm = None;
    }
}

fn chooser_of(arms: &[Arm]) -> Chooser {
    let weights = arms.iter().zip(0u16..);
    let weights: Vec<(u16, f64)> = weights.map(|(arm, place)| (place, arm.weight)).collect();
    Chooser::new(&weights)
}
