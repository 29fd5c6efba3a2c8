//! Messages and bytes of one rank by kind, counted where they are made.

use std::cell::RefCell;

use crate::exchange::face::Source;
use crate::ranks::{CollectiveKind, Numbers, Ranks, Request, Tag};
use crate::telemetry::Recorder;
use crate::telemetry::rows::{Freight, Kind, Meeting, Phase};

/// What one rank has sent so far, or given to collectives.
///
/// A message that carries several kinds counts as one of [`Kind::GhostMixed`], its bytes as those of
/// their kinds, so that both columns add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    messages: [u64; Kind::ALL.len()],
    bytes: [u64; Kind::ALL.len()],
}

impl Traffic {
    pub fn add(&mut self, kind: Kind, messages: u64, bytes: u64) {
        self.messages[kind as usize] += messages;
        self.bytes[kind as usize] += bytes;
    }

    pub fn of(&self, kind: Kind) -> (u64, u64) {
        (self.messages[kind as usize], self.bytes[kind as usize])
    }

    /// What came on top of `before`.
    pub fn since(&self, before: &Traffic) -> Traffic {
        let minus = |now: &[u64; Kind::ALL.len()], then: &[u64; Kind::ALL.len()]| {
            std::array::from_fn(|kind| now[kind] - then[kind])
        };
        Traffic {
            messages: minus(&self.messages, &before.messages),
            bytes: minus(&self.bytes, &before.bytes),
        }
    }

    pub fn and(&self, other: &Traffic) -> Traffic {
        let mut sum = *self;
        for kind in Kind::ALL {
            let (messages, bytes) = other.of(kind);
            sum.add(kind, messages, bytes);
        }
        sum
    }
}

impl Kind {
    /// What a block gives to a neighbour that takes it as `source`.
    pub fn of_ghosts(source: Source) -> Kind {
        match source {
            Source::Same => Kind::GhostSame,
            Source::Coarser(_) => Kind::GhostToFiner,
            Source::Finer(_) => Kind::GhostToCoarser,
        }
    }
}

impl From<CollectiveKind> for Meeting {
    fn from(kind: CollectiveKind) -> Meeting {
        match kind {
            CollectiveKind::Allreduce(_) => Meeting::Allreduce,
            CollectiveKind::Scan => Meeting::Scan,
            CollectiveKind::Alltoall => Meeting::Alltoall,
            CollectiveKind::Broadcast(_) => Meeting::Broadcast,
            CollectiveKind::Barrier => Meeting::Barrier,
        }
    }
}

/// Counts what goes into one message of ghost values.
#[derive(Clone, Copy, Debug, Default)]
pub struct GhostMessage {
    kind: Option<Kind>,
}

impl GhostMessage {
    pub fn holds(&mut self, source: Source, n_values: usize, traffic: &mut Traffic) {
        let kind = Kind::of_ghosts(source);
        traffic.add(kind, 0, 8 * n_values as u64);
        self.kind = match self.kind {
            None => Some(kind),
            Some(other) if other == kind => Some(kind),
            Some(_) => Some(Kind::GhostMixed),
        };
    }

    pub fn sent(self, traffic: &mut Traffic) {
        if let Some(kind) = self.kind {
            traffic.add(kind, 1, 0);
        }
    }
}

/// Ranks that count what blocks, reductions and other collectives send, and record the windows between collectives.
/// Ghosts and fluxes are counted by the exchange, which knows the levels that they cross.
pub struct Counting<'a> {
    ranks: &'a dyn Ranks,
    traffic: RefCell<Traffic>,
    pub recorder: Recorder,
}

