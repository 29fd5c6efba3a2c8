//! The trace of this rank: records in memory, and the file in the database's `incoming` that gets them.
//!
//! No page of the file is ever mapped, so whatever becomes of it (truncated or removed by somebody, a full disk, a
//! server that has forgotten it) costs samples and raises no signal in the program. Records are written where the
//! ranks have compared notes anyway, in the reviews, and at MPI_Finalize. A job that dies loses what came after the
//! last review of a cell; records to which a late review added something far back keep this rank's own times alone.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use colltune_core::record::{
    AGREED, CallTimes, FLAG_AGREED, FLAGS, Header, MESSAGE_BYTES, RECORD_BYTES, Record, SHIFT,
    Words, sealed,
};

use crate::incoming;
use crate::quiet::quietly;

/// The most records of one rank, 14 MiB, whatever `records_per_run` allows: they stay in memory.
const RECORDS_MAX: u64 = 1 << 17;
/// Records that are written in one go, 64 KiB, and the most that a review writes again.
const PIECE: usize = (64 << 10) / RECORD_BYTES;
/// How often a call that signals interrupt is tried again.
const TRIES: usize = 1_000;

/// A record in memory: its words, and in place of their check word, which only the file has, [`WHOLE`] once they are
/// there. Threads write each their own; `Recorder::keep` may read one of which half is written.
type Slot = [AtomicU64; RECORD_BYTES / 8];
const MARK: usize = RECORD_BYTES / 8 - 1;
const WHOLE: u64 = 1;

pub struct Recorder {
    slots: Box<[Slot]>,
    /// How many places have been given out; the capacity once the trace is closed.
    used: AtomicUsize,
    /// How many records the file holds.
    written: AtomicUsize,
    /// The first record that was corrected after it was written.
    corrected: AtomicUsize,
    /// A piece as it is written to the file, for the one thread that does so.
    writing: Mutex<Box<[u8]>>,
    /// Whether a write failed, or took long; then the next one is at MPI_Finalize.
    failed: AtomicBool,
    file: File,
    /// Device and inode: the program may close descriptors that are not its own and use their numbers again.
    identity: (u64, u64),
    records_at: u64,
    open_path: PathBuf,
    final_path: PathBuf,
}

impl Recorder {
    /// Creates `JOB.RANK.trace.open` in `incoming`, with its header, and reserves memory.
    ///
    /// Errors: when the file cannot be created, or there is no room; nothing is left then.
    pub fn create(folder: &Path, header: &Header) -> io::Result<Recorder> {
        let final_path = folder.join(format!("{}.{}.trace", header.job, header.rank));
        let open_path = folder.join(format!("{}.{}.trace.open", header.job, header.rank));
        let header = Header {
            capacity: header.capacity.min(RECORDS_MAX),
            ..header.clone()
        };
        let bytes = header.to_bytes();
        let slots = slots(header.capacity as usize)?;
        let file = incoming::create(&open_path)?;
        let length = bytes.len() + slots.len() * RECORD_BYTES;
        let prepared = quietly(|| {
            reserve(&file, length)?;
            file.write_all_at(&bytes, 0)?;
            file.metadata()
        });
        match prepared {
            Ok(found) => Ok(Recorder {
                slots,
                used: AtomicUsize::new(0),
                written: AtomicUsize::new(0),
                corrected: AtomicUsize::new(usize::MAX),
                writing: Mutex::new(vec![0; PIECE * RECORD_BYTES].into_boxed_slice()),
                failed: AtomicBool::new(false),
                identity: (found.dev(), found.ino()),
                file,
                records_at: bytes.len() as u64,
                open_path,
                final_path,
            }),
            Err(error) => {
                let _ = std::fs::remove_file(&open_path);
                Err(error)
            }
        }
    }

    /// Appends a record and returns its place; drops it when the trace is full.
    #[inline]
    pub fn write(&self, record: impl FnOnce() -> Record) -> Option<usize> {
        self.write_below(self.slots.len(), record)
    }

    /// As `write`, for what nothing is learned from: it leaves most of the trace to the other records.
    pub fn write_aside(&self, record: impl FnOnce() -> Record) {
        self.write_below(self.slots.len() / 8, record);
    }

    #[inline]
    fn write_below(&self, limit: usize, record: impl FnOnce() -> Record) -> Option<usize> {
        if self.used.load(Ordering::Relaxed) >= limit {
            return None;
        }
        let place = self.used.fetch_add(1, Ordering::Relaxed);
        let Some(slot) = self.slots.get(place) else {
            self.used.store(self.slots.len(), Ordering::Relaxed);
            return None;
        };
        store(slot, &record());
        Some(place)
    }

