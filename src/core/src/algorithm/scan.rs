//! Scan and exscan: every rank ends with the combination of the contributions up to its own.

pub mod linear;
pub mod recursive_doubling;
