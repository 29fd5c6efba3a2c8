//! Collectives over memory that the ranks of one node share: who writes and reads which cell, when.
//!
//! Every rank has an area, in which it alone writes: a ring of [`layout::LINES`] cache lines that each hold a message
//! of up to [`layout::LINE_BYTES`] bytes with its number, and a ring of [`layout::Areas::cells`] cells for the pieces
//! of longer ones. Pieces are numbered through all calls of a communicator, alike on all its ranks, so a cell's place
//! and the moment at which it is free follow from the number: no rank takes a lock, and nothing is ever set back to
//! zero.
//!
//! [`stage`] says what each rank does in a call, and [`phase`] which steps a stage inside its node takes ([`kind`])
//! on the pieces of a message ([`blocks`]). [`single_copy`] has the steps where ranks read each other's buffers.
//! [`map`] says which ranks share a node, [`layout`] where everything lies, [`on_nodes`] which ranks carry what between
//! nodes, [`between`] by which schedule, [`overlap`] what a leader does meanwhile. The shim does the loads and stores.

pub mod between;
pub mod blocks;
pub mod collected;
pub mod kind;
pub mod layout;
pub mod map;
pub mod on_nodes;
pub mod overlap;
pub mod phase;
pub mod single_copy;
pub mod stage;

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod whole;
