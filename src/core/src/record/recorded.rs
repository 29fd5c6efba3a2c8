//! What is recorded of a call.

use std::num::NonZeroU32;

use crate::call::{SharedCall, SharedDetails};
use crate::collective::Collective;
use crate::named::named;

named! {
    /// How a collective is called. Only blocking calls are tuned; the others pass through, and their
    /// records are never taken for those of blocking calls. Its number is its place.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Manner {
        Blocking = "blocking",
        /// From `MPI_I...` to the call that completes the request.
        Nonblocking = "nonblocking",
        /// From each `MPI_Start` to the call that completes the request.
        Persistent = "persistent",
        /// On the neighbours in the communicator's topology; blocking, nonblocking and persistent.
        Neighborhood = "neighborhood",
        NeighborhoodNonblocking = "neighborhood_nonblocking",
        NeighborhoodPersistent = "neighborhood_persistent",
    }
}

/// One recorded call on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The communicator's agreed number; with `call` the identity of the call on all its ranks. 0 where
    /// the ranks never agreed on one, because they made no blocking calls.
    pub comm: u64,
    /// Number of the call among the tuned calls of its communicator, or among those that pass through;
    /// of persistent ones 2^32 times the request's number plus that of the start.
    pub call: u64,
    pub message_bytes: u64,
    /// On the recording rank's clock, see [`Header::clock`](super::Header::clock).
    pub start_ns: u64,
    /// This rank's time inside the call.
    pub duration_ns: u64,
    /// From there to this rank's next call of a collective, on whichever communicator. `None` where it was not
    /// measured: a review lies in between, or threads call at will.
    pub shift_ns: Option<u64>,
    /// What the rank then spent in that call. `None` where it was not measured: that one is nonblocking, or agrees on
    /// more than it does for the program.
    pub after_ns: Option<u64>,
    /// `None` where the call has not come to a review.
    pub agreed: Option<CallTimes>,
    pub nodes: u32,
    pub ppn: u32,
    pub n_ranks: u32,
    pub variant: u16,
    pub collective: Collective,
    /// Whether the variant was drawn, in `exploit` as one of a pair; otherwise it was the library's default in `record`.
    pub drawn: bool,
    /// With which the variant was drawn for this call, given all that was decided before. `None` where it is unknown:
    /// in records of earlier versions, of calls that pass through, and where what was drawn could not run.
    pub probability: Option<Probability>,
    pub manner: Manner,
    pub class: CallClass,
}

/// A probability above 0, exact to 2^-32, so that records can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(NonZeroU32);

impl Probability {
    pub const ONE: Probability = Probability(NonZeroU32::MAX);

    /// That of so many parts of 2^32; `None` for none of them.
    pub fn of_parts(parts: u64) -> Option<Probability> {
        let parts = u32::try_from(parts).unwrap_or(u32::MAX);
        NonZeroU32::new(parts).map(Probability)
    }

    /// What is written of it; 0 stands for none.
    pub fn parts(this: Option<Probability>) -> u32 {
        this.map_or(0, |one| one.0.get())
    }

    pub fn value(self) -> f64 {
        f64::from(self.0.get()) / f64::from(u32::MAX)
    }
}

/// What the ranks of a communicator agreed on about one call: the same on all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimes {
    /// Mean over all ranks of the time inside the call.
    pub time_ns: u64,
    /// Mean over all ranks of the time from there to each one's next collective.
    pub shift_ns: Option<u64>,
    /// Mean over all ranks of the time in that next collective.
    pub after_ns: Option<u64>,
    /// The longest time of any rank.
    pub slowest_ns: u64,
    /// From the last arrival to the last departure where all ranks share a clock, else the shortest time of any
    /// rank: of `time_ns` hardly more than this is not waiting for late ranks.
    pub work_ns: u64,
}

/// What else all ranks know of a call; empty where that was not looked up, as for calls that pass through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallClass {
    pub in_place: bool,
    /// Whether a reduction's operation is user-defined.
    pub own_operation: bool,
    /// Whether its operands have to be combined in order.
    pub ordered: bool,
    /// Whether its result depends on the order, as with sums of floating-point numbers.
    pub rounds: bool,
    /// Whether its elements are of a derived type.
    pub derived: bool,
    /// Whether blocks differ in length.
    pub uneven: bool,
    /// Bytes of a reduction's element; 0 where they are unknown or too many.
    pub element_bytes: u16,
}

/// Names of the flags behind `in_place`, in the order of their bits.
const NAMES: [&str; 5] = ["own_operation", "ordered", "rounds", "derived", "uneven"];

impl CallClass {
    #[inline]
    pub fn of(call: SharedCall, details: &SharedDetails) -> CallClass {
        let element_bytes = details
            .count
            .and_then(|count| call.bytes.checked_div(count))
            .and_then(|bytes| u16::try_from(bytes).ok());
        CallClass {
            in_place: details.in_place,
            own_operation: !details.builtin_op,
            ordered: !details.commutative,
            rounds: !details.exact,
            derived: !details.plain_elements,
            uneven: !details.equal_blocks,
            element_bytes: element_bytes.unwrap_or(0),
        }
    }

    /// All but the element's size, a bit each.
    #[inline]
    pub fn flags(self) -> u8 {
        u8::from(self.in_place)
            | u8::from(self.own_operation) << 1
            | u8::from(self.ordered) << 2
            | u8::from(self.rounds) << 3
            | u8::from(self.derived) << 4
            | u8::from(self.uneven) << 5
    }

    /// The flags behind `in_place` by name, as in `derived+uneven`.
    pub fn names(self) -> String {
        let flags = self.flags() >> 1;
        let held = NAMES
            .iter()
            .enumerate()
            .filter(|(bit, _)| flags >> bit & 1 != 0);
        held.map(|(_, name)| *name).collect::<Vec<_>>().join("+")
    }

    /// [`CallClass::flags`] of what [`CallClass::names`] wrote; names that are not known say nothing.
    pub fn flags_named(in_place: bool, names: &str) -> u8 {
        let bit = |name| NAMES.iter().position(|known| *known == name);
        let bits = names.split('+').filter_map(bit);
        bits.fold(u8::from(in_place), |flags, bit| flags | 2 << bit)
    }

    pub(super) fn of_flags(flags: u8, element_bytes: u16) -> CallClass {
        let [in_place, own_operation, ordered, rounds, derived, uneven] =
            std::array::from_fn(|bit| flags >> bit & 1 != 0);
        CallClass {
            in_place,
            own_operation,
            ordered,
            rounds,
            derived,
            uneven,
            element_bytes,
        }
    }
}
