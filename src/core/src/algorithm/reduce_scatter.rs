//! Reduce-scatter: every rank ends with its block of the combination of all contributions.

pub mod circulant;
pub mod pairwise;
pub mod recursive_halving;
