//! The Sedov blast wave: energy set free at a point of a cold uniform gas.

pub mod exact;
pub mod start;

pub mod radius;

pub use exact::Exact;
pub use radius::ShockRadius;
pub use start::{Ball, Blast, Extent};
