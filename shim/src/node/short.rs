//! Messages that travel in one cache line with the number that says that they have come.
//!
//! The acts are those of a message of one piece; there is nothing to cut.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use colltune_core::node::act::Kind;
use colltune_core::node::blocks::Blocks;
use colltune_core::node::layout::{Flag, LINES};

use super::elements::{Elements, Sum};
use super::pieces::PhaseData;
use super::segment::Segment;
use crate::abi::{Datatype, Op};
use crate::p2p::endpoint::check;
use crate::world::World;

/// Ranks tell now and then only that they are done with lines.
const TOLD: u64 = LINES / 4;

/// What a line carries.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Payload([u64; 7]);

impl Payload {
    const EMPTY: Payload = Payload([0; 7]);

    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// What a rank contributes to a sum, or another combination, that fits into a line.
#[derive(Clone, Copy)]
pub struct Contribution {
    pub units: usize,
    pub bytes: usize,
    /// `None` where the library combines.
    pub sum: Option<Sum>,
    pub datatype: Datatype,
    pub op: Op,
}

impl Contribution {
    /// # Safety
    /// The units lie at `at`.
    #[inline(always)]
    unsafe fn read(&self, at: *const u8) -> Payload {
        let mut load = Payload::EMPTY;
        // SAFETY: the caller promises the units at `at`; a line holds their bytes.
        unsafe {
            match self.bytes {
                8 => load.0[0] = at.cast::<u64>().read_unaligned(),
                bytes => std::ptr::copy_nonoverlapping(at, load.start(), bytes),
            }
        }
        load
    }

    /// # Safety
    /// There is room for the units at `at`.
    #[inline(always)]
    unsafe fn write(&self, mut load: Payload, at: *mut u8) {
        // SAFETY: the caller promises room for the units at `at`; the words hold as many bytes.
        unsafe {
            match self.bytes {
                8 => at.cast::<u64>().write_unaligned(load.0[0]),
                bytes => std::ptr::copy_nonoverlapping(load.start(), at, bytes),
            }
        }
    }

    /// Combines the units of a lower rank with those of higher ones.
    #[inline(always)]
    fn combine(&self, world: &World, mut from: Payload, into: &mut Payload) -> Result<(), c_int> {
        if let Some(sum) = self.sum {
            // SAFETY: both lines hold so many numbers of that kind.
            unsafe { sum.add(from.start(), into.start(), self.units) };
            return Ok(());
        }
        // SAFETY: both lines hold the units, of a type without holes.
        check(unsafe {
            (world.pmpi.reduce_local)(
                from.start().cast(),
                into.start().cast(),
                self.units as c_int,
                self.datatype,
                self.op,
            )
        })
    }
}

impl Segment {
    /// Combines what all ranks contribute, from the last rank down.
    ///
    /// # Safety
    /// The own contribution lies at `source`, and there is room for as much at `target`.
    #[inline(always)]
    pub unsafe fn combine_lines(
        &mut self,
        world: &World,
        contribution: Contribution,
        source: *const u8,
        target: *mut u8,
    ) -> Result<(), c_int> {
        let ticket = self.next_short();
        let bytes = contribution.bytes;
        // SAFETY: the caller promises the contribution at `source`.
        let mine = unsafe { contribution.read(source) };
        self.send_line(world, ticket, &mine, bytes)?;
        let mut result = Ok(());
        let mut all = Payload::EMPTY;
        for place in (0..self.n_here).rev() {
            let load = match place == self.place {
                true => mine,
                false => self.receive_line(world, place, ticket, bytes)?,
            };
            if place + 1 == self.n_here {
                all = load;
            } else {
                result = result.and(contribution.combine(world, load, &mut all));
            }
        }
        // SAFETY: the caller promises room for as much at `target`.
        unsafe { contribution.write(all, target) };
        self.done_short(ticket);
        result
    }

    #[inline(always)]
    fn send_line(
        &mut self,
        world: &World,
        ticket: u64,
        load: &Payload,
        bytes: usize,
    ) -> Result<(), c_int> {
        if ticket > self.room_short {
            self.await_room_short(world, ticket)?;
        }
        let line = self.areas.line(self.place, ticket);
        for place in 0..bytes.div_ceil(8) {
            let word = self.number(line + 8 + 8 * place);
            word.store(load.0[place], Ordering::Relaxed);
        }
        self.number(line).store(ticket, Ordering::Release);
        Ok(())
    }

    #[cold]
    fn await_room_short(&mut self, world: &World, ticket: u64) -> Result<(), c_int> {
        let mut least = u64::MAX;
        for place in self.others() {
            let done = self.flag(place, Flag::ShortDone);
            self.until(world, || done.load(Ordering::Acquire) + LINES >= ticket)?;
            least = least.min(done.load(Ordering::Acquire));
        }
        self.room_short = least + LINES;
        Ok(())
    }

    #[inline(always)]
    fn receive_line(
        &self,
        world: &World,
        from: usize,
        ticket: u64,
        bytes: usize,
    ) -> Result<Payload, c_int> {
        let line = self.areas.line(from, ticket);
        let number = self.number(line);
        self.until(world, || number.load(Ordering::Acquire) == ticket)?;
        let mut load = Payload::EMPTY;
        for place in 0..bytes.div_ceil(8) {
            let word = self.number(line + 8 + 8 * place);
            load.0[place] = word.load(Ordering::Relaxed);
        }
        Ok(load)
    }