    /// Adds to a record of this rank how long it was to the next call: `place` came from `write`.
    #[inline]
    pub fn shift(&self, place: usize, shift_ns: u64) {
        self.slots[place][SHIFT].store(shift_ns, Ordering::Relaxed);
        // The rest will get it with all else.
        if place < self.written.load(Ordering::Relaxed) {
            self.corrected.fetch_min(place, Ordering::Release);
        }
    }

    /// Adds what the ranks agreed on, and returns the bytes of the record's message.
    pub fn agree(&self, place: usize, times: CallTimes) -> u64 {
        let slot = &self.slots[place];
        for (target, word) in slot[AGREED..].iter().zip(times.words()) {
            target.store(word, Ordering::Relaxed);
        }
        slot[FLAGS].fetch_or(FLAG_AGREED, Ordering::Release);
        self.corrected.fetch_min(place, Ordering::Release);
        slot[MESSAGE_BYTES].load(Ordering::Relaxed)
    }

    /// Writes what is new to the file, and what was corrected within the last piece. To be called where a few
    /// microseconds do not matter. Errors cost samples; the last one is reported by `finish`.
    pub fn keep(&self) {
        if !self.failed.load(Ordering::Relaxed) {
            let used = self.used.load(Ordering::Relaxed).min(self.slots.len());
            let recent = used.saturating_sub(PIECE);
            let failed = self.write_back(used, recent).is_err();
            self.failed.store(failed, Ordering::Relaxed);
        }
    }

