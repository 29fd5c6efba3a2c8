//! What a rank does where ranks of a node read each other's buffers, so that a message is copied once: a pure function
//! from (call, place) to steps.
//!
//! Ranks lend each other their buffers, read, and agree in the end, because from then on a buffer is its owner's again.
//! Until they first agree all inputs are as they were: where a read has failed by then, all ranks stop alike, and the call
//! takes another way. Behind that a read that fails is an error.
//!
//! The shim carries these steps out, and so do the tests, with contents in several orders.

use super::layout::{CELL, slice};
use crate::collective::Collective;

/// Units of a rank's buffer, from the first one on. Its source and target may be the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    Source(u64),
    Target(u64),
}

/// Units of this rank's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Lent(Lent),
    /// Room for as many units as a cell holds, where it adds up, and the same for one operand.
    Sum,
    Operand,
}

/// A step of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStep {
    /// Tells the others where its source and target lie; where they may not be read, that all have to stop.
    Lend {
        readable: bool,
    },
    /// Waits until the rank in a place has lent its buffers, and finds out whether both can be read.
    Probe {
        of: usize,
    },
    /// Reads units of the rank in a place, once that has lent them.
    Read {
        of: usize,
        from: Lent,
        into: Part,
        units: u64,
    },
    Copy {
        from: Part,
        into: Part,
        units: u64,
    },
    /// Units of a lower rank are combined with those of higher ones that lie in `into`.
    Combine {
        from: Part,
        into: Part,
        units: u64,
    },
    /// Is done with what others have lent.
    Return,
    /// Waits until every rank has come here.
    Agree,
}

/// A call on one node, as the rank in a place of it sees it.
#[derive(Clone, Copy, Debug)]
pub struct SingleCopy {
    pub collective: Collective,
    pub place: usize,
    pub n_here: usize,
    /// The place of a broadcast's root.
    pub root: usize,
    /// Units of the message, or of one block, and the bytes of one.
    pub units: u64,
    pub unit_bytes: u64,
    pub in_place: bool,
}

impl SingleCopy {
    /// Has the steps carried out by `by`, in order.
    ///
    /// Errors: the first of `by`.
    pub fn steps<E>(&self, by: &mut impl FnMut(ReadStep) -> Result<(), E>) -> Result<(), E> {
        match self.collective {
            Collective::Bcast => self.bcast(by),
            Collective::Allreduce => self.allreduce(by),
            _ => self.blocks(by),
        }
    }

    /// The other ranks of the node. Each begins with its neighbour, so that not all read one rank at once.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (own, n) = (self.place, self.n_here);
        (1..n).map(move |step| (own + step) % n)
    }

    fn bcast<E>(&self, by: &mut impl FnMut(ReadStep) -> Result<(), E>) -> Result<(), E> {
        by(ReadStep::Lend { readable: true })?;
        if self.place != self.root {
            by(ReadStep::Read {
                of: self.root,
                from: Lent::Target(0),
                into: Part::Lent(Lent::Target(0)),
                units: self.units,
            })?;
        }
        by(ReadStep::Return)?;
        by(ReadStep::Agree)
    }

    /// Allgather and alltoall.
    fn blocks<E>(&self, by: &mut impl FnMut(ReadStep) -> Result<(), E>) -> Result<(), E> {
        let each = self.collective == Collective::Alltoall;
        // In place others' blocks would be overwritten before they have been read.
        if each && self.in_place {
            by(ReadStep::Lend { readable: false })?;
            return by(ReadStep::Agree);
        }
        by(ReadStep::Lend { readable: true })?;
        // What every rank reads of another: the block that is meant for it, or the only one.
        let meant = Lent::Source(match each {
            true => self.place as u64 * self.units,
            false => 0,
        });
        let block_of = |place: usize| Part::Lent(Lent::Target(place as u64 * self.units));
        let units = self.units;
        by(ReadStep::Copy {
            from: Part::Lent(meant),
            into: block_of(self.place),
            units,
        })?;
        for of in self.others() {
            by(ReadStep::Read {
                of,
                from: meant,
                into: block_of(of),
                units,
            })?;
        }
        by(ReadStep::Return)?;
        by(ReadStep::Agree)
    }

    /// Every rank combines a slice of the message, and reads the others where they were combined.
    fn allreduce<E>(&self, by: &mut impl FnMut(ReadStep) -> Result<(), E>) -> Result<(), E> {
        by(ReadStep::Lend { readable: true })?;
        for of in self.others() {
            by(ReadStep::Probe { of })?;
        }
        // Once all ranks have come, none reads in cells of calls before, so the own ones are room.
        by(ReadStep::Agree)?;
        let (start, len) = slice(self.units, self.place, self.n_here);
        // Parts that stay in the processor's cache.
        let most = (CELL as u64 / self.unit_bytes.max(1)).max(1);
        let mut done = 0;
        while done < len {
            let units = most.min(len - done);
            self.combine(start + done, units, by)?;
            done += units;
        }
        by(ReadStep::Agree)?;
        for of in self.others() {
            let (start, units) = slice(self.units, of, self.n_here);
            let part = Lent::Target(start);
            by(ReadStep::Read {
                of,
                from: part,
                into: Part::Lent(part),
                units,
            })?;
        }
        by(ReadStep::Return)?;
        by(ReadStep::Agree)
    }

    /// Combines units of everybody's message into the target, from the last rank down.
    fn combine<E>(
        &self,
        first: u64,
        units: u64,
        by: &mut impl FnMut(ReadStep) -> Result<(), E>,
    ) -> Result<(), E> {
        let from = Lent::Source(first);
        let own = Part::Lent(from);
        for of in (0..self.n_here).rev() {
            let is_first = of + 1 == self.n_here;
            let into = if is_first { Part::Sum } else { Part::Operand };
            match (of == self.place, is_first) {
                (true, true) => by(ReadStep::Copy {
                    from: own,
                    into,
                    units,
                })?,
                (false, _) => by(ReadStep::Read {
                    of,
                    from,
                    into,
                    units,
                })?,
                (true, false) => {}
            }
            if !is_first {
                let from = if of == self.place { own } else { into };
                by(ReadStep::Combine {
                    from,
                    into: Part::Sum,
                    units,
                })?;
            }
        }
        by(ReadStep::Copy {
            from: Part::Sum,
            into: Part::Lent(Lent::Target(first)),
            units,
        })
    }
}
