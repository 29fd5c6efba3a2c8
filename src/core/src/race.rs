//! The race of a cell's arms against `default` inside one job: best-arm identification with a control.
//!
//! The samples between two reviews are a window. In each the arms' mean times are contrasted with the default's, so
//! that drift from window to window cancels, however the draws have shifted meanwhile. Each sample is taken at its
//! place in the program's loop ([`place`]). Stalls, far beyond most of the window and the arm's fastest sample, are
//! counted apart: a mean that holds one says nothing else for thousands of samples. They are held against an arm that
//! has more of them than the others.
//!
//! An arm replaces `default` when an anytime-valid t-test ([`sequential`]) says that it is faster: looking again costs
//! nothing, and all arms together are wrong in fewer than one in a hundred cells without a faster arm. Its variance
//! is the larger of that within the windows and that between them, and holds what autocorrelated noise adds. The arms
//! that are left share the draws by top-two Thompson sampling ([`allocation`]).
//!
//! All is reckoned with + - * / and roots from numbers that the ranks share, so they conclude alike.
//!
//! Source: moderated variances: Smyth, SAGMB 3(1), 2004.

mod allocation;
mod arm;
mod place;
mod sample;
mod sequential;

#[cfg(test)]
mod simulation;

use arm::{Arm, Sums};
use place::Places;

pub use sample::Sample;

/// Where the race of a cell stands.
#[derive(Clone, Debug, Default)]
pub struct Race {
    arms: Vec<Arm>,
    /// The place of `default`.
    control: usize,
    /// Sums of squares within windows and their degrees of freedom: of relative times, and of what is shifted.
    within: f64,
    within_shift: f64,
    degrees: f64,
    /// Calls of the cell so far.
    calls: f64,
    places: Places,
}

/// What the race says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The arm that calls run which are not sampled.
    pub best: usize,
    pub standing: Standing,
    /// What a draw is expected to cost beyond a call that is not sampled, in ns.
    pub excess_ns: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Open,
    /// No rival of the choice is left.
    Settled,
}

/// What watching a choice says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watched {
    pub finding: Finding,
    /// What a sample of the default costs beyond one of the choice, in ns.
    pub excess_ns: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    Holds,
    /// It seems to be slower than the default: worth a closer look.
    Suspected,
    /// It is slower than the default.
    Slower,
}

/// How an arm compares with the default, in ns: negative is faster.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Effect {
    ns: f64,
    error_ns: f64,
    degrees: f64,
}

/// The most samples between two reviews.
pub const WINDOW_MOST: usize = 64;
/// A sample that many times as long as seven eighths of its window, and as its arm's fastest one, is a stall.
const STALL: f64 = 8.0;
/// The share of cells in which a replacement of the default may be wrong, all arms together.
const WRONG: f64 = 0.005;
/// The same of leaving a choice for the default.
const LEFT_WRONGLY: f64 = 0.01;
/// A replacement is faster by more than this share.
const MARGIN: f64 = 0.01;
/// Standard errors by which an arm must be slower than the leader to be dropped, and than another one that is proven,
/// too, to be no longer the choice.
const DROPPED: f64 = 3.0;
const PASSED: f64 = 2.0;
/// With so many degrees of freedom it is twice as many standard errors.
const FEW_DEGREES: f64 = 4.0;
/// Standard errors by which an arm must stall more often than the others not to become the choice, and to be left.
const STALLS: f64 = 2.0;
const STALLS_MORE: f64 = 3.0;
/// Standard errors by which a choice that is watched seems to be slower.
const SUSPECTED: f64 = 0.25;
/// What a call shifts into what follows is expected to differ by this share of its time.
const SHIFT: f64 = 0.1;
/// For so many calls an arm may be faster or slower by that share than it is in the long run.
const WANDERS_FOR: f64 = 1000.0;
const WANDERS: f64 = 0.06;
/// The square of a usual coefficient of variation, and the degrees of freedom that it is worth.
const USUAL_VARIANCE: f64 = 0.04;
const USUAL: f64 = 2.0;

