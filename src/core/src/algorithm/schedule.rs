//! What an algorithm is: a pure function from one rank's [`Case`] to its steps over chunks.
//!
//! A schedule knows no bytes, types, addresses or clock. The user's message is cut into chunks
//! (see [`Schedule::parts_per_block`]), and steps name ranges of them in logical buffers. Steps
//! stand in *program order*: what they compute is what running them one after another computes.
//! Nothing else is promised about time: sends and receives do not block, and
//! [`Plan`](super::plan::Plan) derives what must wait for what from the chunks that they touch.

pub use super::part::{Buffer, Part, Parts, narrow};

/// Everything that a schedule may depend on. Every rank passes the same values, but for `rank`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    pub rank: usize,
    pub n_ranks: usize,
    /// 0 for collectives without a root.
    pub root: usize,
    /// Pieces that the algorithm cuts its unit of work into: 1 for "in one piece".
    pub segments: usize,
    /// Radix or fan-out of the algorithms that have one; at least 2.
    pub radix: usize,
    /// Messages that may be under way in each direction, for the algorithms that have it as a
    /// parameter; at least 1.
    pub window: usize,
}

impl Case {
    /// A case without root, in one piece, with radix 2 and a window of 1.
    pub fn new(rank: usize, n_ranks: usize) -> Case {
        Case {
            rank,
            n_ranks,
            root: 0,
            segments: 1,
            radix: 2,
            window: 1,
        }
    }

    /// The rank counted from the root upwards, round the end.
    pub fn relative(&self) -> usize {
        (self.rank + self.n_ranks - self.root) % self.n_ranks
    }

    /// The rank whose [`relative`](Case::relative) number is `relative`.
    pub fn absolute(&self, relative: usize) -> usize {
        (relative + self.root) % self.n_ranks
    }

    /// The rank `distance` above this one, round the end.
    pub fn above(&self, distance: usize) -> usize {
        (self.rank + distance) % self.n_ranks
    }

    /// The rank `distance` below this one, round the end.
    pub fn below(&self, distance: usize) -> usize {
        (self.rank + self.n_ranks - distance % self.n_ranks) % self.n_ranks
    }
}

#[cfg(test)]
impl Case {
    pub fn segments(self, segments: usize) -> Case {
        Case { segments, ..self }
    }

    pub fn radix(self, radix: usize) -> Case {
        Case { radix, ..self }
    }

    pub fn window(self, window: usize) -> Case {
        Case { window, ..self }
    }
}

/// On which side of the operation the source of a reduction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// target := source op target, as `MPI_Reduce_local` does it. The source keeps its value.
    SourceFirst,
    /// target := target op source. The source is undefined afterwards.
    SourceLast,
}

impl Order {
    /// The order in which what came from `peer` stands beside what `rank` holds.
    pub fn of_peer(peer: usize, rank: usize) -> Order {
        if peer < rank {
            Order::SourceFirst
        } else {
            Order::SourceLast
        }
    }
}

/// One step of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Send {
        to: u32,
        what: Parts,
    },
    Receive {
        from: u32,
        into: Parts,
    },
    /// Combines chunk by chunk; both parts name equally many.
    Reduce {
        source: Part,
        target: Part,
        order: Order,
    },
    /// Copies chunk by chunk; both parts name equally many.
    Copy {
        source: Part,
        target: Part,
    },
}

impl Step {
    pub fn send(to: usize, what: impl Into<Parts>) -> Step {
        Step::Send {
            to: narrow(to),
            what: what.into(),
        }
    }

    pub fn receive(from: usize, into: impl Into<Parts>) -> Step {
        Step::Receive {
            from: narrow(from),
            into: into.into(),
        }
    }

    pub fn reduce(source: Part, target: Part, order: Order) -> Step {
        Step::Reduce {
            source,
            target,
            order,
        }
    }

    pub fn copy(source: Part, target: Part) -> Step {
        Step::Copy { source, target }
    }

    /// The step with its parts put somewhere else.
    pub fn relocated(self, lies_at: impl Fn(Part) -> Part) -> Step {
        match self {
            Step::Send { to, what } => Step::Send {
                to,
                what: what.relocated(lies_at),
            },
            Step::Receive { from, into } => Step::Receive {
                from,
                into: into.relocated(lies_at),
            },
            Step::Reduce {
                source,
                target,
                order,
            } => Step::reduce(lies_at(source), lies_at(target), order),
            Step::Copy { source, target } => Step::copy(lies_at(source), lies_at(target)),
        }
    }

