//! One trainer at a time.
//!
//! `DB/train.lock` is locked with `flock` and names its holder. The lock itself goes with the process, however it ends.
//! The name serves file systems whose locks may not reach other hosts. A holder on this host that is gone is taken
//! over. A holder elsewhere shows that it lives by touching the file every ten seconds; where it has not for two minutes,
//! by the file system's own clock, it is taken over, too. Where the lock's name is a link, a pipe or another name of
//! a user's file, it is removed; nothing is written there.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::folder::{Folder, parts};
use crate::machine::host_name;

/// How often the holder shows that it lives, and how long after the last time it is taken for dead.
const LEASE_RENEWED: Duration = Duration::from_secs(10);
const LEASE: Duration = Duration::from_secs(120);
/// How often the lock's file is opened anew where it disappears.
const NAMES_MAX: u32 = 100;
/// File systems that several hosts may see: there, whether `flock` reaches them all is up to how they are mounted. (NFS,
/// SMB, CIFS, SMB2, Lustre, GPFS, BeeGFS, Ceph, FUSE, 9P, AFS, OCFS2, PVFS2, Panasas, GFS2.)
const SHARED: [u32; 15] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x0bd0_0bd0,
    0x4750_4653,
    0x1983_0326,
    0x00c3_6400,
    0x6573_5546,
    0x0102_1997,
    0x5346_414f,
    0x7461_636f,
    0x2003_0528,
    0xaad7_aaea,
    0x0116_1970,
];

/// Who holds the lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    pub pid: u32,
    /// When the process started, in ticks since the host's boot: process ids are used again.
    pub start_ticks: u64,
    /// Which boot of the host that was.
    pub boot: String,
    pub since_unix_ms: u64,
}

#[derive(Debug, Error)]
pub enum LockError {
    #[error("lock the database: {holder} is training; wait for it{}", remedy(.elsewhere))]
    Held {
        holder: String,
        elsewhere: bool,
        path: PathBuf,
    },
    #[error("lock the database with {path}: {error}", path = path.display())]
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
}

fn remedy(elsewhere: &bool) -> String {
    if *elsewhere {
        let seconds = LEASE.as_secs();
        format!(", or, if it is gone, {seconds} seconds: then it is taken for dead")
    } else {
        String::new()
    }
}

/// Which hosts a granted `flock` keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Every one that sees the file.
    All,
    /// This one; of the others that is unknown.
    This,
    /// None: the file system has no locks.
    None,
}

/// The right to change a database, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// Dropped to end the thread that touches the file.
    stop: Option<Sender<()>>,
    touches: Option<JoinHandle<()>>,
}

impl Lock {
    /// Takes the lock without waiting.
    ///
    /// Errors: `Held` naming the holder and the remedy; `Io` where the file cannot be written, as on a full or
    /// read-only disk.
    pub fn take(path: &Path) -> Result<Lock, LockError> {
        Self::take_within(path, reach)
    }

    fn take_within(path: &Path, reach: fn(&File) -> Reach) -> Result<Lock, LockError> {
        let io = |error| LockError::Io {
            path: path.to_owned(),
            error,
        };
        let (folder, name) = parts(path);
        let folder = Folder::root(folder).map_err(io)?;
        let (mut file, locked) = open(&folder, name).map_err(io)?;
        let mut text = String::new();
        let _ = (&mut file).take(4096).read_to_string(&mut text);
        let holder = serde_json::from_str::<Holder>(&text).ok();
        let held = |elsewhere: bool| {
            let holder = holder
                .as_ref()
                .map_or("another process".to_owned(), |holder| {
                    format!("process {} on {}", holder.pid, holder.host)
                });
            LockError::Held {
                holder,
                elsewhere,
                path: path.to_owned(),
            }
        };
        let reach = match locked {
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(held(false)),
            // Some file systems have no locks; the name alone decides there.
            Err(
                rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOLCK,
            ) => Reach::None,
            Err(error) => return Err(io(error.into())),
            Ok(()) => reach(&file),
        };
        if let Some(holder) = &holder {
            let me = Holder::me();
            let is_far = holder.host != me.host;
            if is_far && reach != Reach::All && is_recent(&folder, &file).map_err(io)? {
                return Err(held(true));
            }
            let is_me = (holder.pid, holder.start_ticks, &holder.boot)
                == (me.pid, me.start_ticks, &me.boot);
            if !is_far && reach == Reach::None && !is_me && holder.is_alive() {
                return Err(held(false));
            }
        }
        let text = serde_json::to_string(&Holder::me()).expect("a holder is numbers and names");
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(io)?;
        file.sync_all().map_err(io)?;
        let touched = file.try_clone().map_err(io)?;
        let (stop, stopped) = mpsc::channel();
        let touches = std::thread::spawn(move || {
            while stopped.recv_timeout(LEASE_RENEWED) == Err(RecvTimeoutError::Timeout) {
                touch(&touched);
            }
        });
        Ok(Lock {
            file,
            stop: Some(stop),
            touches: Some(touches),
        })
    }
}

