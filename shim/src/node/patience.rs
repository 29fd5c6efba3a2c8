//! How a rank waits for another in shared memory.
//!
//! Whoever waits there must let the library go on: a message of the program's may need this rank's
//! help before the other can come. Where ranks share processors, the other may be waiting for
//! this one's. And the other may never come: it cannot go on, and has said so, or its process is gone.

use std::ffi::c_int;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use colltune_core::catalogue::OnNodes;
use colltune_core::collective::Collective;

use super::neighbours::LongWait;
use crate::abi;
use crate::p2p::Schedules;
use crate::world::World;

/// Looks before the library is asked. On the machine that this was developed on a look takes 1 ns
/// while nothing changes, and an exchange between two cores 100.
const LOOKS: u32 = 500;
/// Looks before the processor is given away, where others may need it.
const LOOKS_YIELDING: u32 = 20;
/// Times that it is given away before the library is asked.
const YIELDS: u32 = 8;
/// Of calls that end without another question to the library, one in so many has one.
const CALLS: u32 = 16;
/// A call of more bytes takes so long that a question does not matter.
const LONG: u64 = 8 << 10;

/// Whether the library is asked after each such call, and not only now and then. So it is after barriers of
/// one node: programs test for what was sent before, once, though no library promises that it has come. Between
/// nodes everybody waits for messages, or for who does; there a question may look at every connection.
pub fn asks_after(own: OnNodes, collective: Collective, bytes: u64) -> bool {
    let one_node = matches!(own, OnNodes::Alone | OnNodes::Reading);
    one_node && (bytes > LONG || collective == Collective::Barrier)
}

/// Lets the library go on after a call in which this rank may not have had to wait: it may come last each
/// time, while a message that it sent before needs its help.
#[inline(always)]
pub fn after_call(world: &World, schedules: &Schedules, always: bool) {
    if always || schedules.is_one_in(CALLS) {
        world.messages.progress(world.pmpi);
    }
}

/// How long it pays to wait without giving the processor away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Every rank has a processor to itself.
    Spin,
    /// There are more ranks than processors.
    Yield,
}

impl Patience {
    /// Waits until `come` is true. `neighbours` gives the processes that it may depend on, from 0 on.
    ///
    /// Errors: the class that stands in `fault`, where some rank cannot go on; that of another error where one
    /// of the processes is gone.
    #[inline(always)]
    pub fn until(
        self,
        world: &World,
        fault: &AtomicU64,
        come: impl Fn() -> bool,
        neighbours: impl Fn(usize) -> Option<u64>,
    ) -> Result<(), c_int> {
        let looks = match self {
            Patience::Spin => LOOKS,
            Patience::Yield => LOOKS_YIELDING,
        };
        for _ in 0..looks {
            if come() {
                return Ok(());
            }
        }
        self.longer(world, fault, &come, &neighbours)
    }

    #[cold]
    fn longer(
        self,
        world: &World,
        fault: &AtomicU64,
        come: &dyn Fn() -> bool,
        neighbours: &dyn Fn(usize) -> Option<u64>,
    ) -> Result<(), c_int> {
        let mut wait = LongWait::new();
        loop {
            match self {
                Patience::Spin => {
                    for _ in 0..LOOKS {
                        if come() {
                            return Ok(());
                        }
                        spin_loop();
                    }
                }
                Patience::Yield => {
                    for _ in 0..YIELDS {
                        if come() {
                            return Ok(());
                        }
                        // SAFETY: it has no arguments and cannot fail.
                        unsafe { libc::sched_yield() };
                    }
                }
            }
            match fault.load(Ordering::Acquire) {
                0 => {}
                class => return Err(class as c_int),
            }
            // The library itself may have found out that a rank is gone.
            let able = world.messages.progress(world.pmpi);
            let processes = (0..).map_while(neighbours);
            if !able || !wait.goes_on(world, processes) {
                return Err(abi::MPI_ERR_OTHER as c_int);
            }
        }
    }
}
