//! The flight recorder: the last decisions of each communicator, written where a job hangs.
//!
//! Only where `COLLTUNE_FLIGHT=DIR` asks for it. Then SIGUSR2 makes a rank write `DIR/rank-N.flight`, and so does the
//! end of a job by the shim itself; `colltune explain DIR` reads them. A program's own handler for this signal is
//! kept, and one that it installs later replaces ours.
//!
//! What is kept lies in arrays of atomic words, made once: the handler reads them whatever was interrupted.

use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use colltune_core::collective::Collective;
use colltune_core::flight::{DECISIONS, Decision, Header, OVER, WORDS, check_step};

use crate::clock::{self, Conversion};

/// Communicators whose decisions are kept: 134 KiB in all.
const RINGS: usize = 64;
/// Places that are looked at before a communicator takes one from another.
const PROBES: usize = 4;

/// The decisions of one communicator.
struct Ring {
    /// The agreed number plus 1; 0 while unused.
    comm: AtomicU64,
    n_ranks: AtomicU64,
    made: AtomicU64,
    decisions: [[AtomicU64; WORDS]; DECISIONS],
}

pub struct Flight {
    rings: Box<[Ring]>,
    clock: Conversion,
    /// What a file begins with.
    header: Vec<u8>,
    file: CString,
    /// Written first, then renamed, so that no reader finds half a file.
    part: CString,
}

static ARMED: AtomicPtr<Flight> = AtomicPtr::new(null_mut());

/// A call that is under way; its end is recorded when this goes.
pub struct UnderWay(&'static AtomicU64);

impl UnderWay {
    /// Says what the call runs, once that is known.
    #[inline]
    pub fn runs(&self, collective: Collective, variant: u16) {
        self.0
            .store(Decision::what(collective, variant), Ordering::Relaxed);
    }
}

impl Drop for UnderWay {
    #[inline]
    fn drop(&mut self) {
        // One thread at a time is in a communicator's collectives, so there is no other writer.
        self.0
            .store(self.0.load(Ordering::Relaxed) | OVER, Ordering::Relaxed);
    }
}

/// Of a call: its communicator and what its ranks agree on.
#[derive(Clone, Copy)]
pub struct Entered {
    pub comm: u64,
    pub n_ranks: u32,
    pub call: u64,
    pub collective: Collective,
    pub bytes: u64,
    /// By its place in the header's list; it may be corrected later on.
    pub variant: u16,
}

impl Flight {
    /// Makes the recorder of this rank, and arms the signal where the program has no handler for it.
    /// `None` where the folder cannot be named or made; then this rank will write nothing.
    pub fn arm(folder: &str, header: &Header, clock: Conversion) -> Option<&'static Flight> {
        std::fs::create_dir_all(folder).ok()?;
        let file = |end: &str| {
            let name = format!("rank-{}.flight{end}", header.rank);
            CString::new(Path::new(folder).join(name).into_os_string().into_vec()).ok()
        };
        let ring = || Ring {
            comm: AtomicU64::new(0),
            n_ranks: AtomicU64::new(0),
            made: AtomicU64::new(0),
            decisions: [const { [const { AtomicU64::new(0) }; WORDS] }; DECISIONS],
        };
        let flight = Box::leak(Box::new(Flight {
            rings: std::iter::repeat_with(ring).take(RINGS).collect(),
            clock,
            header: header.to_bytes(),
            file: file("")?,
            part: file(".part")?,
        }));
        ARMED.store(flight, Ordering::Release);
        catch_signal();
        Some(flight)
    }

    /// Keeps a decision. A few nanoseconds: no lock, nothing but stores.
    #[inline]
    pub fn enter(&'static self, entered: Entered) -> UnderWay {
        let ring = self.ring(entered.comm, entered.n_ranks);
        let made = ring.made.load(Ordering::Relaxed);
        // Over, too, where the program left it by longjmp.
        let before = &ring.decisions[made.wrapping_sub(1) as usize % DECISIONS];
        drop(UnderWay(&before[WORDS - 1]));
        let decision = &ring.decisions[made as usize % DECISIONS];
        let what = Decision::what(entered.collective, entered.variant);
        let words = [entered.call, entered.bytes, clock::ticks(), what];
        for (place, word) in decision.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        // A handler that comes in between sees either none of it or all.
        ring.made.store(made + 1, Ordering::Release);
        UnderWay(&decision[WORDS - 1])
    }

    #[inline]
    fn ring(&self, comm: u64, n_ranks: u32) -> &Ring {
        let mark = comm.wrapping_add(1);
        let first = (comm ^ comm >> 32) as usize;
        let at = |probe: usize| &self.rings[first.wrapping_add(probe) % RINGS];
        (0..PROBES)
            .map(at)
            .find(|ring| ring.comm.load(Ordering::Relaxed) == mark)
            .unwrap_or_else(|| claim((0..PROBES).map(at), at(0), mark, n_ranks))
    }

    /// Writes everything to the file. Async-signal-safe: system calls and arithmetic.
    fn write(&self) {
        // SAFETY: the paths end in 0; the file that is opened is closed again.
        unsafe {
            let flags = libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY | libc::O_CLOEXEC;
            let file = libc::open(self.part.as_ptr(), flags, 0o644);
            if file < 0 {
                return;
            }
            let whole = write_all(file, &self.header) && self.write_body(file);
            libc::close(file);
            if whole {
                libc::rename(self.part.as_ptr(), self.file.as_ptr());
            }
        }
    }

    fn write_body(&self, file: c_int) -> bool {
        let mut sum = 1;
        let mut word = |word: u64| {
            sum = check_step(sum, word);
            write_all(file, &word.to_le_bytes())
        };
        let mut whole = word(self.clock.at_ns(clock::ticks()));
        for ring in &self.rings {
            let comm = ring.comm.load(Ordering::Acquire);
            if comm == 0 {
                continue;
            }
            let made = ring.made.load(Ordering::Acquire);
            whole = whole && word(comm) && word(ring.n_ranks.load(Ordering::Relaxed)) && word(made);
            for decision in &ring.decisions {
                let [call, bytes, ticks, what] =
                    decision.each_ref().map(|word| word.load(Ordering::Relaxed));
                let start_ns = self.clock.at_ns(ticks);
                whole = whole && word(call) && word(bytes) && word(start_ns) && word(what);
            }
        }
        whole && write_all(file, &sum.to_le_bytes())
    }
}

