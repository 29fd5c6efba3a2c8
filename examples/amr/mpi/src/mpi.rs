//! The one file that talks to MPI: [`Ranks`] over a communicator.
//!
//! Every call goes by its `MPI_` name, so that a preloaded library catches it. Buffers of messages
//! under way are owned by the communicator's table, so MPI never writes to memory that Rust has
//! freed or lent out. Errors of MPI end the job, as is the default of the library.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};

use colltune_amr::ranks::{CollectiveKind, Numbers, Op, Ranks, Request, Tag};
use colltune_mpi as ffi;

use crate::tuner::{self, Tuner};

/// A communicator, seen from one of its ranks.
pub struct Comm {
    raw: ffi::MPI_Comm,
    rank: usize,
    n_ranks: usize,
    under_way: RefCell<UnderWay>,
    /// Levers of which it has been said that an arm that is named is not offered.
    said: RefCell<BTreeSet<String>>,
}

/// Messages that have been started, by the number of their request.
#[derive(Default)]
struct UnderWay {
    messages: Vec<Option<Message>>,
    free: Vec<usize>,
}

struct Message {
    raw: ffi::MPI_Request,
    buffer: Vec<f64>,
}

/// Starts MPI.
pub fn init() -> Comm {
    // SAFETY: both arguments may be null since MPI-2; this is the first MPI call of the process.
    check("MPI_Init", unsafe {
        ffi::MPI_Init(std::ptr::null_mut(), std::ptr::null_mut())
    });
    // SAFETY: MPI_Init has returned, which makes the constant handle valid.
    Comm::new(unsafe { ffi::COMM_WORLD })
}

/// Ends MPI, after the world has been given back.
pub fn finalize(world: Comm) {
    drop(world);
    // SAFETY: called once, last, after `init`.
    check("MPI_Finalize", unsafe { ffi::MPI_Finalize() });
}

fn check(name: &str, code: c_int) {
    assert!(code == 0, "{name} returned error code {code}");
}

fn count(n: usize) -> c_int {
    c_int::try_from(n).expect("a count fits an int")
}

fn op(op: Op) -> ffi::MPI_Op {
    // SAFETY: reading constant handles.
    unsafe {
        match op {
            Op::Sum => ffi::SUM,
            Op::Min => ffi::MIN,
            Op::Max => ffi::MAX,
        }
    }
}

/// A number that MPI has a type for.
trait Number: Copy + Default {
    fn datatype() -> ffi::MPI_Datatype;
}

impl Number for f64 {
    fn datatype() -> ffi::MPI_Datatype {
        // SAFETY: reading a constant handle.
        unsafe { ffi::DOUBLE }
    }
}

impl Number for i64 {
    fn datatype() -> ffi::MPI_Datatype {
        // SAFETY: reading a constant handle.
        unsafe { ffi::INT64_T }
    }
}

impl Number for i32 {
    fn datatype() -> ffi::MPI_Datatype {
        // SAFETY: reading a constant handle.
        unsafe { ffi::INT32_T }
    }
}

impl Comm {
    fn new(raw: ffi::MPI_Comm) -> Comm {
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: `raw` is a valid communicator and the result is valid for writing.
        check("MPI_Comm_rank", unsafe {
            ffi::MPI_Comm_rank(raw, &mut rank)
        });
        // SAFETY: as above.
        check("MPI_Comm_size", unsafe {
            ffi::MPI_Comm_size(raw, &mut size)
        });
        Comm {
            raw,
            rank: rank as usize,
            n_ranks: size as usize,
            under_way: RefCell::default(),
            said: RefCell::default(),
        }
    }

    /// The arm that the first rank's environment names: a variable may not have come to all ranks.
    fn named_arm(&self, lever: &str, arms: &[String]) -> usize {
        let mut arm = [0];
        if self.rank == 0 {
            match tuner::named(lever, arms) {
                Ok(named) => arm = [named as i32],
                Err(named) => {
                    if self.said.borrow_mut().insert(lever.to_owned()) {
                        eprintln!(
                            "colltune-amr: COLLTUNE_LEVERS names {lever}={named}, which is none of {}: {} is used",
                            arms.join(", "),
                            arms[0]
                        );
                    }
                }
            }
        }
        self.broadcast_i32(0, &mut arm);
        arm[0] as usize
    }

