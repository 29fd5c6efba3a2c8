//! From cells to rules: for a communicator of some shape, what runs from which message size on.
//!
//! The formats of the libraries differ in what they can ask. This module decides once, for a collective, a number of
//! ranks and a column of cells, which variant stands where. It leaves spelling to the formats. A variant stands only
//! where its needs are sure to be met.

use colltune_core::catalogue::{self, FEW_RANKS, Need, Steering, Variant};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::model::Source;
use colltune_core::space::Range;
use colltune_core::variant::DEFAULT;
use colltune_models::statistics::CellStatistics;

use super::notes::{OtherShape, ReplacedNote};
use crate::published::Published;

/// A double: needs that count elements are checked in bytes, as if elements had this size.
pub const ELEMENT_BYTES: u64 = 8;
/// Up to here every number of ranks is looked at alone; above, steps grow by 1/64.
pub const EXACT_RANKS: u64 = 512;

/// The cells of one collective that share their ranges of nodes and ranks per node.
#[derive(Clone, Debug)]
pub struct Column<'a> {
    pub nodes: Range,
    pub ppn: Range,
    /// Ascending in bytes.
    pub cells: Vec<&'a CellStatistics>,
}

/// One rule: from `from_bytes` (message_bytes as colltune means it) on, `variant`; `None`: the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub from_bytes: u64,
    pub variant: Option<Variant>,
}

/// The number of ranks of a communicator, as an inclusive range; one number where both are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    pub first: u64,
    pub last: u64,
}

/// The shape of the jobs that a table is for: at most `nodes` nodes with `ppn` ranks each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobShape {
    pub nodes: u64,
    pub ppn: u64,
}

/// The columns of a collective, in the order of their cells.
pub fn columns(published: &Published, collective: Collective) -> Vec<Column<'_>> {
    let mut columns: Vec<Column> = Vec::new();
    for status in published
        .cells
        .iter()
        .filter(|status| status.cell.collective == collective)
    {
        let cell = status.cell;
        match columns
            .iter_mut()
            .find(|column| column.nodes == cell.nodes && column.ppn == cell.ppn)
        {
            Some(column) => column.cells.push(status),
            None => columns.push(Column {
                nodes: cell.nodes,
                ppn: cell.ppn,
                cells: vec![status],
            }),
        }
    }
    for column in &mut columns {
        column.cells.sort_by_key(|status| status.cell.bytes);
    }
    columns
}

impl Column<'_> {
    /// The ranks per node, first to last, with which `ranks` ranks on as few nodes as they fill
    /// can lie in this column.
    pub fn ppn_of(&self, ranks: u64) -> Option<(u64, u64)> {
        let most_nodes = self.nodes.last();
        let least_for_nodes = if most_nodes == u64::MAX {
            1
        } else {
            ranks.div_ceil(most_nodes.max(1))
        };
        let most_for_nodes = if self.nodes.lo > 1 {
            (ranks - 1) / (self.nodes.lo - 1)
        } else {
            ranks
        };
        let first = self.ppn.lo.max(least_for_nodes).max(1);
        let last = self.ppn.last().min(ranks).min(most_for_nodes);
        (first <= last).then_some((first, last))
    }

    pub fn departs_from_default(&self) -> bool {
        self.cells
            .iter()
            .any(|status| !catalogue::is_default(&status.best))
    }

    pub fn samples(&self) -> u64 {
        self.cells
            .iter()
            .flat_map(|status| &status.variants)
            .map(|variant| variant.samples)
            .sum()
    }

    pub fn measured_cells(&self) -> usize {
        let measured = |status: &&&CellStatistics| status.source == Source::Measured;
        self.cells.iter().filter(measured).count()
    }

    /// Whether jobs of this shape can reach the column.
    pub fn within(&self, shape: Option<JobShape>) -> bool {
        shape.is_none_or(|shape| self.nodes.lo <= shape.nodes && self.ppn.lo <= shape.ppn)
    }

    pub fn shape(&self) -> OtherShape {
        OtherShape {
            nodes: self.nodes.into(),
            ppn: self.ppn.into(),
        }
    }
}

/// The rules of a column for communicators of `ranks`, ascending, the first from 0 bytes on.
///
/// `testable` are the needs that the format checks itself, at each call.
/// `replaced` gets winners that cannot stand in a table.
pub fn rules(
    column: &Column,
    library: Library,
    ranks: Ranks,
    testable: &[Need],
    replaced: &mut dyn FnMut(ReplacedNote),
) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for status in &column.cells {
        let cell = &status.cell;
        let mut add = |from_bytes: u64, variant: Option<Variant>| {
            rules.push(Rule {
                from_bytes,
                variant,
            })
        };
        let winner = catalogue::find(library, cell.collective, &status.best);
        let mut tell = |instead: &str, reason: String| {
            let instead = instead.to_owned();
            replaced(ReplacedNote {
                cell: cell.to_string(),
                winner: status.best.clone(),
                instead,
                reason,
            });
        };
        if catalogue::is_default(&status.best) {
            add(cell.bytes.lo, None);
            continue;
        }
        let Some((_, native)) = status.native(library) else {
            tell(DEFAULT, reason_against(status, winner.as_ref()));
            add(cell.bytes.lo, None);
            continue;
        };
        if winner
            .as_ref()
            .is_none_or(|winner| winner.name != native.name)
        {
            tell(
                &native.name.to_string(),
                reason_against(status, winner.as_ref()),
            );
        }
        match least_bytes(&native, ranks, testable) {
            Ok(least) if least <= cell.bytes.lo => add(cell.bytes.lo, Some(native)),
            Ok(least) => {
                add(cell.bytes.lo, None);
                if least <= cell.bytes.last() {
                    add(least, Some(native));
                }
            }
            Err(need) => {
                let whom = if ranks.first == ranks.last {
                    format!("{} ranks", ranks.first)
                } else {
                    "these ranks".to_owned()
                };
                let name = &native.name;
                let need = need.describe();
                tell(
                    DEFAULT,
                    format!("{name} needs {need}, which {whom} do not give"),
                );
                add(cell.bytes.lo, None);
            }
        }
    }
    if rules.first().is_none_or(|rule| rule.from_bytes > 0) {
        rules.insert(
            0,
            Rule {
                from_bytes: 0,
                variant: None,
            },
        );
    }
    rules.dedup_by(|next, previous| next.variant == previous.variant);
    rules
}

