//! Shared memory inside the nodes: each node of a communicator has a segment of its own.
//!
//! What the ranks do with it is told by `colltune_core::node`. On several nodes one rank of each, its
//! leader, meets the other leaders in a schedule over messages; before that the node combines, and
//! after it the node spreads. A root leads its node, so that nothing goes a longer way.
//!
//! In the order of a call: the [`team`] of the communicator, the [`segment`] of its node, how ranks
//! wait for each other ([`patience`]), the [`short`] messages that travel beside their flags, the
//! [`elements`] of all others, the [`pieces`] that carry them, the [`bridges`] on which the library
//! meets the other nodes, and [`call`] and [`barrier`], which put phases together;
//! and the short way of a call that is like the last one ([`again`]).

mod team;

mod patience;
mod segment;

mod elements;
mod pieces;
mod short;
mod transfers;

mod bridges;

mod barrier;
mod collect;
mod direct;
mod lanes;
mod overlap;
mod phases;
mod reads;

mod call;

mod again;
pub use again::{Again, Operands};

use std::ffi::c_int;

use colltune_core::catalogue::{Crossing, OnNodes};

use crate::communicator::State;
use crate::library::Pmpi;
use crate::own::Call;
use crate::p2p;
use crate::tune::Tuner;
use bridges::Bridges;
use segment::Segment;
use team::Team;

/// What hangs on a communicator for its nodes.
#[derive(Default)]
pub enum Beside {
    #[default]
    Unopened,
    /// Could not be opened, on any member.
    Failed,
    Open(Box<Open>),
}

pub struct Open {
    team: Team,
    /// `None` where this rank is alone on its node.
    segment: Option<Segment>,
    bridges: Bridges,
}

impl Beside {
    /// Opens it for the members of a communicator that has a channel. Collective, and alike on all.
    #[cold]
    fn open(tuner: &Tuner, state: &State) -> Beside {
        let channel = state.p2p.channel();
        let Some(team) = Team::new(tuner, channel.rank, &channel.world_ranks) else {
            // The layout is known to all members alike.
            return Beside::Failed;
        };
        let (segment, failed) = Segment::open(tuner, channel, &team);
        let mut agreed = [u64::from(failed)];
        if !tuner.largest(state.comm, &mut agreed) || agreed[0] != 0 {
            return Beside::Failed;
        }
        let segment = segment.map(|segment| segment.settle(tuner));
        Beside::Open(Box::new(Open {
            team,
            segment,
            bridges: Bridges::default(),
        }))
    }

    /// Lets go of the segment. Others may still read in theirs: every rank has its own mapping.
    pub fn free(&mut self, pmpi: &Pmpi) {
        if let Beside::Open(open) = self {
            open.bridges.free(pmpi);
        }
        *self = Beside::Unopened;
    }
}

/// Sees to it that a call can be run. Collective at the first call of a variant and size class;
/// the answer is the same on all ranks.
#[inline]
pub fn ready(tuner: &Tuner, state: &mut State, call: &Call, own: OnNodes) -> bool {
    match state.node {
        Beside::Open(_) => {}
        Beside::Failed => return false,
        Beside::Unopened => {
            if !p2p::open(tuner, state) {
                return false;
            }
            state.node = Beside::open(tuner, state);
            if !matches!(state.node, Beside::Open(_)) {
                return false;
            }
        }
    }
    let parent = state.parent();
    if let Beside::Open(open) = &mut state.node
        && let Some(Crossing::Library(variant)) = own.crossing()
        && !open
            .bridges
            .ready(tuner, parent, &open.team, call.collective, variant)
    {
        return false;
    }
    p2p::settled(
        tuner,
        state,
        (call.variant, call.bytes),
        &call.arguments,
        |state| call::has_room(tuner, state, call, own),
    )
}

/// Runs a call that is ready. `default` runs where an argument is wrong, so that the library says so.
#[inline]
pub fn run(
    tuner: &Tuner,
    state: &mut State,
    call: &Call,
    own: OnNodes,
    default: impl Fn() -> c_int,
) -> c_int {
    call::run(tuner, state, call, own, default)
}
