//! Collectives whose blocks differ in length, by algorithms for equal ones: each block travels in a slot of the
//! length that the ranks agreed on, and a longer one in a separate message.
//!
//! The sender and the receiver of a block know its length alike, so no slot carries it, and neither of them needs to
//! know any other. Slots are packed from the application's types, so elements with holes are packed once.

use std::ffi::c_int;

use colltune_core::catalogue::Own;
use colltune_core::collective::Collective;

use crate::abi;
use crate::arguments::lists::Located;
use crate::arguments::{Before, Input, Memory, Output, Typed, View};
use crate::p2p::endpoint::Endpoint;
use crate::p2p::retire::{Receives, retire};
use crate::p2p::{Need, Schedules};
use crate::scratch::{self, Demand, Scratch, User};
use crate::world::World;

/// Slots begin at multiples of so many bytes.
const ALIGN: u64 = 8;

/// Longer than so many times the mean block a slot would be mostly empty.
const MEANS: u64 = 4;

/// Whether a call goes by an algorithm for equal blocks.
#[inline]
pub fn is_padded(own: Own, collective: Collective) -> bool {
    collective.padded().is_some() && own.needs_equal_blocks()
}

/// The longest block that is padded, where the ranks agreed on the bytes of the mean and of the longest.
pub fn longest(mean: u64, longest: u64) -> u64 {
    longest.min(mean.saturating_mul(MEANS))
}

/// The slots of a call: what this rank sends in rank order, and behind it what it receives.
#[derive(Clone, Copy)]
struct Slots {
    /// The bytes of one, and of those of all ranks.
    each: u64,
    all: u64,
}

impl Slots {
    fn of(view: &View) -> Option<Slots> {
        let each = view.block.checked_next_multiple_of(ALIGN)?;
        let all = each.checked_mul(view.members.n_ranks as u64)?;
        // Several blocks may travel in one message, and those of a class may be twice as long.
        i32::try_from(all.checked_mul(2)?).ok()?;
        Some(Slots { each, all })
    }

    fn demand(self, view: &View) -> Demand {
        let bytes = usize::try_from(self.all.saturating_mul(2)).unwrap_or(usize::MAX);
        let requests = view.members.n_ranks * 2;
        Demand {
            bytes,
            requests,
            temporaries: 0,
        }
    }

    /// Where a rank's slot begins.
    fn at(self, start: *mut u8, rank: usize) -> *mut u8 {
        start.wrapping_add(rank * self.each as usize)
    }

    fn received(self, start: *mut u8) -> *mut u8 {
        start.wrapping_add(self.all as usize)
    }

    /// The call among equal blocks.
    fn equal(self, view: &View, start: *mut u8) -> Option<View> {
        let memory = |start| Memory {
            start,
            count: self.all,
            datatype: view.unit.datatype,
            plain: true,
        };
        Some(View {
            collective: view.collective.padded()?,
            bytes: self.each,
            block: self.each,
            uneven: None,
            input_units: self.all,
            input: Input::User(memory(start)),
            output: Output::User {
                memory: memory(self.received(start)),
                before: Before::Nothing,
                written: true,
            },
            ..*view
        })
    }
}

/// Makes room for the slots of a call and of all others of its size class, and for what `has_room` needs of the call
/// among equal blocks. `None` where there is none.
#[cold]
pub fn has_room(
    schedules: &mut Schedules,
    view: &View,
    has_room: impl FnOnce(&mut Schedules, &View) -> Option<Need>,
) -> Option<Need> {
    let slots = Slots::of(view)?;
    if !schedules.has_room(User::Padded, slots.demand(view)) {
        return None;
    }
    has_room(schedules, &slots.equal(view, any())?)
}

/// The call among equal blocks, of which only lengths count.
pub fn outline(view: &View) -> Option<View> {
    Slots::of(view)?.equal(view, any())
}

/// Any memory will do.
fn any() -> *mut u8 {
    scratch::with(User::Padded, |scratch| scratch.block.start())
}

/// Runs a call; `run` does so among equal blocks.
///
/// Errors: the code that still has to go to the program's error handler.
pub fn run(
    world: &World,
    schedules: &mut Schedules,
    view: &View,
    run: impl FnOnce(&mut Schedules, &View) -> Result<(), c_int>,
) -> Result<(), c_int> {
    let (Input::Blocks(sent), Output::Blocks { listed, .. }) = (view.input, view.output) else {
        return Err(abi::MPI_ERR_ARG as c_int);
    };
    let no_memory = abi::MPI_ERR_NO_MEM as c_int;
    let slots = Slots::of(view).ok_or(no_memory)?;
    scratch::with(User::Padded, |scratch| {
        if !scratch.block.provide(slots.demand(view).bytes) {
            return Err(no_memory);
        }
        let start = scratch.block.start();
        let equal = slots.equal(view, start).ok_or(no_memory)?;
        let exchange = Exchange {
            endpoint: Endpoint::new(world, schedules.tag())?,
            slots,
            view,
            sides: [sent, listed],
        };
        let Scratch {
            requests, block, ..
        } = scratch;
        requests.clear();
        let mut receives = 0;
        // SAFETY: the blocks are the application's, and there is room for two slots for each rank.
        let result = unsafe {
            let world_ranks = &schedules.channel().world_ranks;
            let posted = exchange.post(world_ranks, requests, &mut receives);
            let packed = exchange.pack(start);
            // The others are in it already, whatever failed here.
            let ran = run(schedules, &equal);
            let came = posted.and_then(|()| exchange.endpoint.wait_all(requests));
            let whole = ran.and(came);
            packed
                .and(whole)
                .and_then(|()| exchange.unpack(slots.received(start)))
        };
        if result.is_err() {
            retire(world, requests, &Receives::First(receives));
            // The library may still be reading it for messages under way.
            block.abandon();
        }
        result
    })
}

