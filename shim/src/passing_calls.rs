//! What a communicator knows of the calls that pass through: how many there were, and which are sampled.

use colltune_core::classify::Layout;
use colltune_core::thin::next_sampled;

/// What a communicator knows of the calls that pass through.
#[derive(Default)]
pub struct PassingCalls {
    pub calls: u64,
    pub requests: u64,
    /// Computed without the other ranks, where the communicator is not set up.
    pub layout: Option<Option<Layout>>,
    cells: Vec<PassingCell>,
}

/// The calls of one manner, collective and size class.
struct PassingCell {
    code: u64,
    calls: u64,
    next_sample: u64,
}

impl PassingCalls {
    /// How many this rank has begun.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Counts a call in its cell.
    pub fn is_sampled(&mut self, code: u64, key: u64, samples_per_cell: u32) -> bool {
        let known = self.cells.iter().position(|cell| cell.code == code);
        let place = known.unwrap_or_else(|| {
            self.cells.push(PassingCell {
                code,
                calls: 0,
                next_sample: 0,
            });
            self.cells.len() - 1
        });
        let cell = &mut self.cells[place];
        let index = cell.calls;
        cell.calls += 1;
        let sampled = index >= cell.next_sample;
        if sampled {
            cell.next_sample = next_sampled(key, index, 0, samples_per_cell, 1);
        }
        sampled
    }
}
