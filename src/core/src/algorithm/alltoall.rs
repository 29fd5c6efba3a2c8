//! Alltoall: every rank ends with the block that each rank has for it.

pub mod bruck;
pub mod gather_scatter;
pub mod scattered;
