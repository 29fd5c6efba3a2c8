//! What runs in place of the library's own choice where `reproducible = "fixed"`: operands travel by collectives of the
//! library's that add nothing, and whoever has those of all ranks combines them in the fixed order.
//!
//! It needs no set-up, so it is there from a program's first call on, and wherever no variant applies. Of a long message
//! each rank combines a share, of a short one the whole. Elements travel packed, because ranks may hold one signature in
//! types that lie otherwise in memory; what decides who does what goes by packed bytes alone. An error in the middle is
//! that of the collective that met it, as MPI_Alltoall.

mod unheld;
pub use unheld::{Unheld, does_not_hold};

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use colltune_core::algorithm::fixed_order::{self, FoldStep};
use colltune_core::collective::Collective;

use crate::abi::{self, Comm, bits, is_in_place};
use crate::arguments::lists::List;
use crate::arguments::{Arguments, Counted, Reduction, Unit};
use crate::gpu;
use crate::p2p::endpoint::{Endpoint, check};
use crate::scratch::{self, ALIGN, User};
use crate::world::World;

/// Bytes of everybody's operands that a rank has at a time, about.
const ROOM: u64 = 1 << 20;
/// A message is dealt out where everybody's operands are longer.
const DEALT_ABOVE: u64 = 64 << 10;
/// Results of parts of the tree over any number of ranks.
const RESULTS: usize = fixed_order::slots(u32::MAX as usize);

/// Runs a reduction; `default`, with its error, where the library refuses it or there is nothing to combine.
///
/// # Safety
/// The arguments are those of a call of this collective on `comm`.
#[cold]
#[inline(never)]
pub unsafe fn run(
    world: &World,
    (collective, arguments): (Collective, &Arguments),
    comm: Comm,
    default: &dyn Fn() -> c_int,
) -> c_int {
    let Arguments::Reduction(of) = arguments else {
        return default();
    };
    let (mut rank, mut n_ranks, mut is_between_groups) = (0, 0, 0);
    if bits(comm) == bits(world.handles.comm_null) {
        return default();
    }
    // SAFETY: the communicator is one, as it has a state or cannot have any; each call writes one number.
    unsafe {
        (world.pmpi.comm_test_inter)(comm, &mut is_between_groups);
        (world.pmpi.comm_size)(comm, &mut n_ranks);
        (world.pmpi.comm_rank)(comm, &mut rank);
    }
    if is_between_groups != 0 {
        if !of.is_exact(world) {
            does_not_hold(world, Unheld::BetweenGroups);
        }
        return default();
    }
    let n = n_ranks as u32;
    let is_refused = arguments.is_refused(world, collective, comm, n)
        || arguments.has_uncommitted(world, collective, comm);
    if n < 2 || is_refused || of.total(collective, n) <= 0 {
        return default();
    }
    if !world.combines(of.datatype, of.op) {
        let code = default();
        if code == abi::SUCCESS {
            does_not_hold(world, Unheld::UnknownType);
        }
        return code;
    }
    let known = world
        .type_bytes(of.datatype)
        .zip(world.element(of.datatype, of.op));
    // A message holds an element.
    let is_modest = |size: u64| size > 0 && size <= c_int::MAX as u64;
    let Some((size, unit)) = known.filter(|(size, _)| is_modest(*size)) else {
        return default();
    };
    let Ok(endpoint) = Endpoint::new(world, 0) else {
        does_not_hold(world, Unheld::NoMessages);
        return default();
    };
    let input = match is_in_place(of.send) {
        true => of.recv.cast(),
        false => of.send.cast_mut().cast(),
    };
    let sum = Sum {
        endpoint,
        collective,
        comm,
        of: *of,
        unit,
        size,
        input,
        rank: rank as usize,
        n: n as usize,
        failed: Cell::new(Ok(())),
    };
    // SAFETY: the caller promises the arguments, which the library does not refuse.
    let result = unsafe {
        match of.count {
            Counted::Each(counts) => sum.scattered(|rank| count_at(counts, rank)),
            Counted::All(count) if collective == Collective::ReduceScatterBlock => {
                sum.scattered(|_| count as u64)
            }
            Counted::All(count) => sum.whole(count as u64),
        }
    };
    result.and(sum.failed.get()).err().unwrap_or(abi::SUCCESS)
}

/// Of a list that is right.
fn count_at(counts: List, rank: usize) -> u64 {
    // SAFETY: MPI asks for a count for each rank.
    unsafe { counts.at(rank) as u64 }
}

