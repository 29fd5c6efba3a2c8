//! Where this rank's time goes: its calls of collectives, counted by kind and timed in part. The ranks add up what they
//! have seen when the job ends; until then it is each rank's own, and nothing decides by it.

mod ledger;

mod named;

mod left_out;
pub use left_out::LeftOut;

mod closing;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use colltune_core::account::{self, KINDS, PairOfEpochs, Pairs, Seen, Timed, Together};
use colltune_core::collective::Collective;
use colltune_core::decide::call::SharedCall;
use colltune_core::levers::asked::{self, Asked, Epoch, LeverPlace};

use crate::clock::{self, Conversion};
use named::Named;

/// Which calls may run at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    One,
    /// Several threads count in the same places.
    Several,
}

/// Where an account goes when the job ends; the same on all ranks.
pub struct Destination {
    pub summary: colltune_core::settings::SummaryTo,
    /// The folder of the database that takes one file for each job.
    pub ledger: Option<String>,
}

/// The account of one rank.
pub struct Account {
    kinds: Box<[Kind]>,
    /// Calls that pass through.
    passed: AtomicU64,
    /// Calls that are timed to learn from.
    sampled: AtomicU64,
    threads: Threads,
    clock: Conversion,
    seed: u64,
    /// When MPI_Init returned.
    began: u64,
    began_unix_ms: u64,
    named: Named,
    /// What the program asked about its levers; on rank 0.
    asked: Mutex<Vec<Asked>>,
    /// Epochs with the choices and without them; on rank 0.
    pairs: Mutex<Pairs>,
    /// Bytes written to the ledger before the job's end.
    told_bytes: AtomicU64,
    to: Destination,
}

/// What was seen of a collective and a range of sizes; times are in ticks.
#[derive(Default)]
struct Kind {
    calls: AtomicU64,
    next_timed: AtomicU64,
    always_calls: AtomicU64,
    always_ticks: AtomicU64,
    thinned_calls: AtomicU64,
    thinned_ticks: AtomicU64,
    /// Of both, what the library's own choices would have taken.
    always_default_ticks: AtomicU64,
    thinned_default_ticks: AtomicU64,
    tuned: AtomicU64,
    compared_ns: AtomicU64,
    work_ns: AtomicU64,
}

/// A call that is being timed; its end is when this goes.
pub struct Span<'a> {
    threads: Threads,
    calls: &'a AtomicU64,
    ticks: &'a AtomicU64,
    /// Takes what the library's own choice would have taken.
    default_ticks: &'a AtomicU64,
    /// The time of the library's own choice over that of what runs, as far as it is known.
    gain: Cell<f64>,
    /// For how many calls it stands.
    weight: u64,
    begun: u64,
}

impl Span<'_> {
    /// The call runs something else than the library's own choice, which would take `gain` times as long.
    pub fn gains(&self, gain: f64) {
        self.gain.set(gain);
    }
}

impl Drop for Span<'_> {
    #[cold]
    fn drop(&mut self) {
        let ticks = clock::ticks().wrapping_sub(self.begun);
        add(self.calls, self.weight, self.threads);
        let ticks = ticks.wrapping_mul(self.weight);
        add(self.ticks, ticks, self.threads);
        let more = account::default_ticks(ticks, self.gain.get());
        add(self.default_ticks, more, self.threads);
    }
}

/// Adds to a number, as cheaply as the threads allow.
#[inline(always)]
fn add(number: &AtomicU64, more: u64, threads: Threads) -> u64 {
    if threads == Threads::Several {
        return number.fetch_add(more, Ordering::Relaxed);
    }
    let before = number.load(Ordering::Relaxed);
    number.store(before.wrapping_add(more), Ordering::Relaxed);
    before
}

impl Account {
    /// An account that begins now.
    pub fn open(seed: u64, threads: Threads, clock: Conversion, to: Destination) -> Account {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Account {
            kinds: std::iter::repeat_with(Kind::default).take(KINDS).collect(),
            passed: AtomicU64::new(0),
            sampled: AtomicU64::new(0),
            threads,
            clock,
            seed,
            began: clock::ticks(),
            began_unix_ms: now.map_or(0, |time| time.as_millis() as u64),
            named: Named::now(),
            asked: Mutex::default(),
            pairs: Mutex::default(),
            told_bytes: AtomicU64::new(0),
            to,
        }
    }