    fn call<T: Number>(&self, kind: CollectiveKind, values: &mut [T]) {
        let own = values.to_vec();
        let (n, number) = (count(own.len()), T::datatype());
        let given: *const c_void = own.as_ptr().cast();
        let taken: *mut c_void = values.as_mut_ptr().cast();
        match kind {
            CollectiveKind::Allreduce(how) => {
                // SAFETY: `own` and `values` are distinct and hold as many elements of the type as the count says.
                check("MPI_Allreduce", unsafe {
                    ffi::MPI_Allreduce(given, taken, n, number, op(how), self.raw)
                });
            }
            CollectiveKind::Scan => {
                // SAFETY: as for the allreduce.
                check("MPI_Scan", unsafe {
                    ffi::MPI_Scan(given, taken, n, number, op(Op::Sum), self.raw)
                });
            }
            CollectiveKind::Alltoall => {
                assert_eq!(own.len(), self.n_ranks);
                // SAFETY: `own` and `values` are distinct and hold one element of the type for each rank.
                check("MPI_Alltoall", unsafe {
                    ffi::MPI_Alltoall(given, 1, number, taken, 1, number, self.raw)
                });
            }
            CollectiveKind::Broadcast(root) => {
                assert!(root < self.n_ranks);
                // SAFETY: `values` holds as many elements of the type as the count says.
                check("MPI_Bcast", unsafe {
                    ffi::MPI_Bcast(taken, n, number, count(root), self.raw)
                });
            }
            CollectiveKind::Barrier => {
                // SAFETY: the communicator is valid.
                check("MPI_Barrier", unsafe { ffi::MPI_Barrier(self.raw) });
            }
        }
    }
}

impl UnderWay {
    /// Keeps a message; `start` posts it with the address and length of its buffer.
    ///
    /// The buffer's heap memory does not move while the table keeps it.
    fn keep(
        &mut self,
        mut buffer: Vec<f64>,
        start: impl FnOnce(*mut c_void, c_int, &mut ffi::MPI_Request),
    ) -> Request {
        // SAFETY: reading a constant handle.
        let mut raw = unsafe { ffi::REQUEST_NULL };
        start(buffer.as_mut_ptr().cast(), count(buffer.len()), &mut raw);
        let message = Some(Message { raw, buffer });
        match self.free.pop() {
            Some(number) => {
                self.messages[number] = message;
                Request(number)
            }
            None => {
                self.messages.push(message);
                Request(self.messages.len() - 1)
            }
        }
    }

    fn raw(&self, number: usize) -> ffi::MPI_Request {
        let message = self.messages[number].as_ref();
        message.expect("a request is finished once").raw
    }

    /// Gives the buffer of a message that is no longer under way.
    fn take(&mut self, number: usize) -> Vec<f64> {
        let message = self.messages[number].take();
        self.free.push(number);
        message.expect("a request is finished once").buffer
    }
}

