//! Jobs that would run untuned, where their user asked for none.

use colltune_core::environment;

use crate::warn::say;
use crate::world::{LAST_WORDS, rank_in_environment};

/// Says why nothing is tuned, where that was not said; and ends the job where `colltune run --strict` started it. All ranks
/// come here or none.
pub fn untuned(problem: &str) {
    untuned_at(rank_in_environment(), problem);
}

/// The same for the process at this place, where the library may have put another rank into the environment.
pub fn untuned_at(place: u32, problem: &str) {
    let says = place == 0;
    if says && !problem.is_empty() {
        say(problem);
    }
    if std::env::var_os(environment::STRICT).is_none() {
        return;
    }
    if says {
        say("the job ends, because --strict refuses one that runs untuned");
    }
    std::thread::sleep(LAST_WORDS);
    // What the program and the library would do at exit may wait for ranks that have left already.
    // SAFETY: it does not return, and nothing of this process is needed any more.
    unsafe { libc::_exit(1) }
}
