//! Calls that passed through the tuner: nonblocking, persistent and neighbourhood collectives. They
//! are recorded and counted, and nothing is learned from them.

use std::collections::BTreeMap;

use colltune_core::collective::Collective;
use colltune_core::record::Manner;
use serde::{Deserialize, Serialize};

use crate::partition::Columns;

/// What was recorded of one collective, called in one manner, of one size on one layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    pub collective: Collective,
    /// By the name of its [`Manner`].
    pub manner: String,
    /// Half-open; a power of two and the next, or 0 and 1.
    pub bytes: [u64; 2],
    pub nodes: u32,
    pub ppn: u32,
    /// Of all recording ranks.
    pub records: u64,
    /// From the start of a call to its completion on one rank.
    pub median_ns: u64,
}

/// Counts calls, partition by partition.
#[derive(Default)]
pub struct Count {
    durations: BTreeMap<(Collective, Manner, u32, u32, u32), Vec<u64>>,
}

impl Count {
    /// Adds the calls of a partition that were not tuned.
    pub fn add(&mut self, columns: &Columns) {
        for (index, &manner) in columns.manner.iter().enumerate() {
            if manner == Manner::Blocking {
                continue;
            }
            let name = std::str::from_utf8(columns.collective[index].data());
            let Some(collective) = name.ok().and_then(Collective::from_name) else {
                continue;
            };
            let class = u64::BITS - columns.message_bytes[index].leading_zeros();
            let key = (
                collective,
                manner,
                class,
                columns.nodes[index],
                columns.ppn[index],
            );
            self.durations
                .entry(key)
                .or_default()
                .push(columns.duration_ns[index]);
        }
    }

    /// What was counted, sorted.
    pub fn finish(self) -> Vec<Passed> {
        self.durations
            .into_iter()
            .map(|((collective, manner, class, nodes, ppn), mut durations)| {
                let middle = durations.len() / 2;
                let (_, &mut median_ns, _) = durations.select_nth_unstable(middle);
                Passed {
                    collective,
                    manner: manner.name().to_owned(),
                    bytes: bounds(class),
                    nodes,
                    ppn,
                    records: durations.len() as u64,
                    median_ns,
                }
            })
            .collect()
    }
}

/// The sizes of so many significant bits.
fn bounds(class: u32) -> [u64; 2] {
    match class {
        0 => [0, 1],
        64 => [1 << 63, u64::MAX],
        _ => [1 << (class - 1), 1 << class],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_lies_within_its_bounds() {
        for bytes in [0, 1, 2, 3, 4, 1023, 1024, 1 << 62, (1 << 63) + 1] {
            let [lo, hi] = bounds(u64::BITS - u64::leading_zeros(bytes));
            assert!(lo <= bytes && bytes < hi, "{bytes} in [{lo}, {hi})");
        }
    }
}