impl Ranks for Comm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    fn start_send(&self, to: usize, tag: Tag, data: Vec<f64>) -> Request {
        let raw = self.raw;
        self.under_way.borrow_mut().keep(data, |data, n, request| {
            // SAFETY: the buffer holds `n` doubles and stays in the table, unmoved and untouched,
            // until the request is finished.
            check("MPI_Isend", unsafe {
                ffi::MPI_Isend(data, n, f64::datatype(), count(to), tag, raw, request)
            });
        })
    }

    fn start_receive(&self, from: usize, tag: Tag, buffer: Vec<f64>) -> Request {
        let raw = self.raw;
        self.under_way
            .borrow_mut()
            .keep(buffer, |buffer, n, request| {
                // SAFETY: as for the send; nothing reads the buffer until the request is finished.
                check("MPI_Irecv", unsafe {
                    ffi::MPI_Irecv(buffer, n, f64::datatype(), count(from), tag, raw, request)
                });
            })
    }

    fn send(&self, to: usize, tag: Tag, data: &[f64]) {
        // SAFETY: the slice holds as many doubles as the count says.
        check("MPI_Send", unsafe {
            ffi::MPI_Send(
                data.as_ptr().cast(),
                count(data.len()),
                f64::datatype(),
                count(to),
                tag,
                self.raw,
            )
        });
    }

    fn is_complete(&self, message: &Request) -> bool {
        let raw = self.under_way.borrow().raw(message.0);
        let mut left = 0;
        // SAFETY: the request was started by this communicator and has not been finished, which this does not do either.
        check("MPI_Request_get_status", unsafe {
            ffi::MPI_Request_get_status(raw, &mut left, ignored_status())
        });
        left != 0
    }

    fn finish(&self, request: Request) -> Vec<f64> {
        let mut under_way = self.under_way.borrow_mut();
        let mut raw = under_way.raw(request.0);
        // SAFETY: the request was started by this communicator and has not been finished.
        check("MPI_Wait", unsafe {
            ffi::MPI_Wait(&mut raw, ignored_status())
        });
        under_way.take(request.0)
    }

    fn finish_any(&self, requests: &mut Vec<Option<Request>>) -> Option<(usize, Vec<f64>)> {
        let mut under_way = self.under_way.borrow_mut();
        let places: Vec<usize> = (0..requests.len())
            .filter(|&place| requests[place].is_some())
            .collect();
        let number = |place: &usize| requests[*place].as_ref().map(|request| request.0);
        let mut raws: Vec<ffi::MPI_Request> = places
            .iter()
            .filter_map(number)
            .map(|number| under_way.raw(number))
            .collect();
        if raws.is_empty() {
            return None;
        }
        let mut which: c_int = 0;
        // SAFETY: all requests are under way, and there are as many as the count says.
        check("MPI_Waitany", unsafe {
            ffi::MPI_Waitany(
                count(raws.len()),
                raws.as_mut_ptr(),
                &mut which,
                ignored_status(),
            )
        });
        let place = places[which as usize];
        let request = requests[place].take().expect("it was there just now");
        Some((place, under_way.take(request.0)))
    }

    fn collective(&self, kind: CollectiveKind, numbers: Numbers) {
        match numbers {
            Numbers::F64(values) => self.call(kind, values),
            Numbers::I64(values) => self.call(kind, values),
            Numbers::I32(values) => self.call(kind, values),
        }
    }

    fn allgather_bytes(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let mut lengths = vec![0i32; self.n_ranks];
        let length = count(own.len());
        // SAFETY: one integer is given and one taken from each rank.
        check("MPI_Allgather", unsafe {
            ffi::MPI_Allgather(
                (&raw const length).cast(),
                1,
                i32::datatype(),
                lengths.as_mut_ptr().cast(),
                1,
                i32::datatype(),
                self.raw,
            )
        });
        let mut starts = Vec::with_capacity(self.n_ranks);
        let mut total = 0usize;
        for &length in &lengths {
            starts.push(count(total));
            total += length as usize;
        }
        let mut all = vec![0u8; total];
        // SAFETY: reading a constant handle.
        let byte = unsafe { ffi::UINT8_T };
        // SAFETY: `all` has room for every rank's bytes at the starts and lengths given.
        check("MPI_Allgatherv", unsafe {
            ffi::MPI_Allgatherv(
                own.as_ptr().cast(),
                length,
                byte,
                all.as_mut_ptr().cast(),
                lengths.as_ptr(),
                starts.as_ptr(),
                byte,
                self.raw,
            )
        });
        let mut rest = all.as_slice();
        let parts = lengths.iter().map(|&length| {
            let (part, later) = rest.split_at(length as usize);
            rest = later;
            part.to_vec()
        });
        parts.collect()
    }

    fn choose(&self, lever: &str, arms: &[String], size: f64) -> usize {
        match Tuner::find() {
            Some(tuner) => tuner.choose(self.raw, lever, arms, size),
            None => self.named_arm(lever, arms),
        }
    }

    fn done(&self, lever: &str, work: f64) {
        if let Some(tuner) = Tuner::find() {
            tuner.done(self.raw, lever, work);
        }
    }

    fn split(&self, colour: usize) -> Box<dyn Ranks> {
        let mut part = self.raw;
        // SAFETY: the communicator is valid and the result is valid for writing.
        check("MPI_Comm_split", unsafe {
            ffi::MPI_Comm_split(self.raw, count(colour), count(self.rank), &mut part)
        });
        Box::new(Comm::new(part))
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        let under_way = self.under_way.get_mut();
        if under_way.messages.iter().any(Option::is_some) {
            // Freeing buffers that MPI may still write to would corrupt memory: leave them.
            std::mem::forget(std::mem::take(under_way));
        }
    }
}

fn ignored_status() -> *mut ffi::MPI_Status {
    // SAFETY: reading a constant.
    unsafe { ffi::STATUS_IGNORE }
}
