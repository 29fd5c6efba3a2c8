//! What a race knows of one arm.

use super::sample::Sample;

/// Degrees of freedom that the variance within windows is worth beside that between them.
const POOLED: f64 = 8.0;

/// One arm: its share of the draws, its samples, and its contrasts with the default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Arm {
    /// 0 once it is dropped.
    pub share: f64,
    /// What it was before any sample; 0 where it is dropped for good.
    first_share: f64,
    /// Samples that were no stalls, and what they took.
    count: f64,
    total_ns: f64,
    stalls: f64,
    stalled_ns: f64,
    /// 0 before the first sample.
    fastest_ns: f64,
    /// Windows in which the default was sampled, too, and the sum of their weights.
    windows: f64,
    weight: f64,
    time: Contrasts,
    shift: Contrasts,
    /// Weight and sum of the contrasts of the last windows: each halves what came before.
    recent_weight: f64,
    recent: f64,
}

/// Sum of the windows' weighted contrasts, and of their weighted squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Contrasts {
    sum: f64,
    squares: f64,
}

/// A mean contrast.
pub(super) struct Estimate {
    pub mean: f64,
    /// Of the mean.
    pub variance: f64,
    pub degrees: f64,
}

/// One arm's samples in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub count: f64,
    /// Means, and sums of the squares round them.
    pub time_ns: f64,
    pub time_squares: f64,
    shift_ns: f64,
    pub shift_squares: f64,
}

/// Contrasts of a choice beyond this weight are halved, so that a change shows.
const MEMORY: f64 = 128.0;

impl Arm {
    pub fn new(share: f64) -> Arm {
        Arm {
            share,
            first_share: share,
            ..Arm::default()
        }
    }

    /// Drops it for good.
    pub fn ban(&mut self) {
        (self.share, self.first_share) = (0.0, 0.0);
    }

    /// Takes note of a sample, before it is known what it counts as.
    pub fn see(&mut self, time_ns: f64) {
        self.fastest_ns = match self.fastest_ns > 0.0 {
            true => self.fastest_ns.min(time_ns),
            false => time_ns,
        };
    }

    pub fn fastest_ns(&self) -> f64 {
        self.fastest_ns
    }

    pub fn has_body(&self) -> bool {
        self.count > 0.0
    }

    pub fn samples(&self) -> f64 {
        self.count + self.stalls
    }

    pub fn stalls(&self) -> f64 {
        self.stalls
    }

    /// Of the samples that were no stalls.
    pub fn mean_ns(&self) -> f64 {
        self.total_ns / self.count.max(1.0)
    }

    fn mean_stall_ns(&self) -> f64 {
        self.stalled_ns / self.stalls.max(1.0)
    }

