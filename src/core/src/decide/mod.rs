//! Everything that decides on one communicator, without MPI: which call is counted where, what it runs, what the
//! ranks agree on before it and conclude behind it.
//!
//! A [`Decider`] is fed with calls as all ranks see them ([`call`]), under the job's [`rules`], and with the results of
//! exchanges between the ranks ([`agreed`], [`rooms`]); it answers with a [`Decision`]. It reads no clock, handle or
//! address and keeps nothing of a rank's own but the times that the ranks are going to compare, so the deciders of
//! all members go the same way. The edge keeps three promises, and `simulation` tests what comes of them with
//! deciders of a thousand ranks:
//!
//! - *Every call is counted* ([`Decider::decide`]) before this rank's own arguments are looked at. Only what the
//!   library refuses outright is taken back ([`Decider::take_back`]): it has not taken place.
//! - *Every exchange that is asked for takes place*, and every call runs what was decided.
//! - *No rank goes on alone*: what a rank cannot carry out was agreed before, or ends the job ([`impasse`]).

pub use crate::call;

pub mod rules;
pub mod table;

pub mod agreed;
pub mod hopeless;
pub mod rooms;

mod epochs;
mod sizes;
pub use sizes::{BLOCK_WORDS, Blocks};
mod watch;

mod times;
pub use times::{GapPart, Timing, Words};

mod cell;
pub use cell::Choice;

mod decision;
pub use decision::{AfterSample, Chosen, Decision, Measured, OwnState, Switch, UnderWay};

mod decider;
pub use decider::Decider;

pub mod impasse;

#[cfg(test)]
mod simulation;

/// The place of `default` among a collective's variants.
pub const DEFAULT: u16 = 0;
