//! Makes the communicator that carries all messages of ours, and by which whoever waits lets the library go on.
//!
//! It has the ranks of the world: one beside each of the program's would take ids from it, of which MPICH has
//! about 2,000.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::abi;
use crate::library::{Handles, Pmpi};
use crate::private::Private;
use crate::world::Messages;

/// Makes it, at the start. Collective over the world; whether it worked on all ranks they have yet to tell each other.
pub fn make(pmpi: &Pmpi, handles: &Handles) -> Private {
    Private::at_start(pmpi, handles)
}

/// What was made, on all ranks.
pub fn of(made: Private, pmpi: &Pmpi, handles: &Handles) -> Messages {
    let (mut value, mut flag) = (null_mut::<c_void>(), 0);
    // SAFETY: the world is valid; the attribute's value is the address of an int.
    let largest = unsafe {
        let key = abi::MPI_TAG_UB as c_int;
        (pmpi.comm_get_attr)(handles.comm_world, key, (&raw mut value).cast(), &mut flag);
        match (flag, value.cast::<c_int>().as_ref()) {
            (1.., Some(tag)) => *tag,
            _ => 0,
        }
    };
    Messages {
        comm: made.comm(),
        // The least that the standard promises.
        tag_max: largest.max(32_767),
    }
}

/// Undoes it, where it was not made on all ranks.
pub fn take_back(mut made: Private, pmpi: &Pmpi) {
    made.free(pmpi);
}

/// Frees it. Only from MPI_Finalize.
pub fn free(messages: Messages, pmpi: &Pmpi) {
    Private::from(messages.comm).free(pmpi);
}
