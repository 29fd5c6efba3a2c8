//! Makes the communicator that carries all messages of ours, and by which whoever waits lets the library go on.
//!
//! It has the ranks of the world: one beside each of the program's would take ids from it, of which MPICH has
//! about 2,000.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::abi;
use crate::library::Pmpi;
use crate::private::{self, Parent, Private, Who};
use crate::world::{Messages, World};

/// Makes it. Collective over the world, and alike on all its ranks.
pub fn open(world: &World) -> Messages {
    let all = world.handles.comm_world;
    let (mut value, mut flag) = (null_mut::<c_void>(), 0);
    // SAFETY: the world is valid; the attribute's value is the address of an int.
    let largest = unsafe {
        let key = abi::MPI_TAG_UB as c_int;
        (world.pmpi.comm_get_attr)(all, key, (&raw mut value).cast(), &mut flag);
        match (flag, value.cast::<c_int>().as_ref()) {
            (1.., Some(tag)) => *tag,
            _ => 0,
        }
    };
    let parent = Parent {
        comm: all,
        begun: 0,
    };
    let mut made = Private::default();
    made.ready(world, parent, || private::split(world, all, Who::All));
    Messages {
        comm: made.comm(),
        // The least that the standard promises.
        tag_max: largest.max(32_767),
    }
}

/// Frees it. Only from MPI_Finalize.
pub fn free(messages: Messages, pmpi: &Pmpi) {
    Private::from(messages.comm).free(pmpi);
}
