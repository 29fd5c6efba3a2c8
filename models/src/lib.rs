//! From recorded calls to the choice of variants.
//!
//! Modules stand in the order of the data: calls become evidence ([`evidence`]), and what follows from it is told
//! in [`statistics`] for people and exports.
#![forbid(unsafe_code)]

pub mod evidence;
pub mod statistics;

pub mod baseline;
