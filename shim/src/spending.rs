//! What agreements have cost this rank since MPI_Init, on all communicators together.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use colltune_core::review::spent_ppm;

use crate::clock::{self, Conversion};

/// Programs that keep their communicators have fewer; the cost of these counts as 0.
const MANY: u64 = 16;

pub struct Spending {
    /// When MPI_Init returned.
    began: u64,
    /// In which ranks agreed on something that the program would not have waited for.
    agreeing_ticks: AtomicU64,
    is_agreeing: AtomicBool,
    /// Communicators that were set up, and what these had for it: agreements and what was opened.
    set_ups: AtomicU64,
    set_up_ticks: AtomicU64,
}

/// The ranks agree until this goes.
pub struct Agreement<'a> {
    spending: &'a Spending,
    begun: u64,
    opens: bool,
}

impl Spending {
    /// Begins now.
    pub fn begin() -> Spending {
        Spending {
            began: clock::ticks(),
            agreeing_ticks: AtomicU64::new(0),
            is_agreeing: AtomicBool::new(false),
            set_ups: AtomicU64::new(0),
            set_up_ticks: AtomicU64::new(0),
        }
    }

    /// `None` within another one. Where several threads agree at once, one of them is timed.
    #[cold]
    pub fn agreement(&self) -> Option<Agreement<'_>> {
        let within = self.is_agreeing.swap(true, Ordering::Relaxed);
        (!within).then(|| Agreement {
            spending: self,
            begun: clock::ticks(),
            opens: false,
        })
    }

    /// The same where something is opened for a communicator that is set up.
    #[cold]
    pub fn opening(&self) -> Option<Agreement<'_>> {
        let mut agreement = self.agreement()?;
        agreement.opens = true;
        Some(agreement)
    }

    /// What agreements have cost; each one that ends adds to it.
    pub fn agreeing_ticks(&self) -> u64 {
        self.agreeing_ticks.load(Ordering::Relaxed)
    }

    pub fn agreeing_ns(&self, clock: &Conversion) -> u64 {
        clock.span_ns(self.agreeing_ticks())
    }

    /// Notes that a communicator is set up, which took so many ticks.
    pub fn sets_up(&self, ticks: u64) {
        self.set_ups.fetch_add(1, Ordering::Relaxed);
        self.set_up_ticks.fetch_add(ticks, Ordering::Relaxed);
    }

    /// What a communicator that is set up has cost, on the mean; 0 where they are not many yet.
    pub fn each_ns(&self, clock: &Conversion) -> u64 {
        let set_ups = self.set_ups.load(Ordering::Relaxed);
        match set_ups < MANY {
            true => 0,
            false => clock.span_ns(self.set_up_ticks.load(Ordering::Relaxed)) / set_ups,
        }
    }

    /// The same as the ranks compare it.
    pub fn share_ppm(&self, clock: &Conversion) -> u64 {
        let elapsed_ns = clock.span_ns(clock::ticks().wrapping_sub(self.began));
        spent_ppm(self.agreeing_ns(clock), elapsed_ns)
    }
}

impl Drop for Agreement<'_> {
    fn drop(&mut self) {
        let ticks = clock::ticks().wrapping_sub(self.begun);
        let Agreement {
            spending, opens, ..
        } = *self;
        if opens {
            spending.set_up_ticks.fetch_add(ticks, Ordering::Relaxed);
        }
        spending.agreeing_ticks.fetch_add(ticks, Ordering::Relaxed);
        spending.is_agreeing.store(false, Ordering::Relaxed);
    }
}
