//! Mechanisms that a bench leaves out, one at a time, to see whether each pays.

use std::sync::atomic::{AtomicU8, Ordering};

/// A part of the learner that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mechanism {
    /// Runs that disagree as a whole weigh less.
    Calmness = 1,
    /// Calls of a variant are as noisy as means of its runs show.
    CallNoise,
    /// Runs may disagree about one variant more than about the others.
    Disagreement,
    /// Intervals are wider where few runs tell the variance.
    StudentInflation,
    /// The noise of a shift corrects the time.
    ControlVariate,
    /// Rates of stalls and who provokes them are told apart in turns.
    StallRounds,
    /// Neighbouring cells speak by a Gaussian process; without it by the simulator alone.
    GaussianProcess,
    /// Runs before a break count less.
    Breaks,
    /// Jobs to come are played to see what they would find; without that nothing is ever given up as a whole.
    Promise,
    /// A choice needs a Bayes factor, too.
    BayesFactor,
}

impl Mechanism {
    pub const ALL: [Mechanism; 10] = [
        Mechanism::Calmness,
        Mechanism::CallNoise,
        Mechanism::Disagreement,
        Mechanism::StudentInflation,
        Mechanism::ControlVariate,
        Mechanism::StallRounds,
        Mechanism::GaussianProcess,
        Mechanism::Breaks,
        Mechanism::Promise,
        Mechanism::BayesFactor,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Calmness => "calmness",
            Mechanism::CallNoise => "call noise",
            Mechanism::Disagreement => "disagreement",
            Mechanism::StudentInflation => "Student inflation",
            Mechanism::ControlVariate => "control variate",
            Mechanism::StallRounds => "EM of stalls",
            Mechanism::GaussianProcess => "Gaussian process",
            Mechanism::Breaks => "panel breaks",
            Mechanism::Promise => "promise",
            Mechanism::BayesFactor => "Bayes factor",
        }
    }
}

/// The mechanism that is left out; 0: none. One for the process: only a bench sets it, between its trainings.
static LEFT_OUT: AtomicU8 = AtomicU8::new(0);

/// Leaves a mechanism out of all trainings from now on, or none.
pub fn leave_out(mechanism: Option<Mechanism>) {
    let number = mechanism.map_or(0, |mechanism| mechanism as u8);
    LEFT_OUT.store(number, Ordering::Relaxed);
}

pub(crate) fn has(mechanism: Mechanism) -> bool {
    LEFT_OUT.load(Ordering::Relaxed) != mechanism as u8
}
