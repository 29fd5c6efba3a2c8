//! One rank's recording, from MPI_Init to MPI_Finalize.

use std::collections::HashMap;
use std::ffi::c_int;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::calls::Kind;
use crate::clock::{Conversion, Reading, ticks};
use crate::comms::Communicators;
use crate::counts::{Counts, HEADER, Partner};
use crate::library::{Handle, Pmpi, SUCCESS, THREAD_MULTIPLE, comm_world};
use crate::quiet::quietly;
use crate::warn::{note_stderr, say};

/// `RUN:FOLDER`; `colltune run` sets it.
const VARIABLE: &str = "COLLTUNE_MESSAGES";
/// Requests of persistent sends that are known at a time.
const PREPARED_MAX: usize = 1 << 16;

/// `None` inside where nothing is recorded.
static RECORDING: OnceLock<Option<Recording>> = OnceLock::new();

pub struct Recording {
    pmpi: Pmpi,
    counts: Counts,
    comms: Communicators,
    /// Persistent sends by their requests: partner and bytes.
    prepared: RwLock<HashMap<u64, (Partner, u64)>>,
    n_prepared: AtomicUsize,
    has_told_loss: AtomicBool,
    run: String,
    folder: PathBuf,
    rank: c_int,
    n_ranks: c_int,
    conversion: Conversion,
    begin: u64,
}

#[inline(always)]
fn recording() -> Option<&'static Recording> {
    RECORDING.get()?.as_ref()
}

/// Counts a call and the time that it takes. `then` is for a call that succeeded: its arguments are valid.
#[inline(always)]
pub fn timed(kind: Kind, call: impl FnOnce() -> c_int, then: impl FnOnce(&Recording)) -> c_int {
    let Some(recording) = recording() else {
        return call();
    };
    let begin = ticks();
    let code = call();
    recording.counts.took(kind, ticks().wrapping_sub(begin));
    if code == SUCCESS {
        then(recording);
    }
    code
}

/// Counts a call.
#[inline(always)]
pub fn counted(kind: Kind, call: impl FnOnce() -> c_int, then: impl FnOnce(&Recording)) -> c_int {
    let code = call();
    if let Some(recording) = recording() {
        recording.counts.called(kind);
        if code == SUCCESS {
            then(recording);
        }
    }
    code
}

/// Begins behind an MPI_Init that succeeded, where `colltune run --messages` asked for it.
pub fn start(code: c_int) -> c_int {
    if code == SUCCESS {
        RECORDING.get_or_init(|| {
            let asked = std::env::var(VARIABLE).ok()?;
            note_stderr();
            let recording = Recording::new(&asked);
            if recording.is_none() {
                say("a rank does not record its messages: it lacks memory, or the MPI library is not the one that was \
                     seen (say which it is: colltune run --mpi)");
            }
            recording
        });
    }
    code
}

/// Writes the file, before MPI_Finalize.
pub fn finish() {
    if let Some(recording) = recording() {
        recording.finish();
    }
}

/// Forgets a communicator that is about to be freed.
pub fn forget_comm(handle: u64) {
    if let Some(recording) = recording() {
        recording.comms.forget(handle);
    }
}

/// Forgets a request that is about to be freed.
pub fn forget_request(handle: u64) {
    if let Some(recording) = recording().filter(|one| one.n_prepared.load(Ordering::Relaxed) > 0) {
        let mut prepared = recording
            .prepared
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        prepared.remove(&handle);
        recording
            .n_prepared
            .store(prepared.len(), Ordering::Relaxed);
    }
}

