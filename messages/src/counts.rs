//! What a rank counts, and the file that it becomes.
//!
//! Numbers are atomic words. Only where the program may call MPI from several threads at once are they added to by
//! instructions that lock the memory; otherwise MPI itself orders the calls of a process.

use std::alloc::{Layout, alloc_zeroed};
use std::fmt::Write as _;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use crate::calls::{Kind, N_KINDS, NAMES};

/// Class 0 holds empty messages, class k those of 2^(k-1) bytes and more, the last one all that are longer.
const CLASSES: usize = 48;
/// Partners beyond these are counted together: 768 B each, 12 MiB.
const PARTNERS_MAX: u64 = 16_384;

/// The first line of a file. `bytes_min` is the least size of a class; times are nanoseconds.
pub const HEADER: &str = "rank,ranks,what,partner,bytes_min,count,bytes,time_ns,longest_ns";

#[derive(Default)]
struct Messages {
    number: AtomicU64,
    bytes: AtomicU64,
}

type Sizes = [Messages; CLASSES];

/// Calls of one function, with the ticks that they took.
#[derive(Default)]
struct Calls {
    number: AtomicU64,
    ticks: AtomicU64,
    longest: AtomicU64,
}

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partner {
    /// A rank of MPI_COMM_WORLD.
    Rank(usize),
    /// A process that is not of this world, as one that was spawned.
    Outside,
    /// Not known, for want of memory.
    Unknown,
}

pub struct Counts {
    /// Made at a partner's first message.
    partners: Vec<AtomicPtr<Sizes>>,
    n_partners: AtomicU64,
    outside: Sizes,
    unknown: Sizes,
    calls: [Calls; N_KINDS],
    has_threads: bool,
}

impl Counts {
    /// For a world of so many ranks; `None` without memory. `has_threads`: several threads may count at once.
    pub fn new(n_ranks: usize, has_threads: bool) -> Option<Counts> {
        let mut partners = Vec::new();
        partners.try_reserve_exact(n_ranks).ok()?;
        partners.resize_with(n_ranks, || AtomicPtr::new(null_mut()));
        Some(Counts {
            partners,
            n_partners: AtomicU64::new(0),
            outside: std::array::from_fn(|_| Messages::default()),
            unknown: std::array::from_fn(|_| Messages::default()),
            calls: std::array::from_fn(|_| Calls::default()),
            has_threads,
        })
    }

    #[inline(always)]
    fn add(&self, to: &AtomicU64, more: u64) {
        if self.has_threads {
            to.fetch_add(more, Relaxed);
        } else {
            to.store(to.load(Relaxed).wrapping_add(more), Relaxed);
        }
    }

    #[inline(always)]
    pub fn called(&self, kind: Kind) {
        self.add(&self.calls[kind as usize].number, 1);
    }

    #[inline(always)]
    pub fn took(&self, kind: Kind, ticks: u64) {
        let calls = &self.calls[kind as usize];
        self.add(&calls.number, 1);
        self.add(&calls.ticks, ticks);
        if ticks > calls.longest.load(Relaxed) {
            calls.longest.fetch_max(ticks, Relaxed);
        }
    }

    #[inline(always)]
    pub fn sent(&self, to: Partner, bytes: u64) {
        let sizes = match to {
            Partner::Rank(rank) => self.partner(rank),
            Partner::Outside => &self.outside,
            Partner::Unknown => &self.unknown,
        };
        let class = (u64::BITS - bytes.leading_zeros()) as usize;
        let messages = &sizes[class.min(CLASSES - 1)];
        self.add(&messages.number, 1);
        self.add(&messages.bytes, bytes);
    }

    #[inline(always)]
    fn partner(&self, rank: usize) -> &Sizes {
        let Some(place) = self.partners.get(rank) else {
            return &self.unknown;
        };
        // SAFETY: a pointer other than null was made below, and is never freed.
        let made = unsafe { place.load(Acquire).as_ref() };
        made.unwrap_or_else(|| self.make(place))
    }

    #[cold]
    fn make(&self, place: &AtomicPtr<Sizes>) -> &Sizes {
        if self.n_partners.fetch_add(1, Relaxed) >= PARTNERS_MAX {
            return &self.unknown;
        }
        // SAFETY: the layout is not empty, and zeroed bytes are valid numbers; another thread's may have come first, and
        // then this one stays unused.
        unsafe {
            let new = alloc_zeroed(Layout::new::<Sizes>()).cast::<Sizes>();
            if new.is_null() {
                return &self.unknown;
            }
            match place.compare_exchange(null_mut(), new, AcqRel, Acquire) {
                Ok(_) => &*new,
                Err(others) => &*others,
            }
        }
    }

    /// Whether nothing was called.
    pub fn is_empty(&self) -> bool {
        self.calls
            .iter()
            .all(|calls| calls.number.load(Relaxed) == 0)
    }

    /// The rows of a file, without the columns `rank` and `ranks`, which `begin` has. `ns`:
    /// nanoseconds of a number of ticks.
    pub fn rows(&self, begin: &str, ns: impl Fn(u64) -> u64) -> String {
        let mut text = String::new();
        for (name, calls) in NAMES.iter().zip(&self.calls) {
            let [number, ticks, longest] =
                [&calls.number, &calls.ticks, &calls.longest].map(|one| one.load(Relaxed));
            let times = match ticks {
                // Functions that do not wait are not timed.
                0 => ",".to_owned(),
                _ => format!("{},{}", ns(ticks), ns(longest)),
            };
            if number > 0 {
                let _ = writeln!(text, "{begin},{name},,,{number},,{times}");
            }
        }
        let ranks = self.partners.iter().enumerate();
        let ranks = ranks.filter_map(|(rank, place)| {
            // SAFETY: as in `partner`.
            let sizes = unsafe { place.load(Acquire).as_ref() }?;
            Some((rank.to_string(), sizes))
        });
        let others = [
            ("outside".to_owned(), &self.outside),
            ("unknown".to_owned(), &self.unknown),
        ];
        for (partner, sizes) in ranks.chain(others) {
            for (class, messages) in sizes.iter().enumerate() {
                let [number, bytes] =
                    [&messages.number, &messages.bytes].map(|one| one.load(Relaxed));
                let least = class.checked_sub(1).map_or(0, |power| 1u64 << power);
                if number > 0 {
                    let _ = writeln!(text, "{begin},sent,{partner},{least},{number},{bytes},,");
                }
            }
        }
        text
    }
}