    /// The step with another numbering of ranks.
    pub fn renumbered(self, rank_at: impl Fn(usize) -> usize) -> Step {
        match self {
            Step::Send { to, what } => Step::send(rank_at(to as usize), what),
            Step::Receive { from, into } => Step::receive(rank_at(from as usize), into),
            local @ (Step::Reduce { .. } | Step::Copy { .. }) => local,
        }
    }
}

/// What a temporary buffer has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Temporary {
    /// `chunks` chunks, one after another; chunk `i` is as long as chunk `first + i`, going on at
    /// 0 after the last, of the whole message (all blocks).
    Like { first: u32, chunks: u32 },
    /// So many places, each as long as the longest chunk of the message. Parts name chunks of the
    /// message, one each, and chunk `c` lies in place `c mod places`.
    Ring { places: u32 },
}

impl Temporary {
    /// How many places there are.
    pub fn places(&self) -> usize {
        match *self {
            Temporary::Like { chunks, .. } => chunks as usize,
            Temporary::Ring { places } => places as usize,
        }
    }

    /// The places that a part takes, as a part.
    pub fn place(&self, part: Part) -> Part {
        match *self {
            Temporary::Like { .. } => part,
            Temporary::Ring { places } => Part {
                first: part.first % places,
                ..part
            },
        }
    }

    /// A second message: chunk `i` is as long as chunk `i` of the message, which has `chunks`.
    pub fn whole(chunks: usize) -> Temporary {
        Temporary::Like {
            first: 0,
            chunks: narrow(chunks),
        }
    }

    pub fn ring(places: usize) -> Temporary {
        Temporary::Ring {
            places: narrow(places),
        }
    }
}

/// The places of `part`, in a plan or schedule with these temporaries.
pub fn place(part: &Part, temporaries: &[Temporary]) -> Part {
    match part.buffer {
        Buffer::Temporary(index) => match temporaries.get(usize::from(index)) {
            Some(temporary) => temporary.place(*part),
            None => *part,
        },
        Buffer::Input | Buffer::Output => *part,
    }
}

/// The steps of one rank, and the chunks and buffers that they speak of.
pub struct Schedule {
    /// Near-equal parts that each block is cut into; the blocks are what
    /// [`Pattern::blocks`](super::pattern::Pattern::blocks) says.
    pub parts_per_block: usize,
    pub temporaries: Vec<Temporary>,
    /// Messages that may be under way in each direction at a time; at least 1.
    pub window: usize,
    pub steps: Steps,
}

pub type Steps = Box<dyn Iterator<Item = Step>>;

/// Messages under way in each direction where the algorithm has no opinion: enough to keep a
/// pipeline filled, too few to flood a receiver.
pub const WINDOW: usize = 8;

impl Schedule {
    /// A schedule without temporaries, with the usual window.
    pub fn new(parts_per_block: usize, steps: impl Iterator<Item = Step> + 'static) -> Schedule {
        assert!(parts_per_block > 0);
        Schedule {
            parts_per_block,
            temporaries: Vec::new(),
            window: WINDOW,
            steps: Box::new(steps),
        }
    }

    pub fn temporary(mut self, temporary: Temporary) -> Schedule {
        self.temporaries.push(temporary);
        self
    }

    pub fn window(self, window: usize) -> Schedule {
        assert!(window > 0);
        Schedule { window, ..self }
    }
}

/// Elements `start .. end` of part `part` of `parts` near-equal ones of `count` elements; the
/// earlier parts are the longer ones.
pub fn part_bounds(count: u64, part: usize, parts: usize) -> (u64, u64) {
    let (part, parts) = (part as u64, parts as u64);
    let (whole, rest) = (count / parts, count % parts);
    let start = |index: u64| index * whole + index.min(rest);
    (start(part), start(part + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_near_equal_cover_everything_and_never_overlap() {
        for count in 0..40 {
            for parts in 1..20 {
                let bounds: Vec<_> = (0..parts).map(|c| part_bounds(count, c, parts)).collect();
                assert_eq!(bounds[0].0, 0);
                assert_eq!(bounds[parts - 1].1, count);
                for pair in bounds.windows(2) {
                    assert_eq!(pair[0].1, pair[1].0);
                    assert!(pair[0].1 - pair[0].0 <= pair[1].1 - pair[1].0 + 1);
                    assert!(pair[0].1 - pair[0].0 >= pair[1].1 - pair[1].0);
                }
            }
        }
    }
}
