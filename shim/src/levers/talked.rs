//! What ranks said to each other about levers, whatever communicators they did it on.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What this process has talked about with the members of communicators, by the identity of members and lever: two
/// communicators with the same members, at once or one after the other, never use a number twice.
static TALKED: Mutex<BTreeMap<u64, Talked>> = Mutex::new(BTreeMap::new());

/// So far with one set of members about one lever.
#[derive(Clone, Default)]
pub struct Talked {
    pub talks: u64,
    /// Ranks passed different arms or sizes once. From then on they run the first arm.
    pub is_refused: bool,
    /// The classes of sizes and arms that were found to be slower than the first one.
    pub left: Vec<(i32, String)>,
}

pub fn talked<T>(identity: u64, work: impl FnOnce(&mut Talked) -> T) -> T {
    let mut all = TALKED.lock().unwrap_or_else(PoisonError::into_inner);
    work(all.entry(identity).or_default())
}

/// The number of the next talk.
pub fn next_talk(identity: u64) -> u64 {
    talked(identity, |talked| {
        talked.talks += 1;
        talked.talks
    })
}
