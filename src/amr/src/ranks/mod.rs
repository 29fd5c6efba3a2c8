//! What the mini-app asks of its ranks: messages between two, collectives among all.
//!
//! The app is written against [`Ranks`] alone. Its MPI edge is another package; [`threads`] runs the
//! ranks as threads of one process, so that tests need no launcher.

pub mod threads;

/// Of what [`Ranks::gather_bytes`] sends.
const GATHER_TAG: Tag = 121;

/// Marks the purpose of a message; a receive matches a send of the same tag, in order.
pub type Tag = i32;

/// A message under way. It must be given back to `finish` or `finish_any` exactly once.
#[derive(Debug, PartialEq, Eq)]
pub struct Request(pub usize);

/// How values of several ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Sum,
    Min,
    Max,
}

/// What a collective makes of the numbers of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    Allreduce(Op),
    /// The sum over the ranks up to and including this one.
    Scan,
    /// The i-th number goes to rank i, and one comes from each.
    Alltoall,
    /// This rank's numbers on every rank.
    Broadcast(usize),
    Barrier,
}

/// What a rank gives to a collective, which replaces it: as much on every rank.
#[derive(Debug)]
pub enum Numbers<'n> {
    F64(&'n mut [f64]),
    I64(&'n mut [i64]),
    I32(&'n mut [i32]),
}

impl Numbers<'_> {
    pub fn bytes(&self) -> usize {
        match self {
            Numbers::F64(numbers) => size_of_val(*numbers),
            Numbers::I64(numbers) => size_of_val(*numbers),
            Numbers::I32(numbers) => size_of_val(*numbers),
        }
    }
}

/// The ranks of a job, seen from one of them.
///
/// Buffers of messages under way belong to the implementation, so no borrow outlives a call.
/// Collectives must be called by every rank in the same order with the same lengths.
pub trait Ranks {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn n_ranks(&self) -> usize;

    /// Starts to send `data`; `finish` gives the buffer back.
    fn start_send(&self, to: usize, tag: Tag, data: Vec<f64>) -> Request;

    /// Starts to receive exactly `buffer.len()` values; `finish` gives them.
    fn start_receive(&self, from: usize, tag: Tag, buffer: Vec<f64>) -> Request;

    /// Sends and returns when `data` may be used again; the receiver must have started to receive.
    fn send(&self, to: usize, tag: Tag, data: &[f64]);

    /// Whether a message is known to have left, or to have come, so that `finish` will not wait. MPI moves messages in calls
    /// such as this one.
    fn is_complete(&self, message: &Request) -> bool;

    /// Waits for one message.
    fn finish(&self, request: Request) -> Vec<f64>;

    /// Waits for whichever comes first, removes it from `requests` and gives its place there.
    fn finish_any(&self, requests: &mut Vec<Option<Request>>) -> Option<(usize, Vec<f64>)>;

    /// Any collective but an allgather; those below are made of it.
    fn collective(&self, kind: CollectiveKind, numbers: Numbers);

    fn allreduce_f64(&self, values: &mut [f64], op: Op) {
        self.collective(CollectiveKind::Allreduce(op), Numbers::F64(values));
    }

    fn allreduce_i64(&self, values: &mut [i64], op: Op) {
        self.collective(CollectiveKind::Allreduce(op), Numbers::I64(values));
    }

    fn allreduce_i32(&self, values: &mut [i32], op: Op) {
        self.collective(CollectiveKind::Allreduce(op), Numbers::I32(values));
    }

    /// The largest values of what ranks tell each other of failures: an allreduce that telemetry knows by itself.
    fn agree_max(&self, values: &mut [i32]) {
        self.allreduce_i32(values, Op::Max);
    }

    fn scan_i32(&self, values: &mut [i32]) {
        self.collective(CollectiveKind::Scan, Numbers::I32(values));
    }

    fn alltoall_i32(&self, values: &mut [i32]) {
        self.collective(CollectiveKind::Alltoall, Numbers::I32(values));
    }

    /// Every rank's bytes, by rank; lengths may differ.
    fn allgather_bytes(&self, own: &[u8]) -> Vec<Vec<u8>>;

    fn broadcast_i32(&self, root: usize, values: &mut [i32]) {
        self.collective(CollectiveKind::Broadcast(root), Numbers::I32(values));
    }

    fn broadcast_f64(&self, root: usize, values: &mut [f64]) {
        self.collective(CollectiveKind::Broadcast(root), Numbers::F64(values));
    }

    /// Every rank's bytes on rank 0 alone, one rank at a time in their order. `take` is called there, once for each rank.
    fn gather_bytes(&self, own: &[u8], take: &mut dyn FnMut(&[u8])) {
        let root = self.rank() == 0;
        // Messages have lengths that both sides know; this many words follow from each rank.
        let mut lengths = vec![0; self.n_ranks()];
        lengths[self.rank()] = own.len() as i64;
        self.allreduce_i64(&mut lengths, Op::Max);
        if !root {
            let words = own.chunks(8).map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                f64::from_bits(u64::from_le_bytes(word))
            });
            drop(self.finish(self.start_send(0, GATHER_TAG, words.collect())));
            return;
        }
        take(own);
        for (from, &length) in lengths.iter().enumerate().skip(1) {
            let length = length as usize;
            let buffer = vec![0.0; length.div_ceil(8)];
            let words = self.finish(self.start_receive(from, GATHER_TAG, buffer));
            let bytes: Vec<u8> = words
                .iter()
                .flat_map(|w| w.to_bits().to_le_bytes())
                .collect();
            take(&bytes[..length]);
        }
    }

    fn barrier(&self) {
        self.collective(CollectiveKind::Barrier, Numbers::I32(&mut []));
    }

    /// The arm of a lever to use from now on, as its place among `arms`: a tuner's answer, the same on every rank, for a
    /// problem of this size. Without a tuner the first.
    fn choose(&self, _lever: &str, _arms: &[String], _size: f64) -> usize {
        0
    }

    /// Tells the tuner that the epoch since this lever was last chosen is over, and how much of its work this rank did.
    fn done(&self, _lever: &str, _work: f64) {}

    /// The ranks that give the same `colour`, in the same order.
    fn split(&self, colour: usize) -> Box<dyn Ranks>;
}
