//! Collectives whose counts each rank knows for itself: every message is one block, of the
//! application's own type, from and to where it lies.
//!
//! Nothing is packed and no room is needed, whatever the lengths, of which the ranks share none. A
//! block without bytes is no message; its sender and its receiver know that alike.

use std::ffi::{c_int, c_void};

use colltune_core::algorithm::program::{Message, Operation, Program, Span};
use colltune_core::algorithm::schedule::Buffer;
use colltune_core::catalogue::Scheduled;
use colltune_core::collective::Collective;

use super::channel::Channel;
use super::places::check;
use super::retire::retiring;
use super::schedules::{Buffers, Key, Schedules};
use crate::abi::{self, Comm, Datatype, is_in_place};
use crate::arguments::lists::Located;
use crate::arguments::{Arguments, Held, Members, Side};
use crate::library;
use crate::own_call::OwnCall;
use crate::scratch::{self, Demand, Scratch, User};
use crate::world::World;

/// Whether a collective is run here.
pub fn runs(collective: Collective) -> bool {
    use Collective::{Alltoallv, Gatherv, Scatterv};
    matches!(collective, Alltoallv | Gatherv | Scatterv)
}

/// The blocks of one side of a call.
#[derive(Clone, Copy)]
enum BlocksOfSide {
    /// There is none on this rank, or it lies where it goes.
    Nothing,
    One(Side),
    Each(Located),
}

/// Both sides, and who is the root.
struct View {
    root: usize,
    send: BlocksOfSide,
    recv: BlocksOfSide,
    buffers: Buffers,
}

/// A block: its address, its elements and their type.
#[derive(Clone, Copy)]
struct Block {
    start: *mut c_void,
    count: i64,
    datatype: Datatype,
}

/// One call.
struct Exchange<'a> {
    world: &'a World,
    comm: Comm,
    tag: c_int,
    world_ranks: &'a [c_int],
    own: c_int,
    program: &'a Program,
    view: View,
}

/// Whether there is room for calls with this root, in place or not.
#[cold]
pub fn has_room(schedules: &mut Schedules, call: &OwnCall<Scheduled>) -> bool {
    let open = schedules.channel();
    let members = Members {
        rank: open.rank,
        n_ranks: open.world_ranks.len(),
    };
    let Arguments::Uneven { root, .. } = call.arguments else {
        return true;
    };
    // A wrong one is the library's to report.
    let Some(root) = members.root(root) else {
        return true;
    };
    let mut demand = Demand::default();
    for buffers in [Buffers::Apart, Buffers::Shared] {
        let in_place = members.rank == root && call.collective != Collective::Alltoallv;
        if buffers == Buffers::Shared && !in_place {
            continue;
        }
        let key = key(call, members, root, buffers);
        let programs = &mut schedules.programs;
        if !programs.provide(call.own, key) {
            return false;
        }
        let place = programs.program(call.own, key);
        demand.requests = demand.requests.max(programs.all[place].staged_chunks.len());
    }
    schedules.has_room(User::Schedule, demand)
}

fn key(call: &OwnCall<Scheduled>, members: Members, root: usize, buffers: Buffers) -> Key {
    let (own, Members { rank, n_ranks }) = (call.own, members);
    Key {
        row: own.place(),
        case: own.row().case(rank, n_ranks, root, own.values, call.bytes),
        buffers,
    }
}

/// Runs a call that is ready; `None` where an argument is wrong.
pub fn run(
    world: &World,
    schedules: &mut Schedules,
    call: &OwnCall<Scheduled>,
) -> Option<Result<(), c_int>> {
    let (tag, comm) = (schedules.tag(), world.messages.comm()?);
    let Channel::Open(open) = &schedules.channel else {
        return None;
    };
    let members = Members {
        rank: open.rank,
        n_ranks: open.world_ranks.len(),
    };
    let view = View::new(world, call, members)?;
    let key = key(call, members, view.root, view.buffers);
    let place = schedules.programs.program(call.own, key);
    let exchange = Exchange {
        world,
        comm,
        tag,
        world_ranks: &open.world_ranks,
        own: open.world_ranks[open.rank],
        program: &schedules.programs.all[place],
        view,
    };
    // SAFETY: the buffers are the application's.
    Some(scratch::with(User::Schedule, |scratch| unsafe {
        exchange.run(scratch)
    }))
}

