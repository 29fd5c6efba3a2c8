//! libcolltune_messages.so: records point-to-point messages through the profiling interface.
//!
//! `colltune run --messages FOLDER` preloads it. It counts what a rank sends by partner and size, times what may wait,
//! and writes one file a rank in MPI_Finalize. It sends nothing, and nothing of it can end a job: what it cannot count
//! or write it says on stderr. Processes without MPI do not notice it. Modules stand in the order of a call:
//! [`functions`] are what the program calls, [`recording`] counts them in [`counts`], with partners as [`comms`] knows
//! them; `rank-N.csv` is what [`counts`] writes.

mod library;

mod calls;

mod counts;

mod comms;

mod recording;

mod functions;

#[allow(dead_code, reason = "ranks share no times here")]
#[path = "../../shim/src/clock.rs"]
mod clock;
#[path = "../../shim/src/quiet.rs"]
mod quiet;
#[path = "../../shim/src/warn.rs"]
mod warn;
