//! Collectives run as compositions of the library's other ones.
//!
//! They run on the program's own communicator: all its ranks run the same parts in the same order, as
//! if the program had called them, so nothing can be taken for anything else, and an error reaches the
//! program's handler from the part that found it. Each part is what the library chooses by itself.
//!
//! Reductions, and parts that move the caller's elements as they lie, work on the caller's buffers;
//! the other ones on packed bytes. Intermediate results and lists of counts lie in the thread's
//! [`scratch`] memory, which the ranks agree on as for a schedule of ours: for a class of sizes all
//! have room, or none uses the composition.

mod moves;
mod reductions;
mod rooted;
mod scattered;

use std::ffi::{c_int, c_void};
use std::ops::Deref;

use colltune_core::algorithm::schedule::part_bounds;
use colltune_core::collective::Collective;
use colltune_core::composition::Composition;

use crate::abi::{self, Comm};
use crate::arguments::{Input, Output, Typed, View};
use crate::library::collectives::Collectives;
use crate::p2p::Schedules;
use crate::p2p::endpoint::Endpoint;
use crate::private::{self, Parent};
use crate::scratch::{self, ALIGN, Demand, User};
use crate::world::World;

/// One call: how much room it needs, and what its parts have in common.
struct ComposedCall<'a> {
    /// The library's own collectives.
    parts: &'static Collectives<c_int>,
    comm: Comm,
    /// For copies from one type to another.
    endpoint: Endpoint<'a>,
    own: Composition,
    view: &'a View,
}

/// A call that runs: its buffers and its room are what [`RunningComposition::new`] was promised. Its parts rely on that.
struct RunningComposition<'a> {
    call: ComposedCall<'a>,
    room: Workspace,
}

impl<'a> Deref for RunningComposition<'a> {
    type Target = ComposedCall<'a>;

    fn deref(&self) -> &ComposedCall<'a> {
        &self.call
    }
}

/// The scratch memory of one call: two lists of a number per rank, then bytes.
struct Workspace {
    counts: *mut c_int,
    displacements: *mut c_int,
    bytes: *mut u8,
}

/// What a part returned, if that is not success.
type Done = Result<(), c_int>;

fn in_place() -> *mut c_void {
    abi::MPI_IN_PLACE as *mut c_void
}

/// Whether this rank has room for a call, and for any other of its size class.
pub fn has_room(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    own: Composition,
    view: &View,
) -> bool {
    let call = ComposedCall::new(world, parent.comm, schedules, own, view);
    let Ok(bytes) = call.map(|call| call.demand()) else {
        return false;
    };
    let demand = Demand {
        bytes,
        ..Demand::default()
    };
    schedules.has_room(User::Schedule, demand)
}

/// Runs a call that is ready. Errors have reached the program's handler.
pub fn run(
    world: &World,
    parent: Parent,
    schedules: &Schedules,
    own: Composition,
    view: &View,
) -> Done {
    let report = |code| private::report(world, parent.comm, code);
    let call = ComposedCall::new(world, parent.comm, schedules, own, view).map_err(report)?;
    scratch::with(User::Schedule, |scratch| {
        if !scratch.block.provide(call.demand()) {
            return Err(report(abi::MPI_ERR_NO_MEM as c_int));
        }
        // SAFETY: there is as much room as is demanded; the buffers are the application's.
        let running = unsafe { RunningComposition::new(call, scratch.block.start()) };
        running.run()
    })
}

