//! The modes of a database that a group shares. They are on disk alone: who made it need not be asked again.
//!
//! | | one trains (the owner, and root) | every member trains |
//! |---|---|---|
//! | the database and its folders | 2750 | 2770 |
//! | `incoming/` | 3770: members add files, and take away none but their own | 2770 |
//! | files | 0640 | 0660 |
//! | `train.lock` | 0600 | 0660 |

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::folder::{Folder, SET_GROUP};

/// Who of a group may train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trainers {
    Owner,
    Members,
}

/// A group that shares a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// By number.
    pub group: u32,
    pub trainers: Trainers,
}

impl Shared {
    /// What the modes of a database say; `None` for one that is its owner's alone.
    ///
    /// Errors: as of the system.
    pub fn of(root: &Folder) -> io::Result<Option<Shared>> {
        let found = root.metadata()?;
        let trainers = match root.is_written_by_group() {
            true => Trainers::Members,
            false => Trainers::Owner,
        };
        let shared = Shared {
            group: found.gid(),
            trainers,
        };
        Ok((found.mode() & SET_GROUP != 0).then_some(shared))
    }

    pub fn folder_mode(self) -> u32 {
        match self.trainers {
            Trainers::Owner => 0o2750,
            Trainers::Members => 0o2770,
        }
    }

    pub fn incoming_mode(self) -> u32 {
        match self.trainers {
            Trainers::Owner => 0o3770,
            Trainers::Members => 0o2770,
        }
    }

    pub fn file_mode(self) -> u32 {
        self.folder_mode() & 0o666
    }

    pub fn lock_mode(self) -> u32 {
        match self.trainers {
            Trainers::Owner => 0o600,
            Trainers::Members => 0o660,
        }
    }
}

/// Makes the folder that jobs write to.
///
/// Errors: as of the system.
pub(crate) fn make_incoming(root: &Folder, name: &OsStr) -> io::Result<Folder> {
    let made = root.make(name)?;
    if let Some(shared) = Shared::of(root)? {
        made.set_mode(shared.incoming_mode())?;
    }
    Ok(made)
}
