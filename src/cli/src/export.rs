//! Tables for the MPI libraries themselves, made from what a training published.

pub mod plan;

pub mod openmpi;

pub mod csel;

pub mod mpich;

pub mod notes;
