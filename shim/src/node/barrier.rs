//! The barrier: lines without a message, and one number among the leaders, or a barrier of the library's.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use colltune_core::catalogue::{Crossing, OnNodes, Scheduled};
use colltune_core::collective::Collective;

use super::bridges::Bridges;
use super::phases::or_give_up;
use super::segment::Segment;
use super::team::Team;
use crate::abi;
use crate::arguments::Arguments;
use crate::own_call::OwnCall;
use crate::p2p::{self, Group, Schedules};
use crate::world::World;

/// Bytes of what the leaders reduce.
const NUMBER: u64 = 8;

/// Runs a barrier.
pub fn run(
    world: &World,
    schedules: &mut Schedules,
    (team, bridges): (&Team, &Bridges),
    mut segment: Option<&mut Segment>,
    call: &OwnCall<OnNodes>,
) -> Result<(), c_int> {
    let OnNodes::Leaders(crossing) = call.own else {
        // There is one node.
        return segment.map_or(Ok(()), |segment| segment.meet(world));
    };
    // All come to the leader, the leaders meet, all go.
    if let Some(segment) = &mut segment {
        segment.meet(world)?;
    }
    let mut result = Ok(());
    if team.place == 0 {
        result = match crossing {
            Crossing::Schedule(between) => {
                let mut number = 0u64;
                let leading = leading(world, call, between, &mut number);
                let group = group(team);
                p2p::run_among(world, schedules, group, &leading, &mut ()).unwrap_or(Ok(()))
            }
            // SAFETY: a barrier has no arguments.
            Crossing::Library => unsafe {
                bridges.run(world, call.collective, &Arguments::Nothing)
            },
        };
        result = or_give_up(segment.as_deref(), result);
    }
    result?;
    segment.map_or(Ok(()), |segment| segment.meet(world))
}

/// Whether the leaders have room.
pub fn has_room(
    world: &World,
    schedules: &mut Schedules,
    team: &Team,
    call: &OwnCall<OnNodes>,
) -> bool {
    let OnNodes::Leaders(Crossing::Schedule(between)) = call.own else {
        return true;
    };
    let mut number = 0u64;
    let leading = leading(world, call, between, &mut number);
    p2p::has_room_among(world, schedules, group(team), &leading)
}

fn group(team: &Team) -> Group<'_> {
    Group {
        rank: team.node,
        world_ranks: &team.leaders,
    }
}

fn leading(
    world: &World,
    call: &OwnCall<OnNodes>,
    between: Scheduled,
    number: &mut u64,
) -> OwnCall<Scheduled> {
    OwnCall {
        collective: Collective::Allreduce,
        variant: call.variant,
        own: between,
        bytes: NUMBER,
        arguments: Arguments::Reduction {
            send: abi::MPI_IN_PLACE as *const c_void,
            recv: (&raw mut *number).cast(),
            count: 1,
            datatype: world.handles.uint64,
            op: world.handles.max,
            root: 0,
        },
    }
}

impl Segment {
    /// Waits until every rank of the node is here.
    #[inline]
    pub fn meet(&mut self, world: &World) -> Result<(), c_int> {
        let ticket = self.tell_line(world)?;
        for place in self.others() {
            let number = self.line(place, ticket);
            self.until(world, || number.load(Ordering::Acquire) == ticket)?;
        }
        self.done_short(ticket);
        Ok(())
    }
}
