//! Whether the processes that share a node's memory are still there.
//!
//! A process that is killed says nothing. Who waits for it in shared memory would wait for ever where the job
//! goes on without it, as launchers let it do when they are asked to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::frames;
use crate::world::World;

/// How often a rank that waits looks after its neighbours.
const EVERY: Duration = Duration::from_secs(1);
/// Between these the clock is not asked.
const TURNS: u32 = 64;

/// A wait that takes long.
pub struct LongWait {
    turns: u32,
    began: Option<Instant>,
    looked: Option<Instant>,
}

impl LongWait {
    pub const fn new() -> LongWait {
        LongWait {
            turns: 0,
            began: None,
            looked: None,
        }
    }

    /// Called again and again while this rank waits. False where one of `processes` is gone; 0 is one that has left
    /// MPI, or whose number is unknown here.
    #[inline]
    pub fn goes_on(&mut self, world: &World, processes: impl Iterator<Item = u64>) -> bool {
        self.turns = self.turns.wrapping_add(1);
        !self.turns.is_multiple_of(TURNS) || self.look(world, processes)
    }

    #[cold]
    fn look(&mut self, world: &World, mut processes: impl Iterator<Item = u64>) -> bool {
        let now = Instant::now();
        let began = *self.began.get_or_insert(now);
        if now - *self.looked.get_or_insert(now) < EVERY {
            return true;
        }
        self.looked = Some(now);
        if now - began >= world.wait_warning_after {
            say_once(world, now - began);
        }
        !processes.any(is_gone)
    }
}

/// Whether a process has ended, reaped or not.
fn is_gone(process: u64) -> bool {
    let Ok(process) = libc::pid_t::try_from(process) else {
        return false;
    };
    if process == 0 {
        return false;
    }
    // SAFETY: the call takes two numbers.
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    let Ok(file @ 0..) = i32::try_from(file) else {
        let error = std::io::Error::last_os_error().raw_os_error();
        return error == Some(libc::ESRCH);
    };
    let mut ended = libc::pollfd {
        fd: file,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the list has one entry; the file is ours, and closed here.
    unsafe {
        libc::poll(&mut ended, 1, 0);
        libc::close(file);
    }
    ended.revents & libc::POLLIN != 0
}

fn say_once(world: &World, waited: Duration) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        let call = frames::name_of_call();
        crate::warn::say(&format!(
            "rank {} has waited for {} s in {} for ranks of its node, in shared memory",
            world.rank,
            waited.as_secs(),
            call.as_deref().unwrap_or("a call of MPI"),
        ));
    }
}
