//! Barrier: no rank ends before every rank has begun.

pub mod dissemination;
pub mod tree;