impl<'a> ComposedCall<'a> {
    fn new(
        world: &'a World,
        comm: Comm,
        schedules: &Schedules,
        own: Composition,
        view: &'a View,
    ) -> Result<ComposedCall<'a>, c_int> {
        Ok(ComposedCall {
            parts: &world.pmpi.collectives,
            comm,
            endpoint: Endpoint::new(world, schedules.tag())?,
            own,
            view,
        })
    }

    /// Bytes of scratch memory that the call uses; saturates.
    fn demand(&self) -> usize {
        self.lists().saturating_mul(2).saturating_add(self.bytes())
    }

    /// Bytes of one list of a number per rank.
    fn lists(&self) -> usize {
        (self.n_ranks() * size_of::<c_int>()).next_multiple_of(ALIGN)
    }

    /// Bytes of intermediate results.
    fn bytes(&self) -> usize {
        let (n, total) = (self.n_ranks() as u64, self.view.block);
        match self.own {
            Composition::AllreduceReduceBcast
            | Composition::GatherGatherv
            | Composition::ScatterScatterv
            | Composition::ReduceScatterBlockReduceScatter => 0,
            Composition::BarrierAllreduce => 2 * ALIGN,
            // Lists of counts and displacements, in both directions.
            Composition::AlltoallAlltoallv => 4 * self.n_ranks() * size_of::<c_int>(),
            Composition::ReduceAllreduce
            | Composition::ReduceReduceScatter
            | Composition::ScanExscan
            | Composition::ReduceScatterBlockReduceThenScatter
            | Composition::ReduceScatterBlockAllreduce
            | Composition::ReduceScatterReduceThenScatterv
            | Composition::ReduceScatterAllreduce => self.view.unit.bytes(self.view.input_units),
            Composition::AllreduceReduceScatterBlockAllgather
            | Composition::AllreduceReduceScatterAllgatherv
            | Composition::ReduceReduceScatterBlockGather
            | Composition::ReduceReduceScatterGatherv => self.view.unit.bytes(total.div_ceil(n)),
            Composition::BcastScatterAllgather | Composition::BcastAllgatherv => {
                self.view.unit.bytes(total)
            }
            // What every rank sends, and what it receives where that must be unpacked.
            Composition::AllgatherAllgatherv
            | Composition::AllgatherGatherBcast
            | Composition::AllgatherAlltoall
            | Composition::AllgatherAllreduce
            | Composition::GatherAllgather
            | Composition::GatherReduce
            | Composition::ScatterBcast => {
                let all = usize::try_from(total.saturating_mul(n)).unwrap_or(usize::MAX);
                all.saturating_mul(2).saturating_add(ALIGN)
            }
        }
    }

    fn n_ranks(&self) -> usize {
        self.view.members.n_ranks
    }

    fn rank(&self) -> usize {
        self.view.members.rank
    }

    fn is_root(&self) -> bool {
        self.view.is_root()
    }

    fn root(&self) -> c_int {
        self.view.root as c_int
    }

    /// One block of what this rank sends and of what it receives, as the library takes it.
    fn sides(&self) -> [Typed; 2] {
        let (one, all) = (1, self.n_ranks() as u64);
        let (sent, received) = match self.view.collective {
            Collective::Scatter => (all, one),
            Collective::Alltoall => (all, all),
            _ => (one, all),
        };
        // What has no meaning on this rank, or in place.
        let nothing = |start: *mut c_void| self.endpoint.bytes(start.cast(), 0);
        let block_of = |all: Typed, blocks| Typed {
            count: all.count / blocks,
            ..all
        };
        let send = match self.view.input {
            Input::User(memory) => block_of(memory.typed(), sent),
            Input::InOutput { .. } => nothing(in_place()),
            Input::Nothing | Input::Blocks(_) => nothing(std::ptr::null_mut()),
        };
        let recv = match self.view.output {
            Output::User { memory, .. } => block_of(memory.typed(), received),
            Output::InInput => nothing(in_place()),
            Output::Nothing | Output::Blocks { .. } => nothing(std::ptr::null_mut()),
        };
        [send, recv]
    }

    /// Errors of ours reach the program's handler as those of parts do.
    fn report(&self, result: Done) -> Done {
        result.map_err(|code| private::report(self.endpoint.world, self.comm, code))
    }
}

impl<'a> RunningComposition<'a> {
    /// # Safety
    /// From `start` on there is as much room as [`ComposedCall::demand`] says, and the view's buffers are valid, as
    /// long as the view says.
    unsafe fn new(call: ComposedCall<'a>, start: *mut u8) -> RunningComposition<'a> {
        let lists = call.lists();
        let room = Workspace {
            counts: start.cast(),
            displacements: start.wrapping_add(lists).cast(),
            bytes: start.wrapping_add(2 * lists),
        };
        RunningComposition { call, room }
    }

    fn run(&self) -> Done {
        match self.own {
            Composition::AllreduceReduceBcast => self.reduce_bcast(),
            Composition::AllreduceReduceScatterBlockAllgather
            | Composition::ReduceReduceScatterBlockGather => self.reduce_by_blocks(),
            Composition::AllreduceReduceScatterAllgatherv
            | Composition::ReduceReduceScatterGatherv => self.reduce_by_shares(),
            Composition::ReduceAllreduce => self.reduce_by_allreduce(),
            Composition::BcastScatterAllgather => self.bcast_by_scatter(),
            Composition::BcastAllgatherv => self.bcast_by_allgatherv(),
            Composition::AllgatherAllgatherv => self.allgather_by_allgatherv(),
            Composition::AllgatherGatherBcast => self.allgather_by_gather(),
            Composition::AllgatherAlltoall => self.allgather_by_alltoall(),
            Composition::AllgatherAllreduce | Composition::GatherReduce => self.blocks_by_or(),
            Composition::AlltoallAlltoallv => self.alltoall_by_alltoallv(),
            Composition::ReduceReduceScatter => self.reduce_by_reduce_scatter(),
            Composition::GatherAllgather => self.gather_by_allgather(),
            Composition::GatherGatherv => self.gather_by_gatherv(),
            Composition::ScatterBcast => self.scatter_by_bcast(),
            Composition::ScatterScatterv => self.scatter_by_scatterv(),
            Composition::ReduceScatterBlockReduceThenScatter
            | Composition::ReduceScatterReduceThenScatterv => self.reduce_and_scatter(),
            Composition::ReduceScatterBlockReduceScatter => self.blocks_by_reduce_scatter(),
            Composition::ReduceScatterBlockAllreduce | Composition::ReduceScatterAllreduce => {
                self.blocks_by_allreduce()
            }
            Composition::ScanExscan => self.scan_by_exscan(),
            Composition::BarrierAllreduce => self.barrier_by_allreduce(),
        }
    }

    /// Lists the near-equal shares of `count` elements.
    fn list_shares(&self, count: u64) {
        for rank in 0..self.n_ranks() {
            let (start, end) = part_bounds(count, rank, self.n_ranks());
            // SAFETY: there are lists with a place for each rank, and `rank` is one.
            unsafe {
                self.room.counts.add(rank).write((end - start) as c_int);
                self.room.displacements.add(rank).write(start as c_int);
            }
        }
    }
}
