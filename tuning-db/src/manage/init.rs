//! A database for a group: who may do what is set once, on disk, and kept by everything that writes.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::FileType;

use crate::database::{Database, DbError, INCOMING, LOCK, SETTINGS, at, is_in_an_empty_folder};
use crate::folder::Folder;
use crate::share::Shared;

/// Makes a database, or makes one that is there one for a group. Entries of other users, and links, stay as they are,
/// with a warning.
///
/// Errors: `Io`, as where the database is another user's, or its owner is no member of the group, or where the folder
/// holds anything and is no database.
pub fn init(
    root: &Path,
    shared: Option<Shared>,
    warnings: &mut Vec<String>,
) -> Result<Database, DbError> {
    let Some(shared) = shared else {
        return Database::create_or_open(root);
    };
    fs::create_dir_all(root).map_err(at("make the folder", root))?;
    let folder = Folder::root(root).map_err(at("open the folder", root))?;
    only_of_a_database(&folder).map_err(at("share the folder", root))?;
    let mode = shared.folder_mode();
    own(&folder, shared.group, mode).map_err(at("share the folder", root))?;
    // From here on what is made has the right group and modes.
    let db = Database::create_or_open(root)?;
    let folder = Folder::root(root).map_err(at("open the folder", root))?;
    share_all(&folder, shared, Depth::Database, warnings);
    Ok(db)
}

/// What else a person keeps in a folder, say at home, is not opened for a group by a mistyped name.
fn only_of_a_database(folder: &Folder) -> io::Result<()> {
    let is_database = folder.kind(OsStr::new(SETTINGS)) == Some(FileType::RegularFile)
        && folder.kind(OsStr::new(INCOMING)) == Some(FileType::Directory);
    let is_empty = || {
        Ok::<_, io::Error>(
            folder
                .names()?
                .iter()
                .all(|name| is_in_an_empty_folder(name)),
        )
    };
    match is_database || is_empty()? {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "it is no database, for it lacks {SETTINGS} or {INCOMING}/, and holds other things; name a new or an empty folder"
        ))),
    }
}

fn own(folder: &Folder, group: u32, mode: u32) -> io::Result<()> {
    let (found, me) = (folder.metadata()?, rustix::process::geteuid());
    if !me.is_root() && found.uid() != me.as_raw() {
        let problem = format!("it is user {}'s, who alone can do that", found.uid());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    let owned = folder.set_group(group);
    owned.map_err(|error| {
        let problem = format!("give it to group {group}: {error} (its owner must be a member)");
        io::Error::new(error.kind(), problem)
    })?;
    // Behind the group: a change of owner takes the bit that hands the group on.
    folder.set_mode(mode)
}

/// Where a folder is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Database,
    Incoming,
    Below(u32),
}

/// A database has folders in folders in folders, and no more.
const DEPTH_MAX: u32 = 4;

fn share_all(folder: &Folder, shared: Shared, depth: Depth, warnings: &mut Vec<String>) {
    for name in folder.names().unwrap_or_default() {
        let done = match folder.kind(&name) {
            Some(FileType::Directory) => share_folder(folder, &name, shared, depth, warnings),
            Some(FileType::RegularFile) => share_file(folder, &name, shared, depth),
            Some(kind) => Err(io::Error::other(format!(
                "it is {}",
                crate::folder::named(kind)
            ))),
            None => Ok(()),
        };
        if let Err(error) = done {
            let path = folder.path().join(&name);
            warnings.push(format!("left {} as it is: {error}", path.display()));
        }
    }
}

fn share_folder(
    folder: &Folder,
    name: &OsStr,
    shared: Shared,
    depth: Depth,
    warnings: &mut Vec<String>,
) -> io::Result<()> {
    let is_incoming = depth == Depth::Database && name == INCOMING;
    let (mode, inside) = match depth {
        _ if is_incoming => (shared.incoming_mode(), Depth::Incoming),
        Depth::Incoming => return Err(io::Error::other("it is a folder")),
        Depth::Database => (shared.folder_mode(), Depth::Below(1)),
        Depth::Below(DEPTH_MAX) => return Err(io::Error::other("it lies too deep")),
        Depth::Below(depth) => (shared.folder_mode(), Depth::Below(depth + 1)),
    };
    let opened = folder.inside(name)?;
    own(&opened, shared.group, mode)?;
    share_all(&opened, shared, inside, warnings);
    Ok(())
}

fn share_file(folder: &Folder, name: &OsStr, shared: Shared, depth: Depth) -> io::Result<()> {
    let found = folder.read(name)?;
    let (owner, me) = (found.metadata.uid(), rustix::process::geteuid());
    if found.metadata.nlink() > 1 {
        return Err(io::Error::other("the file has other names"));
    }
    let is_lock = depth == Depth::Database && name == LOCK;
    let mode = match depth {
        // Jobs that run now own theirs.
        Depth::Incoming => found.metadata.mode() & 0o777 | 0o040,
        _ if is_lock => shared.lock_mode(),
        _ => shared.file_mode(),
    };
    if !me.is_root() && owner != me.as_raw() {
        return Err(io::Error::other(format!("it is user {owner}'s")));
    }
    std::os::unix::fs::fchown(&found.file, None, Some(shared.group))?;
    found.file.set_permissions(Permissions::from_mode(mode))
}
