//! The barrier: lines without a message, and one number among the leaders, or a barrier of the library's.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use colltune_core::catalogue::{Crossing, OnNodes};

use super::bridges::Bridges;
use super::phases::or_give_up;
use super::segment::Segment;
use super::team::{self, Team};
use crate::arguments::{Memory, View};
use crate::p2p::{self, Need, Schedules};
use crate::world::World;

/// Runs a barrier.
pub fn run(
    world: &World,
    schedules: &mut Schedules,
    (team, bridges): (&Team, &Bridges),
    mut segment: Option<&mut Segment>,
    own: OnNodes,
    view: &View,
) -> Result<(), c_int> {
    let OnNodes::Leaders(crossing) = own else {
        // There is one node.
        return segment.map_or(Ok(()), |segment| segment.meet(world));
    };
    // All come to the leader, the leaders meet, all go.
    if let Some(segment) = &mut segment {
        segment.meet(world)?;
    }
    let mut result = Ok(());
    if team.map.place == 0 {
        result = match crossing {
            Crossing::Schedule(between) => {
                let mut number = 0;
                let sum = leaders_sum(world, team, &mut number);
                p2p::run_among(
                    world,
                    schedules,
                    &team.reach.leaders,
                    between,
                    &sum,
                    &mut (),
                )
            }
            // SAFETY: a barrier has no arguments.
            Crossing::Library => unsafe { bridges.run(world, view) },
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
    own: OnNodes,
) -> Option<Need> {
    let OnNodes::Leaders(Crossing::Schedule(between)) = own else {
        return Some(Need::default());
    };
    let sum = leaders_sum(world, team, &mut 0);
    p2p::has_room(world, schedules, between, &sum)
}

/// The leaders' allreduce of a number.
fn leaders_sum(world: &World, team: &Team, number: &mut u64) -> View {
    let memory = Memory {
        start: std::ptr::from_mut(number).cast(),
        count: 1,
        datatype: world.handles.uint64,
        plain: true,
    };
    View::of_number(memory, world.handles.max, team::across(&team.map))
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
