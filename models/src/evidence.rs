//! What recorded calls say about variants, reduced to sufficient statistics.
//!
//! Records of all ranks become a [`Call`]; the calls of one run at one shape become one [`Evidence`] for each
//! variant. Evidence is all that a training reads, and of old runs ever less is kept ([`crate::thinning`]), so a training's
//! time hardly grows with the number of records and runs.

mod reduce;
mod round;

pub(crate) use reduce::STALL;
pub use reduce::{Reduced, reduce, reduce_with_copies};

use colltune_core::collective::Collective;

/// The number and the name of a variant that is the default once more: half of its sampled calls, by which a training
/// sees how often chance alone makes a winner.
pub const COPY: u16 = u16::MAX;
pub const COPY_NAME: &str = "default-copy";

/// Where calls are comparable: one collective, message size and layout.
///
/// Units: `message_bytes` as the core defines it for each collective; `nodes` and `n_ranks` of the communicator,
/// `ppn` the most ranks that it has on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    pub collective: Collective,
    pub message_bytes: u64,
    pub nodes: u32,
    pub ppn: u32,
    pub n_ranks: u32,
}

/// One sampled call, as its ranks saw it together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Place of the run in the list of runs, the oldest first.
    pub run: u32,
    /// The communicator's number in the run; with `index` the identity of the call.
    pub comm: u64,
    pub index: u64,
    pub shape: Shape,
    /// Place in the catalogue of the collective; 0 is `default`.
    pub variant: u16,
    /// With which it was drawn; 0 where that is unknown.
    pub probability: f64,
    /// What else all ranks know of it, a bit each: some variants apply to no call of some classes.
    pub class: u8,
    /// When it began, on some clock of the run.
    pub start_ns: u64,
    /// Mean over the ranks of the time inside the call.
    pub time_ns: f64,
    /// Mean over the ranks of the time from the end of the call to the rank's next tuned call: what the variant
    /// shifts into what follows is in there, with what the program computes. `None` where it is unknown.
    pub shift_ns: Option<f64>,
    /// Mean over the ranks of the time in that next call: there those wait that left early, if it waits for the last
    /// rank. `None` where it is unknown.
    pub after_ns: Option<f64>,
    /// From the last arrival to the last departure where the ranks share a clock, else the shortest time of any
    /// rank: the part of `time_ns` that is not waiting for late ranks is hardly more.
    pub work_ns: f64,
}

/// Number, mean and sum of squared deviations of a quantity (Welford's).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub n: u64,
    pub mean: f64,
    pub m2: f64,
}

/// What one run says of one variant at one shape.
///
/// Units: times are divided by `level_ns`, the time of a typical call of the run at this shape whatever its variant;
/// drift within the run is taken out by windows of calls before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// Place of the run in the list of runs, the oldest first.
    pub run: u32,
    pub shape: Shape,
    pub variant: u16,
    /// Variants of one run and shape that met in a block, be it through others, have the same number and the same
    /// level. Those with different numbers never met, so only runs compare them.
    pub component: u16,
    /// Sampled calls behind it, stalls included.
    pub calls: u64,
    pub level_ns: f64,
    /// Of the calls' times without the stalls, and without blocks that know a single variant (unless there is no
    /// other), whose calls say nothing of any difference.
    pub time: Moments,
    /// Of what came behind the calls, less what came behind a typical one.
    pub shift: Moments,
    /// Of both together, call by call: their covariance follows.
    pub total: Moments,
    /// Of what ranks spent in the next collective, less what they do there behind a typical call; and of all three
    /// together. Of no call where it is unknown, as in what earlier versions reduced.
    pub after: Moments,
    pub whole: Moments,
    /// Calls that took many times the typical time, and how much longer than the others in sum.
    pub stalls: u64,
    pub stall_excess: f64,
    /// Mean of the work, the part that is not waiting for late ranks.
    pub work: f64,
}

impl Moments {
    pub fn push(&mut self, value: f64) {
        self.n += 1;
        let away = value - self.mean;
        self.mean += away / self.n as f64;
        self.m2 += away * (value - self.mean);
    }

    /// The moments of the values times a factor.
    pub fn times(self, factor: f64) -> Moments {
        Moments {
            mean: factor * self.mean,
            m2: factor * factor * self.m2,
            ..self
        }
    }

    /// The moments of the other values, where those of some of them are known.
    fn without(self, some: Moments) -> Moments {
        let n = self.n.saturating_sub(some.n);
        if n == 0 {
            return Moments::default();
        }
        let mean = (self.n as f64 * self.mean - some.n as f64 * some.mean) / n as f64;
        let between = n as f64 * some.n as f64 / self.n as f64 * (mean - some.mean).powi(2);
        Moments {
            n,
            mean,
            m2: (self.m2 - some.m2 - between).max(0.0),
        }
    }

    /// The variance of one value; 0 for less than two.
    pub fn variance(&self) -> f64 {
        if self.n < 2 {
            0.0
        } else {
            self.m2 / (self.n - 1) as f64
        }
    }
}

impl Evidence {
    /// The time of its calls, stalls included; in ns.
    pub fn spent_ns(&self) -> f64 {
        let bodies = self.calls as f64 * self.time.mean.max(self.work);
        self.level_ns * (bodies + self.stall_excess)
    }

    /// What the other calls say, where what some of them say is known, in times of the same level.
    pub fn without(&self, some: &Evidence) -> Evidence {
        let calls = self.calls.saturating_sub(some.calls);
        let work = self.calls as f64 * self.work - some.calls as f64 * some.work;
        Evidence {
            calls,
            time: self.time.without(some.time),
            shift: self.shift.without(some.shift),
            total: self.total.without(some.total),
            after: self.after.without(some.after),
            whole: self.whole.without(some.whole),
            stalls: self.stalls.saturating_sub(some.stalls),
            stall_excess: (self.stall_excess - some.stall_excess).max(0.0),
            work: (work / calls.max(1) as f64).max(0.0),
            ..*self
        }
    }

    /// The same in times of another level.
    pub fn at_level(&self, level_ns: f64) -> Evidence {
        let factor = self.level_ns / level_ns;
        Evidence {
            level_ns,
            time: self.time.times(factor),
            shift: self.shift.times(factor),
            total: self.total.times(factor),
            after: self.after.times(factor),
            whole: self.whole.times(factor),
            stall_excess: factor * self.stall_excess,
            work: factor * self.work,
            ..*self
        }
    }

    /// The same one step on: the shift varies as a part of the time, and behind them is the time in the next collective.
    pub fn one_on(&self) -> Evidence {
        let beyond = self.total.mean - self.time.mean;
        Evidence {
            time: Moments {
                mean: self.time.mean,
                ..self.total
            },
            shift: self.after,
            total: Moments {
                mean: self.whole.mean - beyond,
                ..self.whole
            },
            ..*self
        }
    }

    /// That of no call.
    pub fn nothing(run: u32, shape: Shape, variant: u16) -> Evidence {
        Evidence {
            run,
            shape,
            variant,
            component: 0,
            calls: 0,
            level_ns: 0.0,
            time: Moments::default(),
            shift: Moments::default(),
            total: Moments::default(),
            after: Moments::default(),
            whole: Moments::default(),
            stalls: 0,
            stall_excess: 0.0,
            work: 0.0,
        }
    }
}