impl Recording {
    fn new(asked: &str) -> Option<Recording> {
        let (run, folder) = asked.split_once(':')?;
        let (pmpi, world, first) = (Pmpi::resolve()?, comm_world()?, Reading::now());
        let (mut rank, mut n_ranks, mut level) = (0, 0, 0);
        // SAFETY: MPI is initialised and the world valid; numbers are written.
        let codes = unsafe {
            [
                (pmpi.comm_rank)(world, &mut rank),
                (pmpi.comm_size)(world, &mut n_ranks),
                (pmpi.query_thread)(&mut level),
            ]
        };
        if codes != [SUCCESS; 3] {
            return None;
        }
        let has_threads = level >= THREAD_MULTIPLE;
        let conversion = Conversion::agreed(std::iter::once(first.calibrate(Reading::now())));
        Some(Recording {
            counts: Counts::new(usize::try_from(n_ranks).ok()?, has_threads)?,
            comms: Communicators::new(&pmpi, world)?,
            pmpi,
            prepared: RwLock::default(),
            n_prepared: AtomicUsize::new(0),
            has_told_loss: AtomicBool::new(false),
            run: run.to_owned(),
            folder: folder.into(),
            rank,
            n_ranks,
            conversion,
            begin: ticks(),
        })
    }

    /// Partner and bytes; `None` for MPI_PROC_NULL, the only negative rank that a send succeeds with.
    #[inline(always)]
    fn message(
        &self,
        count: impl Into<i64>,
        datatype: Handle,
        to: c_int,
        comm: Handle,
    ) -> Option<(Partner, u64)> {
        let to = usize::try_from(to).ok()?;
        let mut size = 0;
        // SAFETY: the datatype is one that a call has just taken.
        let code = unsafe { (self.pmpi.type_size)(datatype, &mut size) };
        let bytes = if code == SUCCESS {
            size.saturating_mul(count.into())
        } else {
            0
        };
        Some((
            self.comms.partner(&self.pmpi, comm, to),
            bytes.max(0) as u64,
        ))
    }

    /// A message was sent.
    #[inline(always)]
    pub fn sent(&self, count: impl Into<i64>, datatype: Handle, to: c_int, comm: Handle) {
        if let Some((partner, bytes)) = self.message(count, datatype, to, comm) {
            self.counts.sent(partner, bytes);
        }
    }

    /// A persistent send was made; it sends when it is started.
    pub fn prepared(
        &self,
        count: impl Into<i64>,
        datatype: Handle,
        to: c_int,
        comm: Handle,
        request: u64,
    ) {
        let message = self.message(count, datatype, to, comm);
        let mut prepared = self
            .prepared
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        prepared.remove(&request);
        if let Some(message) = message {
            if prepared.len() < PREPARED_MAX && prepared.try_reserve(1).is_ok() {
                prepared.insert(request, message);
            } else if !self.has_told_loss.swap(true, Ordering::Relaxed) {
                say(&format!(
                    "rank {} has more persistent sends than it can record: some are left out",
                    self.rank
                ));
            }
        }
        self.n_prepared.store(prepared.len(), Ordering::Relaxed);
    }

    /// Persistent requests were started; of those that are no sends nothing is known.
    pub fn started(&self, requests: impl Iterator<Item = u64>) {
        if self.n_prepared.load(Ordering::Relaxed) == 0 {
            return;
        }
        let prepared = self.prepared.read().unwrap_or_else(PoisonError::into_inner);
        for (partner, bytes) in requests.filter_map(|request| prepared.get(&request)) {
            self.counts.sent(*partner, *bytes);
        }
    }

    fn finish(&self) {
        let took = self.conversion.span_ns(ticks().wrapping_sub(self.begin));
        let begin = format!("{},{}", self.rank, self.n_ranks);
        let rows = self
            .counts
            .rows(&begin, |ticks| self.conversion.span_ns(ticks));
        let text = format!("{HEADER}\n{begin},run,{},,,,{took},\n{rows}", self.run);
        let place = self.folder.join(format!("rank-{}.csv", self.rank));
        if let Err(error) = quietly(|| write(&place, &text)) {
            let place = place.display();
            let why = match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    "it is there already: of several jobs that one `colltune run` starts, the first one alone is recorded"
                        .to_owned()
                }
                _ => error.to_string(),
            };
            say(&format!("rank {} did not write {place}: {why}", self.rank));
        } else if self.rank == 0 && self.counts.is_empty() {
            say(
                "no point-to-point call of rank 0 was seen: it made none, or makes them past the profiling interface",
            );
        }
    }
}

/// Writes a file that is whole or not there. What is there stays.
fn write(place: &Path, text: &str) -> io::Result<()> {
    if place.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let part = place.with_extension(format!("{}.part", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&part)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| std::fs::rename(&part, place));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written
}
