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

use colltune_core::algorithm::schedule::part_bounds;
use colltune_core::composition::Composition;

use crate::abi::{self, Comm, Datatype};
use crate::arguments::{Input, Members, Memory, Output, View};
use crate::library::collectives::Collectives;
use crate::own_call::OwnCall;
use crate::p2p::{Schedules, settled};
use crate::private::{self, Parent};
use crate::scratch::{self, ALIGN, Demand, User};
use crate::world::World;

/// One call as its parts see it.
struct Job<'a> {
    world: &'a World,
    /// The library's own collectives.
    parts: &'static Collectives<c_int>,
    comm: Comm,
    members: Members,
    call: &'a OwnCall<Composition>,
    view: View,
}

/// The scratch memory of one call: two lists of a number per rank, then bytes.
struct Room {
    counts: *mut c_int,
    displacements: *mut c_int,
    bytes: *mut u8,
}

/// What a part returned, if that is not success.
type Done = Result<(), c_int>;

fn done(code: c_int) -> Done {
    if code == abi::SUCCESS {
        Ok(())
    } else {
        Err(code)
    }
}

fn in_place() -> *mut c_void {
    abi::MPI_IN_PLACE as *mut c_void
}

/// Sees to it that a call can be run. Collective at the first call of a variant and size class; the
/// answer is the same on all ranks.
pub fn ready(
    world: &World,
    parent: Parent,
    schedules: &mut Schedules,
    call: &OwnCall<Composition>,
) -> bool {
    settled(
        world,
        parent,
        schedules,
        (call.variant, call.bytes),
        &call.arguments,
        |schedules| {
            // Wrong arguments are no want of room: the library will report them.
            Job::new(world, parent.comm, call).is_none_or(|job| {
                let bytes = job.demand();
                let demand = Demand {
                    bytes,
                    ..Demand::default()
                };
                schedules.has_room(User::Schedule, demand)
            })
        },
    )
}

/// Runs a call that is ready. `default` runs where an argument is wrong, so that the library says so.
pub fn run(
    world: &World,
    parent: Parent,
    call: &OwnCall<Composition>,
    default: impl Fn() -> c_int,
) -> c_int {
    let Some(job) = Job::new(world, parent.comm, call) else {
        return default();
    };
    let result = scratch::with(User::Schedule, |scratch| {
        if !scratch.block.provide(job.demand()) {
            return Err(private::report(
                world,
                job.comm,
                abi::MPI_ERR_NO_MEM as c_int,
            ));
        }
        let room = job.room(scratch.block.start());
        // SAFETY: there is as much room as is demanded; the buffers are the application's.
        unsafe { job.run(&room) }
    });
    result.err().unwrap_or(abi::SUCCESS)
}

