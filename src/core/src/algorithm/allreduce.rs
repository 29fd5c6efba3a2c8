//! Allreduce: every rank ends with the combination of all contributions.

pub mod circulant;
pub mod direct;
pub mod rabenseifner;
pub mod recursive_doubling;
pub mod recursive_multiplying;
pub mod reduce_bcast;
pub mod ring;
