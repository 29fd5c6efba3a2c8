//! The end of tuning, in MPI_Finalize behind all that the program does there.
//!
//! MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF, the last one that was set first, and until that is
//! done the program may call whatever it likes: its callback may send what another rank waits for before its own
//! MPI_Finalize. Waiting for the other ranks before that would hang such programs. So the end hangs on an attribute
//! of ours, which was set in MPI_Init and goes last, and calls of the callbacks are tuned like any others.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::{self, Comm};
use crate::communicator::do_not_copy;
use crate::fence;
use crate::floating;
use crate::library::{Handles, Pmpi};
use crate::switch;

/// Whether the attribute is there.
static HANGS_ON_SELF: AtomicBool = AtomicBool::new(false);

/// Sets the attribute. Where the library refuses it, tuning ends before MPI_Finalize begins.
pub fn hang_on_self(pmpi: &Pmpi, handles: &Handles) {
    let mut keyval = abi::MPI_KEYVAL_INVALID as c_int;
    // SAFETY: both callbacks have the signatures of the standard, there is no state, and MPI_COMM_SELF is valid.
    let is_set = unsafe {
        let code = (pmpi.comm_create_keyval)(do_not_copy, last, &mut keyval, null_mut());
        code == abi::SUCCESS
            && (pmpi.comm_set_attr)(handles.comm_self, keyval, null_mut()) == abi::SUCCESS
    };
    HANGS_ON_SELF.store(is_set, Ordering::Relaxed);
}

/// Runs the library's MPI_Finalize, `finalize`.
pub fn finalize(finalize: impl Fn() -> c_int) -> c_int {
    let tuner = fence::tuner();
    let Some(tuner) = tuner.filter(|_| HANGS_ON_SELF.load(Ordering::Relaxed)) else {
        wind_down();
        return finalize();
    };
    let code = tuner
        .registry
        .while_freed(tuner.handles.comm_self, &finalize);
    // MPICH keeps MPI_COMM_SELF while a session is open; the other ranks can hear nothing any more.
    if let Some(tuner) = fence::disarm() {
        switch::let_be();
        floating::by_default(|| tuner.keep_records());
    }
    code
}

/// Ends tuning, once.
fn wind_down() {
    switch::let_be();
    if let Some(tuner) = fence::disarm() {
        floating::by_default(|| tuner.finish());
    }
}

unsafe extern "C-unwind" fn last(_: Comm, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    wind_down();
    abi::SUCCESS
}
