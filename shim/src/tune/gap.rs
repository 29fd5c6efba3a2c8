//! Gap: how long it is from the end of a sampled call to this rank's next collective.
//!
//! What a variant saves inside a call it may cost in what follows, so that is timed, too. While a gap is open, the
//! word that says whether a tuned call is under way says that instead; so calls without a gap before them pay nothing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use colltune_core::collective::Collective;
use colltune_core::decide::Chosen;

use super::Tuner;
use crate::abi::bits;
use crate::clock;
use crate::communicator::State;

/// What [`Tuner::busy`] holds where a gap is open: no frame has that address.
pub const OPEN: usize = 1;
/// A sample without a record.
const UNRECORDED: usize = usize::MAX;

/// Behind which sample it is. One thread uses it: where several call at will there are no gaps.
#[derive(Default)]
pub struct Gap {
    /// [`OPEN`], or 0.
    pub mark: AtomicUsize,
    since: AtomicU64,
    handle: AtomicU64,
    /// The agreed number of the communicator: another may get its handle.
    comm: AtomicU64,
    collective: AtomicUsize,
    place: AtomicUsize,
    record: AtomicUsize,
}

impl Tuner {
    /// Opens a gap behind a sample that ended at tick `since`.
    #[inline]
    pub(super) fn open_gap(
        &self,
        state: &State,
        collective: Collective,
        chosen: &Chosen,
        since: u64,
        record: Option<usize>,
    ) {
        if self.thread_multiple {
            return;
        }
        let gap = &self.gap;
        gap.since.store(since, Ordering::Relaxed);
        gap.handle.store(bits(state.comm), Ordering::Relaxed);
        let comm = state.decider.agreed().id;
        gap.comm.store(comm, Ordering::Relaxed);
        gap.collective.store(collective.index(), Ordering::Relaxed);
        gap.place.store(chosen.place, Ordering::Relaxed);
        gap.record
            .store(record.unwrap_or(UNRECORDED), Ordering::Relaxed);
        gap.mark.store(OPEN, Ordering::Relaxed);
    }

    /// Ends the gap, if one is open, now.
    #[cold]
    pub(super) fn close_gap(&self) {
        let now = clock::ticks();
        let gap = &self.gap;
        if gap.mark.swap(0, Ordering::Relaxed) != OPEN {
            return;
        }
        let since = gap.since.load(Ordering::Relaxed);
        let shift_ns = self.clock.span_ns(now.wrapping_sub(since));
        let record = gap.record.load(Ordering::Relaxed);
        if let Some(recorder) = self.recorder.as_ref().filter(|_| record != UNRECORDED) {
            recorder.shift(record, shift_ns);
        }
        let handle = gap.handle.load(Ordering::Relaxed);
        // SAFETY: no tuned call is under way on this thread, and no other thread calls meanwhile.
        let state = unsafe { self.registry.find_by_bits(handle) };
        let comm = gap.comm.load(Ordering::Relaxed);
        let state = state.filter(|state| state.decider.agreed().id == comm);
        let collective = Collective::from_index(gap.collective.load(Ordering::Relaxed));
        if let (Some(state), Some(collective)) = (state, collective) {
            let place = gap.place.load(Ordering::Relaxed);
            state.decider.close_gap(collective, place, shift_ns);
        }
    }
}
