//! For formats that know the ranks of a communicator and not its nodes: which shape's winners stand.

use super::notes::{Notes, ShapeNote};
use super::plan::{self, Column, JobShape, Ranks, Rule};

/// The rules for each number of ranks, in ranges without gaps from 0 on, the last one open; no rules
/// stand for the library's own choice. `beyond` says whether winners may stand above the largest number
/// that is looked at, where the columns are open; `rules` makes those of one column.
pub fn by_ranks(
    columns: &[Column],
    shape: Option<JobShape>,
    beyond: bool,
    notes: &mut Notes,
    mut rules: impl FnMut(&Column, Ranks) -> Vec<Rule>,
) -> Vec<(Ranks, Vec<Rule>)> {
    let limit = plan::most_ranks(columns, shape);
    let mut parts = vec![(Ranks { first: 0, last: 1 }, Vec::new())];
    let mut shapes: Vec<ShapeNote> = Vec::new();
    for ranks in plan::rank_ranges(limit) {
        let (winner, others) = choose_column(columns, ranks.first, shape);
        let found = winner.map_or_else(Vec::new, |winner| {
            note_shape(&mut shapes, ranks, winner, &others);
            rules(winner, ranks)
        });
        parts.push((ranks, found));
    }
    let rest = Ranks {
        first: limit.max(1) + 1,
        last: u64::MAX,
    };
    let stands = (beyond && plan::is_open(columns, shape))
        .then(|| choose_column(columns, rest.first, shape).0)
        .flatten();
    parts.push((
        rest,
        stands.map_or_else(Vec::new, |winner| rules(winner, rest)),
    ));
    notes.shapes.extend(shapes);
    parts
}

/// The column whose winners stand for a number of ranks, and those that give way.
///
/// With a job's shape: ranks fill its nodes one after the other. Without: the shape with the most
/// samples, then with the most measured cells, then on the fewest nodes.
fn choose_column<'a>(
    columns: &'a [Column<'a>],
    ranks: u64,
    shape: Option<JobShape>,
) -> (Option<&'a Column<'a>>, Vec<&'a Column<'a>>) {
    let candidates = columns
        .iter()
        .filter(|column| column.ppn_of(ranks).is_some() && column.within(shape));
    let winner = match shape {
        Some(shape) => {
            let (ppn, nodes) = (ranks.min(shape.ppn), ranks.div_ceil(shape.ppn));
            candidates
                .clone()
                .find(|column| column.nodes.contains(nodes) && column.ppn.contains(ppn))
        }
        None => candidates.clone().max_by_key(|column| {
            (
                column.samples(),
                column.measured_cells(),
                std::cmp::Reverse(column.nodes.lo),
            )
        }),
    };
    let others = candidates
        .filter(|column| winner.is_none_or(|winner| !std::ptr::eq(*column, winner)))
        .collect();
    (winner, others)
}

fn note_shape(notes: &mut Vec<ShapeNote>, ranks: Ranks, winner: &Column, others: &[&Column]) {
    let bests = |column: &Column| -> Vec<_> {
        column
            .cells
            .iter()
            .map(|status| (status.cell.bytes, status.best.clone()))
            .collect()
    };
    let own = bests(winner);
    let instead_of: Vec<_> = others
        .iter()
        .filter(|other| bests(other) != own)
        .map(|other| other.shape())
        .collect();
    if instead_of.is_empty() {
        return;
    }
    if let Some(last) = notes.last_mut() {
        let same = last.nodes == winner.nodes.into()
            && last.ppn == winner.ppn.into()
            && last.instead_of == instead_of;
        if same && last.ranks.1 == Some(ranks.first - 1) {
            last.ranks.1 = Some(ranks.last);
            return;
        }
    }
    let Some(first) = winner.cells.first() else {
        return;
    };
    notes.push(ShapeNote {
        collective: first.cell.collective.name(),
        ranks: (ranks.first, Some(ranks.last)),
        nodes: winner.nodes.into(),
        ppn: winner.ppn.into(),
        instead_of,
    });
}
