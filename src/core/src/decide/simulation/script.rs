//! Random programs: what each rank calls on which communicator, in an order that cannot lock up by itself.

use super::dice;
use crate::collective::Collective;
use crate::decide::call::SharedDetails;

/// All that the ranks of a job do, in one order, which each of them keeps for what it takes part in.
pub struct Script {
    pub comms: Vec<Comm>,
    pub acts: Vec<Act>,
}

/// A communicator of the program's.
pub struct Comm {
    /// Ranks of the world.
    pub members: Vec<u32>,
    /// Which of its ranks' threads uses it.
    pub thread: u32,
    /// Some member is of another job; all members see that.
    pub is_foreign: bool,
}

/// One collective or local step on one communicator.
pub struct Act {
    pub comm: u32,
    pub deed: Deed,
}

pub enum Deed {
    Call(Message),
    /// All members make communicators of some of them.
    Split,
    /// Each member lets go of it.
    Free,
}

/// The arguments of a call, as the program means them.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub collective: Collective,
    pub count: u64,
    pub type_bytes: u64,
    /// A rank of the communicator.
    pub root: u32,
    pub details: SharedDetails,
}

/// How large a script is to be.
#[derive(Clone, Copy)]
pub struct Extent {
    pub n_ranks: u32,
    pub threads: u32,
    /// Calls of single ranks.
    pub calls: u64,
}

const COUNTS: [u64; 6] = [0, 1, 512, 512, 100_000, 1 << 28];
const ROOTED: u32 = 3;

/// A reproducible source of random numbers.
struct Source {
    seed: u64,
    drawn: u64,
}

impl Source {
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        dice(self.seed, 0x5c71, self.drawn) % bound.max(1)
    }
}

impl Script {
    pub fn random(seed: u64, extent: Extent) -> Script {
        let mut source = Source { seed, drawn: 0 };
        let mut script = Script {
            comms: Vec::new(),
            acts: Vec::new(),
        };
        // Each thread has a duplicate of the world.
        for thread in 0..extent.threads {
            script.comms.push(Comm {
                members: (0..extent.n_ranks).collect(),
                thread,
                is_foreign: source.below(40) == 0,
            });
        }
        let mut alive: Vec<u32> = (0..extent.threads).collect();
        let mut left = extent.calls;
        // Deciders take memory, of all ranks at once.
        let mut seats = 4_000 + 3 * u64::from(extent.n_ranks);
        while left > 0 {
            let which = source.below(alive.len() as u64) as usize;
            let comm = alive[which];
            let n = script.comms[comm as usize].members.len() as u64;
            match source.below(24) {
                0 if n <= seats => {
                    seats -= n;
                    script.split(&mut source, comm, &mut alive);
                }
                1 if comm >= extent.threads => {
                    seats += n;
                    alive.swap_remove(which);
                    script.acts.push(Act {
                        comm,
                        deed: Deed::Free,
                    });
                }
                _ => {
                    for _ in 0..=source.below(30) {
                        let message = script.message(&mut source, comm);
                        let deed = Deed::Call(message);
                        script.acts.push(Act { comm, deed });
                        left = left.saturating_sub(n);
                    }
                }
            }
        }
        script
    }

    /// A duplicate, or groups by colour, in which some may be nowhere and may stand in another order.
    fn split(&mut self, source: &mut Source, comm: u32, alive: &mut Vec<u32>) {
        self.acts.push(Act {
            comm,
            deed: Deed::Split,
        });
        let colours = source.below(4);
        let key = source.below(2);
        let mut groups: Vec<Vec<u32>> = vec![Vec::new(); colours.max(1) as usize];
        for (place, rank) in self.comms[comm as usize].members.iter().enumerate() {
            let nowhere = colours > 1 && source.below(10) == 0;
            if !nowhere {
                let colour = match colours {
                    0 | 1 => 0,
                    _ => place as u64 % colours,
                };
                groups[colour as usize].push(*rank);
            }
        }
        let thread = self.comms[comm as usize].thread;
        for mut members in groups.into_iter().filter(|members| !members.is_empty()) {
            if key == 1 {
                members.reverse();
            }
            alive.push(self.comms.len() as u32);
            self.comms.push(Comm {
                members,
                thread,
                is_foreign: source.below(40) == 0,
            });
        }
    }

    /// One of a few calls that a program makes again and again on a communicator.
    fn message(&self, source: &mut Source, comm: u32) -> Message {
        let kinds = match self.comms[comm as usize].members.len() {
            0..=64 => 5,
            _ => 3,
        };
        let kind = source.below(kinds);
        let seed = source.seed;
        let of_kind = |what: u64| dice(seed, u64::from(comm) << 8 | what, kind);
        let collective = Collective::ALL[(of_kind(1) % 17) as usize];
        let count = COUNTS[(of_kind(2) % COUNTS.len() as u64) as usize];
        let type_bytes = 1 << (of_kind(3) % 4);
        let n = self.comms[comm as usize].members.len() as u64;
        let roots = u64::from(ROOTED).min(n);
        let root = match collective.has_root() {
            true => source.below(roots) as u32,
            false => 0,
        };
        let is_reduction = collective.is_reduction();
        Message {
            collective,
            count,
            type_bytes,
            root,
            details: SharedDetails {
                count: is_reduction.then_some(count),
                commutative: !is_reduction || of_kind(4) % 8 != 0,
                builtin_op: !is_reduction || of_kind(4) % 8 > 1,
                in_place: of_kind(5) % 4 == 0,
                equal_blocks: of_kind(6) % 4 != 0,
                exact: !is_reduction || of_kind(7) % 2 == 0,
                ..SharedDetails::MOVES
            },
        }
    }
}
