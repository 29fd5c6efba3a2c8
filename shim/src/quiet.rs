//! Writing to files and pipes of which the program knows nothing.
//!
//! A write beyond the file size limit raises SIGXFSZ in the thread that writes, one into a pipe without a reader
//! SIGPIPE; both end a program by default. The error code that the write returns as well is enough for us.

use std::mem::MaybeUninit;
use std::ptr::null_mut;

const RAISED_BY_WRITES: [libc::c_int; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

/// Runs `write`; what it raises in this thread reaches neither the program nor its handlers.
pub fn quietly<T>(write: impl FnOnce() -> T) -> T {
    let withheld = set(&RAISED_BY_WRITES);
    let (mut before, mut pending) = (set(&[]), set(&[]));
    // SAFETY: all three are valid sets; the mask of this thread alone changes, and is put back below.
    unsafe {
        libc::sigpending(&mut pending);
        libc::pthread_sigmask(libc::SIG_BLOCK, &withheld, &mut before);
    }
    let result = write();
    for signal in RAISED_BY_WRITES {
        // SAFETY: a valid set is asked about a signal that exists.
        let programs_own = unsafe { libc::sigismember(&pending, signal) } == 1;
        if !programs_own {
            take(signal);
        }
    }
    // SAFETY: the mask that the program had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut()) };
    result
}

/// Takes back a blocked signal, if it has been raised.
fn take(signal: libc::c_int) {
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: set and time are valid; null asks for no information on the signal.
    while unsafe { libc::sigtimedwait(&set(&[signal]), null_mut(), &now) } < 0
        && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
    {}
}

fn set(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` writes the whole set, to which signals that exist are added.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}
