//! One call, from its arguments to its result: classify, select, execute, record.

mod set_up;

mod classify;
pub use classify::Elements;
mod execute;
mod review;

mod passing;
pub use passing::Passing;

use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use colltune_core::catalogue::Variant;
use colltune_core::collective::Collective;

use crate::abi::{Datatype, Op};
use crate::call_log::CallLog;
use crate::clock::Conversion;
use crate::communicator::{Registry, State};
use crate::flight::{Entered, Flight, UnderWay};
use crate::frames;
use crate::handout::Handout;
use crate::messages;
use crate::recorder::Recorder;
use crate::steer::Steer;
use crate::warn::say;
use crate::world::World;

/// The place of `default` among a collective's variants.
const DEFAULT: u16 = 0;

/// Everything that a job's calls need, built once after the handshake.
pub struct Tuner {
    pub world: World,
    pub handout: Handout,
    /// Each collective's variants, `default` first.
    pub variants: [Vec<Variant>; Collective::ALL.len()],
    pub names: [Vec<String>; Collective::ALL.len()],
    /// The place of a collective's first variant in the header of the trace.
    pub first_variant: [u16; Collective::ALL.len()],
    pub registry: &'static Registry,
    pub steer: Steer,
    pub clock: Conversion,
    pub recorder: Option<Recorder>,
    pub log: Option<Mutex<CallLog>>,
    pub flight: Option<&'static Flight>,
    /// Whether every decision is told somewhere, by all ranks: in the call log or the flight recorder. Then
    /// communicators get their numbers at the first call.
    pub told: bool,
    pub thread_multiple: bool,
    /// An address in the frame of the tuned call that is under way; 0 while none is.
    pub busy: AtomicUsize,
    pub next_comm: AtomicU64,
    pub warned: [AtomicBool; Collective::ALL.len()],
}

/// A call of ours, with the facts that all its ranks share.
pub struct Call<'a> {
    state: &'a mut State,
    collective: Collective,
    bytes: u64,
    reduction: Option<Reduction>,
    in_place: bool,
    equal_blocks: bool,
    /// The cell's place among the communicator's, and the call's number there; `None` while the
    /// communicator is young.
    cell: Option<(usize, u64)>,
}

/// What a reduction combines; the same on all ranks.
#[derive(Clone, Copy)]
struct Reduction {
    count: u64,
    datatype: Datatype,
    op: Op,
}

impl Deref for Tuner {
    type Target = World;

    #[inline(always)]
    fn deref(&self) -> &World {
        &self.world
    }
}

impl Tuner {
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Keeps what was decided for a communicator's present call, until the call ends.
    #[inline(always)]
    fn under_way(
        &self,
        state: &State,
        collective: Collective,
        bytes: u64,
        variant: u16,
    ) -> Option<UnderWay> {
        let entered = Entered {
            comm: state.id,
            n_ranks: state.n_ranks,
            call: state.calls.saturating_sub(1),
            collective,
            bytes,
            variant: self.first_variant[collective.index()] + variant,
        };
        self.flight.map(|flight| flight.enter(entered))
    }

    /// Whether this call, whose frame holds the address `here`, may be tuned. With several threads each
    /// call stands for itself: nothing behind us re-enters then but other threads' calls on other communicators.
    #[inline(always)]
    pub fn enter(&self, here: usize) -> bool {
        if self.thread_multiple {
            return true;
        }
        let outer = self.busy.load(Ordering::Relaxed);
        if outer != 0 && self.is_under_way(outer, here) {
            return false;
        }
        self.busy.store(here, Ordering::Relaxed);
        true
    }

    #[inline(always)]
    pub fn leave(&self) {
        self.busy.store(0, Ordering::Relaxed);
    }

    /// Whether a tuned call is under way, and this one belongs to it.
    #[inline(always)]
    pub fn is_entered(&self, here: usize) -> bool {
        let outer = self.busy.load(Ordering::Relaxed);
        outer != 0 && !self.thread_multiple && self.is_under_way(outer, here)
    }

    /// Whether the call that is noted is under way still, and was not left by a longjmp.
    #[cold]
    fn is_under_way(&self, outer: usize, here: usize) -> bool {
        let alive = frames::is_alive(outer, here);
        if !alive {
            self.leave();
            self.steer.put_back();
        }
        alive
    }

    /// Closes the trace and frees what hangs on communicators. Only from MPI_Finalize, disarmed.
    pub fn finish(&'static self) {
        self.registry.wind_down();
        messages::free(self.messages, self.pmpi);
        let kept = self.recorder.as_ref().map(Recorder::finish);
        if let Some(Err(error)) = kept
            && self.rank() == 0
        {
            let folder = self.handout.incoming.as_deref().unwrap_or_default();
            say(&format!(
                "failed to write all that was recorded to {folder}: {error}; the job itself is complete"
            ));
        }
    }
}