fn reach(file: &File) -> Reach {
    match rustix::fs::fstatfs(file) {
        Ok(found) if !SHARED.contains(&(found.f_type as u32)) => Reach::All,
        _ => Reach::This,
    }
}

/// Sets the file's time to the file system's own now.
fn touch(file: &File) {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps {
        last_access: time(UTIME_OMIT),
        last_modification: time(UTIME_NOW),
    };
    let _ = rustix::fs::futimens(file, &times);
}

/// Whether the holder has shown lately that it lives, by the clock of the file system: hosts' clocks differ.
fn is_recent(folder: &Folder, file: &File) -> std::io::Result<bool> {
    let shown = file.metadata()?.modified()?;
    Ok(folder.now()?.duration_since(shown).unwrap_or_default() < LEASE)
}

/// Opens the lock's file and tries to lock it. A file with other names is a user's: it loses this one.
fn open(folder: &Folder, name: &OsStr) -> std::io::Result<(File, rustix::io::Result<()>)> {
    for _ in 0..NAMES_MAX {
        let file = folder.open_or_create(name)?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let found = file.metadata()?;
        if locked == Err(rustix::io::Errno::WOULDBLOCK) || found.nlink() == 1 {
            keep_from_others(folder, &file, &found);
            return Ok((file, locked));
        }
        if found.nlink() > 1 {
            folder.remove(name)?;
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

/// Whoever may open a file may lock it: who may not train may not read the lock either.
fn keep_from_others(folder: &Folder, file: &File, found: &Metadata) {
    const GROUP_AND_OTHERS: u32 = 0o077;
    let is_mine = found.uid() == rustix::process::geteuid().as_raw();
    let may_others = folder.is_written_by_group();
    if is_mine && !may_others && found.mode() & GROUP_AND_OTHERS != 0 {
        // A file system without modes has no such users.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
}

impl Drop for Lock {
    /// An empty file has no holder. It stays, so that no process ever locks a file that was removed.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(touches) = self.touches.take() {
            let _ = touches.join();
        }
        let _ = self.file.set_len(0);
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Holder {
    fn me() -> Holder {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let pid = std::process::id();
        Holder {
            host: host_name(),
            pid,
            start_ticks: start_ticks(pid).unwrap_or(0),
            boot: boot(),
            since_unix_ms: now.as_millis() as u64,
        }
    }

    fn is_alive(&self) -> bool {
        self.boot == boot() && start_ticks(self.pid) == Some(self.start_ticks)
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The 22nd field of /proc/PID/stat; the 2nd may contain anything, up to its last parenthesis.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_the_lock_and_gets_it_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.lock");
        let first = Lock::take(&path).unwrap();
        let error = Lock::take(&path).unwrap_err().to_string();
        assert!(error.contains(&std::process::id().to_string()), "{error}");
        drop(first);
        drop(Lock::take(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    fn far() -> Holder {
        Holder {
            host: "elsewhere".to_owned(),
            ..Holder::me()
        }
    }

    #[test]
    fn a_dead_holder_is_taken_over_wherever_it_died_where_locks_reach_all_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.lock");
        let dead = Holder {
            pid: 1,
            start_ticks: 12,
            ..Holder::me()
        };
        assert!(!dead.is_alive() && Holder::me().is_alive());
        for holder in [dead, far()] {
            fs::write(&path, serde_json::to_string(&holder).unwrap()).unwrap();
            drop(Lock::take_within(&path, |_| Reach::All).unwrap());
        }
        fs::write(&path, "{half a hol").unwrap();
        drop(Lock::take(&path).unwrap());
    }

    #[test]
    fn elsewhere_a_holder_that_has_not_shown_itself_is_taken_over_and_another_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.lock");
        for reach in [|_: &File| Reach::This, |_: &File| Reach::None] {
            fs::write(&path, serde_json::to_string(&far()).unwrap()).unwrap();
            let error = Lock::take_within(&path, reach).unwrap_err().to_string();
            assert!(
                error.contains("elsewhere") && error.contains("120"),
                "{error}"
            );
            let file = File::options().write(true).open(&path).unwrap();
            let now = std::time::SystemTime::now();
            file.set_modified(now - LEASE - LEASE_RENEWED).unwrap();
            let taken = Lock::take_within(&path, reach).unwrap();
            assert!(fs::read_to_string(&path).unwrap().contains(&host_name()));
            drop(taken);
        }
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "nothing is left beside the lock");
    }

    #[test]
    fn a_holder_shows_that_it_lives() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("train.lock")).unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        file.set_modified(long_ago).unwrap();
        touch(&file);
        assert!(file.metadata().unwrap().modified().unwrap() > long_ago + LEASE);
    }
}
