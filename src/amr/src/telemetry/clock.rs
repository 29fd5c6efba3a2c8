//! Where a rank's time goes: one phase at a time, so that the phases of a step add up to all of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustix::time::{ClockId, clock_gettime};

use super::rows::Phase;

/// A rank's time by phase. Clones share it. Until it is started it reads no clock.
#[derive(Clone, Debug, Default)]
pub struct Clock(Rc<State>);

#[derive(Debug, Default)]
struct State {
    runs: Cell<bool>,
    phase: Cell<Phase>,
    since: Cell<u64>,
    spent: [Cell<u64>; Phase::ALL.len()],
    /// The thread's processor time when it last began to work, and what work has had before.
    cpu_since: Cell<u64>,
    cpu_spent: Cell<u64>,
    /// Stretches since they were last taken, where they are kept.
    spans: RefCell<Option<Vec<Span>>>,
}

/// A stretch of one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub phase: Phase,
    pub begin: u64,
    pub end: u64,
}

/// Until it is dropped, time belongs to a phase; then to the one before.
#[must_use]
pub struct During {
    clock: Clock,
    before: Phase,
}

/// Nanoseconds of the host's monotonic clock.
pub fn now_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// Nanoseconds that this thread has had a processor.
pub fn cpu_ns() -> u64 {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Clock {
    pub fn start(&self) {
        let state = &self.0;
        state.runs.set(true);
        state.since.set(now_ns());
        state.cpu_since.set(cpu_ns());
    }

    /// Keeps stretches of phases from now on.
    pub fn keep_spans(&self) {
        self.0.spans.borrow_mut().get_or_insert_default();
    }

    /// The stretches so far, but for those that have no phase of their own.
    pub fn take_spans(&self) -> Vec<Span> {
        let mut spans = self.0.spans.borrow_mut();
        let mut spans = spans.as_mut().map(std::mem::take).unwrap_or_default();
        spans.retain(|span| span.phase != Phase::Other);
        spans
    }

    pub fn runs(&self) -> bool {
        self.0.runs.get()
    }

    pub fn during(&self, phase: Phase) -> During {
        let before = self.0.phase.get();
        self.turn_to(phase);
        During {
            clock: self.clone(),
            before,
        }
    }

    fn turn_to(&self, phase: Phase) {
        let state = &self.0;
        let before = state.phase.get();
        if !state.runs.get() || before == phase {
            state.phase.set(phase);
            return;
        }
        self.settle();
        state.phase.set(phase);
        // A rank that waits looks for messages all the time: that is no work.
        match (before.waits(), phase.waits()) {
            (false, true) => self.settle_cpu(),
            (true, false) => state.cpu_since.set(cpu_ns()),
            _ => {}
        }
    }

    /// Books the time since the last change of phase; gives now.
    fn settle(&self) -> u64 {
        let (state, now) = (&self.0, now_ns());
        let (phase, begin) = (state.phase.get(), state.since.replace(now));
        let spent = &state.spent[phase as usize];
        spent.set(spent.get() + (now - begin));
        if let Some(spans) = state.spans.borrow_mut().as_mut() {
            // It may only have been asked how long it is so far.
            match spans.last_mut() {
                Some(last) if last.phase == phase && last.end == begin => last.end = now,
                _ => spans.push(Span {
                    phase,
                    begin,
                    end: now,
                }),
            }
        }
        now
    }

    fn settle_cpu(&self) {
        let (state, now) = (&self.0, cpu_ns());
        let had = now - state.cpu_since.replace(now);
        state.cpu_spent.set(state.cpu_spent.get() + had);
    }

    /// Now, and nanoseconds by phase so far; zeros before the start.
    pub fn spent(&self) -> (u64, [u64; Phase::ALL.len()]) {
        let now = if self.runs() { self.settle() } else { 0 };
        (now, self.0.spent.each_ref().map(Cell::get))
    }

    /// Nanoseconds in a phase so far.
    pub fn spent_in(&self, phase: Phase) -> u64 {
        self.spent().1[phase as usize]
    }

    /// Nanoseconds of processor time outside of waiting so far.
    pub fn cpu_spent(&self) -> u64 {
        if !self.0.phase.get().waits() {
            self.settle_cpu();
        }
        self.0.cpu_spent.get()
    }

    /// Books time that was one phase's as another's.
    pub fn rebook(&self, from: Phase, to: Phase, ns: u64) {
        let [from, to] = [from, to].map(|phase| &self.0.spent[phase as usize]);
        let ns = ns.min(from.get());
        from.set(from.get() - ns);
        to.set(to.get() + ns);
    }
}

impl Drop for During {
    fn drop(&mut self) {
        self.clock.turn_to(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_within_phases_add_up_to_the_whole() {
        let clock = Clock::default();
        drop(clock.during(Phase::Pack));
        assert_eq!(clock.0.spent[Phase::Pack as usize].get(), 0, "not started");
        clock.start();
        clock.keep_spans();
        let (begin, before) = clock.spent();
        let pass = |ns: u64| {
            let end = now_ns() + ns;
            while now_ns() < end {}
        };
        {
            let _refine = clock.during(Phase::Refine);
            pass(1000);
            let _wait = clock.during(Phase::Wait);
            pass(2000);
        }
        {
            let _compute = clock.during(Phase::Compute);
            pass(3000);
        }
        for (phase, least) in [
            (Phase::Refine, 1000),
            (Phase::Wait, 2000),
            (Phase::Compute, 3000),
        ] {
            let spent = clock.spent().1[phase as usize];
            assert!(spent >= least, "{phase:?}: {spent}");
        }
        let spans = clock.take_spans();
        let phases: Vec<Phase> = spans.iter().map(|span| span.phase).collect();
        // Refinement ends behind the waiting within it.
        let expected = [Phase::Refine, Phase::Wait, Phase::Refine, Phase::Compute];
        assert_eq!(phases, expected);
        for phase in expected {
            let own = spans.iter().filter(|span| span.phase == phase);
            let sum: u64 = own.map(|span| span.end - span.begin).sum();
            assert_eq!(sum, clock.spent().1[phase as usize]);
        }
        assert!(spans.is_sorted_by(|one, next| one.end <= next.begin));
        assert_eq!(clock.take_spans(), []);
        clock.rebook(Phase::Compute, Phase::Unpack, u64::MAX);
        let (end, after) = clock.spent();
        let sum = |spent: [u64; Phase::ALL.len()]| spent.iter().sum::<u64>();
        assert_eq!(sum(after) - sum(before), end - begin);
        assert_eq!(after[Phase::Compute as usize], 0);
        assert!(after[Phase::Unpack as usize] >= 3000);
    }
}
