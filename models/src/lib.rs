//! From recorded calls to the choice of variants, in five stages.
//!
//! Modules stand in the order of the data: calls become [`evidence`], of which [`thinning`] says what is kept. All of
//! it together becomes a [`belief`] of what each variant costs, with what other cells [`predict`]. The [`choice`]
//! says what replaces the default, and the [`allocation`] what the next sampled calls draw. [`promise`] says whether
//! they are worth it, by where programs have [`spent`] their time; [`watching`] discounts what has changed since.
//! [`levers`] are a program's own choices, learned from whole runs. [`learn()`] is the whole way, [`statistics`] what
//! it tells people and exports.
#![forbid(unsafe_code)]

pub mod ablation;

pub mod evidence;
pub mod thinning;

pub mod predict;

pub mod belief;
pub mod choice;

pub mod allocation;
pub mod probabilities;
pub mod promise;
pub mod spent;
pub mod watching;

pub mod levers;

pub mod evaluation;

pub mod learn;
pub mod statistics;

pub use learn::{Context, Control, LearnError, Learned, Veto, learn};
