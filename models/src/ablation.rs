//! Mechanisms that a bench leaves out, alone and together, to see whether each pays.

use std::sync::atomic::{AtomicU16, Ordering};

/// A part of the learner that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Mechanism {
    /// Runs that disagree as a whole weigh less.
    Calmness = 1,
    /// Calls of a variant are as noisy as means of its runs show.
    CallNoise,
    /// Intervals are wider where few runs tell the variance.
    StudentInflation,
    /// Rates of stalls and which variants provoke them are estimated in turns.
    StallRounds,
    /// Runs before a break count less.
    Breaks,
    /// Jobs to come are played to see what they would find; without that nothing is ever given up as a whole.
    Promise,
    /// A choice needs a Bayes factor, too.
    BayesFactor,
}

impl Mechanism {
    pub const ALL: [Mechanism; 7] = [
        Mechanism::Calmness,
        Mechanism::CallNoise,
        Mechanism::StudentInflation,
        Mechanism::StallRounds,
        Mechanism::Breaks,
        Mechanism::Promise,
        Mechanism::BayesFactor,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Calmness => "calmness",
            Mechanism::CallNoise => "call noise",
            Mechanism::StudentInflation => "Student inflation",
            Mechanism::StallRounds => "EM of stalls",
            Mechanism::Breaks => "panel breaks",
            Mechanism::Promise => "promise",
            Mechanism::BayesFactor => "Bayes factor",
        }
    }
}

/// A bit for each mechanism that is left out. One for the process: only a bench sets it, between its trainings.
static LEFT_OUT: AtomicU16 = AtomicU16::new(0);

/// Leaves these mechanisms, and no others, out of all trainings until what it returns is dropped.
pub fn leave_out(mechanisms: &[Mechanism]) -> LeftOut {
    let bits = mechanisms.iter().map(|one| 1 << *one as u16).sum();
    LEFT_OUT.store(bits, Ordering::Relaxed);
    LeftOut
}

/// Mechanisms are left out while it lives.
#[must_use]
pub struct LeftOut;

impl Drop for LeftOut {
    fn drop(&mut self) {
        LEFT_OUT.store(0, Ordering::Relaxed);
    }
}

pub(crate) fn has(mechanism: Mechanism) -> bool {
    LEFT_OUT.load(Ordering::Relaxed) & (1 << mechanism as u16) == 0
}
