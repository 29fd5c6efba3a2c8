//! What a rank records as it runs: windows between collectives, rounds of messages, and who gets how much.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::clock::{Clock, now_ns};
use super::rows::{Freight, Meeting, NONE, Phase, Rows, Table};

/// The record of one rank. Clones share it. Until it is started it keeps nothing.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    pub clock: Clock,
    inner: Rc<RefCell<Inner>>,
    /// Read at each round, so it is a `Cell` apart.
    rounds: Rc<Cell<bool>>,
}

#[derive(Debug, Default)]
struct Inner {
    rank: u64,
    step: u64,
    window: u64,
    n_rounds: u64,
    /// Rounds of the window that has not ended, which say its step then.
    open_rounds: Vec<[u64; 12]>,
    rounds_of_step: u64,
    begin: Mark,
    rows: Rows,
    /// What this step has given so far.
    partners: Partners,
    /// The last steps, as far back as they have all given the same.
    alike: Option<Alike>,
}

/// Messages and bytes by partner.
type Partners = BTreeMap<(usize, Freight), (u64, u64)>;

/// Steps that have given the same each.
#[derive(Debug)]
struct Alike {
    first_step: u64,
    last_step: u64,
    partners: Partners,
}

/// The moment at which a window begins, and what had been spent by then.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: u64,
    spent: [u64; Phase::ALL.len()],
    cpu: u64,
}

/// Whether each round of messages has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    Left,
    Kept,
}

/// One exchange of messages with all partners; times are 0 where rounds are not kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    pub begin: u64,
    /// When everything that leaves had been posted.
    pub posted: u64,
    /// When the rank had nothing left to do but wait.
    pub served: u64,
    /// When the last message was complete, and whose it was.
    pub last: u64,
    pub last_from: Option<usize>,
    /// Messages and bytes that were received.
    pub messages: u64,
    pub bytes: u64,
}

impl Recorder {
    /// Starts to record: the next window begins now.
    pub fn start(&self, rank: usize, step: u64, rounds: Rounds) {
        self.clock.start();
        self.rounds.set(rounds == Rounds::Kept);
        let mut inner = self.inner.borrow_mut();
        inner.rank = rank as u64;
        inner.begin = self.mark();
        inner.step = step;
    }

    pub fn begin_step(&self, step: u64) {
        let mut inner = self.inner.borrow_mut();
        if inner.step != step {
            inner.end_step();
            (inner.step, inner.window, inner.rounds_of_step) = (step, 0, 0);
        }
    }

    fn mark(&self) -> Mark {
        let cpu = self.clock.cpu_spent();
        let (at, spent) = self.clock.spent();
        Mark { at, spent, cpu }
    }

    /// Makes a collective call of all ranks, which ends a window.
    pub fn meet<T>(&self, how: Meeting, bytes: usize, call: impl FnOnce() -> T) -> T {
        if !self.clock.runs() {
            return call();
        }
        let arrived = self.mark();
        let result = {
            let _call = self.clock.during(how.phase());
            call()
        };
        let left = self.mark();
        let mut inner = self.inner.borrow_mut();
        let begin = std::mem::replace(&mut inner.begin, left);
        let spent = |phase: Phase| arrived.spent[phase as usize] - begin.spent[phase as usize];
        let row = [
            inner.step,
            inner.window,
            inner.rank,
            how as u64,
            bytes as u64,
            begin.at,
            arrived.at,
            left.at,
            spent(Phase::Compute),
            spent(Phase::Pack),
            spent(Phase::Copy),
            spent(Phase::Wait),
            spent(Phase::Unpack),
            spent(Phase::Sum),
            arrived.cpu - begin.cpu,
            inner.n_rounds,
        ];
        inner.rows.push(Table::Windows, row);
        for mut round in std::mem::take(&mut inner.open_rounds) {
            (round[0], round[1]) = (inner.step, inner.window);
            inner.rows.push(Table::Rounds, round);
        }
        inner.window += 1;
        inner.n_rounds = 0;
        result
    }

    /// The time where rounds are kept, 0 otherwise.
    pub fn moment(&self) -> u64 {
        if self.rounds.get() { now_ns() } else { 0 }
    }

    /// A round that begins now.
    pub fn round(&self) -> Round {
        Round {
            begin: self.moment(),
            ..Round::default()
        }
    }

    /// Takes a round whose values are in their places.
    pub fn done(&self, round: Round) {
        if !self.clock.runs() {
            return;
        }
        let mut inner = self.inner.borrow_mut();
        if self.rounds.get() {
            let row = [
                inner.step,
                inner.window,
                inner.n_rounds,
                inner.rank,
                round.begin,
                round.posted,
                round.served,
                round.last.max(round.served),
                round.last_from.map_or(NONE, |rank| rank as u64),
                now_ns(),
                round.messages,
                round.bytes,
            ];
            inner.open_rounds.push(row);
        }
        inner.n_rounds += 1;
        inner.rounds_of_step += 1;
    }

