//! Tables for the MPI libraries themselves, made from what a training published.

pub mod plan;

pub mod shapes;

pub mod openmpi;

pub mod intel;

pub mod csel;

pub mod mpich;

pub mod modules;

pub mod notes;
