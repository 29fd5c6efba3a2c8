//! From recorded calls to the choice of variants: statistics, regressions, probabilities.
//!
//! Modules stand in the order of the data: records become call times ([`call`]), the calls of a
//! cell become effects of variants with their confidence ([`compare`]), effects become regressions
//! that speak for cells without data ([`regress`]), and all become probabilities ([`weigh`]).
//! [`learn`] is the whole way; [`statistics`] is what it leaves behind for people and exports.
#![forbid(unsafe_code)]

pub mod call;
pub mod compare;
pub mod evidence;
pub mod regress;
pub mod robust;
pub mod weigh;

pub mod learn;
pub mod statistics;

pub use learn::{LearnError, Learned, learn};