impl Race {
    /// What it holds of an arm.
    pub const ARM_BYTES: usize = size_of::<Arm>();

    /// Shape:  `shares` of the draws by arm; `control` is the place of `default`.
    ///
    /// Errors: without memory.
    pub fn new(
        shares: impl ExactSizeIterator<Item = f64>,
        control: usize,
    ) -> Result<Race, std::collections::TryReserveError> {
        let mut arms = Vec::new();
        arms.try_reserve_exact(shares.len())?;
        arms.extend(shares.map(Arm::new));
        Ok(Race {
            arms,
            control,
            ..Race::default()
        })
    }

    /// The share of the draws of each arm; 0 for what was dropped.
    pub fn shares(&self) -> impl Iterator<Item = f64> {
        self.arms.iter().map(|arm| arm.share)
    }

    /// Takes the samples since the last review, at the cell's call number `calls`; `best` is what other calls ran.
    pub fn learn(&mut self, window: &[Sample], best: usize, calls: u64) {
        self.calls = calls as f64;
        // Of a loop's calls one in eight may be far longer than the others, or be followed by all of its compute.
        let stall = STALL * quantile(7, window.iter().map(|one| one.time_ns));
        let shift_most = STALL * quantile(7, window.iter().filter_map(|one| one.shift_ns));
        for sample in window {
            self.arms[sample.arm].see(sample.time_ns);
        }
        let mut corrected = [Sample::NONE; WINDOW_MOST];
        for (place, sample) in corrected.iter_mut().zip(window) {
            let shift_ns = sample.shift_ns.map(|own| own.min(shift_most));
            *place = self.places.corrected(&Sample {
                shift_ns,
                ..*sample
            });
        }
        let known = corrected[..window.len().min(WINDOW_MOST)].iter();
        let typical = quantile(4, known.filter_map(|one| one.shift_ns));
        let sums = |arm: usize, race: &Race| {
            let stall = stall.max(STALL * race.arms[arm].fastest_ns());
            let bodies = window.iter().zip(&corrected);
            let own = bodies.filter(|(one, _)| one.arm == arm && one.time_ns <= stall);
            Sums::of(own.map(|(_, one)| one), |one| {
                one.shift_ns.unwrap_or(typical)
            })
        };
        let control = sums(self.control, self);
        for place in 0..self.arms.len() {
            let sums = sums(place, self);
            if sums.count == 0.0 {
                continue;
            }
            self.within += sums.time_squares / (sums.time_ns * sums.time_ns).max(1.0);
            self.within_shift += sums.shift_squares;
            self.degrees += sums.count - 1.0;
            let arm = &mut self.arms[place];
            arm.add(&sums);
            if place != self.control && control.count > 0.0 {
                if place == best {
                    arm.forget();
                }
                arm.contrast(&sums, &control);
            }
        }
        if self
            .places
            .learn(window.iter().filter(|one| one.time_ns <= stall))
        {
            // What was seen before is far noisier than what comes.
            self.arms.iter_mut().for_each(Arm::start_over);
            (self.within, self.within_shift, self.degrees) = (0.0, 0.0, 0.0);
        }
        for sample in window {
            let arm = &mut self.arms[sample.arm];
            if sample.time_ns > stall.max(STALL * arm.fastest_ns()) {
                arm.add_stall(sample.time_ns);
            }
        }
    }

    /// Judges what was learned, and shares the draws anew; `best` is the present choice, `seed` shared by all ranks.
    pub fn judge(&mut self, best: usize, seed: u64) -> Verdict {
        let best = self.choice(best);
        self.drop_behind(best);
        let rivals = self.alive().filter(|place| *place != best).count();
        self.allocate(best, seed);
        Verdict {
            best,
            standing: match rivals {
                0 => Standing::Settled,
                _ => Standing::Open,
            },
            excess_ns: self.excess_ns(best),
        }
    }

    /// The arms that are drawn, but for the default.
    fn alive(&self) -> impl Iterator<Item = usize> {
        let all = self.arms.iter().enumerate();
        all.filter(|(place, arm)| *place != self.control && arm.share > 0.0)
            .map(|(place, _)| place)
    }

