//! What a rank's time goes into.

use serde::Serialize;

use crate::rows::Window;

/// A rank's time, in nanoseconds. `work`, `wait`, `other`, `sync` and `call` add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Computing, packing, copying, unpacking, summing.
    pub work: i64,
    /// Refining, placing, moving, writing, and what has no phase.
    pub other: i64,
    /// Waiting for messages.
    pub wait: i64,
    /// Of `wait`: until the partner had posted. Where rounds were recorded.
    pub late: i64,
    /// Waiting for the last rank of a collective.
    pub sync: i64,
    /// The collective itself.
    pub call: i64,
    /// Of `work` and `other`: without a processor.
    pub off: i64,
}

impl Share {
    pub fn whole(&self) -> i64 {
        self.work + self.other + self.wait + self.sync + self.call
    }

    pub fn add(&mut self, other: &Share) {
        self.work += other.work;
        self.other += other.other;
        self.wait += other.wait;
        self.late += other.late;
        self.sync += other.sync;
        self.call += other.call;
        self.off += other.off;
    }

    pub fn of(window: &Window, last_arrival: i64) -> Share {
        let before = (window.arrive - window.begin).max(0);
        let sum = window.compute + window.pack + window.copy + window.unpack + window.sum;
        let work = sum.min(before);
        let wait = window.wait.min(before - work);
        // A rank never leaves before the last one comes: what clocks say otherwise is their error.
        let sync = (last_arrival.min(window.leave) - window.arrive).max(0);
        Share {
            work,
            other: before - work - wait,
            wait,
            late: 0,
            sync,
            call: (window.leave - window.arrive).max(0) - sync,
            off: (before - wait - window.cpu).max(0),
        }
    }
}
