//! Which units of a message lie in which piece, and whose they are.

use super::between::{longest_share, share};
use super::layout::Cut;

/// Which blocks the source and the target of what a node does together have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks<'a> {
    /// Both are the message.
    One,
    /// The source is the message; the target of the rank that takes it has one of each place.
    Collected,
    /// Both have one of each rank. For each place the blocks that it gives to the others, which lie in its target.
    Gathered(&'a [Vec<usize>]),
    /// The source has one for each rank, too. For each place its rank.
    Exchanged(&'a [usize]),
    /// Both are the message, of which each of so many ranks has a share. Pieces are cut out of each share at once.
    Shares(usize),
    /// The same; pieces are cut out of the giver's own share.
    OwnShare(usize),
}

/// Some units of a piece: where they lie in the buffers, and where in the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub unit: u64,
    pub in_cell: u64,
    pub units: u64,
}

impl Blocks<'_> {
    /// The block of the rank in a place, where each has one.
    #[inline]
    pub fn of(&self, place: usize) -> u64 {
        match self {
            Blocks::Gathered(given) => given[place][0] as u64,
            Blocks::Exchanged(here) => here[place] as u64,
            _ => 0,
        }
    }

    /// Whether a short message can carry them: one block of each.
    #[inline]
    pub fn are_single(&self) -> bool {
        match self {
            Blocks::One | Blocks::Exchanged(_) => true,
            Blocks::Gathered(given) => given.iter().all(|blocks| blocks.len() == 1),
            Blocks::Collected | Blocks::Shares(_) | Blocks::OwnShare(_) => false,
        }
    }

    /// How a message, or blocks, of so many units of `unit_bytes` bytes are cut into pieces.
    pub fn cut(&self, units: u64, unit_bytes: u64) -> Cut {
        let (units, copies) = match *self {
            Blocks::One | Blocks::Collected => (units, 1),
            Blocks::Gathered(given) => {
                let longest = given.iter().map(Vec::len).max().unwrap_or(0);
                (longest as u64 * units, 1)
            }
            Blocks::Exchanged(here) => (units, here.len() as u64),
            Blocks::Shares(lanes) => (longest_share(units, lanes), lanes as u64),
            Blocks::OwnShare(lanes) => (longest_share(units, lanes), 1),
        };
        Cut::new(units, unit_bytes, copies)
    }

    /// How many ranks a piece has something for of its own, one behind the other in its cell.
    #[inline]
    pub fn copies(&self) -> usize {
        match *self {
            Blocks::Exchanged(here) => here.len(),
            Blocks::Shares(lanes) => lanes,
            _ => 1,
        }
    }
}

/// The ends of what is given, and who asks: places on the node.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    pub from: usize,
    pub to: usize,
    pub own: usize,
}

impl<'a> Blocks<'a> {
    /// Of the piece that has `units` units from unit `first` on, those that one rank gives another, as the asking one
    /// has them in its buffers. A block, or the message, is `block` units long.
    #[inline(always)]
    pub fn stretches(
        self,
        block: u64,
        (first, units): (u64, u64),
        Ends { from, to, own }: Ends,
    ) -> impl Iterator<Item = Stretch> + use<'a> {
        let given: &'a [usize] = match self {
            Blocks::Gathered(given) => &given[from],
            _ => &[],
        };
        let one = match self {
            Blocks::Gathered(_) => None,
            Blocks::One => Some((0, 0, u64::MAX)),
            Blocks::Collected if from == own => Some((0, 0, u64::MAX)),
            Blocks::Collected => Some((from as u64 * block, 0, u64::MAX)),
            Blocks::Exchanged(here) => {
                let whose = if from == own { to } else { from };
                Some((here[whose] as u64 * block, to as u64 * units, u64::MAX))
            }
            Blocks::Shares(lanes) => {
                let (start, len) = share(block, to, lanes);
                Some((start, to as u64 * units, len))
            }
            Blocks::OwnShare(lanes) => {
                let (start, len) = share(block, from, lanes);
                Some((start, 0, len))
            }
        };
        let one = one.map(|(start, in_cell, len)| Stretch {
            unit: start + first,
            in_cell,
            units: units.min(len.saturating_sub(first)),
        });
        let blocks = given
            .iter()
            .enumerate()
            .skip((first / block.max(1)) as usize);
        let many = blocks.map_while(move |(place, rank)| {
            let begins = place as u64 * block;
            let (start, end) = (first.max(begins), (first + units).min(begins + block));
            (start < end).then(|| Stretch {
                unit: *rank as u64 * block + start - begins,
                in_cell: start - first,
                units: end - start,
            })
        });
        one.into_iter().chain(many)
    }
}
