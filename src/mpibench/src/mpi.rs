//! The one file that talks to MPI.
//!
//! What is measured is called by its `MPI_` name, so that a preloaded library catches it. What the
//! benchmark itself needs (barriers, gathering times) is called by its `PMPI_` name: it must be
//! neither tuned nor recorded.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::time::{Duration, Instant};

use colltune_core::collective::{Collective, MessageSize};
use colltune_mpi as ffi;

/// A communicator with the caller's place in it.
#[derive(Clone, Copy)]
pub struct Comm {
    raw: ffi::MPI_Comm,
    pub rank: usize,
    pub n_ranks: usize,
}

/// What one call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub collective: Collective,
    /// In the collective's own meaning: the vector, or one rank's block, or one pair's block; of
    /// gatherv, scatterv, alltoallv and alltoallw, whose calls have no size, one block, too.
    pub message_bytes: usize,
    pub root: usize,
    pub in_place: bool,
}

/// The element type of a call's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Reduced with MPI_SUM.
    Double,
    /// Reduced with MPI_BXOR.
    Byte,
}

impl Element {
    /// Doubles wherever the size allows them, as in most programs.
    pub fn for_bytes(bytes: usize) -> Element {
        if bytes.is_multiple_of(8) {
            Element::Double
        } else {
            Element::Byte
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Element::Double => 8,
            Element::Byte => 1,
        }
    }
}

/// Buffers that are large enough for every call they were made for.
pub struct Buffers {
    pub send: Vec<u64>,
    pub recv: Vec<u64>,
    uneven: Uneven,
}

/// The lists of the irregular collectives, as long as there are ranks.
#[derive(Default)]
struct Uneven {
    counts: Vec<c_int>,
    /// In elements.
    places: Vec<c_int>,
    places_bytes: Vec<c_int>,
    types: Vec<ffi::MPI_Datatype>,
}

impl Uneven {
    /// Cuts `count` elements in as many near-equal parts as there are ranks.
    fn cut(&mut self, count: c_int, n_ranks: usize) {
        let n = n_ranks as c_int;
        self.counts.clear();
        self.counts
            .extend((0..n).map(|rank| count / n + c_int::from(rank < count % n)));
    }

    /// `count` elements of a type for each rank, one rank's behind the other's.
    fn repeat(&mut self, count: c_int, datatype: ffi::MPI_Datatype, element: Element, n: usize) {
        let places = (0..n as c_int).map(|rank| rank * count);
        self.counts.clear();
        self.counts.resize(n, count);
        self.places.clear();
        self.places.extend(places.clone());
        self.places_bytes.clear();
        let bytes = element.bytes() as c_int;
        self.places_bytes.extend(places.map(|place| place * bytes));
        self.types.clear();
        self.types.resize(n, datatype);
    }
}

impl Buffers {
    /// Shape: room for `bytes_max` bytes to and from each of `n_ranks` ranks, touched once.
    pub fn new(bytes_max: usize, n_ranks: usize) -> Buffers {
        // 1.0 in every place: sums of it stay finite and exact however often they are repeated.
        let words = vec![1.0f64.to_bits(); (bytes_max * n_ranks).div_ceil(8).max(1)];
        Buffers {
            send: words.clone(),
            recv: words,
            uneven: Uneven::default(),
        }
    }
}

/// Starts MPI; also returns how long that took.
pub fn init() -> (Comm, Duration) {
    let start = Instant::now();
    // SAFETY: both arguments may be null since MPI-2; this is the first MPI call of the process.
    let code = unsafe { ffi::MPI_Init(std::ptr::null_mut(), std::ptr::null_mut()) };
    let took = start.elapsed();
    check("MPI_Init", code);
    // SAFETY: MPI_Init has returned, which makes the library's handles valid.
    (place(unsafe { ffi::COMM_WORLD }), took)
}

/// Ends MPI.
pub fn finalize() {
    // SAFETY: called once, last, after `init`.
    check("MPI_Finalize", unsafe { ffi::MPI_Finalize() });
}

/// Ends the job at once.
pub fn abort(status: i32) -> ! {
    // SAFETY: only reached between `init` and `finalize`.
    unsafe { ffi::MPI_Abort(ffi::COMM_WORLD, status) };
    std::process::exit(status)
}

pub fn myself() -> Comm {
    // SAFETY: reading a constant handle.
    place(unsafe { ffi::COMM_SELF })
}

fn place(raw: ffi::MPI_Comm) -> Comm {
    let (mut rank, mut size): (c_int, c_int) = (0, 0);
    // SAFETY: `raw` is a valid communicator and both results are valid for writing.
    let codes = unsafe {
        [
            ffi::MPI_Comm_rank(raw, &mut rank),
            ffi::MPI_Comm_size(raw, &mut size),
        ]
    };
    codes
        .into_iter()
        .for_each(|code| check("MPI_Comm_rank", code));
    Comm {
        raw,
        rank: rank as usize,
        n_ranks: size as usize,
    }
}

