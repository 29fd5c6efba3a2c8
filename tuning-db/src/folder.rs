//! Folders of a database, held open: whatever becomes of their names, what is written lands in them.
//!
//! Nothing below a database's own folder is opened through a link, and files are made new or not at all. In a shared
//! folder (setgid) new files get its group and modes, whatever the user's umask is. Nothing is written in a folder
//! that a user other than root and the database's owner made, unless the database's group may write everywhere. A
//! site folder, which everybody's jobs read, hands its mode on in any case.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};

use crate::machine::host_name;
use crate::unfinished::UNFINISHED;

/// How often another name is tried where one is taken.
const NAMES_MAX: u32 = 1_000;
/// The bits of a mode that colltune sets.
const MODE_BITS: u32 = 0o7777;
pub(crate) const SET_GROUP: u32 = 0o2000;
const GROUP_WRITES: u32 = 0o020;

/// The last part of a path, and what is before it.
pub(crate) fn parts(path: &Path) -> (&Path, &OsStr) {
    let folder = path.parent().unwrap_or(Path::new("."));
    (folder, path.file_name().unwrap_or_default())
}

/// A folder that is open.
#[derive(Debug)]
pub struct Folder {
    file: File,
    path: PathBuf,
    trust: Trust,
    modes: Modes,
}

/// When what is made gets the mode of its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Modes {
    /// Where a group shares it; elsewhere that is the umask's affair.
    Shared,
    /// Whatever the umask is, except that other users may not write.
    ForReaders,
}

/// In whose folders a database is written.
#[derive(Clone, Copy, Debug)]
struct Trust {
    owner: u32,
    /// The group, where all its members may write to the database itself.
    group: Option<u32>,
}

/// What a name in a folder stands for.
pub struct Found {
    pub file: File,
    pub metadata: Metadata,
}

impl Folder {
    /// Opens the folder that a database is, by whatever path a person gave.
    ///
    /// Errors: as of the system.
    pub fn root(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let found = file.metadata()?;
        let open = SET_GROUP | GROUP_WRITES;
        Ok(Folder {
            file,
            path: path.to_owned(),
            trust: Trust {
                owner: found.uid(),
                group: (found.mode() & open == open).then(|| found.gid()),
            },
            modes: Modes::Shared,
        })
    }

    /// The same of a folder that others read: who may read it may read what is made there.
    ///
    /// Errors: as of the system.
    pub(crate) fn root_for_readers(path: &Path) -> io::Result<Folder> {
        Ok(Folder {
            modes: Modes::ForReaders,
            ..Folder::root(path)?
        })
    }

