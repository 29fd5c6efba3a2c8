//! Running the programs of all ranks at once.

mod local;
mod message;

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::geometry::{Content, Delivery, Fault, Geometry, Memory, Wrong, base};
use super::sum::Sum;
use crate::algorithm::lengths::Lengths;
use crate::algorithm::pattern::Pattern;
use crate::algorithm::program::{Message, Operation, Program};
use crate::algorithm::schedule::{Buffer, Temporary};

/// Where a chunk lies, and how many elements long it is there.
#[derive(Clone, Copy, Debug)]
struct Place {
    cell: usize,
    len: u64,
}

/// One place in memory: what it holds, and how many messages under way read or write it.
#[derive(Clone, Debug, Default)]
struct Cell {
    content: Option<Content>,
    read_by: u32,
    written_by: u32,
}

/// A message that was posted and not waited for.
#[derive(Clone, Debug)]
struct Pending {
    message: Message,
    receives: bool,
    /// Set by the partner; the time at which it is complete.
    done_at: Option<u64>,
    /// What a matched send brought, until the wait puts it in place.
    brought: Vec<Content>,
    heard: Heard,
}

struct RankState {
    at: usize,
    clock: u64,
    out_free: u64,
    /// Units of time in which a message comes in.
    in_busy: BTreeSet<u64>,
    cells: Vec<Cell>,
    requests: Vec<Option<Pending>>,
    /// The ranks whose start came before this rank's present.
    heard: Heard,
}

/// A set of ranks.
pub type Heard = [u64; 4];

/// One end of a message, waiting for the other.
struct End {
    request: u32,
    /// When a send has the rank to itself.
    leaves_at: u64,
    contents: Vec<Content>,
    heard: Heard,
}

/// The final state of all ranks, and what it took.
pub struct World {
    outputs: Vec<Vec<Option<Content>>>,
    /// Messages that each rank sent.
    pub messages: Vec<usize>,
    /// Elements that each rank sent.
    pub elements: Vec<u64>,
    /// Elements that each rank combined.
    pub reduced: Vec<u64>,
    /// The last end of a plan, where a message takes one unit of time, a rank sends one and
    /// receives one at a time, and everything else takes none. Meaningful for
    /// [`Delivery::InTime`], where ranks run in the order of time.
    pub rounds: u64,
    heard: Vec<Heard>,
}

impl World {
    /// Whether the end of `rank` comes after the start of `other`, whatever the timing.
    pub fn has_heard(&self, rank: usize, other: usize) -> bool {
        self.heard[rank][other / 64] >> (other % 64) & 1 == 1
    }

    /// What the rank's output holds, chunk by chunk.
    pub fn output(&self, rank: usize) -> &[Option<Content>] {
        &self.outputs[rank]
    }
}

struct Runner<'a> {
    programs: &'a [Program],
    /// For each rank where chunks lie, as what runs programs asks; where blocks are such as it knows.
    lengths: Vec<Option<Lengths<'a>>>,
    geometry: Geometry<'a>,
    delivery: Delivery,
    ranks: Vec<RankState>,
    /// Ranks that may be able to go on; every other waits for a message.
    ready: BTreeSet<usize>,
    /// Unmatched ends of messages, by (from, to); sends and receives of a pair never wait both.
    sends: HashMap<(usize, usize), VecDeque<End>>,
    receives: HashMap<(usize, usize), VecDeque<End>>,
    world: World,
}

/// Runs the programs, one per rank.
///
/// Errors: the first [`Fault`]; the state at the end is not compared with anything here.
pub fn run(programs: &[Program], geometry: Geometry, delivery: Delivery) -> Result<World, Fault> {
    let n = geometry.n_ranks;
    assert_eq!(programs.len(), n);
    assert!(n <= 256, "contributions are listed in bytes");
    let starts = geometry.starts();
    let mut runner = Runner {
        programs,
        lengths: (0..n).map(|rank| geometry.lengths(rank, &starts)).collect(),
        geometry,
        delivery,
        ranks: (0..n)
            .map(|rank| start(&programs[rank], &geometry, rank))
            .collect(),
        ready: (0..n).collect(),
        sends: HashMap::new(),
        receives: HashMap::new(),
        world: World {
            outputs: Vec::new(),
            messages: vec![0; n],
            elements: vec![0; n],
            reduced: vec![0; n],
            rounds: 0,
            heard: Vec::new(),
        },
    };
    runner.run()?;
    let outputs = (0..n).map(|rank| runner.take_output(rank)).collect();
    Ok(World {
        outputs,
        heard: runner.ranks.iter().map(|state| state.heard).collect(),
        ..runner.world
    })
}

