//! Whether threads of this process may be in MPI at the same time.
//!
//! Of the world the library says so behind MPI_Init (MPI_Query_thread). A session asks for a level of its own, whenever
//! it likes: Open MPI lets the threads of one with MPI_THREAD_MULTIPLE call beside a world with less. So a process that
//! has ever begun a session counts as one whose threads call at will, for good, whatever the session asked for.
//!
//! What depends on that is this rank's own affair (who is within a call, what is timed behind a sample, how is counted)
//! or agreed: native variants in a communicator's set-up, communicators of ours before each of them is made. A
//! communicator that was set up before goes on with what was agreed there, as its other ranks do. On Open MPI that are
//! carriers that it has. On MPICH it is native variants, during whose calls no other thread may call: none does, because
//! sessions have the level there of whoever came first, so beside a world with less they get no more.

use std::sync::atomic::{AtomicBool, Ordering};

static MULTIPLE: AtomicBool = AtomicBool::new(false);

/// Notes that they may from here on.
pub fn become_multiple() {
    MULTIPLE.store(true, Ordering::Relaxed);
}

/// Whether they may. Whoever uses a session was told of it behind that note; a call that is under way when one begins
/// ends by what it saw.
#[inline(always)]
pub fn are_multiple() -> bool {
    MULTIPLE.load(Ordering::Relaxed)
}
