//! Seeded problems: block costs and refined meshes, equal on every machine.
//!
//! All draws come from a counter-based generator: number `i` of seed `s` is a function of both, so
//! a longer list begins with the shorter one and a benchmark can be repeated from its seed.

mod costs;
mod octree;
mod random;
#[cfg(test)]
mod refined;

pub use costs::{Distribution, costs};
pub use octree::{Octree, octree};
pub use random::Random;
#[cfg(test)]
pub(crate) use refined::{MESSAGE_BYTES, Refined};
