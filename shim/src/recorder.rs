//! The trace of this rank: records in memory, and the file in the database's `incoming` that gets them.
//!
//! No page of the file is ever mapped, so whatever becomes of it (truncated or removed by somebody, a full disk, a
//! server that has forgotten it) costs samples and raises no signal in the program. Records are written where the
//! ranks have compared notes anyway, in the reviews, and at MPI_Finalize. A job that dies loses what came after the
//! last review of a cell; records to which a late review added something far back keep this rank's own times alone.
//!
//! A training takes a trace that nobody has written to for long for that of a job that died, and removes it. So a rank
//! writes now and then without a review, and however slow that is. One that finds its trace gone begins it again, from
//! its first record: a training knows by their numbers which of them it has.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

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
/// The most that is written before the end at once: the other ranks wait for this one.
const PIECES_AT_ONCE: usize = 16;
/// A write that takes longer than this is followed by a rest of so many times as long.
const PATIENCE_NS: u64 = 20_000_000;
const REST: u64 = 3_000;
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
    /// For the one thread that writes.
    output: Mutex<Output>,
    header: Box<[u8]>,
    open_path: PathBuf,
    final_path: PathBuf,
    /// The longest rest between two writes.
    rest_ns_max: u64,
    /// Nothing is written before this time.
    rests_until_ns: AtomicU64,
    /// From this time on something is written without a review; 0 until the first sample.
    due_ns: AtomicU64,
}

/// What is written in one go.
#[derive(Clone, Copy)]
enum Extent {
    All,
    /// Some pieces, and of what was corrected the last one.
    Recent,
}

/// The file that takes the records.
struct Output {
    file: File,
    /// Device and inode: the program may close descriptors that are not its own and use their numbers again.
    identity: (u64, u64),
    /// A piece as it is written.
    buffer: Box<[u8]>,
}

impl Output {
    /// Makes a file of its own at `path`, with a header and room for `length` bytes in all.
    ///
    /// Errors: when it cannot be made, or there is no room; nothing is left then.
    fn create(path: &Path, header: &[u8], length: usize) -> io::Result<Output> {
        let file = incoming::create(path)?;
        let prepared = quietly(|| {
            reserve(&file, length)?;
            file.write_all_at(header, 0)?;
            file.metadata()
        });
        match prepared {
            Ok(found) => Ok(Output {
                identity: (found.dev(), found.ino()),
                file,
                buffer: vec![0; PIECE * RECORD_BYTES].into_boxed_slice(),
            }),
            Err(error) => {
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Whether the file is still the one that was created, with all that was written to it, `length` bytes.
    ///
    /// Errors: `NotFound` for a file that somebody removed, `UnexpectedEof` for one that somebody truncated.
    fn check(&self, length: u64) -> io::Result<()> {
        let found = seen(&self.file)?;
        if found.identity != self.identity {
            return Err(io::Error::other("the program closed its descriptor"));
        }
        if found.names == 0 {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "somebody removed it",
            ));
        }
        if found.length < length {
            let problem = "somebody truncated it";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
        }
        Ok(())
    }
}

/// Whether an error says that a file is no more; a server of files that another machine has removed says it is stale.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESTALE)
}

