//! The trace of this rank: records in memory, and the file in the database's `incoming` that gets them.
//!
//! No page of the file is ever mapped, so whatever becomes of it (truncation, removal, a full disk, a server that has
//! forgotten it) costs samples and raises no signal in the program. Records are written where the ranks have compared
//! notes anyway, in the reviews, and at MPI_Finalize. A job that dies loses what came after the last review of a
//! cell. Records far back to which a late review would add keep this rank's own times alone.
//!
//! A training takes a trace without a write for long for that of a job that died, and removes it. So a rank writes
//! now and then without a review, and however slow that is. One that finds its trace gone begins it again, from its
//! first record: a training knows by their numbers which of them it has.

mod output;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use colltune_core::decide::GapPart;
use colltune_core::record::{
    AFTER, AFTER_AGREED, AGREED, CallTimes, FLAG_AGREED, FLAGS, Header, MESSAGE_BYTES,
    RECORD_BYTES, Record, SHIFT, Words, sealed,
};

use crate::quiet::quietly;
use output::{Output, is_gone};

/// The most records of one rank, 16 MiB, whatever `records_per_run` allows: they stay in memory.
const RECORDS_MAX: u64 = 1 << 17;
/// Records that are written in one go, 64 KiB, and the most that a review writes again.
const PIECE: usize = (64 << 10) / RECORD_BYTES;
/// The most that is written before the end at once: the other ranks wait for this one.
const PIECES_AT_ONCE: usize = 16;
/// A write that takes longer than this is followed by a rest of so many times as long.
const PATIENCE_NS: u64 = 20_000_000;
const REST: u64 = 3_000;
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
            output: Mutex::new(Output::create(
                &open_path,
                &header,
                (length, PIECE * RECORD_BYTES),
            )?),
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

    /// Adds to a record of this rank how long it was to the next call, or that one: `place` came from `write`.
    #[inline]
    pub fn behind(&self, place: usize, part: GapPart, ns: u64) {
        let word = [SHIFT, AFTER][part as usize];
        self.slots[place][word].store(ns, Ordering::Relaxed);
        // The rest will get it with all else.
        if place < self.written.load(Ordering::Relaxed) {
            self.corrected.fetch_min(place, Ordering::Release);
        }
    }

    /// Adds what the ranks agreed on, and returns the bytes of the record's message.
    pub fn agree(&self, place: usize, times: CallTimes) -> u64 {
        let slot = &self.slots[place];
        let (words, after_ns) = times.words();
        for (target, word) in slot[AGREED..].iter().zip(words) {
            target.store(word, Ordering::Relaxed);
        }
        slot[AFTER_AGREED].store(after_ns, Ordering::Relaxed);
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
        let kept = kept.and_then(|()| output.cut(self.at(written)));
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
            (self.at(self.slots.len()) as usize, PIECE * RECORD_BYTES),
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
            output.write((last - first) * RECORD_BYTES, self.at(first))?;
            self.written.fetch_max(last, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Where a record is in the file.
    fn at(&self, place: usize) -> u64 {
        (self.header.len() + place * RECORD_BYTES) as u64
    }
}

/// Memory for so many records, all empty: its pages are there before the first record is written.
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

#[cfg(test)]
mod tests;
