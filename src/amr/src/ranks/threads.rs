//! Ranks as threads of one process, for tests and for a run without MPI.
//!
//! Messages wait in one mailbox per (sender, receiver, tag); collectives meet in a shared table under
//! their sequence number. Slow and simple on purpose.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex};

use super::{CollectiveKind, Numbers, Op, Ranks, Request, Tag};

type Mailboxes = HashMap<(usize, usize, Tag), VecDeque<Vec<f64>>>;
/// Contributions to one collective call, and how many ranks have read them.
type Meeting = (Vec<Option<Vec<u8>>>, usize);

#[derive(Default)]
struct Board {
    mailboxes: Mailboxes,
    meetings: HashMap<usize, Meeting>,
    parts: HashMap<(usize, usize), Arc<Shared>>,
    gave_up: bool,
}

#[derive(Default)]
struct Shared {
    board: Mutex<Board>,
    changed: Condvar,
}

struct Threads {
    shared: Arc<Shared>,
    rank: usize,
    n_ranks: usize,
    n_calls: Cell<usize>,
    tuning: Tuning,
    n_chosen: Cell<usize>,
    under_way: RefCell<Vec<Option<UnderWay>>>,
}

/// Who chooses the arms of levers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    Nobody,
    /// Another arm each time, in a fixed order.
    InTurn,
}

enum UnderWay {
    Sent(Vec<f64>),
    Awaited {
        from: usize,
        tag: Tag,
        buffer: Vec<f64>,
    },
}

/// Runs `body` on `n_ranks` ranks and gives their results by rank.
///
/// # Panics
/// When a rank panics: the others are woken and the panic is passed on.
pub fn run<T: Send>(n_ranks: usize, body: impl Fn(&dyn Ranks) -> T + Sync) -> Vec<T> {
    run_with(n_ranks, Tuning::Nobody, body)
}

