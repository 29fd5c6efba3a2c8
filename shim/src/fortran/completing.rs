//! Starting and completing requests in Fortran programs; see `intercept/completing.rs`. Indices begin
//! with 1.

use std::ffi::{c_int, c_void};

use super::{Integer, request_of};
use crate::pending;

type Requests = *mut c_int;
/// Numbers and truth values that a call writes.
type Written = *mut c_int;
/// One status or several, which are not read.
type Statuses = *mut c_void;

/// What gives the handle of each request of a list.
fn list(requests: Requests) -> impl Fn(usize) -> u64 {
    // SAFETY: it is asked for requests of the list alone.
    move |place| unsafe { request_of(requests.add(place)) }
}

/// A length that is passed by reference.
fn length(n: Integer) -> usize {
    // SAFETY: every argument of Fortran's is passed by reference.
    usize::try_from(unsafe { *n }).unwrap_or(0)
}

fn is_set(flag: Written) -> bool {
    // SAFETY: the call behind which this is asked succeeded and has written it.
    unsafe { *flag != 0 }
}

/// Whether one of `n` indices that a call wrote is that of `place`.
fn is_among(place: usize, n: usize, indices: Written) -> bool {
    // SAFETY: the call behind which this is asked succeeded and has written so many.
    (0..n).any(|index| usize::try_from(unsafe { *indices.add(index) }) == Ok(place + 1))
}

entry!("MPI_Wait": mpi_wait_, mpi_wait_f08_, (request: Requests, status: Statuses), call =>
    pending::complete(1, list(request), call, |_| true));
entry!("MPI_Waitall": mpi_waitall_, mpi_waitall_f08_, (n: Integer, requests: Requests, statuses: Statuses), call =>
    pending::complete(length(n), list(requests), call, |_| true));
entry!("MPI_Waitany": mpi_waitany_, mpi_waitany_f08_,
    (n: Integer, requests: Requests, index: Written, status: Statuses), call =>
    pending::complete(length(n), list(requests), call, |place| is_among(place, 1, index)));
entry!("MPI_Waitsome": mpi_waitsome_, mpi_waitsome_f08_,
    (n: Integer, requests: Requests, n_done: Written, indices: Written, statuses: Statuses), call =>
    pending::complete(length(n), list(requests), call, |place| is_among(place, length(n_done), indices)));
entry!("MPI_Test": mpi_test_, mpi_test_f08_, (request: Requests, flag: Written, status: Statuses), call =>
    pending::complete(1, list(request), call, |_| is_set(flag)));
entry!("MPI_Testall": mpi_testall_, mpi_testall_f08_,
    (n: Integer, requests: Requests, flag: Written, statuses: Statuses), call =>
    pending::complete(length(n), list(requests), call, |_| is_set(flag)));
entry!("MPI_Testany": mpi_testany_, mpi_testany_f08_,
    (n: Integer, requests: Requests, index: Written, flag: Written, status: Statuses), call =>
    pending::complete(length(n), list(requests), call, |place| is_set(flag) && is_among(place, 1, index)));
entry!("MPI_Testsome": mpi_testsome_, mpi_testsome_f08_,
    (n: Integer, requests: Requests, n_done: Written, indices: Written, statuses: Statuses), call =>
    pending::complete(length(n), list(requests), call, |place| is_among(place, length(n_done), indices)));
entry!("MPI_Start": mpi_start_, mpi_start_f08_, (request: Requests), call =>
    pending::start(1, list(request), call));
entry!("MPI_Startall": mpi_startall_, mpi_startall_f08_, (n: Integer, requests: Requests), call =>
    pending::start(length(n), list(requests), call));
entry!("MPI_Request_free": mpi_request_free_, mpi_request_free_f08_, (request: Requests), call =>
    pending::free(|| list(request)(0), call));