impl View {
    fn new(world: &World, call: &OwnCall<Scheduled>, members: Members) -> Option<View> {
        let Arguments::Uneven { send, recv, root } = call.arguments else {
            return None;
        };
        let root = members.root(root)?;
        let is_root = members.rank == root;
        let blocks = |held| match held {
            Held::One(side) => BlocksOfSide::one(world, side),
            Held::Each(listed) => {
                let located = world.located(listed)?;
                // SAFETY: MPI asks for a count for each rank.
                let count = unsafe { listed.counts.sum(members.n_ranks) }?;
                world.memory(listed.start, i64::try_from(count).ok()?, listed.datatype)?;
                Some(BlocksOfSide::Each(located))
            }
        };
        let (sends, receives) = match call.collective {
            Collective::Gatherv => (!(is_root && in_place(&send)), is_root),
            Collective::Scatterv => (is_root, !(is_root && in_place(&recv))),
            // In place it is none of ours.
            _ => (true, true),
        };
        let side = |exists, held| match exists {
            true => blocks(held),
            false => Some(BlocksOfSide::Nothing),
        };
        Some(View {
            root,
            send: side(sends, send)?,
            recv: side(receives, recv)?,
            buffers: match is_root && (in_place(&send) || in_place(&recv)) {
                true => Buffers::Shared,
                false => Buffers::Apart,
            },
        })
    }
}

fn in_place(held: &Held) -> bool {
    match held {
        Held::One(side) => is_in_place(side.start),
        Held::Each(_) => false,
    }
}

impl BlocksOfSide {
    fn one(world: &World, side: Side) -> Option<BlocksOfSide> {
        world.memory(side.start, side.count, side.datatype)?;
        Some(BlocksOfSide::One(side))
    }
}