/// The text of MPI_Get_library_version.
pub fn library_version() -> String {
    let mut text = [0 as c_char; 8192];
    let mut length = 0;
    // SAFETY: 8192 is MPICH's MPI_MAX_LIBRARY_VERSION_STRING, the largest there is.
    check("MPI_Get_library_version", unsafe {
        ffi::MPI_Get_library_version(text.as_mut_ptr(), &mut length)
    });
    // SAFETY: MPI ends the text with a zero byte.
    unsafe { CStr::from_ptr(text.as_ptr()) }
        .to_string_lossy()
        .trim()
        .to_owned()
}

pub fn check(name: &str, code: c_int) {
    assert!(code == 0, "{name} returned error code {code}");
}

impl Comm {
    /// Runs one collective call with data from and to `buffers`.
    pub fn run(self, call: Call, buffers: &mut Buffers) {
        let element = Element::for_bytes(call.message_bytes);
        let code = self.run_as(call, element, buffers);
        check(call.collective.name(), code);
    }

    #[rustfmt::skip] // One line each reads as a table.
    fn run_as(self, call: Call, element: Element, buffers: &mut Buffers) -> c_int {
        let blocks = match call.collective.size() {
            MessageSize::Message => 1,
            MessageSize::Block | MessageSize::Nothing => self.n_ranks,
        };
        assert!(call.root < self.n_ranks);
        assert!(
            call.message_bytes * blocks <= buffers.recv.len() * 8,
            "the buffers are too small for {call:?}"
        );
        assert!(call.message_bytes * blocks <= buffers.send.len() * 8);
        let recv = buffers.recv.as_mut_ptr().cast::<c_void>();
        let own = buffers.send.as_ptr().cast::<c_void>();
        let send = if call.in_place { in_place() } else { own };
        // In place at a root is the root's alone.
        let at_root = call.in_place && self.rank == call.root;
        let root_send = if at_root { in_place() } else { own };
        let root_recv = if at_root { in_place().cast_mut() } else { recv };
        let root = call.root as c_int;
        let raw = self.raw;
        // SAFETY: reading constant handles.
        let (datatype, op) = unsafe {
            match element {
                Element::Double => (ffi::DOUBLE, ffi::SUM),
                Element::Byte => (ffi::UINT8_T, ffi::BXOR),
            }
        };
        let count =
            c_int::try_from(call.message_bytes / element.bytes()).expect("a count fits an int");
        let part = count / self.n_ranks as c_int;
        let uneven = &mut buffers.uneven;
        match call.collective {
            Collective::ReduceScatter => uneven.cut(count, self.n_ranks),
            _ => uneven.repeat(count, datatype, element, self.n_ranks),
        }
        let counts = uneven.counts.as_ptr();
        let places = uneven.places.as_ptr();
        let places_bytes = uneven.places_bytes.as_ptr();
        let types = uneven.types.as_ptr();
        // SAFETY: the buffers hold `blocks` times the message, as asserted above, and are distinct;
        // the lists have an entry for each rank; MPI_IN_PLACE stands where the standard allows it.
        unsafe {
            match call.collective {
                Collective::Allreduce => ffi::MPI_Allreduce(send, recv, count, datatype, op, raw),
                Collective::Bcast => ffi::MPI_Bcast(recv, count, datatype, root, raw),
                Collective::Allgather => ffi::MPI_Allgather(send, count, datatype, recv, count, datatype, raw),
                Collective::Alltoall => ffi::MPI_Alltoall(send, count, datatype, recv, count, datatype, raw),
                Collective::Reduce => ffi::MPI_Reduce(root_send, recv, count, datatype, op, root, raw),
                Collective::Allgatherv => ffi::MPI_Allgatherv(send, count, datatype, recv, counts, places, datatype, raw),
                Collective::Gather => ffi::MPI_Gather(root_send, count, datatype, recv, count, datatype, root, raw),
                Collective::Gatherv => ffi::MPI_Gatherv(root_send, count, datatype, recv, counts, places, datatype, root, raw),
                Collective::Scatter => ffi::MPI_Scatter(own, count, datatype, root_recv, count, datatype, root, raw),
                Collective::Scatterv => ffi::MPI_Scatterv(own, counts, places, datatype, root_recv, count, datatype, root, raw),
                Collective::Alltoallv => ffi::MPI_Alltoallv(send, counts, places, datatype, recv, counts, places, datatype, raw),
                Collective::Alltoallw => ffi::MPI_Alltoallw(send, counts, places_bytes, types, recv, counts, places_bytes, types, raw),
                Collective::ReduceScatter => ffi::MPI_Reduce_scatter(send, recv, counts, datatype, op, raw),
                Collective::ReduceScatterBlock => ffi::MPI_Reduce_scatter_block(send, recv, part, datatype, op, raw),
                Collective::Scan => ffi::MPI_Scan(send, recv, count, datatype, op, raw),
                Collective::Exscan => ffi::MPI_Exscan(send, recv, count, datatype, op, raw),
                Collective::Barrier => ffi::MPI_Barrier(raw),
            }
        }
    }

