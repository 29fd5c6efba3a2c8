//! Functions that start and complete requests, as the application sees them. They look further only
//! while a recorded request is known; see [`crate::pending`].

use std::ffi::{c_int, c_void};

use super::{ABSENT, next_function};
use crate::abi::{Request, request_bits};
use crate::pending;

type Requests = *mut Request;
/// One status or several, which are not read.
type Statuses = *mut c_void;

/// Defines a function of MPI's; the body gets the call.
macro_rules! requests {
    ($($name:ident($($argument:ident: $kind:ty),*) $call:ident => $body:expr;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` as the application sees it.\n\n# Safety\n\
                             The caller keeps MPI's own contract for this function.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
                let Some(next) = next_function!($name($($kind),*)) else {
                    return ABSENT;
                };
                // SAFETY: the arguments are forwarded unchanged.
                let $call = move || unsafe { next($($argument),*) };
                $body
            }
        )*
    };
}

/// How many requests a list holds, and what gives the handle of each.
fn list(n: c_int, requests: Requests) -> (usize, impl Fn(usize) -> u64) {
    let n = if requests.is_null() {
        0
    } else {
        usize::try_from(n).unwrap_or(0)
    };
    // SAFETY: MPI asks for a list of so many requests.
    (n, move |place| unsafe {
        request_bits(*requests.add(place))
    })
}

/// Whether a flag was set.
fn is_set(flag: *mut c_int) -> bool {
    // SAFETY: the call behind which this is asked succeeded and has written it.
    unsafe { *flag != 0 }
}

/// Whether one of the indices that a call wrote is `place`.
fn is_among(place: usize, n: *mut c_int, indices: *mut c_int) -> bool {
    // SAFETY: the call behind which this is asked succeeded: it has written the number of indices and
    // so many of them; the number is negative where no request was active.
    unsafe {
        let n = usize::try_from(*n).unwrap_or(0);
        (0..n).any(|index| usize::try_from(*indices.add(index)) == Ok(place))
    }
}

/// Completes the requests of a list as `completes` says.
fn all(
    n: c_int,
    requests: Requests,
    call: impl FnOnce() -> c_int,
    completes: impl Fn(usize) -> bool,
) -> c_int {
    let (n, handle) = list(n, requests);
    pending::complete(n, handle, call, completes)
}

requests! {
    MPI_Wait(request: Requests, status: Statuses) call => all(1, request, call, |_| true);
    MPI_Waitall(n: c_int, requests: Requests, statuses: Statuses) call => all(n, requests, call, |_| true);
    MPI_Waitany(n: c_int, requests: Requests, index: *mut c_int, status: Statuses) call =>
        all(n, requests, call, |place| is_among(place, &mut 1, index));
    MPI_Waitsome(n: c_int, requests: Requests, n_done: *mut c_int, indices: *mut c_int, statuses: Statuses) call =>
        all(n, requests, call, |place| is_among(place, n_done, indices));
    MPI_Test(request: Requests, flag: *mut c_int, status: Statuses) call =>
        all(1, request, call, |_| is_set(flag));
    MPI_Testall(n: c_int, requests: Requests, flag: *mut c_int, statuses: Statuses) call =>
        all(n, requests, call, |_| is_set(flag));
    MPI_Testany(n: c_int, requests: Requests, index: *mut c_int, flag: *mut c_int, status: Statuses) call =>
        all(n, requests, call, |place| is_set(flag) && is_among(place, &mut 1, index));
    MPI_Testsome(n: c_int, requests: Requests, n_done: *mut c_int, indices: *mut c_int, statuses: Statuses) call =>
        all(n, requests, call, |place| is_among(place, n_done, indices));
    MPI_Start(request: Requests) call => {
        let (n, handle) = list(1, request);
        pending::start(n, handle, call)
    };
    MPI_Startall(n: c_int, requests: Requests) call => {
        let (n, handle) = list(n, requests);
        pending::start(n, handle, call)
    };
    MPI_Request_free(request: Requests) call => {
        let (n, handle) = list(1, request);
        // Without a request to free, the library says so.
        if n == 0 { call() } else { pending::free(|| handle(0), call) }
    };
}