fn start(program: &Program, geometry: &Geometry, rank: usize) -> RankState {
    let temporaries: usize = program.temporaries.iter().map(Temporary::places).sum();
    let separate = Geometry {
        memory: Memory::Separate,
        ..*geometry
    };
    let (_, input) = base(&program.temporaries, &separate, rank, Buffer::Input);
    let (_, output) = base(&program.temporaries, &separate, rank, Buffer::Output);
    let mut cells = vec![Cell::default(); input + output + temporaries];
    let (held, first) = match geometry.pattern {
        Pattern::Bcast if rank == geometry.root => (Buffer::Output, 0),
        Pattern::Allgather | Pattern::Gather => (Buffer::Input, rank * geometry.parts_per_block),
        _ => (Buffer::Input, 0),
    };
    let (base, len) = base(&program.temporaries, geometry, rank, held);
    for (index, cell) in cells[base..base + len].iter_mut().enumerate() {
        cell.content = Some(Content {
            chunk: first + index,
            sum: Sum::Of(rank as u8),
        });
    }
    let mut heard = [0; 4];
    heard[rank / 64] = 1 << (rank % 64);
    RankState {
        at: 0,
        clock: 0,
        out_free: 0,
        in_busy: BTreeSet::new(),
        cells,
        requests: vec![None; program.n_requests()],
        heard,
    }
}

impl Runner<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        while let Some(rank) = self.next_ready() {
            if self.can_run(rank) {
                self.step(rank)?;
            } else {
                self.ready.remove(&rank);
            }
        }
        for (rank, state) in self.ranks.iter().enumerate() {
            let at = state.at;
            if at < self.programs[rank].operations.len() {
                return Err(Fault {
                    rank,
                    at,
                    what: Wrong::Deadlock,
                });
            }
            if state.requests.iter().any(Option::is_some) {
                return Err(Fault {
                    rank,
                    at,
                    what: Wrong::Request,
                });
            }
            self.world.rounds = self.world.rounds.max(state.clock);
        }
        let left = self.sends.iter().chain(&self.receives);
        match left
            .filter(|(_, ends)| !ends.is_empty())
            .map(|(pair, _)| pair.0)
            .min()
        {
            Some(rank) => Err(Fault {
                rank,
                at: 0,
                what: Wrong::Unmatched,
            }),
            None => Ok(()),
        }
    }

    /// The rank that the adversary lets run next; it may turn out that it must wait.
    fn next_ready(&self) -> Option<usize> {
        match self.delivery {
            Delivery::InTime => self
                .ready
                .iter()
                .copied()
                .min_by_key(|&rank| self.time(rank)),
            Delivery::LowestFirst | Delivery::Buffered => self.ready.first().copied(),
            Delivery::HighestFirst => self.ready.last().copied(),
            Delivery::Alternating => {
                let turn = self.world.messages.iter().sum::<usize>();
                let (first, last) = (self.ready.first(), self.ready.last());
                (if turn % 2 == 0 { first } else { last }).copied()
            }
        }
    }

    fn operation(&self, rank: usize) -> Option<Operation> {
        let program = &self.programs[rank];
        program.operations.get(self.ranks[rank].at).copied()
    }

    /// The requests that an operation waits for.
    fn waits_for(&self, rank: usize, operation: Option<Operation>) -> &[Option<Pending>] {
        let requests = &self.ranks[rank].requests;
        match operation {
            Some(Operation::WaitAll) => requests,
            // One that is not there is a fault that the step will find.
            Some(Operation::Wait { request }) => requests
                .get(request as usize)
                .map_or(&[], std::slice::from_ref),
            _ => &[],
        }
    }

    fn can_run(&self, rank: usize) -> bool {
        let operation = self.operation(rank);
        let mut pending = self.waits_for(rank, operation).iter().flatten();
        operation.is_some() && pending.all(|pending| pending.done_at.is_some())
    }

    /// When the rank's next operation would be over.
    fn time(&self, rank: usize) -> u64 {
        let pending = self.waits_for(rank, self.operation(rank)).iter().flatten();
        let done_at = pending.filter_map(|pending| pending.done_at).max();
        self.ranks[rank].clock.max(done_at.unwrap_or(0))
    }

    fn fault<T>(&self, rank: usize, what: Wrong) -> Result<T, Fault> {
        let at = self.ranks[rank].at;
        Err(Fault { rank, at, what })
    }

    fn step(&mut self, rank: usize) -> Result<(), Fault> {
        match self.operation(rank) {
            None => {}
            Some(Operation::Receive {
                request,
                from,
                into,
            }) => {
                self.post(rank, request, from as usize, into, true)?;
            }
            Some(Operation::Send { request, to, what }) => {
                self.post(rank, request, to as usize, what, false)?;
            }
            Some(Operation::Wait { request }) => self.wait(rank, request)?,
            Some(Operation::WaitAll) => {
                for request in 0..self.programs[rank].n_requests() {
                    self.wait(rank, request as u32)?;
                }
            }
            Some(Operation::Reduce {
                source,
                target,
                order,
            }) => {
                self.local(rank, source, target, Some(order))?;
            }
            Some(Operation::Copy { source, target }) => {
                self.local(rank, source, target, None)?;
            }
        }
        self.ranks[rank].at += 1;
        Ok(())
    }

    fn take_output(&mut self, rank: usize) -> Vec<Option<Content>> {
        let (base, len) = base(
            &self.programs[rank].temporaries,
            &self.geometry,
            rank,
            Buffer::Output,
        );
        let cells = &mut self.ranks[rank].cells[base..base + len];
        cells.iter_mut().map(|cell| cell.content.take()).collect()
    }
}