    /// Opens a folder in this one.
    ///
    /// Errors: for a link and for whatever else is no folder; for one of a user whom the database does not trust.
    pub fn inside(&self, name: &OsStr) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.file, name, flags, Mode::empty());
        let file = File::from(opened.map_err(|error| self.said_better(name, error))?);
        let found = file.metadata()?;
        let Trust { owner, group } = self.trust;
        let trusted = [0, owner, rustix::process::geteuid().as_raw()];
        if !trusted.contains(&found.uid()) && group != Some(found.gid()) {
            let problem = format!(
                "user {} made it, who is neither root nor the database's owner (user {owner}), so nothing is written \
                 there",
                found.uid()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
        }
        Ok(Folder {
            file,
            path: self.path.join(name),
            trust: self.trust,
            modes: self.modes,
        })
    }

    /// Says what is there where a folder was wanted.
    fn said_better(&self, name: &OsStr, error: rustix::io::Errno) -> io::Error {
        use rustix::io::Errno;
        let is_other = [Errno::LOOP, Errno::NOTDIR].contains(&error);
        match self.kind(name).filter(|_| is_other) {
            Some(kind) => {
                let problem = format!("it is {}, not a folder", named(kind));
                io::Error::new(io::ErrorKind::NotADirectory, problem)
            }
            None => error.into(),
        }
    }

    /// Opens a folder in this one, which is made where there is none.
    ///
    /// Errors: as of [`Folder::inside`], and those of making one.
    pub fn make(&self, name: &OsStr) -> io::Result<Folder> {
        match self.make_new(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.inside(name),
            made => made,
        }
    }

    fn make_new(&self, name: &OsStr) -> io::Result<Folder> {
        rustix::fs::mkdirat(&self.file, name, Mode::from_raw_mode(0o777))?;
        let made = self.inside(name)?;
        self.hand_on(&made.file, self.modes()?)?;
        Ok(made)
    }

    /// The mode of a folder in this one; `None` where that is the umask's affair.
    fn modes(&self) -> io::Result<Option<u32>> {
        let mode = self.file.metadata()?.mode() & MODE_BITS;
        let shared = (mode & SET_GROUP != 0).then_some(mode & !0o1000);
        Ok(match self.modes {
            Modes::Shared => shared,
            Modes::ForReaders => shared.or(Some(mode & 0o755)),
        })
    }

    /// Gives what was just made the owner that it would have without root's help, and its mode.
    fn hand_on(&self, made: &File, mode: Option<u32>) -> io::Result<()> {
        let here = self.file.metadata()?;
        if rustix::process::geteuid().is_root() && (here.uid(), here.gid()) != (0, 0) {
            // Some file systems have no owners; then whose it is does not matter either.
            let _ = std::os::unix::fs::fchown(made, Some(here.uid()), Some(here.gid()));
        }
        if let Some(mode) = mode {
            // As above.
            let _ = made.set_permissions(Permissions::from_mode(mode));
        }
        Ok(())
    }

    /// Makes a file that was not there.
    ///
    /// Errors: `AlreadyExists` for whatever has that name, links included.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let file = File::from(rustix::fs::openat(&self.file, name, flags, mode)?);
        self.hand_on(&file, self.modes()?.map(|mode| mode & 0o666))?;
        Ok(file)
    }

    /// Makes a file for unfinished work on `name`.
    ///
    /// Errors: as of the system.
    pub fn draft(&self, name: &OsStr) -> io::Result<(OsString, File)> {
        numbered(name, |draft| self.create(draft))
    }

    /// What time it is by the clock that stamps this folder's files: that of the host that asks may be another.
    ///
    /// Errors: as of the system, as where nothing can be written here.
    pub fn now(&self) -> io::Result<SystemTime> {
        let (name, file) = self.draft(OsStr::new("clock"))?;
        let now = file.metadata().and_then(|metadata| metadata.modified());
        let _ = self.remove(&name);
        now
    }

    /// Makes a folder for unfinished work on `name`.
    ///
    /// Errors: as of the system.
    pub fn draft_folder(&self, name: &OsStr) -> io::Result<(OsString, Folder)> {
        numbered(name, |draft| self.make_new(draft))
    }

    /// Opens a file to be read and written, which is made, with rights for those who may write to the folder, where
    /// there is none. Whatever else has the name is removed: only its maker misses a link or a pipe.
    ///
    /// Errors: as of the system.
    pub fn open_or_create(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        for _ in 0..NAMES_MAX {
            match self.kind(name) {
                None => {}
                Some(FileType::RegularFile) => {
                    match rustix::fs::openat(&self.file, name, flags, Mode::empty()) {
                        Err(rustix::io::Errno::NOENT) => {}
                        opened => return Ok(File::from(opened?)),
                    }
                }
                Some(FileType::Directory) => {
                    let problem = "it is a folder, not a file";
                    return Err(io::Error::new(io::ErrorKind::IsADirectory, problem));
                }
                Some(_) => self.remove(name)?,
            }
            let flags = flags | OFlags::CREATE | OFlags::EXCL;
            match rustix::fs::openat(&self.file, name, flags, Mode::from_raw_mode(0o600)) {
                Err(rustix::io::Errno::EXIST) => {}
                created => {
                    let file = File::from(created?);
                    let shared = self.is_written_by_group().then_some(0o660);
                    self.hand_on(&file, shared)?;
                    return Ok(file);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Opens a regular file for reading, without waiting for anything or following a link.
    ///
    /// Errors: `InvalidInput` saying what is there where it is no file; as of the system.
    pub fn read(&self, name: &OsStr) -> io::Result<Found> {
        let check = |kind: FileType| {
            let problem = || format!("it is {}, not a file", named(kind));
            let error = || io::Error::new(io::ErrorKind::InvalidInput, problem());
            (kind == FileType::RegularFile)
                .then_some(())
                .ok_or_else(error)
        };
        check(self.kind_or(name)?)?;
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.file, name, flags, Mode::empty())?);
        // Whatever took its place meanwhile.
        let metadata = file.metadata()?;
        check(FileType::from_raw_mode(metadata.mode()))?;
        Ok(Found { file, metadata })
    }

    fn kind_or(&self, name: &OsStr) -> io::Result<FileType> {
        let found = rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(found.st_mode))
    }

    /// What is there, `None` for nothing.
    pub fn kind(&self, name: &OsStr) -> Option<FileType> {
        self.kind_or(name).ok()
    }

    /// Whose an entry is, whatever it is.
    ///
    /// Errors: as of the system.
    pub fn owner(&self, name: &OsStr) -> io::Result<u32> {
        Ok(rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid)
    }

    /// Renames within the folder; what has the other name is replaced, and never what it points to.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.file, from, &self.file, to)?)
    }

    /// Moves an entry into another folder, where nothing has that name.
    ///
    /// Errors: `AlreadyExists`; as of the system.
    pub fn move_new(&self, from: &OsStr, folder: &Folder, to: &OsStr) -> io::Result<()> {
        use rustix::io::Errno;
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&self.file, from, &folder.file, to, flags) {
            // Not every file system can.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if folder.kind(to).is_none() => {
                Ok(rustix::fs::renameat(&self.file, from, &folder.file, to)?)
            }
            moved => Ok(moved?),
        }
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::empty())?)
    }

    /// Removes a folder with the files in it.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        let inside = self.inside(name)?;
        for file in inside.names()? {
            inside.remove(&file)?;
        }
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a folder with the files and folders in it, so many deep at most.
    pub(crate) fn remove_tree(&self, name: &OsStr, depth: u32) -> io::Result<()> {
        let inside = self.inside(name)?;
        for one in inside.names()? {
            match inside.kind(&one) {
                Some(FileType::Directory) if depth > 0 => inside.remove_tree(&one, depth - 1)?,
                _ => inside.remove(&one)?,
            }
        }
        Ok(rustix::fs::unlinkat(&self.file, name, AtFlags::REMOVEDIR)?)
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.file)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Makes the names in the folder durable.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Gives the folder itself to a group.
    pub(crate) fn set_group(&self, group: u32) -> io::Result<()> {
        std::os::unix::fs::fchown(&self.file, None, Some(group))
    }

    /// Sets the folder's own mode.
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether all members of its group may write to it.
    pub(crate) fn is_written_by_group(&self) -> bool {
        let open = SET_GROUP | GROUP_WRITES;
        let mode = self.file.metadata().map_or(0, |found| found.mode());
        mode & open == open
    }
}

/// Tries names for unfinished work: no other process has them, on whichever host, unless it means ill.
fn numbered<T>(name: &OsStr, make: impl Fn(&OsStr) -> io::Result<T>) -> io::Result<(OsString, T)> {
    let (host, process) = (host_name(), std::process::id());
    for number in 0..NAMES_MAX {
        let mut draft = OsString::from(format!("{UNFINISHED}{host}-{process}-{number}-"));
        draft.push(name);
        match make(&draft) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((draft, made?)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// As in "it is ..., not a file".
pub(crate) fn named(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    }
}
