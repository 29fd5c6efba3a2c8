//! Tables of predefined handles: one look in a small open-addressed table.

use crate::abi::{Handle, bits, spread};

/// A table of predefined handles, filled once.
pub struct HandleTable<T> {
    rows: Box<[Option<(u64, T)>; TABLE]>,
}

impl<T> HandleTable<T> {
    pub fn new(entries: impl IntoIterator<Item = (Handle, T)>) -> HandleTable<T> {
        let mut rows = Box::new([const { None }; TABLE]);
        // A search ends at an empty row. No library has more than 80 predefined types.
        for (handle, value) in entries.into_iter().take(TABLE / 2) {
            let handle = bits(handle);
            let mut at = row_of(handle);
            while rows[at].as_ref().is_some_and(|(other, _)| *other != handle) {
                at = (at + 1) % TABLE;
            }
            rows[at].get_or_insert((handle, value));
        }
        HandleTable { rows }
    }

    #[inline(always)]
    pub fn get(&self, handle: Handle) -> Option<&T> {
        let handle = bits(handle);
        let mut at = row_of(handle) % TABLE;
        while let Some((other, value)) = &self.rows[at] {
            if *other == handle {
                return Some(value);
            }
            at = (at + 1) % TABLE;
        }
        None
    }
}

const TABLE_BITS: u32 = 8;
const TABLE: usize = 1 << TABLE_BITS;

#[inline(always)]
fn row_of(handle: u64) -> usize {
    (spread(handle) >> (u64::BITS - TABLE_BITS)) as usize
}
