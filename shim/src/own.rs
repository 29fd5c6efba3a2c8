//! A call of one of our own variants, handed to what runs it.

use std::ffi::c_int;

use colltune_core::catalogue::{Facts, OnNodes, Own, Scheduled};
use colltune_core::collective::Collective;
use colltune_core::node::between::LANES_MOST;
use colltune_core::node::layout;

use crate::communicator::State;
use crate::mockup;
use crate::node;
use crate::p2p::{self, Arguments};
use crate::tune::Tuner;

/// A call of one of our own variants.
#[derive(Clone, Copy)]
pub struct Call {
    pub collective: Collective,
    /// The variant's place in the trace's header.
    pub variant: u16,
    pub own: Own,
    pub bytes: u64,
    pub arguments: Arguments,
}

impl Call {
    fn scheduled(&self, own: Scheduled) -> p2p::Call {
        p2p::Call {
            collective: self.collective,
            variant: self.variant,
            own,
            bytes: self.bytes,
            arguments: self.arguments,
        }
    }
}

/// Whether what runs a variant can take the call: shared memory is cut into cells that hold whole
/// elements, one of each share, and a part of the block for each rank. Only shared facts decide.
pub fn fits(own: Option<Own>, facts: &Facts) -> bool {
    match own {
        Some(Own::Node(on_nodes)) => {
            let copies = match on_nodes {
                OnNodes::Lanes(_) => LANES_MOST as u64,
                _ => 1,
            };
            let element = match facts.count {
                Some(count) if count > 0 => facts.message_bytes / count,
                _ => 1,
            };
            layout::fits(element, copies) && layout::fits(1, u64::from(facts.n_ranks))
        }
        _ => true,
    }
}

/// Sees to it that a call can be run. Collective at the first call of a variant and size class;
/// the answer is the same on all ranks.
#[inline]
pub fn ready(tuner: &Tuner, state: &mut State, call: &Call) -> bool {
    match call.own {
        Own::Schedule(own) => p2p::ready(tuner, state, &call.scheduled(own)),
        Own::Node(own) => node::ready(tuner, state, call, own),
        Own::Composed(own) => mockup::ready(tuner, state, call, own),
    }
}

/// Runs a call that is ready. `default` runs where an argument is wrong, so that the library says so.
#[inline]
pub fn run(tuner: &Tuner, state: &mut State, call: &Call, default: impl Fn() -> c_int) -> c_int {
    match call.own {
        Own::Schedule(own) => p2p::run(tuner, state, &call.scheduled(own), default),
        Own::Node(own) => node::run(tuner, state, call, own, default),
        Own::Composed(own) => mockup::run(tuner, state, call, own, default),
    }
}
