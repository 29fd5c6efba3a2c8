//! Our own algorithms, as schedules with proofs.
//!
//! What a schedule is ([`part`], [`pattern`], [`schedule`]), how it becomes what a rank executes
//! ([`plan`], [`program`]), where chunks lie ([`lengths`]),
//! the one table of all algorithms ([`registry`], [`row`]), one file per algorithm with the shapes that
//! several share ([`tree`], [`fold`], [`circulant`], [`fixed_order`]), the proof ([`symbolic`]) and the cost ([`simulate`]).

pub mod part;
pub mod pattern;
pub mod schedule;

pub mod plan;
pub mod program;

pub mod lengths;

pub mod registry;
pub mod row;

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod gather;
pub mod reduce;
pub mod reduce_scatter;
pub mod scan;
pub mod scatter;

pub mod circulant;
pub mod fixed_order;
pub mod fold;
pub mod tree;

pub mod symbolic;

#[cfg(test)]
mod proof;

pub mod simulate;
