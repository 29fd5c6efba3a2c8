//! Jobs that would run untuned, where their user asked for none.

use std::ffi::CString;
use std::sync::OnceLock;

use colltune_core::environment;

use crate::warn::say;
use crate::world::{LAST_WORDS, rank_in_environment};

static IS_STRICT: OnceLock<bool> = OnceLock::new();

/// Takes the wish out of the environment: it is this program's, and programs that this one starts are not meant.
pub fn take() {
    IS_STRICT.get_or_init(|| {
        let is_set = std::env::var_os(environment::STRICT).is_some();
        if is_set {
            let name = CString::new(environment::STRICT).expect("a name without zeros");
            // SAFETY: the name ends with a zero. MPI_Init changes the environment, too, so the program expects it here.
            unsafe { libc::unsetenv(name.as_ptr()) };
        }
        is_set
    });
}

/// Says why nothing is tuned, where that was not said; and ends the job where `colltune run --strict` started it. All ranks
/// come here or none.
pub fn untuned(problem: &str) {
    untuned_at(rank_in_environment(), problem);
}

/// The same where the site wants it so; silent unless the job is strict.
pub fn denied(problem: &str) {
    if IS_STRICT.get() == Some(&true) {
        untuned(problem);
    }
}

/// The same for the process at this place, where the library may have put another rank into the environment.
pub fn untuned_at(place: u32, problem: &str) {
    let says = place == 0;
    if says && !problem.is_empty() {
        say(problem);
    }
    if IS_STRICT.get() != Some(&true) {
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
