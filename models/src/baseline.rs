//! The learner that came first, kept to be compared with until it is beaten: effects are trimmed means of log
//! times, and a difference of three standard errors replaces the default.
//!
//! Records become call times ([`call`]), the calls of a cell become effects of variants ([`compare`]), effects
//! become regressions that speak for cells without data ([`regress`]), and all become probabilities ([`weigh`]).

pub mod call;
#[cfg(feature = "xgboost")]
mod compare;
#[cfg(feature = "xgboost")]
pub mod regress;
#[cfg(feature = "xgboost")]
mod robust;
#[cfg(feature = "xgboost")]
mod weigh;

#[cfg(feature = "xgboost")]
mod learn;

#[cfg(feature = "xgboost")]
pub use learn::{Context, LearnError, Learned, learn};
