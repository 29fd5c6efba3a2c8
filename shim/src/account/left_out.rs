//! For how many calls variants were left out or replaced, by cause: told where a communicator ends, and call by call where
//! a variant was meant.

use std::sync::atomic::{AtomicU64, Ordering};

use colltune_core::account::{CAUSES, Cause, Refused};
use colltune_core::collective::Collective;

/// By collective; the last one is of all together.
const COLUMNS: usize = Collective::ALL.len() + 1;
/// The numbers that the ranks add up.
pub const LEFT_OUT_WORDS: usize = CAUSES.len() * COLUMNS;

pub struct LeftOut([[AtomicU64; COLUMNS]; CAUSES.len()]);

impl LeftOut {
    pub const fn nothing() -> LeftOut {
        LeftOut([const { [const { AtomicU64::new(0) }; COLUMNS] }; CAUSES.len()])
    }

    #[cold]
    pub fn add(&self, cause: Cause, collective: Option<Collective>, calls: u64) {
        let column = collective.map_or(COLUMNS - 1, Collective::index);
        self.0[cause as usize][column].fetch_add(calls, Ordering::Relaxed);
    }

    pub fn words(&self) -> impl Iterator<Item = u64> {
        let all = self.0.iter().flatten();
        all.map(|calls| calls.load(Ordering::Relaxed))
    }
}

/// What the words of all ranks say.
pub fn refused(words: &[u64]) -> Vec<Refused> {
    let all = CAUSES.iter().zip(words.chunks_exact(COLUMNS));
    let all = all.flat_map(|(row, calls)| {
        let columns = Collective::ALL.into_iter().map(Some).chain([None]);
        let called = columns.zip(calls).filter(|(_, calls)| **calls > 0);
        called.map(|(collective, calls)| Refused::new(row.cause, collective, *calls))
    });
    all.collect()
}
