//! Users and groups by name and by number, as this host knows them.

use nix::unistd::{Gid, Group, Uid, User};

/// A user for a message: the name, or `user 1003` where this host has none for the number.
pub fn user(uid: u32) -> String {
    name(uid).unwrap_or_else(|| format!("user {uid}"))
}

pub fn name(uid: u32) -> Option<String> {
    let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    found.map(|user| user.name)
}

pub fn group_name(gid: u32) -> Option<String> {
    let found = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
    found.map(|group| group.name)
}

/// The number of a user that is called by name or number.
pub fn uid(text: &str) -> Option<u32> {
    let by_name = || User::from_name(text).ok().flatten();
    text.parse()
        .ok()
        .or_else(|| by_name().map(|user| user.uid.as_raw()))
}

/// The same of a group.
pub fn gid(text: &str) -> Option<u32> {
    let by_name = || Group::from_name(text).ok().flatten();
    text.parse()
        .ok()
        .or_else(|| by_name().map(|group| group.gid.as_raw()))
}