impl Recorder {
    /// Creates `JOB.RANK.trace.open` in `incoming`, with its header, and reserves memory. While there are samples, the
    /// file is written to at least every `rest_max`.
    ///
    /// Errors: when the file cannot be created, or there is no room; nothing is left then.
    pub fn create(folder: &Path, header: &Header, rest_max: Duration) -> io::Result<Recorder> {
        let final_path = folder.join(format!("{}.{}.trace", header.job, header.rank));
        let open_path = folder.join(format!("{}.{}.trace.open", header.job, header.rank));
        let header = Header {
            capacity: header.capacity.min(RECORDS_MAX),
            ..header.clone()
        };
        let slots = slots(header.capacity as usize)?;
        let header = header.to_bytes().into_boxed_slice();
        let length = header.len() + slots.len() * RECORD_BYTES;
        Ok(Recorder {
            output: Mutex::new(Output::create(&open_path, &header, length)?),
            slots,
            used: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            corrected: AtomicUsize::new(usize::MAX),
            header,
            open_path,
            final_path,
            rest_ns_max: rest_max.as_nanos().try_into().unwrap_or(u64::MAX),
            rests_until_ns: AtomicU64::new(0),
            due_ns: AtomicU64::new(0),
        })
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

    /// Whether something is to be written at a sample, though nothing is reviewed: else the trace looks abandoned.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        if due_ns == 0 {
            self.plan(now_ns, 0);
        }
        due_ns != 0 && now_ns >= due_ns
    }

    /// Writes what is new to the file, and what was corrected within the last piece. To be called where a few
    /// microseconds do not matter. Behind a write that fails or takes long it rests for a while, because the job would
    /// wait for the file server. Errors cost samples; the last one is reported by `finish`.
    pub fn keep(&self, now_ns: impl Fn() -> u64) {
        let begun_ns = now_ns();
        if begun_ns < self.rests_until_ns.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut output) = self.output.try_lock() else {
            return; // another thread's review
        };
        let used = self.used.load(Ordering::Relaxed).min(self.slots.len());
        let kept = self.write_back(&mut output, used, Extent::Recent);
        let ended_ns = now_ns();
        let took_ns = ended_ns.saturating_sub(begun_ns);
        self.plan(
            ended_ns,
            match kept {
                Ok(()) if took_ns <= PATIENCE_NS => 0,
                Ok(()) => took_ns.saturating_mul(REST).min(self.rest_ns_max),
                Err(_) => self.rest_ns_max,
            },
        );
    }

    fn plan(&self, now_ns: u64, rest_ns: u64) {
        let until_ns = now_ns.saturating_add(rest_ns);
        self.rests_until_ns.store(until_ns, Ordering::Relaxed);
        let due_ns = now_ns.saturating_add(self.rest_ns_max);
        self.due_ns.store(due_ns, Ordering::Relaxed);
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
        let Ok(mut output) = self.output.try_lock() else {
            return Ok(()); // left by a longjmp
        };
        match self.close(&mut output, used) {
            // It had its name a moment ago.
            Err(error) if is_gone(&error) => {
                self.begin_again(&mut output)?;
                self.close(&mut output, used)
            }
            closed => closed,
        }
    }

    fn close(&self, output: &mut Output, used: usize) -> io::Result<()> {
        let kept = self.write_back(output, used, Extent::All);
        let written = self.written.load(Ordering::Relaxed);
        let kept = kept.and_then(|()| quietly(|| output.file.set_len(self.at(written))));
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

    /// Writes the records before `used` that the file does not have, and those that were corrected. Where the file is
    /// gone another one takes its place.
    fn write_back(&self, output: &mut Output, used: usize, extent: Extent) -> io::Result<()> {
        match self.write_new(output, used, extent) {
            Err(error) if is_gone(&error) => {
                self.begin_again(output)?;
                self.write_new(output, used, extent)
            }
            written => written,
        }
    }

    /// Makes a trace of no records in place of one that is gone.
    #[cold]
    fn begin_again(&self, output: &mut Output) -> io::Result<()> {
        *output = Output::create(
            &self.open_path,
            &self.header,
            self.at(self.slots.len()) as usize,
        )?;
        self.written.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn write_new(&self, output: &mut Output, used: usize, extent: Extent) -> io::Result<()> {
        let written = self.written.load(Ordering::Relaxed);
        let (end, recent) = match extent {
            Extent::All => (used, 0),
            Extent::Recent => {
                let end = used.min(written + PIECES_AT_ONCE * PIECE);
                (end, used.saturating_sub(PIECE))
            }
        };
        // Another thread may have been here since the end was read, and may have written more than that.
        let end = end.max(written);
        // A thread that was given a place may not have filled it yet.
        let whole = self.slots[written..end].iter();
        let end = written + whole.take_while(|slot| is_whole(slot)).count();
        let changed = self.corrected.swap(usize::MAX, Ordering::AcqRel);
        // A file that gets nothing looks abandoned.
        let last = if end == written {
            end.saturating_sub(1)
        } else {
            written
        };
        let from = changed.max(recent).min(last);
        if changed < from {
            self.corrected.fetch_min(changed, Ordering::Relaxed);
        }
        let result = quietly(|| self.write_range(output, from, end));
        if result.is_err() {
            self.corrected.fetch_min(from, Ordering::Relaxed);
        }
        result
    }

    fn write_range(&self, output: &mut Output, from: usize, end: usize) -> io::Result<()> {
        output.check(self.at(self.written.load(Ordering::Relaxed)))?;
        for first in (from..end).step_by(PIECE) {
            let last = (first + PIECE).min(end);
            let (records, _) = output.buffer.as_chunks_mut::<RECORD_BYTES>();
            for (record, slot) in records.iter_mut().zip(&self.slots[first..last]) {
                *record = sealed(&words(slot));
            }
            let bytes = &output.buffer[..(last - first) * RECORD_BYTES];
            write_all(&output.file, bytes, self.at(first))?;
            self.written.fetch_max(last, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Where a record is in the file.
    fn at(&self, place: usize) -> u64 {
        (self.header.len() + place * RECORD_BYTES) as u64
    }
}

/// What a descriptor is of: device and inode, how many names that has and how long it is.
struct Seen {
    identity: (u64, u64),
    names: u64,
    length: u64,
}

/// Looks at it as far as this machine knows: no server is asked, which might take its time.
fn seen(file: &File) -> io::Result<Seen> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let wanted = libc::STATX_INO | libc::STATX_SIZE | libc::STATX_NLINK;
    // SAFETY: all zeros are such a struct.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, an empty name that ends, and room for what is found.
    let code = unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, wanted, &mut found) };
    if code != 0 {
        // Kernels before 4.11 have no such call.
        let found = file.metadata()?;
        return Ok(Seen {
            identity: (found.dev(), found.ino()),
            names: found.nlink(),
            length: found.len(),
        });
    }
    let device = libc::makedev(found.stx_dev_major, found.stx_dev_minor);
    let knows_names = found.stx_mask & libc::STATX_NLINK != 0;
    Ok(Seen {
        identity: (device, found.stx_ino),
        names: if knows_names {
            found.stx_nlink.into()
        } else {
            1
        },
        length: found.stx_size,
    })
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

    const SECOND_NS: u64 = 1_000_000_000;

    fn recorder(name: &str, rest_max: Duration) -> Recorder {
        let header = Header {
            job: format!("{name}{}", std::process::id()),
            rank: 0,
            world_ranks: 1,
            library: "openmpi-4.1.4".to_owned(),
            machine: "test".to_owned(),
            host: "here".to_owned(),
            clock: 0,
            generation: 0,
            colltune_version: "test".to_owned(),
            started_unix_ms: 0,
            capacity: 100,
            variants: vec![(Collective::Barrier, "default".to_owned())],
            context: Vec::new(),
            transport: String::new(),
        };
        Recorder::create(&std::env::temp_dir(), &header, rest_max).unwrap()
    }

    fn record(recorder: &Recorder, calls: std::ops::Range<u64>) {
        for call in calls {
            recorder.write(|| Record {
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
            });
        }
    }

    /// The calls that a file has records of.
    fn calls(path: &Path) -> Vec<u64> {
        let (_, records) = colltune_core::record::read(&std::fs::read(path).unwrap()).unwrap();
        records.iter().map(|record| record.call).collect()
    }

    fn finished(recorder: &Recorder) -> Vec<u64> {
        recorder.finish().unwrap();
        let calls = calls(&recorder.final_path);
        std::fs::remove_file(&recorder.final_path).unwrap();
        calls
    }

    #[test]
    fn a_thread_that_counted_before_another_one_wrote_more_writes_nothing() {
        let recorder = recorder("threads", Duration::MAX);
        record(&recorder, 0..3);
        recorder.keep(|| 1);
        let mut output = recorder.output.lock().unwrap();
        let written = recorder.write_back(&mut output, 1, Extent::All);
        assert!(written.is_ok(), "it had seen one record");
        assert_eq!(recorder.written.load(Ordering::Relaxed), 3);
        drop(output);
        assert_eq!(finished(&recorder), [0, 1, 2]);
    }

    #[test]
    fn a_trace_that_was_removed_is_begun_again_at_the_next_write_and_at_the_end() {
        let recorder = recorder("removed", Duration::MAX);
        record(&recorder, 0..3);
        recorder.keep(|| 1);
        std::fs::remove_file(&recorder.open_path).unwrap();
        record(&recorder, 3..5);
        recorder.keep(|| 1);
        assert_eq!(calls(&recorder.open_path), [0, 1, 2, 3, 4]);
        std::fs::remove_file(&recorder.open_path).unwrap();
        record(&recorder, 5..6);
        assert_eq!(finished(&recorder), [0, 1, 2, 3, 4, 5]);
    }

    /// A training may look at the file when nothing but its new name is missing, or move it.
    #[test]
    fn a_trace_that_was_moved_is_written_whole_at_the_end() {
        let recorder = recorder("moved", Duration::MAX);
        let elsewhere = recorder.open_path.with_extension("elsewhere");
        record(&recorder, 0..3);
        recorder.keep(|| 1);
        std::fs::rename(&recorder.open_path, &elsewhere).unwrap();
        record(&recorder, 3..5);
        assert_eq!(finished(&recorder), [0, 1, 2, 3, 4]);
        std::fs::remove_file(elsewhere).unwrap();
    }

    #[test]
    fn behind_a_slow_write_it_rests_for_a_while_and_never_for_long() {
        let recorder = recorder("slow", Duration::from_secs(900));
        let times = std::cell::Cell::new((0, 0));
        let keep_for = |begun_ns, took_ns| {
            times.set((begun_ns, took_ns));
            recorder.keep(|| {
                let (now_ns, took_ns) = times.get();
                times.set((now_ns + took_ns, 0));
                now_ns
            });
            recorder.written.load(Ordering::Relaxed)
        };
        let mut made = 0..1;
        let mut one_more = || {
            record(&recorder, made.clone());
            made = made.end..made.end + 1;
        };
        one_more();
        assert_eq!(keep_for(SECOND_NS, SECOND_NS / 40), 1, "25 ms");
        one_more();
        assert_eq!(keep_for(70 * SECOND_NS, 0), 1, "it rests for 75 s");
        assert_eq!(keep_for(80 * SECOND_NS, 10 * SECOND_NS), 2, "10 s");
        one_more();
        assert!(!recorder.is_due(980 * SECOND_NS));
        assert_eq!(keep_for(980 * SECOND_NS, 0), 2, "it rests for 15 minutes");
        assert!(recorder.is_due(991 * SECOND_NS), "without a review, too");
        assert_eq!(keep_for(991 * SECOND_NS, 0), 3);
        assert_eq!(finished(&recorder), [0, 1, 2]);
    }

    #[test]
    fn a_full_trace_is_touched_so_that_it_does_not_look_abandoned() {
        let recorder = recorder("full", Duration::MAX);
        record(&recorder, 0..3);
        recorder.keep(|| 1);
        let file = File::options()
            .write(true)
            .open(&recorder.open_path)
            .unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        recorder.keep(|| 1);
        let modified = file.metadata().unwrap().modified().unwrap();
        assert!(modified > std::time::UNIX_EPOCH);
        assert_eq!(finished(&recorder), [0, 1, 2]);
    }
}
