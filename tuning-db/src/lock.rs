//! One trainer at a time.
//!
//! `DB/train.lock` is locked with `flock` and names its holder. The lock itself goes with the
//! process, however it ends. The name serves file systems whose locks do not reach other hosts: a
//! holder on this host that is gone is taken over, one elsewhere is asked about.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::machine::host_name;

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
    #[error("lock the database: {holder} is training; wait for it{}", remedy(.elsewhere, .path))]
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

fn remedy(elsewhere: &bool, path: &Path) -> String {
    if *elsewhere {
        format!(", or, if it is surely gone, remove {}", path.display())
    } else {
        String::new()
    }
}

/// The right to change a database, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock without waiting.
    ///
    /// Errors: `Held` naming the holder and the way out; `Io` where the file cannot be written, as
    /// on a full or read-only disk.
    pub fn take(path: &Path) -> Result<Lock, LockError> {
        let io = |error| LockError::Io {
            path: path.to_owned(),
            error,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
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
        match locked {
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(held(false)),
            // Some file systems have no locks; the name alone decides there.
            Err(
                rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOLCK,
            ) => {}
            Err(error) => return Err(io(error.into())),
            Ok(()) => {}
        }
        if let Some(holder) = &holder {
            let me = Holder::me();
            if holder.host != me.host {
                return Err(held(true));
            }
            let is_me = (holder.pid, holder.start_ticks, &holder.boot)
                == (me.pid, me.start_ticks, &me.boot);
            if locked.is_err() && !is_me && holder.is_alive() {
                return Err(held(false));
            }
        }
        let text = serde_json::to_string(&Holder::me()).expect("a holder is numbers and names");
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(io)?;
        file.sync_all().map_err(io)?;
        Ok(Lock { file })
    }
}

impl Drop for Lock {
    /// An empty file is nobody's. It stays, so that nobody ever locks a file that was removed.
    fn drop(&mut self) {
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

    #[test]
    fn a_dead_holder_here_is_taken_over_and_one_elsewhere_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.lock");
        let dead = Holder {
            pid: 1,
            start_ticks: 12,
            ..Holder::me()
        };
        assert!(!dead.is_alive() && Holder::me().is_alive());
        fs::write(&path, serde_json::to_string(&dead).unwrap()).unwrap();
        drop(Lock::take(&path).unwrap());
        let far = Holder {
            host: "elsewhere".to_owned(),
            ..dead
        };
        fs::write(&path, serde_json::to_string(&far).unwrap()).unwrap();
        let error = Lock::take(&path).unwrap_err().to_string();
        assert!(
            error.contains("elsewhere") && error.contains("train.lock"),
            "{error}"
        );
        fs::write(&path, "{half a hol").unwrap();
        drop(Lock::take(&path).unwrap());
    }
}
