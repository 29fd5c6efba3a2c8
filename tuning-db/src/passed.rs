//! Calls that passed through the tuner: nonblocking, persistent and neighbourhood collectives. They
//! are recorded and counted, and nothing is learned from them.

use colltune_core::collective::Collective;
use serde::{Deserialize, Serialize};

/// What was recorded of one collective, called in one manner, of one size on one layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    pub collective: Collective,
    /// By its name.
    pub manner: String,
    /// Half-open; a power of two and the next, or 0 and 1.
    pub bytes: [u64; 2],
    pub nodes: u32,
    pub ppn: u32,
    /// Of all recording ranks.
    pub records: u64,
    /// From the start of a call to its completion on one rank; of several runs the median of their medians.
    pub median_ns: u64,
}

/// The sizes that are counted with one of `message_bytes`.
pub(crate) fn bounds(message_bytes: u64) -> [u64; 2] {
    match message_bytes.checked_ilog2() {
        None => [0, 1],
        Some(log) => [1 << log, 1u64.checked_shl(log + 1).unwrap_or(u64::MAX)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_lies_within_its_bounds() {
        for bytes in [0, 1, 2, 3, 4, 1023, 1024, 1 << 62, (1 << 63) + 1] {
            let [lo, hi] = bounds(bytes);
            assert!(lo <= bytes && bytes < hi, "{bytes} in [{lo}, {hi})");
            assert_eq!(bounds(lo), [lo, hi]);
        }
    }
}