/// Why the best variant of a cell does not stand in a table.
fn reason_against(status: &CellStatistics, winner: Option<&Variant>) -> String {
    let proven = status
        .variant(&status.best)
        .is_some_and(|one| status.may_stand(one));
    match winner {
        Some(_) if !proven => "it is not shown to be faster than the default by measurement",
        Some(winner) if winner.steering != Steering::None => "a better one stands",
        _ => "it is not one of the library's own algorithms",
    }
    .to_owned()
}

/// From how many bytes on the needs of a variant are sure to be met; the need that never is.
fn least_bytes(variant: &Variant, ranks: Ranks, testable: &[Need]) -> Result<u64, Need> {
    let segsize = variant.name.segsize.unwrap_or(0);
    let mut least = 0;
    for need in variant
        .needs
        .iter()
        .copied()
        .filter(|need| !testable.contains(need))
    {
        let one = ranks.first == ranks.last;
        let (met, bytes) = match need {
            Need::PowerOfTwoRanks => (one && ranks.first.is_power_of_two(), 0),
            Need::EvenRanks => (one && ranks.first.is_multiple_of(2), 0),
            Need::ExactlyTwoRanks => (one && ranks.first == 2, 0),
            Need::TwoRanks => (ranks.first >= 2, 0),
            Need::AboveTwoRanks => (ranks.first > 2, 0),
            Need::FewRanks => (ranks.last <= FEW_RANKS.into(), 0),
            // Nothing is learned of what needs that; who asks for it in a table has the library do it.
            Need::WritableRoot => (true, 0),
            Need::CountAtLeastRanks => (
                ranks.last < u64::MAX,
                ranks.last.saturating_mul(ELEMENT_BYTES),
            ),
            Need::CountAtLeastPowerOfTwo => (
                ranks.last < u64::MAX,
                (1u64 << ranks.last.max(1).ilog2()).saturating_mul(ELEMENT_BYTES),
            ),
            Need::BytesAtLeastRanks => (ranks.last < u64::MAX, ranks.last),
            Need::SegmentPerRank => (ranks.last < u64::MAX, ranks.last.saturating_mul(segsize)),
            Need::ShareAboveSegment => (
                ranks.last < u64::MAX,
                ranks.last.saturating_mul(segsize).saturating_add(1),
            ),
            Need::MessageAboveSegment => (true, segsize.saturating_add(1)),
            Need::SomeBytes => (true, 1),
            Need::TwoSegments => (true, segsize.saturating_mul(2).max(2)),
            // No format without such a test can keep these calls apart; the notes warn.
            Need::Commutative | Need::BuiltinOp | Need::PlainElements | Need::NotInPlace => {
                (true, 0)
            }
            Need::InPlace
            | Need::Hierarchy
            | Need::OneNode
            | Need::RanksByNode
            | Need::EqualBlocks => (false, 0),
        };
        if !met {
            return Err(need);
        }
        least = least.max(bytes);
    }
    Ok(least)
}

/// The numbers of ranks that are looked at, up to `limit`, as ranges without gaps.
pub fn rank_ranges(limit: u64) -> Vec<Ranks> {
    let mut firsts: Vec<u64> = (2..=limit.min(EXACT_RANKS)).collect();
    let mut next = EXACT_RANKS + 1;
    while next <= limit {
        firsts.push(next);
        next += (next / 64).max(1);
    }
    if limit >= 2 && firsts.last() != Some(&limit) {
        firsts.push(limit);
    }
    let ends = firsts.iter().skip(1).map(|next| next - 1).chain([limit]);
    firsts
        .iter()
        .zip(ends)
        .map(|(&first, last)| Ranks { first, last })
        .collect()
}

/// The most ranks that a table needs to know: of the job's shape, else of the columns that depart
/// from the default; open ends count as their lower end, at least up to `EXACT_RANKS`.
pub fn most_ranks(columns: &[Column], shape: Option<JobShape>) -> u64 {
    if let Some(shape) = shape {
        return shape.nodes.saturating_mul(shape.ppn);
    }
    let departing = columns
        .iter()
        .filter(|column| column.departs_from_default());
    let most = departing.map(|column| {
        let open = column.nodes.hi.is_none() || column.ppn.hi.is_none();
        let end = |range: Range| range.hi.map_or(range.lo, |hi| hi - 1);
        let product = end(column.nodes).saturating_mul(end(column.ppn));
        if open {
            product.max(EXACT_RANKS)
        } else {
            product
        }
    });
    most.max().unwrap_or(1).min(1 << 21)
}

/// Whether all ranks above the limit count as well: some departing column has no upper end.
pub fn is_open(columns: &[Column], shape: Option<JobShape>) -> bool {
    let open = |column: &Column| column.nodes.hi.is_none() || column.ppn.hi.is_none();
    shape.is_none()
        && columns
            .iter()
            .any(|column| column.departs_from_default() && open(column))
}

#[cfg(test)]
pub mod tests;