    /// A barrier of the benchmark's own, invisible to a tuner.
    pub fn synchronise(self) {
        // SAFETY: the communicator is valid.
        check("PMPI_Barrier", unsafe { ffi::PMPI_Barrier(self.raw) });
    }

    /// Each place's maximum over the ranks, on all of them; invisible to a tuner.
    pub fn maxima(self, values: &[f64]) -> Vec<f64> {
        let mut result = vec![0.0f64; values.len()];
        let count = c_int::try_from(values.len()).expect("a count fits an int");
        // SAFETY: both buffers hold `count` doubles.
        check("PMPI_Allreduce", unsafe {
            ffi::PMPI_Allreduce(
                values.as_ptr().cast(),
                result.as_mut_ptr().cast(),
                count,
                ffi::DOUBLE,
                ffi::MAX,
                self.raw,
            )
        });
        result
    }

    pub fn raw(self) -> ffi::MPI_Comm {
        self.raw
    }

    /// The lowest rank on this rank's node.
    pub fn node_leader(self) -> usize {
        let mut node = self.raw;
        // SAFETY: the communicator is valid, the new one is freed below.
        let code = unsafe {
            ffi::PMPI_Comm_split_type(self.raw, ffi::COMM_TYPE_SHARED, 0, null_info(), &mut node)
        };
        check("PMPI_Comm_split_type", code);
        // The largest of what counts down is the lowest rank.
        let lowest = place(node).maxima(&[-(self.rank as f64)])[0];
        // SAFETY: made just above, freed once.
        check("PMPI_Comm_free", unsafe { ffi::PMPI_Comm_free(&mut node) });
        -lowest as usize
    }

    /// Every rank's number, on all of them; invisible to a tuner.
    pub fn of_all(self, number: u64) -> Vec<u64> {
        let mut all = vec![0u64; self.n_ranks];
        let (own, result) = ((&raw const number).cast(), all.as_mut_ptr().cast());
        // SAFETY: one number goes out, and one from each rank comes in, for which there is room.
        check("PMPI_Allgather", unsafe {
            let number = ffi::UINT64_T;
            ffi::PMPI_Allgather(own, 1, number, result, 1, number, self.raw)
        });
        all
    }

    /// A barrier whose waiting ranks sleep, so that they take no core from a rank that measures.
    pub fn meet_asleep(self) {
        let mut done: c_int = 0;
        // SAFETY: the communicator is valid; the request is tested until it is done; a status is
        // plain numbers, for which zero is a value.
        unsafe {
            let mut request = ffi::REQUEST_NULL;
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            check("PMPI_Ibarrier", ffi::PMPI_Ibarrier(self.raw, &mut request));
            while done == 0 {
                std::thread::sleep(Duration::from_micros(500));
                let code = ffi::PMPI_Test(&mut request, &mut done, &mut status);
                check("PMPI_Test", code);
            }
        }
    }

    /// Ranks that share memory with this one.
    pub fn node_ranks(self) -> usize {
        let mut node = self.raw;
        // SAFETY: the communicator is valid, the new one is freed below.
        let code = unsafe {
            ffi::PMPI_Comm_split_type(self.raw, ffi::COMM_TYPE_SHARED, 0, null_info(), &mut node)
        };
        check("PMPI_Comm_split_type", code);
        let n_ranks = place(node).n_ranks;
        // SAFETY: made just above, freed once.
        check("PMPI_Comm_free", unsafe { ffi::PMPI_Comm_free(&mut node) });
        n_ranks
    }

    /// A communicator of the ranks that give the same colour.
    pub fn split(self, colour: usize) -> Comm {
        let mut part = self.raw;
        // SAFETY: the communicator is valid and the result is valid for writing.
        check("MPI_Comm_split", unsafe {
            ffi::MPI_Comm_split(self.raw, colour as c_int, self.rank as c_int, &mut part)
        });
        place(part)
    }

    pub fn free(self) {
        let mut raw = self.raw;
        // SAFETY: `split` made it, and this consumes the last use.
        check("MPI_Comm_free", unsafe { ffi::MPI_Comm_free(&mut raw) });
    }
}

/// Adds doubles to others, as a reduction of the library does.
pub fn reduce_local(from: &[f64], to: &mut [f64]) {
    assert_eq!(from.len(), to.len());
    let count = c_int::try_from(from.len()).expect("a count fits an int");
    // SAFETY: both hold `count` doubles.
    check("PMPI_Reduce_local", unsafe {
        ffi::PMPI_Reduce_local(
            from.as_ptr().cast(),
            to.as_mut_ptr().cast(),
            count,
            ffi::DOUBLE,
            ffi::SUM,
        )
    });
}

fn null_info() -> ffi::MPI_Info {
    // SAFETY: reading a constant handle.
    unsafe { ffi::INFO_NULL }
}

fn in_place() -> *const c_void {
    // SAFETY: reading a constant.
    unsafe { ffi::IN_PLACE }
}
