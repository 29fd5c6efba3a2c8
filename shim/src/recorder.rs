//! The trace of this rank: a file of fixed size in the database's `incoming`, mapped into memory.
//!
//! Space is reserved before mapping, because a store into a sparse map on a full disk kills the
//! process with SIGBUS. A full file drops records and changes nothing else.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use colltune_core::record::{Header, RECORD_BYTES, Record};

pub struct Recorder {
    map: *mut u8,
    records_at: usize,
    capacity: usize,
    used: AtomicUsize,
    file: File,
    open_path: PathBuf,
    final_path: PathBuf,
}

// SAFETY: the map is written through `write` alone, at places that are handed out once.
unsafe impl Send for Recorder {}
// SAFETY: as above.
unsafe impl Sync for Recorder {}

impl Recorder {
    /// Creates `JOB.RANK.trace.open` in `incoming`.
    ///
    /// Errors: when the file cannot be created or its space not be reserved; nothing is left then.
    pub fn create(incoming: &Path, header: &Header) -> io::Result<Recorder> {
        let final_path = incoming.join(format!("{}.{}.trace", header.job, header.rank));
        let open_path = incoming.join(format!("{}.{}.trace.open", header.job, header.rank));
        let bytes = header.to_bytes();
        let capacity = usize::try_from(header.capacity).unwrap_or(usize::MAX >> 8);
        let length = bytes.len() + capacity * RECORD_BYTES;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&open_path)?;
        let prepared = reserve(&file, length)
            .and_then(|()| file.write_all_at(&bytes, 0))
            .and_then(|()| map(&file, length));
        match prepared {
            Ok(map) => Ok(Recorder {
                map,
                records_at: bytes.len(),
                capacity,
                used: AtomicUsize::new(0),
                file,
                open_path,
                final_path,
            }),
            Err(error) => {
                let _ = std::fs::remove_file(&open_path);
                Err(error)
            }
        }
    }

    /// Appends a record and returns its place; drops it when the file is full.
    #[inline]
    pub fn write(&self, record: impl FnOnce() -> Record) -> Option<usize> {
        self.write_below(self.capacity, record)
    }

    /// As `write`, for what nothing is learned from: it leaves most of the file to the other records.
    pub fn write_aside(&self, record: impl FnOnce() -> Record) {
        self.write_below(self.capacity / 8, record);
    }

    #[inline]
    fn write_below(&self, limit: usize, record: impl FnOnce() -> Record) -> Option<usize> {
        if self.used.load(Ordering::Relaxed) >= limit {
            return None;
        }
        let place = self.used.fetch_add(1, Ordering::Relaxed);
        if place >= self.capacity {
            self.used.store(self.capacity, Ordering::Relaxed);
            return None;
        }
        let bytes = record().to_bytes();
        // SAFETY: `place < capacity`, so the target lies inside the map, which stays mapped as long
        // as `self`; each place is handed out once, so no other thread writes there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(place), RECORD_BYTES) };
        Some(place)
    }

    /// Corrects the times of a record of this rank: `place` came from `write`.
    pub fn correct(&self, place: usize, start_ns: u64, duration_ns: u64) {
        let mut bytes = [0; RECORD_BYTES];
        // SAFETY: as in `write`; the place belongs to the communicator whose call is under way.
        unsafe { std::ptr::copy_nonoverlapping(self.at(place), bytes.as_mut_ptr(), RECORD_BYTES) };
        if let Some(record) = Record::from_bytes(&bytes, usize::MAX) {
            let bytes = Record {
                start_ns,
                duration_ns,
                ..record
            }
            .to_bytes();
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(place), RECORD_BYTES) };
        }
    }

    fn at(&self, place: usize) -> *mut u8 {
        // SAFETY: callers give places below the capacity.
        unsafe { self.map.add(self.records_at + place * RECORD_BYTES) }
    }

    /// Gives back the space that was not used and renames the trace to its final name. Later
    /// records are dropped; the map stays, so that none can fault.
    pub fn finish(&self) {
        let used = self
            .used
            .swap(self.capacity, Ordering::AcqRel)
            .min(self.capacity);
        let length = self.records_at + used * RECORD_BYTES;
        let _ = self.file.set_len(length as u64);
        let _ = if used > 0 {
            std::fs::rename(&self.open_path, &self.final_path)
        } else {
            std::fs::remove_file(&self.open_path)
        };
    }
}

fn reserve(file: &File, length: usize) -> io::Result<()> {
    let length =
        libc::off_t::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the descriptor is open for writing as long as `file` lives.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

fn map(file: &File, length: usize) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new shared map of an open file of at least this length.
    let map = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            access,
            libc::MAP_SHARED | libc::MAP_POPULATE,
            file.as_raw_fd(),
            0,
        )
    };
    if map == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // MAP_POPULATE maps a shared file for reading: each page's first record would wait for the kernel.
    // SAFETY: the pages were mapped just now. Kernels before 5.14 refuse, and nothing is lost.
    unsafe { libc::madvise(map, length, libc::MADV_POPULATE_WRITE) };
    Ok(map.cast())
}
