//! Scatter: every rank ends with its block of the root's message.

pub mod binomial;
pub mod linear;
