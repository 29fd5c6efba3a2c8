//! Gather: the root ends with every rank's block.

pub mod binomial;
pub mod linear;
