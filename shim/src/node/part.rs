//! The part of a call that some ranks do together, one of each node.

use std::ffi::{c_int, c_void};

use colltune_core::catalogue::{OnNodes, Scheduled};

use crate::abi;
use crate::arguments::{Arguments, View};
use crate::own_call::OwnCall;
use crate::world::World;

/// What some ranks, one of each node, do together with a part of the message.
pub struct Part {
    /// A place in their list.
    pub root: usize,
    pub bytes: u64,
    pub units: u64,
}

impl Part {
    /// The arguments with which they run it: on what their nodes have combined, or on packed bytes. `data` is
    /// this rank's contribution, unless it lies in the second place already, and the place of the result.
    pub fn arguments(
        &self,
        world: &World,
        call: &OwnCall<OnNodes>,
        (send, recv): (Option<*mut u8>, *mut u8),
    ) -> Arguments {
        let root = self.root as c_int;
        let in_place = abi::MPI_IN_PLACE as *const c_void;
        match call.arguments {
            Arguments::Reduction { datatype, op, .. } => Arguments::Reduction {
                send: send.map_or(in_place, |send| send.cast_const().cast()),
                recv: recv.cast(),
                count: self.units as i64,
                datatype,
                op,
                root,
            },
            Arguments::Bcast { .. } => Arguments::Bcast {
                buffer: recv.cast(),
                count: self.bytes as i64,
                datatype: world.handles.byte,
                root,
            },
            other => other,
        }
    }

    /// The same as a call of a schedule.
    pub fn scheduled(
        &self,
        world: &World,
        call: &OwnCall<OnNodes>,
        between: Scheduled,
        data: (Option<*mut u8>, *mut u8),
    ) -> OwnCall<Scheduled> {
        OwnCall {
            collective: call.collective,
            variant: call.variant,
            own: between,
            bytes: self.bytes,
            arguments: self.arguments(world, call, data),
        }
    }
}

/// The bytes of a packed unit: a fact that all ranks share.
#[inline]
pub fn packed_unit(view: &View, call: &OwnCall<OnNodes>) -> u64 {
    match view.unit.combine {
        Some(_) if view.block > 0 => call.bytes / view.block,
        _ => 1,
    }
}