/// An unused ring among `places`, else `other`, whose communicator is forgotten.
#[cold]
fn claim<'a>(
    places: impl Iterator<Item = &'a Ring>,
    other: &'a Ring,
    mark: u64,
    n_ranks: u32,
) -> &'a Ring {
    let mut places = places;
    let free = |ring: &&Ring| {
        let (unused, taken) = (Ordering::AcqRel, Ordering::Relaxed);
        ring.comm.compare_exchange(0, mark, unused, taken).is_ok()
    };
    let ring = places.find(free).unwrap_or(other);
    ring.made.store(0, Ordering::Relaxed);
    ring.n_ranks.store(n_ranks.into(), Ordering::Relaxed);
    ring.comm.store(mark, Ordering::Release);
    ring
}

/// Writes the recording where there is a recorder; also what a job that the shim ends does last.
pub fn write() {
    // SAFETY: a recorder is leaked when it is armed.
    if let Some(flight) = unsafe { ARMED.load(Ordering::Acquire).as_ref() } {
        flight.write();
    }
}

extern "C" fn on_signal(_: c_int) {
    // SAFETY: the calling thread's error number is valid; the interrupted code finds it as it was.
    unsafe {
        let number = libc::__errno_location();
        let before = *number;
        write();
        *number = before;
    }
}

/// Only where the signal would end the program: what a program does with it stays its own affair.
fn catch_signal() {
    // SAFETY: all-zero bytes are a valid value; the handler does what is allowed in one.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGUSR2, std::ptr::null(), &mut now) != 0
            || now.sa_sigaction != libc::SIG_DFL
        {
            return;
        }
        now.sa_sigaction = on_signal as extern "C" fn(c_int) as libc::sighandler_t;
        now.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGUSR2, &now, null_mut());
    }
}

fn write_all(file: c_int, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: the bytes are valid to read.
        let written = unsafe { libc::write(file, bytes.as_ptr().cast::<c_void>(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => bytes = bytes.get(written..).unwrap_or_default(),
            _ => return false,
        }
    }
    true
}