    /// Counts a call; times it, until the span goes, where it is one of those that are timed.
    #[inline(always)]
    pub fn count(&self, call: SharedCall) -> Option<Span<'_>> {
        let place = account::kind(call.collective, call.bytes);
        let kind = &self.kinds[place];
        let index = add(&kind.calls, 1, self.threads);
        if index < kind.next_timed.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.time(kind, place, index))
    }

    #[cold]
    fn time<'a>(&self, kind: &'a Kind, place: usize, index: u64) -> Span<'a> {
        let next = account::next_timed(self.seed, place, index);
        kind.next_timed.store(next, Ordering::Relaxed);
        let weight = account::stands_for(place, index);
        let (calls, ticks, default_ticks) = match weight {
            None => (
                &kind.always_calls,
                &kind.always_ticks,
                &kind.always_default_ticks,
            ),
            Some(_) => (
                &kind.thinned_calls,
                &kind.thinned_ticks,
                &kind.thinned_default_ticks,
            ),
        };
        Span {
            threads: self.threads,
            calls,
            ticks,
            default_ticks,
            gain: Cell::new(1.0),
            weight: weight.unwrap_or(1),
            begun: clock::ticks(),
        }
    }

    /// Counts a call that passes through.
    #[inline(always)]
    pub fn pass(&self) {
        add(&self.passed, 1, self.threads);
    }

    /// Counts a call that is timed to learn from.
    #[inline]
    pub fn sample(&self) {
        add(&self.sampled, 1, self.threads);
    }

    /// The call runs something else than the library's own choice.
    #[inline(always)]
    pub fn tuned(&self, call: SharedCall) {
        let kind = &self.kinds[account::kind(call.collective, call.bytes)];
        add(&kind.tuned, 1, self.threads);
    }

    /// A call was compared: what it took on this rank, and from the last one's arrival to the last one's departure.
    pub fn compared(&self, collective: Collective, bytes: u64, own_ns: u64, work_ns: u64) {
        let kind = &self.kinds[account::kind(collective, bytes)];
        add(&kind.compared_ns, own_ns, self.threads);
        add(&kind.work_ns, work_ns.min(own_ns), self.threads);
    }

    /// Keeps an epoch with the choices and one without.
    pub fn pair(&self, pair: PairOfEpochs) {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.add(pair);
    }

    /// Keeps an epoch of a lever. Returns how many there were of it by now; `None` where it is no measurement.
    pub fn epoch(&self, place: &LeverPlace, arms: &[String], epoch: Epoch) -> Option<u64> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let added = asked::add(&mut asked, place, arms, epoch);
        let its = asked
            .iter()
            .find(|asked| asked.place == *place && asked.arms == arms)?;
        added.then_some(its.all)
    }

    /// The ticks since MPI_Init.
    fn wall_ns(&self) -> u64 {
        self.clock.span_ns(clock::ticks().wrapping_sub(self.began))
    }

    /// What this rank has to tell of each kind.
    fn kinds(&self) -> impl Iterator<Item = Together> {
        let ns = |ticks: &AtomicU64| self.clock.span_ns(ticks.load(Ordering::Relaxed));
        let timed = move |calls: &AtomicU64, ticks, default_ticks| Timed {
            calls: calls.load(Ordering::Relaxed),
            ns: ns(ticks),
            default_ns: ns(default_ticks),
        };
        self.kinds.iter().map(move |kind| {
            let seen = Seen {
                calls: kind.calls.load(Ordering::Relaxed),
                always: timed(
                    &kind.always_calls,
                    &kind.always_ticks,
                    &kind.always_default_ticks,
                ),
                thinned: timed(
                    &kind.thinned_calls,
                    &kind.thinned_ticks,
                    &kind.thinned_default_ticks,
                ),
            };
            Together {
                calls: seen.calls,
                tuned: kind.tuned.load(Ordering::Relaxed),
                ns: seen.ns(),
                compared_ns: kind.compared_ns.load(Ordering::Relaxed),
                work_ns: kind.work_ns.load(Ordering::Relaxed),
                default_ns: seen.default_ns(),
            }
        })
    }
}