/// The same with a tuner that chooses the arms of levers.
pub fn run_with<T: Send>(
    n_ranks: usize,
    tuning: Tuning,
    body: impl Fn(&dyn Ranks) -> T + Sync,
) -> Vec<T> {
    let shared = Arc::new(Shared::default());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_ranks)
            .map(|rank| {
                let (shared, body) = (Arc::clone(&shared), &body);
                scope.spawn(move || {
                    let alarm = Alarm(Arc::clone(&shared));
                    let result = body(&Threads::new(shared, rank, n_ranks, tuning));
                    std::mem::forget(alarm);
                    result
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// Wakes everybody when the rank that holds it panics.
struct Alarm(Arc<Shared>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Ok(mut board) = self.0.board.lock() {
            board.gave_up = true;
        }
        self.0.changed.notify_all();
    }
}

impl Threads {
    fn new(shared: Arc<Shared>, rank: usize, n_ranks: usize, tuning: Tuning) -> Threads {
        Threads {
            shared,
            rank,
            n_ranks,
            n_calls: Cell::new(0),
            tuning,
            n_chosen: Cell::new(0),
            under_way: RefCell::default(),
        }
    }

    fn keep(&self, what: UnderWay) -> Request {
        let mut under_way = self.under_way.borrow_mut();
        under_way.push(Some(what));
        Request(under_way.len() - 1)
    }

    /// Waits until `find` finds something on the board.
    fn wait_for<T>(&self, mut find: impl FnMut(&mut Board) -> Option<T>) -> T {
        let mut board = self.shared.board.lock().expect("another rank panicked");
        loop {
            assert!(!board.gave_up, "another rank panicked");
            if let Some(found) = find(&mut board) {
                self.shared.changed.notify_all();
                return found;
            }
            board = self
                .shared
                .changed
                .wait(board)
                .expect("another rank panicked");
        }
    }

    /// Every rank's bytes for this rank's next collective call.
    fn meet(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let call = self.n_calls.replace(self.n_calls.get() + 1);
        let (rank, n_ranks) = (self.rank, self.n_ranks);
        self.wait_for(|board| {
            let (seats, _) = board
                .meetings
                .entry(call)
                .or_insert_with(|| (vec![None; n_ranks], 0));
            assert!(seats[rank].replace(own.to_vec()).is_none());
            Some(())
        });
        self.wait_for(|board| {
            let (seats, n_read) = board.meetings.get_mut(&call).expect("not all have read it");
            let all: Option<Vec<Vec<u8>>> = seats.iter().cloned().collect();
            let all = all?;
            *n_read += 1;
            if *n_read == n_ranks {
                board.meetings.remove(&call);
            }
            Some(all)
        })
    }

    fn combine<T: Word>(&self, kind: CollectiveKind, values: &mut [T]) {
        let own: Vec<u8> = values.iter().flat_map(|value| value.bytes()).collect();
        let all = self.meet(&own).into_iter().map(|bytes| {
            assert_eq!(bytes.len(), own.len(), "ranks disagree on the length");
            let words = bytes.chunks_exact(size_of::<T>());
            words.map(T::read).collect::<Vec<T>>()
        });
        let all: Vec<Vec<T>> = all.collect();
        match kind {
            CollectiveKind::Allreduce(op) => fold(values, &all, op),
            CollectiveKind::Scan => fold(values, &all[..=self.rank], Op::Sum),
            CollectiveKind::Alltoall => {
                assert_eq!(values.len(), self.n_ranks);
                let parts = values.iter_mut().zip(&all);
                parts.for_each(|(value, part)| *value = part[self.rank]);
            }
            CollectiveKind::Broadcast(root) => values.copy_from_slice(&all[root]),
            CollectiveKind::Barrier => {}
        }
    }
}

/// Combines the values of ranks in their order.
fn fold<T: Word>(values: &mut [T], all: &[Vec<T>], op: Op) {
    values.copy_from_slice(&all[0]);
    for part in &all[1..] {
        let pairs = values.iter_mut().zip(part);
        pairs.for_each(|(value, &other)| *value = value.with(other, op));
    }
}

/// A number that collectives carry.
trait Word: Copy {
    fn bytes(self) -> impl IntoIterator<Item = u8>;
    fn read(bytes: &[u8]) -> Self;
    fn with(self, other: Self, op: Op) -> Self;
}

macro_rules! word {
    ($kind:ty, $sum:expr) => {
        impl Word for $kind {
            fn bytes(self) -> impl IntoIterator<Item = u8> {
                self.to_ne_bytes()
            }
            fn read(bytes: &[u8]) -> Self {
                <$kind>::from_ne_bytes(bytes.try_into().expect("chunks of this size"))
            }
            fn with(self, other: Self, op: Op) -> Self {
                match op {
                    Op::Sum => $sum(self, other),
                    Op::Min => self.min(other),
                    Op::Max => self.max(other),
                }
            }
        }
    };
}
word!(f64, |a: f64, b: f64| a + b);
word!(i64, i64::wrapping_add);
word!(i32, i32::wrapping_add);

impl Ranks for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    fn start_send(&self, to: usize, tag: Tag, data: Vec<f64>) -> Request {
        self.send(to, tag, &data);
        self.keep(UnderWay::Sent(data))
    }

    fn start_receive(&self, from: usize, tag: Tag, buffer: Vec<f64>) -> Request {
        self.keep(UnderWay::Awaited { from, tag, buffer })
    }

    fn send(&self, to: usize, tag: Tag, data: &[f64]) {
        assert!(to < self.n_ranks, "no rank {to}");
        let key = (self.rank, to, tag);
        self.wait_for(|board| {
            let mailbox = board.mailboxes.entry(key).or_default();
            mailbox.push_back(data.to_vec());
            Some(())
        });
    }

    fn is_complete(&self, message: &Request) -> bool {
        matches!(self.under_way.borrow()[message.0], Some(UnderWay::Sent(_)))
    }

    fn finish(&self, request: Request) -> Vec<f64> {
        let taken = self.under_way.borrow_mut()[request.0].take();
        match taken.expect("finished once") {
            UnderWay::Sent(buffer) => buffer,
            UnderWay::Awaited { from, tag, buffer } => {
                let key = (from, self.rank, tag);
                let data = self.wait_for(|board| board.mailboxes.get_mut(&key)?.pop_front());
                assert_eq!(data.len(), buffer.len(), "from {from}, tag {tag}");
                data
            }
        }
    }

    fn finish_any(&self, requests: &mut Vec<Option<Request>>) -> Option<(usize, Vec<f64>)> {
        // The first that is left: with mailboxes, waiting in order cannot block anybody.
        let place = requests.iter().position(Option::is_some)?;
        let request = requests[place].take().expect("found just now");
        Some((place, self.finish(request)))
    }

    fn collective(&self, kind: CollectiveKind, numbers: Numbers) {
        match numbers {
            Numbers::F64(values) => self.combine(kind, values),
            Numbers::I64(values) => self.combine(kind, values),
            Numbers::I32(values) => self.combine(kind, values),
        }
    }

    fn allgather_bytes(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.meet(own)
    }

    fn split(&self, colour: usize) -> Box<dyn Ranks> {
        let call = self.n_calls.get();
        let all = self.meet(&colour.to_ne_bytes());
        let members: Vec<usize> = (0..self.n_ranks)
            .filter(|&rank| all[rank] == colour.to_ne_bytes())
            .collect();
        let rank = members
            .iter()
            .position(|&member| member == self.rank)
            .expect("this rank gave the colour");
        let shared = self.wait_for(|board| {
            let part = board.parts.entry((call, colour)).or_default();
            Some(Arc::clone(part))
        });
        Box::new(Threads::new(shared, rank, members.len(), self.tuning))
    }

    fn choose(&self, _: &str, arms: &[String], _: f64) -> usize {
        match self.tuning {
            Tuning::Nobody => 0,
            Tuning::InTurn => self.n_chosen.replace(self.n_chosen.get() + 1) % arms.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_combine_every_rank_once() {
        for n in 1..=9 {
            run(n, |ranks| {
                let rank = ranks.rank();
                let mut sum = [rank as i64, 1];
                ranks.allreduce_i64(&mut sum, Op::Sum);
                assert_eq!(sum, [(n * (n - 1) / 2) as i64, n as i64]);
                let mut max = [rank as f64];
                ranks.allreduce_f64(&mut max, Op::Max);
                assert_eq!(max, [(n - 1) as f64]);
                let mut prefix = [1];
                ranks.scan_i32(&mut prefix);
                assert_eq!(prefix, [rank as i32 + 1]);
                let mut table: Vec<i32> = (0..n).map(|to| (100 * rank + to) as i32).collect();
                ranks.alltoall_i32(&mut table);
                let expected: Vec<i32> = (0..n).map(|from| (100 * from + rank) as i32).collect();
                assert_eq!(table, expected);
                let half = ranks.split(rank % 2);
                let mut count = [1];
                half.allreduce_i32(&mut count, Op::Sum);
                assert_eq!(count[0] as usize, (n + 1 - rank % 2) / 2);
                assert_eq!(half.rank(), rank / 2);
            });
        }
    }

    #[test]
    fn messages_arrive_in_order_and_whole() {
        run(3, |ranks| {
            let next = (ranks.rank() + 1) % 3;
            let previous = (ranks.rank() + 2) % 3;
            let receives: Vec<_> = (1..4)
                .map(|n| Some(ranks.start_receive(previous, 7, vec![0.0; n])))
                .collect();
            let sends: Vec<_> = (1..4)
                .map(|n| ranks.start_send(next, 7, vec![n as f64; n]))
                .collect();
            let mut receives = receives;
            while let Some((place, data)) = ranks.finish_any(&mut receives) {
                assert_eq!(data, vec![(place + 1) as f64; place + 1]);
            }
            sends.into_iter().for_each(|send| drop(ranks.finish(send)));
        });
    }
}