    /// Drops an arm from the rest of the race, whatever comes.
    pub fn drop_arm(&mut self, place: usize) {
        if place != self.control {
            self.arms[place].ban();
        }
    }

    /// Watches a choice that was made before: whether it is left for the default, and what a pair of samples, one of
    /// each, costs beyond two of the choice.
    pub fn watch(&self, best: usize) -> Watched {
        let slower_ns = self
            .effect(best)
            .map_or(0.0, |effect| effect.ns / effect.error_ns);
        Watched {
            finding: match slower_ns {
                _ if self.is_slower(best) => Finding::Slower,
                t if t > SUSPECTED => Finding::Suspected,
                _ => Finding::Holds,
            },
            excess_ns: (self.expected_ns(self.control) - self.expected_ns(best)).max(0.0),
        }
    }

    /// What is to run: the present choice, one that is proven to be faster than the default and looks faster than the
    /// choice, or the default where the choice is proven to be slower.
    fn choice(&mut self, best: usize) -> usize {
        if best != self.control && self.is_slower(best) {
            self.arms[best].start_anew();
            return self.control;
        }
        let rivals = self.arms.len().saturating_sub(1).max(1);
        let proven = |place: &usize| self.is_faster(*place, WRONG / rivals as f64);
        let leader = self
            .alive()
            .filter(proven)
            .min_by(|a, b| self.order(*a, *b));
        match leader {
            Some(leader) if best == self.control || self.is_behind(best, leader, PASSED) => leader,
            _ => best,
        }
    }

    fn is_faster(&self, place: usize, alpha: f64) -> bool {
        let Some(effect) = self.effect(place) else {
            return false;
        };
        let control_ns = self.arms[self.control].mean_ns();
        let wanders_ns = WANDERS * control_ns;
        let wanders = wanders_ns * wanders_ns / (1.0 + self.calls / WANDERS_FOR);
        let error_ns = (effect.error_ns * effect.error_ns + wanders).sqrt();
        let t = (effect.ns + self.stall_loss_ns(place, STALLS) + MARGIN * control_ns) / error_ns;
        t < 0.0 && sequential::refutes(t, self.arms[place].weight(), effect.degrees, alpha)
    }

    /// Whether a choice is slower than the default: in the long run, of late, or by stalls.
    fn is_slower(&self, place: usize) -> bool {
        let Some(effect) = self.effect(place) else {
            return false;
        };
        let loss = self.stall_loss_ns(place, STALLS_MORE);
        let weight = self.arms[place].weight();
        let refuted = |effect: Effect| {
            let t = effect.ns / effect.error_ns;
            t > 0.0 && sequential::refutes(t, weight, effect.degrees, LEFT_WRONGLY)
        };
        (loss > 0.0 && effect.ns + loss > 0.0) || refuted(effect) || refuted(self.recent(place))
    }

    /// The contrast of late, which may have wandered.
    fn recent(&self, place: usize) -> Effect {
        let control_ns = self.arms[self.control].mean_ns();
        let squared = |ns: f64| ns * ns;
        let within = self.relative_variance() * squared(control_ns);
        let recent = self.arms[place].recent(within);
        Effect {
            ns: recent.mean,
            error_ns: (recent.variance + squared(WANDERS * control_ns))
                .sqrt()
                .max(1e-3),
            degrees: recent.degrees.min(self.degrees),
        }
    }

    /// The contrast with the default, and its standard error. What is shifted counts as far as it is known: the effect
    /// on it has a prior that is small beside the call's time.
    fn effect(&self, place: usize) -> Option<Effect> {
        let arm = &self.arms[place];
        let control_ns = self.arms[self.control].mean_ns();
        if arm.weight() <= 0.0 || self.degrees < 1.0 {
            return None;
        }
        let squared = |share: f64| share * control_ns * share * control_ns;
        let time = arm.time(self.relative_variance() * control_ns * control_ns);
        let shift = arm.shift(self.within_shift / self.degrees);
        let prior = squared(SHIFT);
        let known = prior / (prior + shift.variance).max(f64::MIN_POSITIVE);
        let variance = time.variance + known * known * shift.variance;
        Some(Effect {
            ns: time.mean + known * shift.mean,
            error_ns: variance.sqrt().max(1e-3),
            degrees: time.degrees.min(self.degrees),
        })
    }