    /// Sends a few numbers in a line; its ticket.
    pub fn tell_words(&mut self, world: &World, words: &[u64]) -> Result<u64, c_int> {
        let ticket = self.next_short();
        let mut load = Payload::EMPTY;
        load.0[..words.len()].copy_from_slice(words);
        self.send_line(world, ticket, &load, words.len() * 8)?;
        Ok(ticket)
    }

    /// The ticket of a line that this rank does not send.
    pub fn skip_line(&mut self) -> u64 {
        self.next_short()
    }

    /// The numbers that a rank has sent in a line.
    pub fn hear_words<const N: usize>(
        &self,
        world: &World,
        from: usize,
        ticket: u64,
    ) -> Result<[u64; N], c_int> {
        let load = self.receive_line(world, from, ticket, N * 8)?;
        Ok(std::array::from_fn(|place| load.0[place]))
    }

    /// Sends a line without a message; its ticket.
    #[inline]
    pub fn tell_line(&mut self, world: &World) -> Result<u64, c_int> {
        let ticket = self.next_short();
        self.send_line(world, ticket, &Payload::EMPTY, 0)?;
        Ok(ticket)
    }

    /// The number of a rank's line.
    #[inline(always)]
    pub fn line(&self, place: usize, ticket: u64) -> &AtomicU64 {
        self.number(self.areas.line(place, ticket))
    }

    #[inline(always)]
    fn next_short(&mut self) -> u64 {
        let ticket = self.next_short;
        self.next_short += 1;
        ticket
    }

    #[inline(always)]
    pub fn done_short(&self, ticket: u64) {
        if ticket.is_multiple_of(TOLD) {
            self.flag(self.place, Flag::ShortDone)
                .store(ticket, Ordering::Release);
        }
    }
}

/// Runs a phase whose message, or all of its blocks, fits into a line.
///
/// # Safety
/// As [`super::pieces::run`].
pub unsafe fn run(
    elements: &Elements,
    segment: &mut Segment,
    kind: Kind,
    data: PhaseData,
) -> Result<(), c_int> {
    let ticket = segment.next_short();
    let (world, own, n) = (elements.world, segment.place, segment.n_here);
    let blocks = match data.blocks {
        Blocks::Exchanged(_) => n,
        _ => 1,
    };
    let bytes = elements.bytes(data.units) * blocks;
    let mut mine = Payload::EMPTY;
    let contributes = match kind {
        Kind::Bcast { root } => root == own,
        Kind::Exchange { givers } => own < givers,
        _ => true,
    };
    // After a fault the others still get what they wait for.
    let mut result = Ok(());
    if contributes {
        for place in 0..blocks {
            let block = match data.blocks {
                Blocks::Exchanged(_) => data.blocks.of(place),
                _ => 0,
            };
            let from = elements.at(data.source, block * data.units);
            let to = mine
                .start()
                .wrapping_add(elements.bytes(data.units) * place);
            // SAFETY: the line holds the bytes, and the caller promises the data there.
            result = result.and(unsafe { elements.store(from, data.units, to) });
        }
    }
    if !matches!(kind, Kind::ReduceWhole { root } if root == own) && contributes {
        segment.send_line(world, ticket, &mine, bytes)?;
    }
    match kind {
        Kind::Bcast { root } if root != own => {
            let mut load = segment.receive_line(world, root, ticket, bytes)?;
            // SAFETY: the caller promises buffers as long as the phase's kind says: the root's units lie there, or
            // have room.
            result = result.and(unsafe { elements.load(load.start(), data.units, data.target) });
        }
        Kind::AllreduceWhole | Kind::AllreduceSliced => {
            // SAFETY: the caller promises buffers as long as the phase's kind says, and the units fit into a line.
            result = result.and(unsafe { fold(elements, segment, ticket, mine, data) });
        }
        Kind::ReduceWhole { root } | Kind::ReduceSliced { root } if root == own => {
            // SAFETY: the caller promises buffers as long as the phase's kind says, and the units fit into a line.
            result = result.and(unsafe { fold(elements, segment, ticket, mine, data) });
        }
        Kind::Exchange { givers } => {
            for from in (1..n)
                .map(|step| (own + step) % n)
                .filter(|&from| from < givers)
            {
                let mut load = segment.receive_line(world, from, ticket, bytes)?;
                let skip = match data.blocks {
                    Blocks::Exchanged(_) => elements.bytes(data.units) * own,
                    _ => 0,
                };
                let to = elements.at(data.target, data.blocks.of(from) * data.units);
                let block = load.start().wrapping_add(skip);
                // SAFETY: the target holds a block for each rank.
                result = result.and(unsafe { elements.load(block, data.units, to) });
            }
        }
        _ => {}
    }
    segment.done_short(ticket);
    result
}

/// Combines everybody's contribution into the target, from the last rank down.
#[inline(always)]
unsafe fn fold(
    elements: &Elements,
    segment: &Segment,
    ticket: u64,
    mine: Payload,
    data: PhaseData,
) -> Result<(), c_int> {
    let bytes = elements.bytes(data.units);
    let mut result = Ok(());
    for place in (0..segment.n_here).rev() {
        let mut load = if place == segment.place {
            mine
        } else {
            segment.receive_line(elements.world, place, ticket, bytes)?
        };
        // SAFETY: the target has room for the message.
        let done = unsafe {
            if place + 1 == segment.n_here {
                elements.load(load.start(), data.units, data.target)
            } else {
                elements.combine(load.start(), data.units, data.target)
            }
        };
        result = result.and(done);
    }
    result
}