    /// Writes nothing more before the end: the file server takes its time, and the job would wait for it.
    #[cold]
    pub fn postpone(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Writes the rest, gives back the space that was not used and renames the trace to its final name. Later
    /// records are dropped.
    ///
    /// Errors: what kept records from the file; those before are kept.
    pub fn finish(&self) -> io::Result<()> {
        let used = self
            .used
            .swap(self.slots.len(), Ordering::AcqRel)
            .min(self.slots.len());
        let kept = self.write_back(used, 0);
        let written = self.written.load(Ordering::Relaxed);
        let kept = kept.and_then(|()| quietly(|| self.file.set_len(self.at(written))));
        let spoilt = kept
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        let closed = if written > 0 && !spoilt {
            std::fs::rename(&self.open_path, &self.final_path)
        } else {
            std::fs::remove_file(&self.open_path)
        };
        kept.and(closed)
    }

    /// Writes the records before `used` that the file does not have, and those from `recent` on that were corrected.
    fn write_back(&self, used: usize, recent: usize) -> io::Result<()> {
        let Ok(mut buffer) = self.writing.try_lock() else {
            return Ok(()); // another thread's review
        };
        let written = self.written.load(Ordering::Relaxed);
        // Another thread may have been here since `used` was read, and may have written more than that.
        let used = used.max(written);
        // A thread that was given a place may not have filled it yet.
        let whole = self.slots[written..used].iter();
        let end = written + whole.take_while(|slot| is_whole(slot)).count();
        let changed = self.corrected.swap(usize::MAX, Ordering::AcqRel);
        let from = changed.max(recent).min(written);
        if changed < from {
            self.corrected.fetch_min(changed, Ordering::Relaxed);
        }
        let result = quietly(|| self.write_range(from, end, &mut buffer));
        if result.is_err() {
            self.corrected.fetch_min(from, Ordering::Relaxed);
        }
        result
    }

    fn write_range(&self, from: usize, end: usize, buffer: &mut [u8]) -> io::Result<()> {
        self.check()?;
        for first in (from..end).step_by(PIECE) {
            let last = (first + PIECE).min(end);
            let (records, _) = buffer.as_chunks_mut::<RECORD_BYTES>();
            for (record, slot) in records.iter_mut().zip(&self.slots[first..last]) {
                *record = sealed(&words(slot));
            }
            let bytes = &buffer[..(last - first) * RECORD_BYTES];
            write_all(&self.file, bytes, self.at(first))?;
            self.written.fetch_max(last, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether the file is still the one that was created, with all that was written to it.
    ///
    /// Errors: `UnexpectedEof` for a file that somebody truncated.
    fn check(&self) -> io::Result<()> {
        let (identity, length) = seen(&self.file)?;
        if identity != self.identity {
            return Err(io::Error::other("the program closed its descriptor"));
        }
        if length < self.at(self.written.load(Ordering::Relaxed)) {
            let problem = "somebody truncated it";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
        }
        Ok(())
    }

    /// Where a record is in the file.
    fn at(&self, place: usize) -> u64 {
        self.records_at + (place * RECORD_BYTES) as u64
    }
}

/// Which file a descriptor is of, and how long that is as far as this machine knows: no server is asked, which might take
/// its time.
fn seen(file: &File) -> io::Result<((u64, u64), u64)> {
    let (flags, wanted) = (
        libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC,
        libc::STATX_INO | libc::STATX_SIZE,
    );
    // SAFETY: all zeros are such a struct.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, an empty name that ends, and room for what is found.
    let code = unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, wanted, &mut found) };
    if code != 0 {
        // Kernels before 4.11 have no such call.
        let found = file.metadata()?;
        return Ok(((found.dev(), found.ino()), found.len()));
    }
    let device = libc::makedev(found.stx_dev_major, found.stx_dev_minor);
    Ok(((device, found.stx_ino), found.stx_size))
}

fn write_all(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], at + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Memory for so many records, filled with what is no record: its pages are there before the first one is written.
fn slots(capacity: usize) -> io::Result<Box<[Slot]>> {
    let mut slots: Vec<Slot> = Vec::new();
    slots
        .try_reserve_exact(capacity)
        .map_err(io::Error::other)?;
    slots.resize_with(capacity, Slot::default);
    Ok(slots.into_boxed_slice())
}

#[inline]
fn store(slot: &Slot, record: &Record) {
    for (target, word) in slot.iter().zip(record.words()) {
        target.store(word, Ordering::Relaxed);
    }
    slot[MARK].store(WHOLE, Ordering::Release);
}

/// Whether a slot holds a record, and all of it.
fn is_whole(slot: &Slot) -> bool {
    slot[MARK].load(Ordering::Acquire) == WHOLE
}

/// The words of a slot that holds a record.
fn words(slot: &Slot) -> Words {
    // Where it says that the ranks have agreed, the words behind that are there.
    let flags = slot[FLAGS].load(Ordering::Acquire);
    let mut words: Words = std::array::from_fn(|place| slot[place].load(Ordering::Relaxed));
    words[FLAGS] = flags;
    words
}

/// Reserves the space of a whole trace, so that a disk that fills up later does not cost its samples.
///
/// Errors: no space. File systems that reserve none, and a file size limit, take what fits later on.
fn reserve(file: &File, length: usize) -> io::Result<()> {
    let length = libc::off_t::try_from(length).map_err(io::Error::other)?;
    for _ in 0..TRIES {
        // SAFETY: the descriptor is open for writing as long as `file` lives. Not `posix_fallocate`, which writes
        // to every block where the file system cannot reserve.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ENOSPC | libc::EDQUOT) => return Err(error),
            _ => return Ok(()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::collective::Collective;
    use colltune_core::record::{CallClass, Manner};

    #[test]
    fn a_thread_that_counted_before_another_one_wrote_more_writes_nothing() {
        let header = Header {
            job: format!("threads{}", std::process::id()),
            rank: 0,
            world_ranks: 1,
            library: "openmpi-4.1.4".to_owned(),
            machine: "test".to_owned(),
            host: "here".to_owned(),
            clock: 0,
            generation: 0,
            colltune_version: "test".to_owned(),
            started_unix_ms: 0,
            capacity: 8,
            variants: vec![(Collective::Barrier, "default".to_owned())],
            context: Vec::new(),
            transport: String::new(),
        };
        let record = |call| Record {
            comm: 1,
            call,
            message_bytes: 0,
            start_ns: call,
            duration_ns: 1,
            shift_ns: None,
            agreed: None,
            nodes: 1,
            ppn: 1,
            n_ranks: 1,
            variant: 0,
            collective: Collective::Barrier,
            drawn: false,
            manner: Manner::Blocking,
            class: CallClass::default(),
        };
        let recorder = Recorder::create(&std::env::temp_dir(), &header).unwrap();
        for call in 0..3 {
            recorder.write(|| record(call));
        }
        recorder.keep();
        assert!(recorder.write_back(1, 0).is_ok(), "it had seen one record");
        assert_eq!(recorder.written.load(Ordering::Relaxed), 3);
        recorder.finish().unwrap();
        std::fs::remove_file(&recorder.final_path).unwrap();
    }
}
