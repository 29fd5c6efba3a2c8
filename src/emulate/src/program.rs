//! What ranks do, in order: the mini-app's steps as a list of operations, read off its code.
//!
//! Numbers of calls and messages, and their bytes, are the program's own, so that they can be compared with telemetry
//! to the last byte.

mod calls;

mod exchange;

pub mod phoebus;

mod epoch;

mod refinement;

mod steps;

mod count;

use std::sync::Arc;

use colltune_amr::telemetry::Meeting;

pub use calls::Calls;
pub use count::{count, message_work};
pub use exchange::{Exchange, Message};
pub use steps::{Given, History, Program, needs_cells};

/// What a rank's time goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    Compute,
    /// The arithmetic of checksums.
    Sum,
    Pack,
    Copy,
    /// Waiting for a message that is on its way, its sender having been there.
    Transit,
    /// Waiting for a sender that is late.
    Late,
    Unpack,
    /// Waiting for the last rank of a collective.
    Sync,
    Collective,
    Refine,
    Place,
    Migrate,
    /// Ready, and another rank has the core.
    Queue,
    /// In the midst of its work, and something else has the core.
    Stopped,
    Other,
}

impl Phase {
    pub const ALL: [Phase; 15] = [
        Phase::Compute,
        Phase::Sum,
        Phase::Pack,
        Phase::Copy,
        Phase::Transit,
        Phase::Late,
        Phase::Unpack,
        Phase::Sync,
        Phase::Collective,
        Phase::Refine,
        Phase::Place,
        Phase::Migrate,
        Phase::Queue,
        Phase::Stopped,
        Phase::Other,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Compute => "compute",
            Phase::Sum => "sum",
            Phase::Pack => "pack",
            Phase::Copy => "copy",
            Phase::Transit => "transit",
            Phase::Late => "late",
            Phase::Unpack => "unpack",
            Phase::Sync => "sync",
            Phase::Collective => "collective",
            Phase::Refine => "refine",
            Phase::Place => "place",
            Phase::Migrate => "migrate",
            Phase::Queue => "queue",
            Phase::Stopped => "stopped",
            Phase::Other => "other",
        }
    }
}

/// One thing that all ranks do.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Each rank works this long.
    Work {
        phase: Phase,
        time_ns: Arc<Vec<f64>>,
    },
    /// Every rank works this long.
    Alike {
        phase: Phase,
        time_ns: f64,
    },
    Exchange(Arc<Exchange>),
    Collective(Call),
}

/// A collective call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub meeting: Meeting,
    /// What a rank gives; the most where they differ.
    pub bytes: u64,
    /// What each gives, where they differ.
    pub by_rank: Option<Arc<Vec<u64>>>,
    /// Of so many ranks: fewer than all in a part of the world, whose calls telemetry does not count.
    pub n_ranks: usize,
    pub is_counted: bool,
}

impl Call {
    pub fn of_all(meeting: Meeting, bytes: u64, n_ranks: usize) -> Call {
        Call {
            meeting,
            bytes,
            by_rank: None,
            n_ranks,
            is_counted: true,
        }
    }
}
