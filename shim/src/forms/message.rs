//! What the arguments of a call that passes through say of its size.

use std::ffi::c_void;

use colltune_core::classify::message_bytes;

use crate::abi::{Datatype, is_in_place};
use crate::arguments::lists::List;
use crate::library::collectives::Number;
use crate::tune::Tuner;

/// The size of a call, in its own arguments.
#[derive(Clone, Copy)]
pub enum MessageArguments<N> {
    /// No data, or counts that each rank knows for itself alone.
    Sizeless,
    /// So many elements of a type.
    Elements(N, Datatype),
    /// So many for each rank.
    EachRank(N, Datatype),
    /// A list with one count for each rank; its sum counts.
    Sum(*const N, Datatype),
    /// The same; its mean counts.
    Mean(*const N, Datatype),
}

impl<N: Number> MessageArguments<N> {
    /// One block of a call with equal blocks, from the side that has a meaning on this rank: `sure`
    /// always has one, unless `buffer` is MPI_IN_PLACE.
    #[inline]
    pub fn of_sides(
        buffer: *const c_void,
        sure: (N, Datatype),
        otherwise: (N, Datatype),
    ) -> MessageArguments<N> {
        let (count, datatype) = if is_in_place(buffer) { otherwise } else { sure };
        MessageArguments::Elements(count, datatype)
    }

    /// The message bytes as DESIGN's cells mean them; `None` where the arguments say none.
    ///
    /// # Safety
    /// The call that has these arguments succeeded on an intracommunicator of `n_ranks` ranks.
    pub unsafe fn bytes(self, tuner: &Tuner, n_ranks: u32) -> Option<u64> {
        // SAFETY: MPI asks for a count for each rank.
        let total = |list| unsafe { List::of::<N>(list).sum(n_ranks as usize) };
        let ranks = u64::from(n_ranks);
        let (count, datatype) = match self {
            MessageArguments::Sizeless => return Some(0),
            MessageArguments::Elements(count, datatype) => {
                (u64::try_from(count.into()).ok()?, datatype)
            }
            MessageArguments::EachRank(count, datatype) => {
                let count = u64::try_from(count.into()).ok()?;
                (count.saturating_mul(ranks), datatype)
            }
            MessageArguments::Sum(list, datatype) => (total(list)?, datatype),
            MessageArguments::Mean(list, datatype) => (total(list)?, datatype),
        };
        let bytes = message_bytes(count, tuner.type_bytes(datatype)?);
        match self {
            MessageArguments::Mean(..) => bytes.checked_div(ranks),
            _ => Some(bytes),
        }
    }
}