    /// Rounds of this step so far, the same on every rank.
    pub fn rounds_of_step(&self) -> u64 {
        match self.rounds.get() {
            true => self.inner.borrow().rounds_of_step,
            false => 0,
        }
    }

    /// A message leaves for another rank.
    pub fn sent(&self, to: usize, what: Freight, n_values: usize) {
        if !self.clock.runs() {
            return;
        }
        let mut inner = self.inner.borrow_mut();
        let sum = inner.partners.entry((to, what)).or_default();
        *sum = (sum.0 + 1, sum.1 + 8 * n_values as u64);
    }

    /// Nothing more is sent: steps that have no rows yet get them.
    pub fn close_partners(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.end_step();
        inner.push_alike();
    }

    /// The rows so far.
    pub fn take_rows(&self) -> Rows {
        std::mem::take(&mut self.inner.borrow_mut().rows)
    }
}

impl Inner {
    /// Rows of partners are for stretches of steps with the same messages, which a changed plan ends, and a step with
    /// more than the others, as that of a refinement.
    fn end_step(&mut self) {
        if self.partners.is_empty() {
            return;
        }
        let (step, partners) = (self.step, std::mem::take(&mut self.partners));
        match &mut self.alike {
            Some(alike) if alike.last_step + 1 == step && alike.partners == partners => {
                alike.last_step = step;
            }
            _ => {
                self.push_alike();
                self.alike = Some(Alike {
                    first_step: step,
                    last_step: step,
                    partners,
                });
            }
        }
    }

    fn push_alike(&mut self) {
        let Some(alike) = self.alike.take() else {
            return;
        };
        let (first, last) = (alike.first_step, alike.last_step);
        let n_steps = last - first + 1;
        for ((partner, what), (messages, bytes)) in alike.partners {
            let row = [
                first,
                last,
                self.rank,
                partner as u64,
                what as u64,
                n_steps * messages,
                n_steps * bytes,
            ];
            self.rows.push(Table::Partners, row);
        }
    }
}

impl Meeting {
    fn phase(self) -> Phase {
        match self {
            Meeting::Allreduce => Phase::Allreduce,
            Meeting::Agree => Phase::Agree,
            _ => Phase::Allgather,
        }
    }
}

impl Round {
    /// A message of `from` was the last that was complete at `at`.
    pub fn last(&mut self, at: u64, from: usize) {
        (self.last, self.last_from) = (at, Some(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_what_was_spent_between_two_calls_and_rounds_are_counted_in_it() {
        let recorder = Recorder::default();
        recorder.meet(Meeting::Barrier, 0, || ());
        assert!(recorder.take_rows().is_empty(), "not started");
        recorder.start(3, 1, Rounds::Kept);
        recorder.begin_step(1);
        drop(recorder.clock.during(Phase::Pack));
        let mut round = recorder.round();
        round.last(recorder.moment(), 2);
        recorder.done(round);
        recorder.sent(2, Freight::Ghost, 4);
        recorder.meet(Meeting::Allreduce, 8, || ());
        recorder.meet(Meeting::Agree, 4, || ());
        recorder.close_partners();
        let rows = recorder.take_rows();
        let windows: Vec<&[u64]> = rows.of(Table::Windows).collect();
        let [first, second] = windows[..] else {
            panic!("{windows:?}");
        };
        assert_eq!(first[..5], [1, 0, 3, Meeting::Allreduce as u64, 8]);
        assert!(first[9] > 0 && first[9] <= first[6] - first[5], "{first:?}");
        assert_eq!((first[15], second[15]), (1, 0), "rounds");
        assert_eq!(first[7], second[5], "a window begins where the last ends");
        assert_eq!(second[1..4], [1, 3, Meeting::Agree as u64]);
        let round = rows.of(Table::Rounds).next().expect("a round");
        assert_eq!((round[3], round[8]), (3, 2));
        let partner = rows.of(Table::Partners).next().expect("a partner");
        assert_eq!(*partner, [1, 1, 3, 2, Freight::Ghost as u64, 1, 32]);
    }

    #[test]
    fn partners_have_a_row_for_each_stretch_of_steps_that_gave_the_same() {
        let recorder = Recorder::default();
        recorder.start(0, 1, Rounds::Left);
        for step in 1..=6 {
            recorder.begin_step(step);
            recorder.sent(1, Freight::Ghost, 2);
            if step == 4 {
                recorder.sent(1, Freight::Block, 8);
            }
        }
        // What telemetry itself takes belongs to no step of the run.
        recorder.begin_step(7);
        recorder.begin_step(6);
        recorder.close_partners();
        let rows = recorder.take_rows();
        let rows: Vec<[u64; 5]> = rows
            .of(Table::Partners)
            .map(|row| [row[0], row[1], row[4], row[5], row[6]])
            .collect();
        let [ghost, block] = [Freight::Ghost, Freight::Block].map(|freight| freight as u64);
        let expected = [
            [1, 3, ghost, 3, 48],
            [4, 4, ghost, 1, 16],
            [4, 4, block, 1, 64],
            [5, 6, ghost, 2, 32],
        ];
        assert_eq!(rows, expected);
    }
}
