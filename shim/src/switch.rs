//! The switch of a site folder: whether it was turned off while the job runs.
//!
//! A look at a file may take as long as a file server likes, so a thread of rank 0 takes it, and nothing waits for
//! that thread. It sleeps but for two looks at names every `switch_poll_interval`, takes no signal and calls nothing of MPI's.
//! The ranks tell each other what it saw at calls that all of them make.

use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

use colltune_core::decide::Switch;
use colltune_files::site::{Look, look};

use crate::site::is_off;
use crate::warn::say;

/// Whether this process knows that the job was switched off.
static OFF: AtomicBool = AtomicBool::new(false);
/// Whether the watching thread may end.
static OVER: AtomicBool = AtomicBool::new(false);

/// How often in a row the folder must be gone before that counts: file servers are restarted.
const GONE: u32 = 3;
const STACK_BYTES: usize = 64 << 10;

/// What this rank knows.
pub fn switch() -> Switch {
    match OFF.load(Ordering::Relaxed) {
        true => Switch::Off,
        false => Switch::On,
    }
}

/// It heard from another rank that the job was switched off.
pub fn hear() {
    OFF.store(true, Ordering::Relaxed);
}

/// Lets the watching thread end.
pub fn let_be() {
    OVER.store(true, Ordering::Relaxed);
}

/// Watches the switch of a site folder from now on. On rank 0 only.
pub fn watch(site: PathBuf, every: Duration) {
    let thread = Builder::new()
        .name("colltune-switch".to_owned())
        .stack_size(STACK_BYTES);
    let started = without_signals(|| thread.spawn(move || wait(&site, every)));
    if let Err(error) = started {
        say(&format!(
            "failed to watch the site folder's switch: {error}; this job goes on as it is if it is turned off"
        ));
    }
}

fn wait(site: &std::path::Path, every: Duration) {
    let mut gone = 0;
    let shown = site.display();
    loop {
        std::thread::sleep(every);
        if OVER.load(Ordering::Relaxed) {
            return;
        }
        let problem = match look(site) {
            Look::On => {
                gone = 0;
                continue;
            }
            Look::Off(reason) => is_off(site, &reason),
            Look::Gone(error) => {
                gone += 1;
                if gone < GONE {
                    continue;
                }
                format!("the site folder {shown} is gone ({error})")
            }
        };
        OFF.store(true, Ordering::Relaxed);
        say(&format!(
            "{problem}; collectives run untuned once ranks next compare a choice with the default"
        ));
        return;
    }
}

/// What is started here takes none of the program's signals.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are written whole before they are read; the mask of this thread alone changes.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let started = start();
    // SAFETY: the mask that the program had, as the call above has written it.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut()) };
    started
}
