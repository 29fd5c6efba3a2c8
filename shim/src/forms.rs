//! A collective's arguments in C's terms: what they say of its cell, and how the library runs them.
//!
//! The C function, its large-count form and Fortran's entry point of a collective fill the same form,
//! so that they share one path. Forms read shared facts alone; where MPI says that an argument has no
//! meaning on a rank, the form does not look at it.

mod message;
mod moving;
mod reducing;

use std::ffi::{c_int, c_void};

pub use message::Message;
pub use moving::{Barrier, Bcast, Blocks, Exchanged, ExchangedByType, Gathered, Scattered, Side};
pub use reducing::{ReduceScatter, Reduction};

use crate::abi::{Comm, is_in_place};
use crate::arguments::Arguments;
use crate::library::collectives::{Collectives, Number};
use crate::tune::{Call, Tuner};

/// The arguments of one call, without the communicator.
pub trait Form: Copy {
    type Number: Number;

    /// The call in its cell; `None` when it simply runs `default`.
    fn classify<'a>(&self, tuner: &'a Tuner, comm: Comm) -> Option<Call<'a>>;

    /// Runs a call that is like the communicator's last one, where that has a short way; `None` where it
    /// is not.
    #[inline(always)]
    fn again(&self, _: &Tuner, _: Comm) -> Option<c_int> {
        None
    }

    /// What our own algorithms need.
    fn arguments(&self) -> Arguments;

    /// Runs the library's own function.
    ///
    /// # Safety
    /// The arguments are valid for this collective on `comm`.
    unsafe fn native(
        &self,
        tuner: &Tuner,
        library: &Collectives<Self::Number>,
        comm: Comm,
    ) -> c_int;
}

/// Tunes a call; `None` when it simply runs `default`.
#[inline(always)]
pub fn run(
    tuner: &'static Tuner,
    form: impl Form,
    comm: Comm,
    default: impl Fn() -> c_int,
) -> Option<c_int> {
    if let Some(code) = form.again(tuner, comm) {
        return Some(code);
    }
    let library = Number::library(tuner.pmpi)?;
    let call = form.classify(tuner, comm)?;
    // The form goes along by value, so that it need not lie in memory before.
    let native = move |comm| {
        // SAFETY: only the communicator differs from what the caller promised to be valid, and it has
        // the same members in the same order.
        unsafe { form.native(tuner, library, comm) }
    };
    Some(tuner.run(call, move || form.arguments(), default, native))
}

/// Whether the library refuses these buffers of a reduction: it must report that itself, on the
/// communicator and as often as ever. No right call is among them, so ranks need not agree here.
fn is_refused(send: *const c_void, recv: *mut c_void, count: i64) -> bool {
    is_in_place(recv) || (send == recv.cast_const() && count != 0)
}

/// The numbers of a list with one for each rank; `None` where one is wrong, for the library to say so.
///
/// # Safety
/// `list` is null or holds as many numbers as there are ranks.
#[inline]
unsafe fn numbers<'a, N: Number>(list: *const N, n_ranks: u32) -> Option<&'a [N]> {
    if list.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let list = unsafe { std::slice::from_raw_parts(list, n_ranks as usize) };
    list.iter()
        .all(|&number| number.into() >= 0)
        .then_some(list)
}

/// The sum of a list that [`numbers`] gave.
#[inline]
fn sum<N: Number>(list: &[N]) -> u64 {
    list.iter().fold(0u64, |sum, &number| {
        sum.saturating_add(number.into().unsigned_abs())
    })
}
