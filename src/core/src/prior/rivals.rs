//! Which variants of a cell are compared with each other.

use crate::algorithm::registry::{Cut, Parameter, Scheduled};
use crate::catalogue::Variant;
use crate::need::Need;
use crate::space::Cell;

/// Messages that are cut into more segments than this gain nothing from the shorter ones.
const SEGMENTS_DRAWN: u64 = 256;
/// Whether `rival` can run wherever `variant` can.
pub(super) fn replaces(rival: &Variant, variant: &Variant) -> bool {
    let needed = |need: &Need| *need == Need::SomeBytes || variant.needs.contains(need);
    rival.needs.iter().all(needed)
}

/// Whether the parameters of a variant make it another one than the next smaller ones do.
pub(super) fn differs(own: &Scheduled, cell: &Cell) -> bool {
    let ranks_most = cell.nodes.last().saturating_mul(cell.ppn.last());
    own.row()
        .parameters
        .iter()
        .all(|parameter| match *parameter {
            Parameter::Segsize(cut, _) => {
                let unit = match cut {
                    Cut::Message => own.values.segsize,
                    Cut::Share => own.values.segsize.saturating_mul(least_ranks(cell)),
                };
                unit == 0 || cell.bytes.lo / unit <= SEGMENTS_DRAWN
            }
            // A tree, or an exchange, whose radix is not below the ranks is flat, whatever the radix.
            Parameter::Radix(all) => smaller(all, own.values.radix).is_none_or(|r| r < ranks_most),
            // A window that takes every other rank is as good as none.
            Parameter::Window(all) => {
                smaller(all, own.values.window).is_none_or(|w| w < ranks_most.saturating_sub(1))
            }
        })
}

/// The fewest ranks of a communicator that has the cell's nodes all filled.
pub(super) fn least_ranks(cell: &Cell) -> u64 {
    cell.nodes
        .lo
        .saturating_add(cell.ppn.lo.saturating_sub(1))
        .max(1)
}

/// The most ranks of a communicator of this cell.
pub(super) fn most_ranks(cell: &Cell) -> u32 {
    let most = cell.nodes.last().saturating_mul(cell.ppn.last());
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// The largest of the listed values below `value`.
fn smaller(all: &[usize], value: usize) -> Option<u64> {
    let below = all.iter().filter(|&&other| other < value);
    below.max().map(|&other| other as u64)
}
