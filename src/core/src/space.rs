//! The tuning space: how a site divides calls into cells (tuning configurations).
//!
//! A cell is a collective and half-open ranges [a, b) of message bytes, nodes and ranks per node.
//! The cells of a collective cover everything and never overlap; [`Space::check`] proves it.
//! Source: Hunold & Steiner, PMBS 2022, definition 1.

use std::fmt;

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::collective::{Collective, MessageSize};

/// A half-open range [lo, hi); `None` is an open end. In JSON `[lo, hi]` with `null` for open.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Encode, Decode,
)]
#[serde(from = "(u64, Option<u64>)", into = "(u64, Option<u64>)")]
pub struct Range {
    pub lo: u64,
    pub hi: Option<u64>,
}

impl From<(u64, Option<u64>)> for Range {
    fn from((lo, hi): (u64, Option<u64>)) -> Range {
        Range { lo, hi }
    }
}

impl From<Range> for (u64, Option<u64>) {
    fn from(range: Range) -> (u64, Option<u64>) {
        (range.lo, range.hi)
    }
}

impl Range {
    pub fn contains(self, value: u64) -> bool {
        self.lo <= value && self.hi.is_none_or(|hi| value < hi)
    }

    /// The largest value inside, `u64::MAX` for an open end.
    pub fn last(self) -> u64 {
        self.hi.map_or(u64::MAX, |hi| hi.saturating_sub(1))
    }

    pub fn overlaps(self, other: Range) -> bool {
        self.lo <= other.last() && other.lo <= self.last()
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hi {
            Some(hi) => write!(f, "[{}, {hi})", self.lo),
            None => write!(f, "[{}, inf)", self.lo),
        }
    }
}

/// A tuning configuration.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Encode, Decode,
)]
pub struct Cell {
    pub collective: Collective,
    pub bytes: Range,
    pub nodes: Range,
    pub ppn: Range,
}

impl Cell {
    pub fn contains(&self, collective: Collective, bytes: u64, nodes: u64, ppn: u64) -> bool {
        self.collective == collective
            && self.bytes.contains(bytes)
            && self.nodes.contains(nodes)
            && self.ppn.contains(ppn)
    }

    /// The most ranks on which its choice was measured, by a model's note; at the least the fewest that it has.
    pub fn measured_ranks(&self, told: u32) -> u64 {
        u64::from(told).max(self.nodes.lo.saturating_mul(self.ppn.lo))
    }

    /// Whether a call may be in both.
    pub fn overlaps(&self, other: &Cell) -> bool {
        self.collective == other.collective
            && self.bytes.overlaps(other.bytes)
            && self.nodes.overlaps(other.nodes)
            && self.ppn.overlaps(other.ppn)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes{} nodes{} ppn{}",
            self.collective, self.bytes, self.nodes, self.ppn
        )
    }
}

/// A box of cells of one collective: the bounds of each axis, ascending, `None` for "inf".
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Block {
    pub collective: Collective,
    pub bytes: Vec<Option<u64>>,
    pub nodes: Vec<Option<u64>>,
    pub ppn: Vec<Option<u64>>,
    /// Names of variants that are never drawn in these cells.
    pub exclude: Vec<String>,
}

impl Block {
    /// Whether a call may be in both the box and a cell.
    pub fn overlaps(&self, cell: &Cell) -> bool {
        let touches = |bounds: &[Option<u64>], range: Range| {
            let lo = bounds.first().copied().flatten().unwrap_or(0);
            let hi = bounds.last().copied().flatten();
            Range { lo, hi }.overlaps(range)
        };
        self.collective == cell.collective
            && touches(&self.bytes, cell.bytes)
            && touches(&self.nodes, cell.nodes)
            && touches(&self.ppn, cell.ppn)
    }
}

/// A tuning space: boxes that cover every call exactly once.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Space {
    pub blocks: Vec<Block>,
}

/// The most cells of a space, and of the grid of all bounds of one collective: ten times the usual ones. A model holds
/// every variant in each of them.
pub const CELLS_MAX: usize = 1 << 18;

