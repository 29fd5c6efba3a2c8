//! Gap: from the end of a sampled call to this rank's next collective, and the time inside that one.
//!
//! What a variant saves inside a call it may cost in what follows, so that is timed, too. While a gap is open, the
//! word that says whether a tuned call is under way says that instead; so calls without a gap before them pay nothing.
//! A tuned call that begins in a gap is timed to its end, whatever it runs. Its time stays unknown where it is of the
//! sample's own cell, or where the ranks agree on something of ours in it. The same holds where a longjmp leaves it,
//! where this rank cannot make it as the others do, and where a tool behind us calls a collective inside it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use colltune_core::collective::Collective;
use colltune_core::decide::GapPart;

/// What the word holds where a gap is open: no frame has that address.
pub const OPEN: usize = 1;
/// What it holds while the next collective runs the library's own choice, and the mark of the gap during any.
pub const INSIDE: usize = 2;
/// A sample without a record.
const UNRECORDED: usize = usize::MAX;

/// The gap, if there is one. One thread uses it.
#[derive(Default)]
pub struct Gap {
    /// [`OPEN`], [`INSIDE`], or 0.
    mark: AtomicUsize,
    since: AtomicU64,
    handle: AtomicU64,
    comm: AtomicU64,
    collective: AtomicUsize,
    place: AtomicUsize,
    record: AtomicUsize,
    /// What agreements had cost when the next collective began, in ticks.
    agreeing: AtomicU64,
}

/// The sample that a gap is behind.
#[derive(Clone, Copy)]
pub struct Sample {
    /// When it ended or, inside the next collective, when that began, in ticks.
    pub end: u64,
    /// The bits of the communicator's handle, and its agreed number: another may get the handle.
    pub handle: u64,
    pub comm: u64,
    pub collective: Collective,
    /// The place of its cell.
    pub place: usize,
    pub record: Option<usize>,
}

impl Gap {
    /// [`OPEN`], [`INSIDE`], or 0.
    #[inline(always)]
    pub fn mark(&self) -> usize {
        self.mark.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn open(&self, behind: Sample) {
        self.since.store(behind.end, Ordering::Relaxed);
        self.handle.store(behind.handle, Ordering::Relaxed);
        self.comm.store(behind.comm, Ordering::Relaxed);
        self.collective
            .store(behind.collective.index(), Ordering::Relaxed);
        self.place.store(behind.place, Ordering::Relaxed);
        let record = behind.record.unwrap_or(UNRECORDED);
        self.record.store(record, Ordering::Relaxed);
        self.mark.store(OPEN, Ordering::Relaxed);
    }

    /// Ends what is timed at `now`, and says what that is and behind which sample; `None` where nothing is. What begins
    /// then is `next`, [`INSIDE`] or 0.
    #[cold]
    pub fn close(&self, now: u64, next: usize) -> Option<(GapPart, Sample)> {
        let part = match self.mark() {
            OPEN => GapPart::Shift,
            INSIDE => GapPart::After,
            _ => return None,
        };
        // One thread uses it, and an exchange costs as much as all the rest.
        self.mark.store(next, Ordering::Relaxed);
        let end = self.since.load(Ordering::Relaxed);
        self.since.store(now, Ordering::Relaxed);
        let record = self.record.load(Ordering::Relaxed);
        let sample = Sample {
            end,
            handle: self.handle.load(Ordering::Relaxed),
            comm: self.comm.load(Ordering::Relaxed),
            collective: Collective::from_index(self.collective.load(Ordering::Relaxed))?,
            place: self.place.load(Ordering::Relaxed),
            record: (record != UNRECORDED).then_some(record),
        };
        Some((part, sample))
    }

    /// The next collective begins, when agreements have cost so many ticks.
    #[cold]
    pub fn begin_inside(&self, agreeing_ticks: u64) {
        self.agreeing.store(agreeing_ticks, Ordering::Relaxed);
    }

    /// Whether the ranks have agreed on something of ours since the next collective began.
    #[cold]
    pub fn has_agreement(&self, agreeing_ticks: u64) -> bool {
        self.agreeing.load(Ordering::Relaxed) != agreeing_ticks
    }

    /// Gives the open gap up: its time stays unknown.
    #[cold]
    pub fn forget(&self) {
        self.mark.store(0, Ordering::Relaxed);
    }
}
