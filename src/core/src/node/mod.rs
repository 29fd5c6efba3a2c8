//! Collectives over memory that the ranks of one node share: who writes and reads which cell, when.
//!
//! Every rank has an area of its own, in which it alone writes: a ring of [`layout::LINES`] cache
//! lines that each hold a message of up to [`layout::LINE_BYTES`] bytes with its number, and a ring
//! of [`layout::Areas::cells`] cells for the pieces of longer ones. Pieces are numbered through all calls
//! of a communicator, alike on all its ranks, so a cell's place and the moment at which it is free
//! follow from the number: nobody takes a lock, and nothing is ever set back to zero.
//!
//! [`stage`] says what each rank does in a call, [`phase`] which steps a stage inside its node takes ([`kind`]), on the
//! pieces of a message as [`blocks`] has them, [`single_copy`] which it takes where ranks read each other's buffers; [`map`]
//! who shares a node, [`layout`] where everything lies, [`on_nodes`] who carries what between the nodes, [`between`] which
//! schedule runs there, [`overlap`] what a leader does for its node meanwhile. The shim does the loads and stores.

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
