//! The decisions of all ranks of a job in one process, to be shown alike whatever happens to single ranks.
//!
//! ```text
//! job(1000).programs(seed).faults(Faults::MANY).run(100_000).assert_all_decided_alike();
//! ```
//! A random program ([`script`]) calls collectives on communicators that come and go. [`agent`] is one thread of one
//! rank, which goes through it in its [`surroundings`] as the shim does. [`fabric`] is the library, which lets ranks
//! out of a collective when MPI's semantics let them, and notes which ranks disagree. [`job`] runs the agents in some
//! order. In [`broken`] the agents make the mistakes that this is to find. [`claims`] are the tests of the real ones,
//! [`single`] those of one communicator whose ranks are all alike, and [`published`] of how that draws.

mod script;

mod fabric;

mod faults;
mod surroundings;

mod agent;

mod job;

mod broken;
mod claims;
mod published;
mod single;

use crate::select::mix;

/// A counter-based random number: it depends on the seed, the purpose and the index alone.
fn dice(seed: u64, what: u64, which: u64) -> u64 {
    mix(mix(seed, what), which)
}

/// Whether something that happens so many times in a million happens.
fn happens(word: u64, ppm: u64) -> bool {
    word % 1_000_000 < ppm
}
