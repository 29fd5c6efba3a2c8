//! Gap: from the end of a sampled call to this rank's next collective.
//!
//! What a variant saves inside a call it may cost in what follows, so that is timed, too. While a gap is open, the
//! word that says whether a tuned call is under way says that instead; so calls without a gap before them pay nothing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use colltune_core::collective::Collective;

/// What the word holds where a gap is open: no frame has that address.
pub const OPEN: usize = 1;
/// A sample without a record.
const UNRECORDED: usize = usize::MAX;

/// The gap, if one is open. One thread uses it.
#[derive(Default)]
pub struct Gap {
    /// [`OPEN`], or 0.
    mark: AtomicUsize,
    since: AtomicU64,
    handle: AtomicU64,
    comm: AtomicU64,
    collective: AtomicUsize,
    place: AtomicUsize,
    record: AtomicUsize,
}

/// The sample that a gap is behind.
#[derive(Clone, Copy)]
pub struct Sample {
    /// When it ended, in ticks.
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
    /// [`OPEN`], or 0.
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

    /// Closes the gap, and says behind which sample it was; `None` where none is open.
    #[cold]
    pub fn close(&self) -> Option<Sample> {
        if self.mark() != OPEN {
            return None;
        }
        // One thread uses it, and an exchange costs as much as all the rest.
        self.mark.store(0, Ordering::Relaxed);
        let record = self.record.load(Ordering::Relaxed);
        Some(Sample {
            end: self.since.load(Ordering::Relaxed),
            handle: self.handle.load(Ordering::Relaxed),
            comm: self.comm.load(Ordering::Relaxed),
            collective: Collective::from_index(self.collective.load(Ordering::Relaxed))?,
            place: self.place.load(Ordering::Relaxed),
            record: (record != UNRECORDED).then_some(record),
        })
    }
}