    fn relative_variance(&self) -> f64 {
        (self.within + USUAL * USUAL_VARIANCE) / (self.degrees + USUAL)
    }

    /// What a call is expected to take, for comparing arms with each other; of an arm without samples, or with a stall
    /// alone, what the default does.
    fn expected_ns(&self, place: usize) -> f64 {
        let arm = &self.arms[place];
        match arm.has_body() {
            true => arm.mean_ns() + self.stall_loss_ns(place, STALLS),
            false => self.arms[self.control].mean_ns() + self.stall_loss_ns(place, STALLS),
        }
    }

    /// The standard error of that.
    fn error_ns(&self, place: usize) -> f64 {
        let variance = self.relative_variance() / self.arms[place].samples().max(1.0);
        self.expected_ns(place) * variance.sqrt()
    }

    fn order(&self, a: usize, b: usize) -> std::cmp::Ordering {
        self.expected_ns(a).total_cmp(&self.expected_ns(b))
    }

    /// What stalls cost a call beyond those that the other arms' rate lets one expect, where they are beyond chance.
    fn stall_loss_ns(&self, place: usize, errors: f64) -> f64 {
        let arm = &self.arms[place];
        let (mut samples, mut stalls) = (0.0, 0.0);
        for other in &self.arms {
            samples += other.samples();
            stalls += other.stalls();
        }
        let rate = (stalls - arm.stalls() + 1.0) / (samples - arm.samples() + 1.0);
        arm.stall_loss_ns(rate, errors)
    }

    /// Whether an arm is slower than another by so many standard errors.
    fn is_behind(&self, place: usize, other: usize, errors: f64) -> bool {
        let (of, than) = (self.error_ns(place), self.error_ns(other));
        let error = (of * of + than * than).sqrt();
        self.expected_ns(place) - self.expected_ns(other) > errors * error
    }

    fn drop_behind(&mut self, best: usize) {
        let with_control = self.alive().chain([self.control]);
        let seen = with_control.filter(|place| self.arms[*place].has_body());
        let Some(leader) = seen.min_by(|a, b| self.order(*a, *b)) else {
            return;
        };
        let dropped = DROPPED * (1.0 + FEW_DEGREES / (self.degrees + USUAL));
        for place in 0..self.arms.len() {
            let stays = place == best || place == leader || place == self.control;
            let is_seen = self.arms[place].samples() > 0.0;
            if is_seen && !stays && self.is_behind(place, leader, dropped) {
                self.arms[place].share = 0.0;
            }
        }
    }

    /// What a draw costs in the mean beyond a call of the choice, as far as arms are known.
    fn excess_ns(&self, best: usize) -> f64 {
        let base = self.expected_ns(best);
        let (mut excess, mut shares) = (0.0, 0.0);
        for (place, arm) in self.arms.iter().enumerate() {
            if arm.has_body() {
                excess += arm.share * (self.expected_ns(place) - base).max(0.0);
                shares += arm.share;
            }
        }
        excess / shares.max(f64::MIN_POSITIVE)
    }
}

/// The least value that so many eighths of all do not exceed; 0 of nothing.
fn quantile(eighths: usize, all: impl Iterator<Item = f64>) -> f64 {
    let mut values = [0.0; WINDOW_MOST];
    let mut count = 0;
    for (place, value) in values.iter_mut().zip(all) {
        *place = value;
        count += 1;
    }
    let values = &mut values[..count];
    values.sort_unstable_by(f64::total_cmp);
    let at = (count * eighths).div_ceil(8).saturating_sub(1);
    values.get(at).copied().unwrap_or(0.0)
}