/// What one rank does around the call among equal blocks.
struct Exchange<'a> {
    endpoint: Endpoint<'a>,
    slots: Slots,
    view: &'a View,
    /// What is sent and what is received.
    sides: [Located; 2],
}

const SENT: usize = 0;
const RECEIVED: usize = 1;

/// A block of the application's, which has so many bytes.
#[derive(Clone, Copy)]
struct Whole {
    elements: Typed,
    bytes: u64,
    plain: bool,
}

impl Exchange<'_> {
    fn block(&self, side: usize, rank: usize) -> Whole {
        // SAFETY: the lists have a block for each rank.
        let elements = unsafe { self.sides[side].side(rank) }.typed();
        let world = self.endpoint.world;
        // Without elements the type may be invalid.
        let bytes = match elements.count {
            0 => 0,
            // Of unknown length: longer than any slot.
            _ => world.packed_bytes(elements).unwrap_or(u64::MAX),
        };
        Whole {
            elements,
            bytes,
            plain: world.types.get(elements.datatype).is_some(),
        }
    }

    /// The other ranks, from the next one on, with their blocks on one side that have any bytes.
    fn others(&self, side: usize) -> impl Iterator<Item = (usize, Whole)> {
        let members = self.view.members;
        let ranks = (1..members.n_ranks).map(move |skip| (members.rank + skip) % members.n_ranks);
        ranks
            .map(move |rank| (rank, self.block(side, rank)))
            .filter(|(_, block)| block.bytes > 0)
    }

    /// Whether a block travels in its slot.
    fn fits(&self, block: &Whole) -> bool {
        block.bytes <= self.view.block
    }

    /// Posts the messages of what is longer than its slot, receives first.
    ///
    /// # Safety
    /// The blocks are the application's and are not touched before the messages are through.
    unsafe fn post(
        &self,
        world_ranks: &[c_int],
        requests: &mut Vec<abi::Request>,
        receives: &mut usize,
    ) -> Result<(), c_int> {
        for side in [RECEIVED, SENT] {
            for (rank, block) in self.others(side).filter(|(_, block)| !self.fits(block)) {
                requests.push(self.endpoint.world.handles.request_null);
                let Some(request) = requests.last_mut() else {
                    unreachable!("one was just put there");
                };
                let other = world_ranks[rank];
                // SAFETY: as the caller promises.
                unsafe {
                    match side {
                        RECEIVED => self.endpoint.receive(block.elements, other, request)?,
                        _ => self.endpoint.send(block.elements, other, request)?,
                    }
                }
                *receives += usize::from(side == RECEIVED);
            }
        }
        Ok(())
    }

    /// Fills the slots that are sent, and copies this rank's own block to where it goes.
    ///
    /// # Safety
    /// The blocks are the application's, and each rank's slot begins where `to` says.
    unsafe fn pack(&self, to: *mut u8) -> Result<(), c_int> {
        for (rank, block) in self.others(SENT).filter(|(_, block)| self.fits(block)) {
            let slot = self.slots.at(to, rank);
            // SAFETY: the block is the application's, and its slot is as long at the least.
            unsafe {
                match block.plain {
                    true => std::ptr::copy_nonoverlapping(
                        block.elements.start,
                        slot,
                        block.bytes as usize,
                    ),
                    false => self.endpoint.pack(block.elements, slot, block.bytes)?,
                }
            }
        }
        let own = self.view.members.rank;
        let [from, to] = [SENT, RECEIVED].map(|side| self.block(side, own));
        if from.bytes == 0 {
            return Ok(());
        }
        // SAFETY: both are the application's blocks, of one signature.
        unsafe { self.endpoint.copy_block(from.elements, to.elements) }
    }

    /// Hands over the slots that were received.
    ///
    /// # Safety
    /// The slots have come, and the blocks are the application's.
    unsafe fn unpack(&self, from: *mut u8) -> Result<(), c_int> {
        for (rank, block) in self.others(RECEIVED).filter(|(_, block)| self.fits(block)) {
            let slot = self.slots.at(from, rank);
            // SAFETY: the slot holds the packed bytes of the block, which is the application's.
            unsafe {
                match block.plain {
                    true => std::ptr::copy_nonoverlapping(
                        slot,
                        block.elements.start,
                        block.bytes as usize,
                    ),
                    false => self.endpoint.unpack(slot, block.bytes, block.elements)?,
                }
            }
        }
        Ok(())
    }
}
