//! Alltoall: every rank ends with the block that each rank has for it.

pub mod bruck;
pub mod scattered;