    /// As many samples of the arm and of the default each as the contrasts are worth, halved.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    pub fn add(&mut self, sums: &Sums) {
        self.count += sums.count;
        self.total_ns += sums.count * sums.time_ns;
    }

    pub fn add_stall(&mut self, time_ns: f64) {
        self.stalls += 1.0;
        self.stalled_ns += time_ns;
    }

    pub fn contrast(&mut self, own: &Sums, control: &Sums) {
        let weight = own.count * control.count / (own.count + control.count);
        self.windows += 1.0;
        self.weight += weight;
        self.recent_weight = self.recent_weight / 2.0 + weight;
        self.recent = self.recent / 2.0 + weight * (own.time_ns - control.time_ns);
        self.time.add(weight, own.time_ns - control.time_ns);
        self.shift.add(weight, own.shift_ns - control.shift_ns);
    }

    /// Forgets how it compares with the default: that has changed.
    pub fn start_anew(&mut self) {
        *self = Arm {
            share: self.share,
            first_share: self.first_share,
            count: self.count,
            total_ns: self.total_ns,
            stalls: self.stalls,
            stalled_ns: self.stalled_ns,
            fastest_ns: self.fastest_ns,
            ..Arm::default()
        };
    }

    /// Forgets all but its stalls, as if it had not been drawn.
    pub fn start_over(&mut self) {
        *self = Arm {
            share: self.first_share,
            first_share: self.first_share,
            stalls: self.stalls,
            stalled_ns: self.stalled_ns,
            fastest_ns: self.fastest_ns,
            ..Arm::default()
        };
    }

    /// Halves old contrasts once there are many.
    pub fn forget(&mut self) {
        if self.weight > MEMORY {
            self.windows /= 2.0;
            self.weight /= 2.0;
            for contrasts in [&mut self.time, &mut self.shift] {
                contrasts.sum /= 2.0;
                contrasts.squares /= 2.0;
            }
        }
    }

    /// The contrast of times in the last windows, where a sample's variance is `within`.
    pub fn recent(&self, within: f64) -> Estimate {
        Estimate {
            mean: self.recent / self.recent_weight,
            variance: within / self.recent_weight,
            degrees: f64::INFINITY,
        }
    }

    /// The contrast of times, where a sample's variance is `within` in a window.
    pub fn time(&self, within: f64) -> Estimate {
        self.estimate(&self.time, within)
    }

    pub fn shift(&self, within: f64) -> Estimate {
        self.estimate(&self.shift, within)
    }

    fn estimate(&self, contrasts: &Contrasts, within: f64) -> Estimate {
        let degrees = (POOLED + self.windows - 1.0).max(1.0);
        let mean = contrasts.sum / self.weight;
        let between = (contrasts.squares - contrasts.sum * mean).max(0.0);
        Estimate {
            mean,
            variance: within.max((POOLED * within + between) / degrees) / self.weight,
            degrees,
        }
    }

    /// What stalls cost a call beyond those that a rate lets one expect, where they are so many standard errors beyond.
    /// Few are Poisson's, whose tail is longer than the normal law has it: where 0.04 are expected a first one would lie
    /// five errors beyond, and comes in one case of 25. So the error counts one stall more. Chance then reaches two
    /// errors in less than 3.5 % of cases and three in less than 0.4 %, whatever is expected, if the rate is known
    /// and one looks once.
    pub fn stall_loss_ns(&self, rate: f64, errors: f64) -> f64 {
        let expected = self.samples() * rate;
        let beyond = self.stalls - expected;
        match beyond > errors * (expected + 1.0).sqrt() {
            true => beyond / self.samples() * self.mean_stall_ns(),
            false => 0.0,
        }
    }
}

impl Contrasts {
    fn add(&mut self, weight: f64, contrast: f64) {
        self.sum += weight * contrast;
        self.squares += weight * contrast * contrast;
    }
}

impl Sums {
    pub fn of<'a>(
        samples: impl Iterator<Item = &'a Sample>,
        shift_ns: impl Fn(&Sample) -> f64,
    ) -> Sums {
        let mut sums = Sums::default();
        for sample in samples {
            sums.count += 1.0;
            let time_ns = sample.time_ns;
            let shift_ns = shift_ns(sample);
            let (time, shift) = (time_ns - sums.time_ns, shift_ns - sums.shift_ns);
            sums.time_ns += time / sums.count;
            sums.shift_ns += shift / sums.count;
            sums.time_squares += time * (time_ns - sums.time_ns);
            sums.shift_squares += shift * (shift_ns - sums.shift_ns);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: f64 = 1000.0;

    /// The fewest stalls that count.
    fn fewest(expected: f64, errors: f64) -> f64 {
        let counts = |stalls: &f64| {
            let arm = Arm {
                count: SAMPLES - stalls,
                stalls: *stalls,
                stalled_ns: 1.0,
                ..Arm::default()
            };
            arm.stall_loss_ns(expected / SAMPLES, errors) > 0.0
        };
        (0..1000).map(f64::from).find(counts).expect("some do")
    }

    /// The chance of that many or more, by Poisson's law.
    fn tail(least: f64, expected: f64) -> f64 {
        let (mut fewer, mut one, mut stalls) = (0.0, (-expected).exp(), 0.0);
        while stalls < least {
            fewer += one;
            stalls += 1.0;
            one *= expected / stalls;
        }
        1.0 - fewer
    }

    #[test]
    fn as_many_stalls_as_count_are_rare_whatever_is_expected() {
        for step in 0..180 {
            let expected = 0.01 * 1.05f64.powi(step);
            for (errors, rare) in [(2.0, 0.035), (3.0, 0.004)] {
                let least = fewest(expected, errors);
                let chance = tail(least, expected);
                assert!(
                    chance < rare,
                    "{least} where {expected} are expected: {chance}"
                );
            }
        }
        assert_eq!(fewest(0.04, 2.0), 3.0);
    }
}
