//! Messages between two ranks, one sender and one receiver at a time.
//!
//! They go by their `PMPI_` names: they are the benchmark's own, and no tuner's business.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use colltune_mpi as ffi;

use crate::mpi::{Comm, check};

const TAG: c_int = 1;
/// Of the message that lets the other side go on.
const GO: c_int = 2;
/// How long a send may take to complete alone. An eager one is complete in microseconds.
const ALONE: Duration = Duration::from_millis(4);

/// One side of a pair.
pub struct Pair {
    comm: ffi::MPI_Comm,
    peer: c_int,
    buffer: Vec<u8>,
}

impl Pair {
    /// The pair of this rank and `peer`, for messages of at most `bytes_max` bytes.
    pub fn new(comm: Comm, peer: usize, bytes_max: usize) -> Pair {
        Pair {
            comm: comm.raw(),
            peer: peer as c_int,
            buffer: vec![1; bytes_max.max(4)],
        }
    }

    pub fn send(&mut self, bytes: usize) {
        self.send_with(bytes, TAG);
    }

    fn send_with(&mut self, bytes: usize, tag: c_int) {
        assert!(bytes <= self.buffer.len());
        // SAFETY: the buffer holds that many bytes; the peer is a rank of the communicator.
        check("PMPI_Send", unsafe {
            ffi::PMPI_Send(
                self.buffer.as_ptr().cast(),
                bytes as c_int,
                ffi::UINT8_T,
                self.peer,
                tag,
                self.comm,
            )
        });
    }

    pub fn receive(&mut self, bytes: usize) {
        self.receive_with(bytes, TAG);
    }

    fn receive_with(&mut self, bytes: usize, tag: c_int) {
        assert!(bytes <= self.buffer.len());
        // SAFETY: a status is plain numbers, for which zero is a value.
        let mut status: ffi::MPI_Status = unsafe { std::mem::zeroed() };
        // SAFETY: the buffer has room for that many bytes.
        check("PMPI_Recv", unsafe {
            ffi::PMPI_Recv(
                self.buffer.as_mut_ptr().cast(),
                bytes as c_int,
                ffi::UINT8_T,
                self.peer,
                tag,
                self.comm,
                &mut status,
            )
        });
    }

    /// Sends a number to the other side, which [`hear`](Pair::hear)s it.
    pub fn tell(&mut self, number: u32) {
        self.buffer[..4].copy_from_slice(&number.to_le_bytes());
        self.send(4);
    }

    pub fn hear(&mut self) -> u32 {
        self.receive(4);
        let mut number = [0; 4];
        number.copy_from_slice(&self.buffer[..4]);
        u32::from_le_bytes(number)
    }

    /// Posts `count` sends and waits for all; the time that the posting alone took.
    pub fn stream(&mut self, bytes: usize, count: usize) -> Duration {
        assert!(bytes <= self.buffer.len());
        let mut requests = Vec::with_capacity(count);
        let start = Instant::now();
        for _ in 0..count {
            requests.push(self.post(bytes));
        }
        let posting = start.elapsed();
        // SAFETY: as in `receive_with`.
        let mut statuses: Vec<ffi::MPI_Status> = vec![unsafe { std::mem::zeroed() }; count];
        // SAFETY: both lists have `count` places, and every request was just made.
        check("PMPI_Waitall", unsafe {
            ffi::PMPI_Waitall(count as c_int, requests.as_mut_ptr(), statuses.as_mut_ptr())
        });
        posting
    }

    fn post(&mut self, bytes: usize) -> ffi::MPI_Request {
        // SAFETY: reading a constant handle.
        let mut request = unsafe { ffi::REQUEST_NULL };
        // SAFETY: the buffer holds that many bytes, and lives until the request is waited for.
        check("PMPI_Isend", unsafe {
            ffi::PMPI_Isend(
                self.buffer.as_ptr().cast(),
                bytes as c_int,
                ffi::UINT8_T,
                self.peer,
                TAG,
                self.comm,
                &mut request,
            )
        });
        request
    }

    /// Whether a send completes before its receive is posted. The peer calls
    /// [`receive_late`](Pair::receive_late).
    pub fn is_eager(&mut self, bytes: usize) -> bool {
        assert!(bytes <= self.buffer.len());
        let mut request = self.post(bytes);
        let mut done: c_int = 0;
        // SAFETY: as in `receive_with`.
        let mut status: ffi::MPI_Status = unsafe { std::mem::zeroed() };
        let start = Instant::now();
        while done == 0 && start.elapsed() < ALONE {
            // SAFETY: the request is valid until it is done.
            check("PMPI_Test", unsafe {
                ffi::PMPI_Test(&mut request, &mut done, &mut status)
            });
        }
        self.send_with(0, GO);
        // SAFETY: a request that is done has become the null request, which is waited for at once.
        check("PMPI_Wait", unsafe {
            ffi::PMPI_Wait(&mut request, &mut status)
        });
        done != 0
    }

    /// Receives what [`is_eager`](Pair::is_eager) sent, once the sender lets it.
    pub fn receive_late(&mut self, bytes: usize) {
        self.receive_with(0, GO);
        self.receive(bytes);
    }
}
