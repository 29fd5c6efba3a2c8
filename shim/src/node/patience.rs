//! How a rank waits for another in shared memory.
//!
//! Whoever waits there must let the library go on: a message of the program's may need this rank's
//! help before the other can come. And where ranks share processors, the other may be waiting for
//! this one's.

use std::hint::spin_loop;

use crate::tune::Tuner;

/// Looks before the library is asked. On the machine that this was developed on a look takes 1 ns
/// while nothing changes, and an exchange between two cores 100.
const LOOKS: u32 = 500;
/// Looks before the processor is given away, where others may need it.
const LOOKS_YIELDING: u32 = 20;
/// Times that it is given away before the library is asked.
const YIELDS: u32 = 8;

/// How long it pays to wait without giving the processor away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Every rank has a processor to itself.
    Spin,
    /// There are more ranks than processors.
    Yield,
}

impl Patience {
    /// Waits until `come` is true.
    #[inline(always)]
    pub fn until(self, tuner: &Tuner, come: impl Fn() -> bool) {
        let looks = match self {
            Patience::Spin => LOOKS,
            Patience::Yield => LOOKS_YIELDING,
        };
        for _ in 0..looks {
            if come() {
                return;
            }
        }
        self.longer(tuner, &come);
    }

    #[cold]
    fn longer(self, tuner: &Tuner, come: &dyn Fn() -> bool) {
        loop {
            match self {
                Patience::Spin => {
                    for _ in 0..LOOKS {
                        if come() {
                            return;
                        }
                        spin_loop();
                    }
                }
                Patience::Yield => {
                    for _ in 0..YIELDS {
                        if come() {
                            return;
                        }
                        // SAFETY: it has no arguments and cannot fail.
                        unsafe { libc::sched_yield() };
                    }
                }
            }
            tuner.p2p.progress(tuner.pmpi);
        }
    }
}
