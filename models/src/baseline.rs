//! The learner that came first, kept to be compared with until it is beaten: effects are trimmed means of log
//! times, and a difference of three standard errors replaces the default.
//!
//! Records become call times ([`call`]), the calls of a cell become effects of variants ([`compare`]), effects
//! become regressions that speak for cells without data ([`regress`]), and all become probabilities ([`weigh`]).

pub mod call;
mod compare;
pub mod regress;
mod robust;
mod weigh;

mod learn;

pub use learn::{Context, LearnError, Learned, learn};
