//! From a call's shared facts to its cell.

use crate::collective::Collective;
use crate::model::Model;
use crate::space::Cell;

/// Ranks, nodes and the most ranks per node of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub n_ranks: u32,
    pub nodes: u32,
    pub ppn: u32,
}

/// The cells that calls on one communicator can fall into, for one collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellsBySize {
    /// Lower ends in bytes, ascending.
    lows: Vec<u64>,
    /// The largest sizes in them, as long as `lows`: a model may leave sizes out.
    lasts: Vec<u64>,
    /// Places in [`Model::cells`], as long as `lows`.
    cells: Vec<u32>,
    /// For sizes of k bits the first place that can hold one, so that a look-up takes a step or two.
    first: [u32; 65],
}

impl Default for CellsBySize {
    fn default() -> CellsBySize {
        CellsBySize {
            lows: Vec::new(),
            lasts: Vec::new(),
            cells: Vec::new(),
            first: [0; 65],
        }
    }
}

impl CellsBySize {
    /// The cells of `collective` for a communicator of this layout.
    ///
    /// A model that does not cover every size (which [`crate::space::Space::check`] excludes for
    /// tuning spaces, but no file is trusted) leaves calls outside without a cell.
    pub fn new(model: &Model, collective: Collective, layout: Layout) -> CellsBySize {
        let cells = model.cells.iter().map(|entry| entry.cell);
        CellsBySize::of(cells, collective, layout)
    }

    /// The same of the cells of a model, in its order.
    pub fn of(
        cells: impl Iterator<Item = Cell>,
        collective: Collective,
        layout: Layout,
    ) -> CellsBySize {
        let (nodes, ppn) = (u64::from(layout.nodes), u64::from(layout.ppn));
        let mut found: Vec<(u64, u32, u64)> = (0u32..)
            .zip(cells)
            .filter(|(_, cell)| cell.contains(collective, cell.bytes.lo, nodes, ppn))
            .map(|(index, cell)| (cell.bytes.lo, index, cell.bytes.last()))
            .collect();
        found.sort_unstable();
        let lows: Vec<u64> = found.iter().map(|(low, ..)| *low).collect();
        let first = std::array::from_fn(|bits| {
            let least = if bits == 0 { 0 } else { 1 << (bits - 1) };
            lows.iter().rposition(|low| *low <= least).unwrap_or(0) as u32
        });
        CellsBySize {
            lows,
            lasts: found.iter().map(|(.., last)| *last).collect(),
            cells: found.iter().map(|(_, index, _)| *index).collect(),
            first,
        }
    }

    /// Place of the cell in this list for a message of `bytes`. Total; never allocates.
    #[inline]
    pub fn position(&self, bytes: u64) -> Option<usize> {
        let mut place = self.first[64 - bytes.leading_zeros() as usize] as usize;
        if *self.lows.get(place)? > bytes {
            return None;
        }
        while self.lows.get(place + 1).is_some_and(|low| *low <= bytes) {
            place += 1;
        }
        (bytes <= *self.lasts.get(place)?).then_some(place)
    }

    /// Places in [`Model::cells`].
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::{Library, Product};
    use crate::settings::Settings;
    use crate::space::Range;

    #[test]
    fn every_call_finds_the_one_cell_that_contains_it() {
        let library = Library {
            product: Product::Mpich,
            version: (4, 0, 2),
        };
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
                    assert!(
                        cell.contains(collective, bytes, layout.nodes.into(), layout.ppn.into()),
                        "{cell} {bytes}"
                    );
                }
            }
        }
    }

    #[test]
    fn sizes_that_a_model_leaves_out_have_no_cell() {
        let cell = |lo, hi| Cell {
            collective: Collective::Bcast,
            bytes: Range { lo, hi },
            nodes: Range { lo: 1, hi: None },
            ppn: Range { lo: 1, hi: None },
        };
        let layout = Layout {
            n_ranks: 2,
            nodes: 1,
            ppn: 2,
        };
        let cells = [cell(4, Some(16)), cell(64, Some(256)), cell(8, Some(8))];
        let cells = CellsBySize::of(cells.into_iter(), Collective::Bcast, layout);
        for (bytes, place) in [
            (0, None),
            (3, None),
            (4, Some(0)),
            (15, Some(0)),
            (16, None),
            (63, None),
            (64, Some(1)),
            (255, Some(1)),
            (256, None),
            (u64::MAX, None),
        ] {
            assert_eq!(cells.position(bytes), place, "{bytes}");
        }
    }

    #[test]
    fn uneven_ranges_are_found_as_a_search_from_the_top_finds_them() {
        let text = "[[space]]\ncollective = \"bcast\"\nbytes = [0, 1, 3, 5, 6, 7, 100, 101, 1000000, \"inf\"]";
        let library = Library {
            product: Product::Mpich,
            version: (4, 0, 2),
        };
        let model = Model::initial(&Settings::from_toml(text).unwrap(), library, "test");
        let cells = CellsBySize::new(
            &model,
            Collective::Bcast,
            Layout {
                n_ranks: 2,
                nodes: 1,
                ppn: 2,
            },
        );
        for bytes in (0..300).chain([999_999, 1_000_000, u64::MAX]) {
            assert_eq!(
                cells.position(bytes),
                cells.lows.iter().rposition(|low| *low <= bytes),
                "{bytes}"
            );
        }
        assert_eq!(CellsBySize::default().position(5), None);
    }
}