/// A reduction under way.
struct Sum<'a> {
    endpoint: Endpoint<'a>,
    collective: Collective,
    comm: Comm,
    of: Reduction,
    unit: Unit,
    /// Bytes of a packed element; the same on all ranks.
    size: u64,
    /// What this rank contributes.
    input: *mut u8,
    rank: usize,
    n: usize,
    /// The first error that this rank alone has met: the others go on, so it does.
    failed: Cell<Result<(), c_int>>,
}

/// Memory for one round: packed elements to be sent, those of all ranks that came, and room to combine these where
/// they lie otherwise than packed.
#[derive(Clone, Copy)]
struct Room {
    sent: *mut u8,
    came: *mut u8,
    areas: *mut u8,
    /// Bytes from one rank's area to the next.
    area: usize,
}

impl Sum<'_> {
    fn world(&self) -> &World {
        self.endpoint.world
    }

    /// Reductions of one vector.
    ///
    /// # Safety
    /// As [`run`], of a call that the library does not refuse.
    unsafe fn whole(&self, count: u64) -> Result<(), c_int> {
        let n = self.n as u64;
        let bytes = count.saturating_mul(self.size).saturating_mul(n);
        let is_scan = matches!(self.collective, Collective::Scan | Collective::Exscan);
        let dealt = match is_scan || bytes <= DEALT_ABOVE {
            true => 0,
            false => count / n * n,
        };
        // SAFETY: the caller promises the buffers of a call of so many elements.
        unsafe {
            self.dealt(dealt)?;
            self.gathered(dealt, count)
        }
    }

    /// Elements of each rank's of which there is room for everybody's.
    fn chunk(&self) -> u64 {
        (ROOM / self.size.saturating_mul(self.n as u64)).max(1)
    }

    /// Lends room for rounds in which each rank combines so many elements of everybody's, and sends so many.
    fn with_room<T>(&self, units: u64, sent: u64, work: impl FnOnce(Room) -> T) -> T {
        let round = |bytes: usize| bytes.next_multiple_of(ALIGN);
        let bytes = |units: u64| round(units.saturating_mul(self.size) as usize);
        let came = bytes(units.saturating_mul(self.n as u64));
        let area = match self.unit.plain {
            true => 0,
            false => round(self.unit.bytes(units)),
        };
        let all = bytes(sent) + came + area.saturating_mul(self.n);
        scratch::with(User::Schedule, |scratch| {
            if !scratch.block.provide(all.max(1)) {
                let reason = format!("there is no memory for {all} bytes of operands");
                self.world().end_the_job(&reason);
            }
            let sent_at = scratch.block.start();
            let came_at = sent_at.wrapping_add(bytes(sent));
            work(Room {
                sent: sent_at,
                came: came_at,
                areas: came_at.wrapping_add(came),
                area,
            })
        })
    }

    fn at(&self, base: *mut u8, unit: u64) -> *mut u8 {
        self.unit.at(base, unit)
    }

    fn note(&self, result: Result<(), c_int>) {
        self.failed.set(self.failed.get().and(result));
    }

    /// Everybody who gets a result combines the elements from `first` to `end`.
    ///
    /// # Safety
    /// As [`Sum::whole`], of at least `end` elements.
    unsafe fn gathered(&self, mut first: u64, end: u64) -> Result<(), c_int> {
        let chunk = self.chunk().min(end - first);
        if chunk == 0 {
            return Ok(());
        }
        self.with_room(chunk, chunk, |room| {
            while first < end {
                let units = chunk.min(end - first);
                // SAFETY: the caller promises the elements; there is room for everybody's.
                unsafe {
                    let mine = self.packed(self.at(self.input, first), units, room.sent);
                    self.collect(mine, room.came, units)?;
                    if let Some(sum) = self.combine(room, units, units) {
                        self.copy(sum, self.at(self.of.recv.cast(), first), units);
                    }
                }
                first += units;
            }
            Ok(())
        })
    }

    /// Each rank combines a share of the first `count` elements, a multiple of the ranks.
    ///
    /// # Safety
    /// As [`Sum::whole`], of at least `count` elements.
    unsafe fn dealt(&self, count: u64) -> Result<(), c_int> {
        let n = self.n as u64;
        let most = self.chunk().min(count / n);
        if most == 0 {
            return Ok(());
        }
        self.with_room(most, most * n, |room| {
            let mut first = 0;
            while first < count {
                let share = most.min((count - first) / n);
                // SAFETY: the caller promises the elements; there is room for everybody's of a share. What is
                // overwritten in place has been sent.
                unsafe {
                    let mine = self.packed(self.at(self.input, first), share * n, room.sent);
                    self.exchange(mine, room.came, share)?;
                    let sum = self.tree(room, share, share);
                    let result = self.at(self.of.recv.cast(), first);
                    let mine = self.packed(sum, share, room.sent);
                    match self.unit.plain {
                        true => self.collect(mine, result, share)?,
                        false => {
                            self.collect(mine, room.came, share)?;
                            if self.has_result() {
                                self.unpack(room.came, result, share * n);
                            }
                        }
                    }
                }
                first += share * n;
            }
            Ok(())
        })
    }

    /// Each rank combines its block.
    ///
    /// # Safety
    /// As [`run`], of a reduce_scatter with these counts that the library does not refuse.
    unsafe fn scattered(&self, count: impl Fn(usize) -> u64) -> Result<(), c_int> {
        let n = self.n as u64;
        let longest = (0..self.n).map(&count).max().unwrap_or(0);
        let chunk = self.chunk().min(longest);
        self.with_room(chunk, chunk * n, |room| {
            let mut done = 0;
            while done < longest {
                let mut before = 0;
                for rank in 0..self.n {
                    let units = count(rank).saturating_sub(done).min(chunk);
                    let place = rank * (chunk * self.size) as usize;
                    let from = self.at(self.input, before + done);
                    // SAFETY: the caller promises blocks of these lengths, and each has room for a chunk.
                    unsafe { self.pack(from, units, room.sent.wrapping_add(place)) };
                    before += count(rank);
                }
                let units = count(self.rank).saturating_sub(done).min(chunk);
                // SAFETY: there is room for everybody's; the result has room for this rank's block. In place it lies
                // where what has been sent in this round or before was.
                unsafe {
                    self.exchange(room.sent, room.came, chunk)?;
                    let sum = self.tree(room, chunk, units);
                    self.copy(sum, self.at(self.of.recv.cast(), done), units);
                }
                done += chunk;
            }
            Ok(())
        })
    }

    fn has_result(&self) -> bool {
        self.collective != Collective::Reduce || self.rank as c_int == self.of.root
    }

    /// Packed elements of all ranks come one behind another to who gets a result: to the root of a reduce, else to all.
    ///
    /// # Safety
    /// There are so many at `from`, and room for everybody's at `into` where they come.
    unsafe fn collect(&self, from: *mut u8, into: *mut u8, units: u64) -> Result<(), c_int> {
        let (bytes, byte) = ((units * self.size) as c_int, self.world().handles.byte);
        let (from, into) = (from.cast_const().cast::<c_void>(), into.cast::<c_void>());
        let all = &self.world().pmpi.collectives;
        // SAFETY: the caller promises both places.
        check(unsafe {
            match self.collective {
                Collective::Reduce => {
                    let root = self.of.root;
                    (all.gather)(from, bytes, byte, into, bytes, byte, root, self.comm)
                }
                _ => (all.allgather)(from, bytes, byte, into, bytes, byte, self.comm),
            }
        })
    }

    /// Each rank gets everybody's packed elements of its place.
    ///
    /// # Safety
    /// There are so many for each rank at `from`, and room for as many at `into`.
    unsafe fn exchange(&self, from: *mut u8, into: *mut u8, units: u64) -> Result<(), c_int> {
        let (bytes, byte) = ((units * self.size) as c_int, self.world().handles.byte);
        let (from, into) = (from.cast_const().cast::<c_void>(), into.cast::<c_void>());
        let exchange = self.world().pmpi.collectives.alltoall;
        // SAFETY: the caller promises both places.
        check(unsafe { exchange(from, bytes, byte, into, bytes, byte, self.comm) })
    }

    /// Combines the first `units` of `block` elements that came of each rank; where the result lies, on ranks that get
    /// one.
    ///
    /// # Safety
    /// They lie in the room where they came.
    unsafe fn combine(&self, room: Room, block: u64, units: u64) -> Option<*mut u8> {
        let ranks = match self.collective {
            Collective::Scan => self.rank + 1,
            Collective::Exscan => self.rank,
            _ if !self.has_result() => return None,
            // SAFETY: the caller promises the elements.
            _ => return Some(unsafe { self.tree(room, block, units) }),
        };
        let last = ranks.checked_sub(1)?;
        // SAFETY: as above.
        let operand = |rank| unsafe { self.operand(room, block, rank, units) };
        let mut sum = operand(0);
        for rank in 1..=last {
            let next = operand(rank);
            // SAFETY: as above.
            unsafe { self.reduce(sum, next, units) };
            sum = next;
        }
        Some(sum)
    }

    /// The same in the tree over all ranks.
    ///
    /// # Safety
    /// As [`Sum::combine`].
    unsafe fn tree(&self, room: Room, block: u64, units: u64) -> *mut u8 {
        let mut results = [std::ptr::null_mut(); RESULTS];
        // SAFETY: the caller promises the elements.
        let operand = |rank| unsafe { self.operand(room, block, rank, units) };
        let Ok(()) = fixed_order::combine(self.n, |step| {
            let (from, slot) = match step {
                FoldStep::Take { rank, slot } => {
                    results[slot] = operand(rank);
                    return Ok(());
                }
                FoldStep::Before { rank, slot } => (operand(rank), slot),
                FoldStep::Merge { slot } => (results[slot + 1], slot),
            };
            // SAFETY: operands do not overlap.
            unsafe { self.reduce(from, results[slot], units) };
            Ok::<_, std::convert::Infallible>(())
        });
        results[0]
    }

    /// Where elements of a rank lie that came, as they lie in memory.
    ///
    /// # Safety
    /// As [`Sum::combine`].
    unsafe fn operand(&self, room: Room, block: u64, rank: usize, units: u64) -> *mut u8 {
        let came = room.came.wrapping_add(rank * (block * self.size) as usize);
        if self.unit.plain {
            return came;
        }
        let area = room.areas.wrapping_add(rank * room.area);
        let area = self.unit.first(area, units);
        // SAFETY: the caller promises the packed elements; an area has room for them.
        unsafe { self.unpack(came, area, units) };
        area
    }

    /// # Safety
    /// Both places hold so many elements, and do not overlap.
    unsafe fn reduce(&self, from: *mut u8, into: *mut u8, units: u64) {
        if units == 0 {
            return;
        }
        let reduce = self.world().pmpi.reduce_local;
        let (count, datatype) = (units as c_int, self.of.datatype);
        // SAFETY: the caller promises the elements.
        self.note(check(unsafe {
            reduce(from.cast(), into.cast(), count, datatype, self.of.op)
        }));
    }

    /// Where elements lie packed: where they are, or in the room that there is for them.
    ///
    /// # Safety
    /// There are so many at `from`, and room for them at `room`.
    unsafe fn packed(&self, from: *mut u8, units: u64, room: *mut u8) -> *mut u8 {
        if self.unit.plain {
            return from;
        }
        // SAFETY: the caller promises the elements and the room.
        unsafe { self.pack(from, units, room) };
        room
    }

    /// # Safety
    /// There are so many elements at `from`, and room for their packed bytes at `to`.
    unsafe fn pack(&self, from: *mut u8, units: u64, to: *mut u8) {
        let (typed, bytes) = (self.unit.typed(from, units), units * self.size);
        if units > 0 {
            // SAFETY: the caller promises both places.
            self.note(unsafe { self.endpoint.pack(typed, to, bytes) });
        }
    }

    /// # Safety
    /// There are so many packed elements at `from`, and room for them at `to`.
    unsafe fn unpack(&self, from: *mut u8, to: *mut u8, units: u64) {
        let (typed, bytes) = (self.unit.typed(to, units), units * self.size);
        if units > 0 {
            // SAFETY: the caller promises both places.
            self.note(unsafe { self.endpoint.unpack(from, bytes, typed) });
        }
    }

    /// Elements go from memory of ours to the program's, which a device may have.
    ///
    /// # Safety
    /// There are so many at `from`, and room for them at `to`.
    unsafe fn copy(&self, from: *mut u8, to: *mut u8, units: u64) {
        let (from, to) = (self.unit.typed(from, units), self.unit.typed(to, units));
        if units == 0 {
            return;
        }
        if self.unit.plain && !gpu::runtime_is_present() {
            let bytes = self.unit.bytes(units);
            // SAFETY: elements without holes are their bytes, for which the caller promises both places.
            unsafe { std::ptr::copy_nonoverlapping(from.start, to.start, bytes) };
            return;
        }
        // SAFETY: the caller promises both places.
        self.note(unsafe { self.endpoint.message_to_self(from, to) });
    }
}
