//! The checker: runs the programs of all ranks with symbolic contents and proves what they do.
//!
//! A chunk's content is the tree of the operations that combine ranks' contributions in it ([`sum`]),
//! with the chunk of the message that it belongs to. Ranks run their programs under rendezvous
//! semantics (a send completes only when its receive has been posted) in an order of the
//! adversary's choosing, or with sends that complete at once. Rejected are: a message without
//! partner, a deadlock, two ends of a message that differ in length, content that arrives where
//! another message was meant, a chunk read before it is written, a chunk touched while a message
//! under way uses it, memory that is not where the cut of the message says, combining chunks of different places, writing the caller's input or a bcast's buffer at its root, and a
//! request used twice. Postconditions, with the order of operands and that all ranks
//! of an allreduce have one tree, are [`postcondition`]'s.

#[cfg(test)]
mod broken;
#[cfg(test)]
pub mod claims;
pub mod geometry;
pub mod postcondition;
#[cfg(test)]
mod rounding;
pub mod sum;
mod world;

pub use geometry::{Content, Delivery, Fault, Geometry, Memory, Wrong};
pub use sum::Sum;
pub use world::{World, run};
