//! From a call's shared facts to its cell.

use crate::collective::Collective;
use crate::model::Model;

/// Ranks, nodes and the most ranks per node of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub n_ranks: u32,
    pub nodes: u32,
    pub ppn: u32,
}

/// The cells that calls on one communicator can fall into, for one collective.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellsBySize {
    /// Lower ends in bytes, ascending, the first 0.
    lows: Vec<u64>,
    /// Places in [`Model::cells`], as long as `lows`.
    cells: Vec<u32>,
}

impl CellsBySize {
    /// The cells of `collective` for a communicator of this layout.
    ///
    /// A model that does not cover every size (which [`crate::space::Space::check`] excludes for
    /// tuning spaces, but no file is trusted) leaves calls outside without a cell.
    pub fn new(model: &Model, collective: Collective, layout: Layout) -> CellsBySize {
        let (nodes, ppn) = (u64::from(layout.nodes), u64::from(layout.ppn));
        let mut found: Vec<(u64, u32)> = (0u32..)
            .zip(&model.cells)
            .filter(|(_, entry)| entry.cell.contains(collective, entry.cell.bytes.lo, nodes, ppn))
            .map(|(index, entry)| (entry.cell.bytes.lo, index))
            .collect();
        found.sort_unstable();
        CellsBySize {
            lows: found.iter().map(|(low, _)| *low).collect(),
            cells: found.iter().map(|(_, index)| *index).collect(),
        }
    }

    /// Place of the cell in this list for a message of `bytes`. Total; never allocates.
    pub fn position(&self, bytes: u64) -> Option<usize> {
        self.lows.iter().rposition(|low| *low <= bytes)
    }

    /// Places in [`Model::cells`].
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }
}

/// The size of a message in bytes, as DESIGN's cells mean it: elements times bytes per element.
/// A product above 2^64 counts as the largest size.
pub fn message_bytes(count: u64, type_size: u64) -> u64 {
    count.saturating_mul(type_size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::{Abi, Library};
    use crate::settings::Settings;

    #[test]
    fn every_call_finds_the_one_cell_that_contains_it() {
        let library = Library { abi: Abi::Mpich, version: (4, 0, 2) };
        let model = Model::initial(&Settings::default(), library, "test");
        for layout in [(1, 1), (2, 1), (8, 2), (96, 32), (4, 4)].map(|(n_ranks, nodes)| Layout {
            n_ranks,
            nodes,
            ppn: n_ranks.div_ceil(nodes),
        }) {
            for collective in Collective::ALL {
                let cells = CellsBySize::new(&model, collective, layout);
                for bytes in [0, 1, 15, 16, 17, 4095, 4096, 1 << 22, u64::MAX] {
                    let place = cells.position(bytes).unwrap();
                    let cell = model.cells[cells.cells()[place] as usize].cell;
                    assert!(cell.contains(collective, bytes, layout.nodes.into(), layout.ppn.into()), "{cell} {bytes}");
                }
            }
        }
    }

    #[test]
    fn sizes_saturate() {
        assert_eq!(message_bytes(3, 8), 24);
        assert_eq!(message_bytes(u64::MAX, 2), u64::MAX);
    }
}