impl<'a> Job<'a> {
    /// `None` where an argument is wrong.
    fn new(world: &'a World, comm: Comm, call: &'a OwnCall<Composition>) -> Option<Job<'a>> {
        let (mut rank, mut n_ranks) = (0, 0);
        // SAFETY: the communicator is valid.
        unsafe {
            (world.pmpi.comm_rank)(comm, &mut rank);
            (world.pmpi.comm_size)(comm, &mut n_ranks);
        }
        let members = Members {
            rank: rank as usize,
            n_ranks: n_ranks as usize,
        };
        let view = call
            .arguments
            .view(world, call.collective, call.bytes, members)?;
        Some(Job {
            world,
            parts: &world.pmpi.collectives,
            comm,
            members,
            call,
            view,
        })
    }

    /// Bytes of scratch memory that the call uses; saturates.
    fn demand(&self) -> usize {
        self.lists().saturating_mul(2).saturating_add(self.bytes())
    }

    /// Bytes of one list of a number per rank.
    fn lists(&self) -> usize {
        (self.members.n_ranks * size_of::<c_int>()).next_multiple_of(ALIGN)
    }

    /// Bytes of intermediate results.
    fn bytes(&self) -> usize {
        let (n, total) = (self.members.n_ranks as u64, self.view.block);
        match self.call.own {
            Composition::AllreduceReduceBcast
            | Composition::GatherGatherv
            | Composition::ScatterScatterv
            | Composition::ReduceScatterBlockReduceScatter => 0,
            Composition::BarrierAllreduce => 2 * ALIGN,
            // Lists of counts and displacements, in both directions.
            Composition::AlltoallAlltoallv => 4 * self.members.n_ranks * size_of::<c_int>(),
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

    fn room(&self, start: *mut u8) -> Room {
        let lists = self.lists();
        Room {
            counts: start.cast(),
            displacements: start.wrapping_add(lists).cast(),
            bytes: start.wrapping_add(2 * lists),
        }
    }

    /// # Safety
    /// The room is as large as [`Job::demand`] says, and the view's buffers are valid.
    unsafe fn run(&self, room: &Room) -> Done {
        // SAFETY: the room is as large as the job demands and the view's buffers are valid, as the caller promises;
        // that is all that each composition asks for.
        unsafe {
            match self.call.own {
                Composition::AllreduceReduceBcast => self.reduce_bcast(),
                Composition::AllreduceReduceScatterBlockAllgather
                | Composition::ReduceReduceScatterBlockGather => self.reduce_by_blocks(room),
                Composition::AllreduceReduceScatterAllgatherv
                | Composition::ReduceReduceScatterGatherv => self.reduce_by_shares(room),
                Composition::ReduceAllreduce => self.reduce_by_allreduce(room),
                Composition::BcastScatterAllgather => self.bcast_by_scatter(room),
                Composition::BcastAllgatherv => self.bcast_by_allgatherv(room),
                Composition::AllgatherAllgatherv => self.allgather_by_allgatherv(room),
                Composition::AllgatherGatherBcast => self.allgather_by_gather(room),
                Composition::AllgatherAlltoall => self.allgather_by_alltoall(room),
                Composition::AllgatherAllreduce => self.allgather_by_allreduce(room),
                Composition::AlltoallAlltoallv => self.alltoall_by_alltoallv(room),
                Composition::ReduceReduceScatter => self.reduce_by_reduce_scatter(room),
                Composition::GatherAllgather => self.gather_by_allgather(room),
                Composition::GatherGatherv => self.gather_by_gatherv(room),
                Composition::GatherReduce => self.gather_by_reduce(room),
                Composition::ScatterBcast => self.scatter_by_bcast(room),
                Composition::ScatterScatterv => self.scatter_by_scatterv(room),
                Composition::ReduceScatterBlockReduceThenScatter
                | Composition::ReduceScatterReduceThenScatterv => self.reduce_and_scatter(room),
                Composition::ReduceScatterBlockReduceScatter => self.blocks_by_reduce_scatter(room),
                Composition::ReduceScatterBlockAllreduce | Composition::ReduceScatterAllreduce => {
                    self.blocks_by_allreduce(room)
                }
                Composition::ScanExscan => self.scan_by_exscan(room),
                Composition::BarrierAllreduce => self.barrier_by_allreduce(room),
            }
        }
    }

    fn is_root(&self) -> bool {
        self.members.rank == self.view.root
    }

    fn root(&self) -> c_int {
        self.view.root as c_int
    }

    fn is_in_place(&self) -> bool {
        matches!(self.view.input, Input::InOutput { .. })
    }

    /// The caller's output on ranks that have one.
    fn output(&self) -> Option<Memory> {
        match self.view.output {
            Output::User { memory, .. } => Some(memory),
            Output::Nothing | Output::InInput | Output::Blocks { .. } => None,
        }
    }

    /// Lists the near-equal shares of `count` elements.
    ///
    /// # Safety
    /// The lists have a place for each rank.
    unsafe fn list_shares(&self, room: &Room, count: u64) {
        for rank in 0..self.members.n_ranks {
            let (start, end) = part_bounds(count, rank, self.members.n_ranks);
            // SAFETY: the caller promises lists with a place for each rank, and `rank` is one.
            unsafe {
                room.counts.add(rank).write((end - start) as c_int);
                room.displacements.add(rank).write(start as c_int);
            }
        }
    }

    /// Bytes from one element of a datatype to the next.
    fn stride(&self, datatype: Datatype) -> Result<isize, c_int> {
        let stride = self.world.stride(datatype);
        // The view was made of the same type.
        stride.ok_or(abi::MPI_ERR_NO_MEM as c_int)
    }
}
