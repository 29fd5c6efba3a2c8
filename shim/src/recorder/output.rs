//! The file of a trace: made with room for all, and still the same one at every write.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::incoming;
use crate::quiet::quietly;

/// How often a call that signals interrupt is tried again.
const TRIES: usize = 1_000;

/// The file that takes the records.
pub struct Output {
    file: File,
    /// Device and inode: the program may close descriptors that are not its own and use their numbers again.
    identity: (u64, u64),
    /// A piece as it is written.
    pub buffer: Box<[u8]>,
}

impl Output {
    /// Makes a new file at `path`, with a header and room for `length` bytes in all.
    ///
    /// Errors: when it cannot be made, or there is no room; nothing is left then.
    pub fn create(
        path: &Path,
        header: &[u8],
        (length, piece): (usize, usize),
    ) -> io::Result<Output> {
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
                buffer: vec![0; piece].into_boxed_slice(),
            }),
            Err(error) => {
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Whether the file is still the one that was created, with all that was written to it, `length` bytes.
    ///
    /// Errors: `NotFound` for a file that was removed, `UnexpectedEof` for one that was truncated.
    pub fn check(&self, length: u64) -> io::Result<()> {
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

    /// Writes the first bytes of the buffer to a place in the file.
    pub fn write(&self, bytes: usize, at: u64) -> io::Result<()> {
        write_all(&self.file, &self.buffer[..bytes], at)
    }

    /// Gives back what was reserved behind `length`.
    pub fn cut(&self, length: u64) -> io::Result<()> {
        quietly(|| self.file.set_len(length))
    }
}

/// Whether an error says that a file is no more; a server of files that another machine has removed says it is stale.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESTALE)
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