impl Exchange<'_> {
    /// Runs the call to its end. All waiting is the library's own, so it makes progress.
    ///
    /// # Safety
    /// The application's buffers are valid.
    unsafe fn run(&self, scratch: &mut Scratch) -> Result<(), c_int> {
        // SAFETY: the application's buffers are valid, as the caller promises, and the scratch memory has been
        // provided.
        let work = |scratch: &mut Scratch| unsafe { self.operate(scratch) };
        retiring(self.world, &self.program.operations, scratch, work)
    }

    unsafe fn operate(&self, scratch: &mut Scratch) -> Result<(), c_int> {
        let null = self.world.handles.request_null;
        scratch.at = 0;
        scratch.requests.clear();
        scratch
            .requests
            .resize(self.program.staged_chunks.len(), null);
        let requests = scratch.requests.as_mut_ptr();
        for (index, operation) in self.program.operations.iter().enumerate() {
            scratch.at = index;
            // SAFETY: by the proof of the schedule each operation names blocks that it may touch now,
            // and requests that are below their number.
            unsafe {
                match *operation {
                    Operation::Receive {
                        request,
                        from,
                        into: Message::Whole(span),
                    } => {
                        let from = self.world_ranks[from as usize];
                        self.receive(self.block(span), from, requests.add(request as usize))?;
                    }
                    Operation::Send {
                        request,
                        to,
                        what: Message::Whole(span),
                    } => {
                        let to = self.world_ranks[to as usize];
                        self.send(self.block(span), to, requests.add(request as usize))?;
                    }
                    Operation::Wait { request } => {
                        let status = abi::MPI_STATUS_IGNORE as *mut c_void;
                        check((self.world.pmpi.wait)(
                            requests.add(request as usize),
                            status,
                        ))?;
                    }
                    Operation::WaitAll => {
                        let statuses = abi::MPI_STATUSES_IGNORE as *mut c_void;
                        let n_requests = self.program.staged_chunks.len() as c_int;
                        check((self.world.pmpi.waitall)(n_requests, requests, statuses))?;
                    }
                    Operation::Copy { source, target } => {
                        self.copy(self.block(source), self.block(target))?;
                    }
                    // Its schedules have no operation of another kind, nor a message of several blocks.
                    _ => return Err(abi::MPI_ERR_NO_MEM as c_int),
                }
            }
        }
        Ok(())
    }

    /// The block of a span, which is one chunk.
    #[inline]
    unsafe fn block(&self, span: Span) -> Block {
        let side = match span.buffer {
            Buffer::Input => &self.view.send,
            _ => &self.view.recv,
        };
        match side {
            BlocksOfSide::Nothing => Block {
                start: std::ptr::null_mut(),
                count: 0,
                datatype: self.world.handles.byte,
            },
            BlocksOfSide::One(one) => Block {
                start: one.start,
                count: one.count,
                datatype: one.datatype,
            },
            BlocksOfSide::Each(located) => {
                // SAFETY: a span names a rank's block.
                let (start, count) = unsafe { located.block(span.first as usize) };
                Block {
                    start,
                    count,
                    datatype: located.listed.datatype,
                }
            }
        }
    }

    /// Whether it has no bytes.
    #[inline]
    fn is_empty(&self, block: Block) -> bool {
        block.count == 0 || self.world.bytes_of(block.datatype) == Some(0)
    }

    #[inline]
    unsafe fn send(
        &self,
        block: Block,
        to: c_int,
        request: *mut abi::Request,
    ) -> Result<(), c_int> {
        if self.is_empty(block) {
            return Ok(());
        }
        let (start, datatype) = (block.start.cast_const(), block.datatype);
        let (tag, comm) = (self.tag, self.comm);
        // SAFETY: the block is the application's, and nobody writes it before the call ends.
        check(unsafe {
            match c_int::try_from(block.count) {
                Ok(count) => {
                    (self.world.pmpi.isend)(start, count, datatype, to, tag, comm, request)
                }
                Err(_) => match library::large().isend {
                    Some(isend) => isend(start, block.count, datatype, to, tag, comm, request),
                    None => abi::MPI_ERR_NO_MEM as c_int,
                },
            }
        })
    }

    #[inline]
    unsafe fn receive(
        &self,
        block: Block,
        from: c_int,
        request: *mut abi::Request,
    ) -> Result<(), c_int> {
        if self.is_empty(block) {
            return Ok(());
        }
        let (start, datatype) = (block.start, block.datatype);
        let (tag, comm) = (self.tag, self.comm);
        // SAFETY: the block is the application's, and nobody touches it before the wait.
        check(unsafe {
            match c_int::try_from(block.count) {
                Ok(count) => {
                    (self.world.pmpi.irecv)(start, count, datatype, from, tag, comm, request)
                }
                Err(_) => match library::large().irecv {
                    Some(irecv) => irecv(start, block.count, datatype, from, tag, comm, request),
                    None => abi::MPI_ERR_NO_MEM as c_int,
                },
            }
        })
    }

    /// Copies the own block, of one type into another.
    unsafe fn copy(&self, from: Block, to: Block) -> Result<(), c_int> {
        if self.is_empty(from) {
            return Ok(());
        }
        let types = &self.world.types;
        if let (Some(facts), Some(_)) = (types.get(from.datatype), types.get(to.datatype)) {
            let bytes = from.count as usize * facts.size as usize;
            // SAFETY: elements without holes are their bytes, equally many on both sides.
            unsafe { std::ptr::copy(from.start.cast::<u8>(), to.start.cast::<u8>(), bytes) };
            return Ok(());
        }
        let mut requests = [self.world.handles.request_null; 2];
        // SAFETY: no schedule sends to its own rank, so nothing else matches these two.
        unsafe {
            self.receive(to, self.own, &raw mut requests[0])?;
            self.send(from, self.own, &raw mut requests[1])?;
            let statuses = abi::MPI_STATUSES_IGNORE as *mut c_void;
            check((self.world.pmpi.waitall)(
                2,
                requests.as_mut_ptr(),
                statuses,
            ))
        }
    }
}
