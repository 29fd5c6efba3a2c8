//! One call, from what the core decides about it to its result: agree, execute, record, review.

mod set_up;

mod execute;
pub use execute::Ways;
mod refusal;
mod review;

mod passing;
pub use passing::{PassingCall, WatchedCall};

use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use colltune_core::collective::Collective;
use colltune_core::decide::call::SharedCall;
use colltune_core::decide::hopeless::KnownHopeless;
use colltune_core::decide::rules::Rules;
use colltune_core::request::Mode;

use crate::account::Account;
use crate::call_log::CallLog;
use crate::clock::{self, Conversion};
use crate::communicator::{Registry, State};
use crate::flight::{Entered, Flight, UnderWay};
use crate::frames;
use crate::gap::{self, Gap};
use crate::messages;
use crate::recorder::Recorder;
use crate::steer::Steer;
use crate::warn::say;
use crate::world::World;

/// Everything that a job's calls need, built once after the handshake.
pub struct Tuner {
    pub world: World,
    pub rules: Rules,
    /// The place of a collective's first variant in the headers of trace and flight recording.
    pub first_variant: [u16; Collective::ALL.len()],
    pub registry: &'static Registry,
    pub steer: Steer,
    pub clock: Conversion,
    pub recorder: Option<Recorder>,
    pub log: Option<Mutex<CallLog>>,
    pub flight: Option<&'static Flight>,
    /// Where the time goes, if a summary is asked for.
    pub account: Option<Account>,
    /// Whether a call is neither logged nor kept nor counted for anybody.
    pub is_plain: bool,
    /// The job's name in files.
    pub job: String,
    /// The library, as the database names it.
    pub library: String,
    /// The folder of this job's traces.
    pub incoming: Option<String>,
    pub thread_multiple: bool,
    /// An address in the frame of the tuned call that is under way; between calls, the mark of the gap.
    pub busy: AtomicUsize,
    pub gap: Gap,
    pub next_comm: AtomicU64,
    /// What its communicators try no more.
    pub hopeless: KnownHopeless,
    /// Choices that this rank left for the default, since they had become slower.
    pub demoted: AtomicU64,
    pub warned: [AtomicBool; Collective::ALL.len()],
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

    /// Notes a communicator's present call, which runs a variant as far as is known, until the call ends.
    #[inline(always)]
    fn under_way(&self, state: &State, call: SharedCall, variant: u16) -> Option<UnderWay> {
        let flight = self.flight?;
        Some(flight.enter(Entered {
            comm: state.decider.agreed().id,
            n_ranks: state.n_ranks,
            call: state.decider.calls().saturating_sub(1),
            collective: call.collective,
            bytes: call.bytes,
            variant: self.listed(call.collective, variant),
        }))
    }

    /// The place of a collective's variant in the headers of trace and flight recording.
    #[inline(always)]
    fn listed(&self, collective: Collective, variant: u16) -> u16 {
        self.first_variant[collective.index()] + variant
    }

    /// Whether this call, whose frame holds the address `here`, may be tuned. With several threads each call stands for
    /// itself, but those of an error handler that is called while a communicator's state is borrowed.
    #[inline(always)]
    pub fn enter(&self, here: usize) -> bool {
        if self.thread_multiple {
            return !frames::is_kept_out(here);
        }
        let outer = self.busy.load(Ordering::Relaxed);
        if outer != 0 && self.is_under_way(outer, here, gap::INSIDE) {
            return false;
        }
        self.busy.store(here, Ordering::Relaxed);
        true
    }

    #[inline(always)]
    pub fn leave(&self) {
        self.busy.store(self.gap.mark(), Ordering::Relaxed);
    }

    /// A tuned call has ended. Where it was the next one behind a sample, the sample learns how long it took.
    #[inline(always)]
    pub fn ends(&self) {
        if self.gap.mark() == gap::INSIDE {
            self.ends_at(clock::ticks());
            self.leave();
        }
    }

    #[cold]
    fn ends_at(&self, now: u64) {
        if self.gap.mark() != gap::INSIDE {
            return;
        }
        match self.gap.has_agreement(self.spending.agreeing_ticks()) {
            true => self.gap.forget(),
            false => self.close_gap(now, 0),
        }
    }

    /// Whether a tuned call is under way, and this one belongs to it.
    #[inline(always)]
    pub fn is_entered(&self, here: usize) -> bool {
        if self.thread_multiple {
            return frames::is_kept_out(here);
        }
        let outer = self.busy.load(Ordering::Relaxed);
        outer != 0 && self.is_under_way(outer, here, 0)
    }

    /// Whether the call that is noted is under way still, and was not left by a longjmp. Where a gap is noted instead,
    /// `next` begins.
    #[cold]
    fn is_under_way(&self, outer: usize, here: usize, next: usize) -> bool {
        if outer == gap::OPEN {
            self.close_gap(clock::ticks(), next);
            self.gap.begin_inside(self.spending.agreeing_ticks());
            self.leave();
            return false;
        }
        let alive = outer != gap::INSIDE && frames::is_alive(outer, here);
        if !alive {
            self.gap.forget();
            self.leave();
            self.steer.put_back();
        }
        alive
    }

    /// Gives the last sample the time from its end to here, unless it has one; `next` begins.
    #[cold]
    fn close_gap(&self, now: u64, next: usize) {
        let Some((part, sample)) = self.gap.close(now, next) else {
            return;
        };
        let ns = self.clock.span_ns(now.wrapping_sub(sample.end));
        // SAFETY: no tuned call is under way on this thread, and no other thread calls meanwhile.
        let found = unsafe { self.registry.find_by_bits(sample.handle) };
        let told = found.is_none_or(|mut found| {
            let decider = &mut found.state().decider;
            decider.agreed().id != sample.comm
                || decider.close_gap(sample.collective, sample.place, part, ns)
        });
        if let (Some(recorder), Some(record)) = (&self.recorder, sample.record.filter(|_| told)) {
            recorder.behind(record, part, ns);
        }
    }

    /// Closes account and trace and frees what hangs on communicators. Only from MPI_Finalize, disarmed.
    pub fn finish(&'static self) {
        if self.gap.mark() == gap::OPEN {
            self.close_gap(clock::ticks(), 0);
        }
        self.registry.wind_down();
        if let Some(account) = &self.account {
            let (left_out, named) = (&self.registry.left_out, (&*self.job, &*self.library));
            account.close(&self.world, &self.rules.terms, left_out, named);
        }
        messages::free(self.messages, self.pmpi);
        let demoted = self.demoted.load(Ordering::Relaxed);
        if demoted > 0 && self.rank() == 0 {
            let then = match self.rules.terms.mode {
                Mode::Tables => "train and export anew",
                _ => "train anew",
            };
            say(&format!(
                "{demoted} choices were slower than the library's own, which ran instead from there on: {then}"
            ));
        }
        self.keep_records();
    }

    /// Closes the trace.
    pub fn keep_records(&self) {
        let kept = self.recorder.as_ref().map(Recorder::finish);
        if let Some(Err(error)) = kept
            && self.rank() == 0
            && self.rules.terms.mode.records()
        {
            let folder = self.incoming.as_deref().unwrap_or_default();
            say(&format!(
                "failed to write all that was recorded to {folder}: {error}; the job itself is complete"
            ));
        }
    }
}