impl<'a> Counting<'a> {
    pub fn new(ranks: &'a dyn Ranks) -> Counting<'a> {
        Counting {
            ranks,
            traffic: RefCell::default(),
            recorder: Recorder::default(),
        }
    }

    pub fn traffic(&self) -> Traffic {
        *self.traffic.borrow()
    }

    fn count(&self, kind: Kind, bytes: usize) {
        self.traffic.borrow_mut().add(kind, 1, bytes as u64);
    }

    fn count_message(&self, to: usize, tag: Tag, n_values: usize) {
        if crate::blocks::TAGS.contains(&tag) {
            self.count(Kind::Block, 8 * n_values);
            self.recorder.sent(to, Freight::Block, n_values);
        }
    }

    /// A collective call of all ranks, to which this one gives `bytes`.
    fn meet<T>(&self, how: Meeting, bytes: usize, call: impl FnOnce(&dyn Ranks) -> T) -> T {
        let kind = match how {
            Meeting::Allreduce | Meeting::Agree => Some(Kind::Reduction),
            Meeting::Barrier => None,
            _ => Some(Kind::Metadata),
        };
        if let Some(kind) = kind {
            self.count(kind, bytes);
        }
        self.recorder.meet(how, bytes, || call(self.ranks))
    }
}

impl Ranks for Counting<'_> {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn n_ranks(&self) -> usize {
        self.ranks.n_ranks()
    }

    fn start_send(&self, to: usize, tag: Tag, data: Vec<f64>) -> Request {
        self.count_message(to, tag, data.len());
        self.ranks.start_send(to, tag, data)
    }

    fn start_receive(&self, from: usize, tag: Tag, buffer: Vec<f64>) -> Request {
        self.ranks.start_receive(from, tag, buffer)
    }

    fn send(&self, to: usize, tag: Tag, data: &[f64]) {
        self.count_message(to, tag, data.len());
        self.ranks.send(to, tag, data);
    }

    fn is_complete(&self, message: &Request) -> bool {
        self.ranks.is_complete(message)
    }

    fn finish(&self, request: Request) -> Vec<f64> {
        let _wait = self.recorder.clock.during(Phase::Wait);
        self.ranks.finish(request)
    }

    fn finish_any(&self, requests: &mut Vec<Option<Request>>) -> Option<(usize, Vec<f64>)> {
        let _wait = self.recorder.clock.during(Phase::Wait);
        self.ranks.finish_any(requests)
    }

    fn collective(&self, kind: CollectiveKind, numbers: Numbers) {
        self.meet(kind.into(), numbers.bytes(), |ranks| {
            ranks.collective(kind, numbers);
        });
    }

    fn agree_max(&self, values: &mut [i32]) {
        self.meet(Meeting::Agree, size_of_val(values), |ranks| {
            ranks.agree_max(values);
        });
    }

    fn allgather_bytes(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.meet(Meeting::Allgather, own.len(), |ranks| {
            ranks.allgather_bytes(own)
        })
    }

    fn choose(&self, lever: &str, arms: &[String], size: f64) -> usize {
        self.ranks.choose(lever, arms, size)
    }

    fn done(&self, lever: &str, work: f64) {
        self.ranks.done(lever, work);
    }

    fn split(&self, colour: usize) -> Box<dyn Ranks> {
        self.ranks.split(colour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_kinds_is_one_message_and_all_bytes_have_a_kind() {
        let mut traffic = Traffic::default();
        for sources in [
            &[Source::Same, Source::Same][..],
            &[Source::Same, Source::Finer(2), Source::Coarser(0)],
            &[Source::Coarser(1)],
            &[],
        ] {
            let mut message = GhostMessage::default();
            for &source in sources {
                message.holds(source, 10, &mut traffic);
            }
            message.sent(&mut traffic);
        }
        assert_eq!(traffic.of(Kind::GhostSame), (1, 240));
        assert_eq!(traffic.of(Kind::GhostToFiner), (1, 160));
        assert_eq!(traffic.of(Kind::GhostToCoarser), (0, 80));
        assert_eq!(traffic.of(Kind::GhostMixed), (1, 0));
        let twice = traffic.and(&traffic);
        assert_eq!(twice.since(&traffic), traffic);
    }

    #[test]
    fn kinds_are_numbered_in_the_order_of_the_table() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
        }
    }
}