/// Where the boxes of a collective fail to cover everything exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hole {
    /// There are more cells than [`CELLS_MAX`], this collective's above all.
    TooMany(Collective),
    /// No box holds this cell.
    Gap(Cell),
    /// The boxes of these numbers both hold this cell.
    Overlap(Cell, usize, usize),
}

/// Message sizes grow by four from 16 bytes to 4 MiB.
const BYTES: [u64; 11] = [
    0,
    16,
    64,
    256,
    1 << 10,
    1 << 12,
    1 << 14,
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 22,
];
/// Each power of two stands with the numbers up to the next one, as in 3 to 4, 5 to 8, 9 to 16.
const DOUBLINGS: [u64; 12] = [1, 2, 3, 5, 9, 17, 33, 65, 129, 257, 513, 1025];

fn open_ended(bounds: &[u64]) -> Vec<Option<u64>> {
    bounds.iter().copied().map(Some).chain([None]).collect()
}

impl Default for Space {
    fn default() -> Space {
        Space {
            blocks: Collective::ALL
                .into_iter()
                .map(Space::default_block)
                .collect(),
        }
    }
}

impl Space {
    /// The cells of a collective for which a site names no ranges.
    pub fn default_block(collective: Collective) -> Block {
        Block {
            collective,
            bytes: match collective.size() {
                MessageSize::Nothing => open_ended(&[0]),
                MessageSize::Message | MessageSize::Block => open_ended(&BYTES),
            },
            nodes: open_ended(&DOUBLINGS),
            ppn: open_ended(&DOUBLINGS),
            exclude: Vec::new(),
        }
    }

    /// Every cell with the box that it belongs to, in a fixed order.
    pub fn cells(&self) -> impl Iterator<Item = (Cell, &Block)> {
        self.blocks
            .iter()
            .flat_map(|block| block.cells().map(move |cell| (cell, block)))
    }

    /// Finds a call that no box holds or that two boxes hold. Looks at no more than [`CELLS_MAX`] cells of a collective.
    pub fn check(&self) -> Result<(), Hole> {
        let sizes = self.blocks.iter().map(Block::n_cells);
        if sizes.fold(0, usize::saturating_add) > CELLS_MAX {
            let of = |collective: &Collective| {
                let own = self
                    .blocks
                    .iter()
                    .filter(|block| block.collective == *collective);
                own.map(Block::n_cells).fold(0, usize::saturating_add)
            };
            let largest = Collective::ALL.into_iter().max_by_key(of);
            let largest = largest.expect("there are collectives");
            return Err(Hole::TooMany(largest));
        }
        for collective in Collective::ALL {
            let blocks: Vec<_> = self
                .blocks
                .iter()
                .enumerate()
                .filter(|(_, block)| block.collective == collective)
                .collect();
            let cuts = |axis: fn(&Block) -> &Vec<Option<u64>>, from: u64| {
                let mut cuts: Vec<Option<u64>> = blocks
                    .iter()
                    .flat_map(|(_, block)| axis(block).clone())
                    .collect();
                cuts.extend([Some(from), None]);
                cuts.sort_by_key(|cut| cut.unwrap_or(u64::MAX));
                cuts.dedup();
                cuts
            };
            let finest = Block {
                collective,
                bytes: cuts(|block| &block.bytes, 0),
                nodes: cuts(|block| &block.nodes, 1),
                ppn: cuts(|block| &block.ppn, 1),
                exclude: Vec::new(),
            };
            if finest.n_cells() > CELLS_MAX {
                return Err(Hole::TooMany(collective));
            }
            for cell in finest.cells() {
                let mut holders = blocks
                    .iter()
                    .filter(|(_, block)| block.holds(&cell))
                    .map(|&(index, _)| index);
                match (holders.next(), holders.next()) {
                    (None, _) => return Err(Hole::Gap(cell)),
                    (Some(a), Some(b)) => return Err(Hole::Overlap(cell, a, b)),
                    (Some(_), None) => {}
                }
            }
        }
        Ok(())
    }
}

