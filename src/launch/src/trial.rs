//! One run of the user's own line, with or without the tuner: started, timed, ended with this command.
//!
//! A trial has a process group of its own, so that a signal to this command ends the whole job and nothing else.
//! Its whole time is that of its launcher, from the start to the end.

mod interrupt;

pub mod summary;

mod whole_times;

mod job;

mod way;

pub use interrupt::{Interrupt, interrupted};
pub use job::{Done, Ended, Trials, watched};
pub use way::{Tuner, Way};
pub use whole_times::WholeTimes;
