//! What all agents of a job share: what it is, what each gets wrong, what happened so far and how it may end.

use std::collections::{HashMap, HashSet};

use super::fabric::Mismatch;
use super::faults::Fate;
use super::script::{Deed, Script};
use crate::collective::Collective;
use crate::decide::Switch;
use crate::decide::call::SharedDetails;
use crate::decide::hopeless::KnownHopeless;
use crate::decide::impasse::Impasse;
use crate::decide::rules::Rules;

/// What an edge may get wrong: each has been a fault of the shim, or lies near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A call of a type of unknown size is not counted.
    UnknownSizeUncounted,
    /// A call with one buffer for both sides is not counted, though the library lets it pass.
    AliasedUncounted,
    /// A call that the library refused on this rank stays counted.
    RefusedStaysCounted,
    /// A call that the library is about to refuse enters what the others have to agree on.
    RefusedAgrees,
    /// `default` runs where a variant cannot take this rank's arguments.
    DefaultAlone,
    /// What this rank can do decides, not what all can.
    OwnAbility,
    /// Whether this rank can pay for what a communicator needs decides.
    OwnPays,
    /// Whether this rank has room decides.
    OwnRoom,
    /// This rank's times decide.
    OwnTimes,
    /// What this rank knows to be hopeless is left out, not what any member knows: in set-ups, and in reviews.
    OwnHopeless,
    OwnHopelessInReviews,
    /// A rank goes by its own blocks instead of the longest of all, or in the call in which it sees them.
    OwnBlocks,
    OwnBlocksAtOnce,
    /// A sampled call that failed on this rank is not taken into account.
    FailedForgotten,
    /// A sampled call that was left is never observed: what follows it runs `default`.
    LeftForgotten,
    /// The set-up comes late where one choice is to hold for the run.
    SetUpLate,
    /// A communicator's decisions outlive it, and go on with the next one of its handle.
    FreedKept,
    /// Whether this rank knows that the job was switched off decides.
    OwnSwitch,
    /// A rank begins its epochs when it likes.
    OwnEpochs,
    /// An agreement's error is not looked at, and what it left counts as agreed.
    ErrorUnseen,
}

/// What all agents of a job share.
pub struct Surroundings {
    pub rules: Rules,
    pub script: Script,
    pub fate: Fate,
    pub mistake: Option<Mistake>,
    pub ppn: u32,
    /// By rank, the communicators that it numbered.
    pub numbered: Vec<u64>,
    pub tally: Tally,
    /// What calls of one shape ran on a communicator.
    pub ran: HashMap<Shape, u16>,
    /// What ranks heard in a review of a communicator.
    pub heard: HashMap<(u32, u64), u64>,
    /// Communicators on which an agreement failed: `default` runs there.
    pub forsaken: HashSet<u32>,
    /// Those on which our own algorithms were found in a review to be possible no more.
    pub without_own: HashSet<u32>,
    /// From this act on rank 0 sees that the job was switched off.
    pub off_from: Option<u32>,
    /// The ranks that have heard of it.
    pub knows_off: Vec<bool>,
    /// By rank.
    pub hopeless: Vec<KnownHopeless>,
}

/// What a choice may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub comm: u32,
    pub collective: Collective,
    pub bytes: u64,
    pub root: u32,
    pub count: Option<u64>,
    pub flags: [bool; 5],
    /// Whether the communicator is forsaken, and whether it is without our own algorithms.
    pub lost: [bool; 2],
}

/// What happened in a job, to show that something did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub calls: u64,
    pub tuned: u64,
    pub sampled: u64,
    pub refused: u64,
    pub set_ups: u64,
    /// Of these, those that were put off.
    pub put_off: u64,
    pub rooms: u64,
    pub reviews: u64,
    /// Reviews in which the choice of a cell changed, and those that left one that was watched.
    pub replaced: u64,
    pub demoted: u64,
    /// Reviews in which ranks heard that the job was switched off.
    pub off: u64,
    /// How often ranks exchanged how long the blocks were of which each knows its own.
    pub measured: u64,
    /// Epochs that began or ended.
    pub epochs: u64,
    /// Agreements that ended with an error, and reviews that found our own algorithms possible no more.
    pub failed: u64,
    pub lost: u64,
    /// Set-ups in which a member reported something hopeless.
    pub told: u64,
}

/// Why a job did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A rank said why it cannot go on: this ends all of them with one sentence, as MPI_Abort does.
    Impasse(u32, Impasse),
    Mismatch(Mismatch),
    /// A call of one shape did not run what such calls ran before, though one choice was to hold.
    Irreproducible(Shape, [u16; 2]),
    /// A reduction combined its operands in another order than the fixed one.
    OutOfOrder(u32, u16),
    /// Something else than `default` runs on a communicator on which an agreement failed.
    RunsOn(u32, u16),
    /// Ranks heard different times of one sample, in an operation of a communicator.
    HeardOtherwise(u32, u64),
}

impl Surroundings {
    /// What a rank knows when it comes to an act.
    pub fn switch(&self, rank: u32, act: u32) -> Switch {
        let sees = rank == 0 && self.off_from.is_some_and(|from| act >= from);
        match sees || self.knows_off[rank as usize] {
            true => Switch::Off,
            false => Switch::On,
        }
    }

    pub fn comm(&self, act: u32) -> u32 {
        self.script.acts[act as usize].comm
    }

    /// What all ranks know of the call of an act.
    pub fn details(&self, act: u32) -> SharedDetails {
        match &self.script.acts[act as usize].deed {
            Deed::Call(message) => message.details,
            Deed::Split | Deed::Free => SharedDetails::MOVES,
        }
    }

    pub fn root(&self, act: u32) -> u32 {
        match &self.script.acts[act as usize].deed {
            Deed::Call(message) => message.root,
            Deed::Split | Deed::Free => 0,
        }
    }
}