impl Block {
    fn cells(&self) -> impl Iterator<Item = Cell> {
        ranges(&self.nodes).flat_map(move |nodes| {
            ranges(&self.ppn).flat_map(move |ppn| {
                ranges(&self.bytes).map(move |bytes| Cell {
                    collective: self.collective,
                    bytes,
                    nodes,
                    ppn,
                })
            })
        })
    }

    /// At least as many as [`Block::cells`] are.
    fn n_cells(&self) -> usize {
        let axes = [&self.bytes, &self.nodes, &self.ppn];
        axes.into_iter().fold(1, |product: usize, axis| {
            product.saturating_mul(axis.len().saturating_sub(1))
        })
    }

    fn holds(&self, cell: &Cell) -> bool {
        let hull = |bounds: &[Option<u64>]| Range {
            lo: bounds[0].unwrap_or(u64::MAX),
            hi: bounds[bounds.len() - 1],
        };
        hull(&self.bytes).overlaps(cell.bytes)
            && hull(&self.nodes).overlaps(cell.nodes)
            && hull(&self.ppn).overlaps(cell.ppn)
    }
}

fn ranges(bounds: &[Option<u64>]) -> impl Iterator<Item = Range> {
    bounds
        .windows(2)
        .filter_map(|pair| pair[0].map(|lo| Range { lo, hi: pair[1] }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_space_covers_every_call_exactly_once() {
        let space = Space::default();
        assert_eq!(space.check(), Ok(()));
        for bytes in [0, 1, 15, 16, 4095, 4096, u64::MAX] {
            for nodes in [1, 2, 3, 1024, u64::MAX] {
                let holders = space
                    .cells()
                    .filter(|(cell, _)| cell.contains(Collective::Bcast, bytes, nodes, 1));
                assert_eq!(holders.count(), 1, "bytes {bytes}, nodes {nodes}");
            }
        }
    }

    #[test]
    fn gaps_and_overlaps_between_boxes_are_found() {
        let mut space = Space::default();
        space.blocks[0].bytes = vec![Some(0), Some(100)];
        assert!(matches!(space.check(), Err(Hole::Gap(cell)) if cell.bytes.lo == 100));
        let mut upper = space.blocks[0].clone();
        upper.bytes = vec![Some(50), None];
        space.blocks.push(upper);
        assert!(
            matches!(space.check(), Err(Hole::Overlap(cell, 0, 17)) if cell.bytes == Range { lo: 50, hi: Some(100) })
        );
        space.blocks[17].bytes[0] = Some(100);
        assert_eq!(space.check(), Ok(()));
    }

    #[test]
    fn a_space_of_too_many_cells_is_refused_before_they_are_walked() {
        let finest = || (1..=3000).map(Some).chain([None]).collect();
        let mut space = Space::default();
        let block = &mut space.blocks[0];
        let collective = block.collective;
        (block.nodes, block.ppn) = (finest(), finest());
        assert_eq!(space.check(), Err(Hole::TooMany(collective)));
        // Boxes of few cells whose bounds cross in many.
        space.blocks.remove(0);
        let part = |lo: u64, hi: u64| Block {
            bytes: (lo..=hi).map(Some).collect(),
            nodes: (1 + lo..=1 + hi).map(Some).collect(),
            ppn: vec![Some(1), None],
            ..Space::default_block(collective)
        };
        let parts = (0..8).map(|part_index| part(100 * part_index, 100 * part_index + 100));
        space.blocks.extend(parts);
        let held: usize = space.blocks.iter().map(Block::n_cells).sum();
        assert!(held <= CELLS_MAX, "{held}");
        assert_eq!(space.check(), Err(Hole::TooMany(collective)));
        // Many small boxes of one collective, each with fewer cells than the others' single ones.
        let small = Block {
            bytes: vec![Some(0), Some(8), None],
            ..Space::default_block(Collective::Bcast)
        };
        let mut many = Space::default();
        many.blocks.extend(std::iter::repeat_n(small, 1000));
        assert_eq!(many.check(), Err(Hole::TooMany(Collective::Bcast)));
        assert!(10 * Space::default().cells().count() < CELLS_MAX);
    }
}
