//! The `[[space]]` tables.

use std::ops::Range as Span;

use serde::Deserialize;
use toml::Spanned;

use super::values;
use crate::collective::Collective;
use crate::space::{Block, CELLS_MAX, Hole, Space};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpaceTable {
    collective: Spanned<String>,
    bytes: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    nodes: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    ppn: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    exclude: Option<Spanned<toml::Value>>,
}

/// Where something is wrong, and what.
pub(super) type Problem = (Span<usize>, String);

/// The tuning space of the `[[space]]` tables; collectives without one have their usual cells.
pub(super) fn read(tables: Vec<Spanned<SpaceTable>>) -> Result<Space, Problem> {
    let mut space = Space { blocks: Vec::new() };
    let mut spans = Vec::new();
    for table in tables {
        let span = table.span();
        let table = table.into_inner();
        let collective = Collective::from_name(table.collective.get_ref()).ok_or_else(|| {
            let known: Vec<_> = Collective::ALL.into_iter().map(Collective::name).collect();
            let problem = format!(
                "unknown collective {:?} (known: {})",
                table.collective.get_ref(),
                known.join(", ")
            );
            (table.collective.span(), problem)
        })?;
        let usual = Space::default_block(collective);
        let exclude = match table.exclude {
            None => Vec::new(),
            Some(value) => excluded(value.get_ref())
                .map_err(|problem| (value.span(), format!("exclude: {problem}")))?,
        };
        space.blocks.push(Block {
            collective,
            bytes: read_bounds("bytes", table.bytes, usual.bytes, 0)?,
            nodes: read_bounds("nodes", table.nodes, usual.nodes, 1)?,
            ppn: read_bounds("ppn", table.ppn, usual.ppn, 1)?,
            exclude,
        });
        spans.push(span);
    }
    for collective in Collective::ALL {
        if space
            .blocks
            .iter()
            .all(|block| block.collective != collective)
        {
            space.blocks.push(Space::default_block(collective));
        }
    }
    let first_span = |collective: Collective| {
        let mut blocks = space.blocks.iter();
        let first = blocks.position(|block| block.collective == collective);
        first
            .and_then(|first| spans.get(first).cloned())
            .unwrap_or(0..0)
    };
    space.check().map_err(|hole| match hole {
        Hole::TooMany(collective) => (
            first_span(collective),
            format!(
                "[[space]] cuts {collective} into too many cells: those of all collectives are at most {CELLS_MAX}"
            ),
        ),
        Hole::Gap(cell) => (
            first_span(cell.collective),
            format!("gap: no [[space]] of {} covers {cell}", cell.collective),
        ),
        Hole::Overlap(cell, first, second) => {
            let span = spans
                .get(second)
                .or(spans.get(first))
                .cloned()
                .unwrap_or(0..0);
            (span, format!("overlap: two [[space]] tables cover {cell}"))
        }
    })?;
    Ok(space)
}

fn excluded(value: &toml::Value) -> Result<Vec<String>, String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("{value} is not a list such as [\"native:linear\"]"))?;
    values::variant_names(list)
}

fn read_bounds(
    axis: &str,
    list: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    usual: Vec<Option<u64>>,
    least: u64,
) -> Result<Vec<Option<u64>>, Problem> {
    let Some(list) = list else { return Ok(usual) };
    let span = list.span();
    let mut bounds = Vec::new();
    for value in list.into_inner() {
        let problem = |text: String| (value.span(), format!("{axis}: {text}"));
        let bound = match value.get_ref() {
            toml::Value::Integer(number) => Some(
                u64::try_from(*number)
                    .ok()
                    .filter(|number| *number >= least)
                    .ok_or_else(|| problem(format!("{number} is below {least}")))?,
            ),
            toml::Value::String(text) if text == "inf" => None,
            toml::Value::Float(number) if *number == f64::INFINITY => None,
            other => {
                return Err(problem(format!(
                    "{other} is neither a whole number nor \"inf\""
                )));
            }
        };
        if let Some(&previous) = bounds.last() {
            let empty = match (previous, bound) {
                (None, _) => true,
                (Some(a), Some(b)) => a >= b,
                (Some(_), None) => false,
            };
            if empty {
                return Err(problem(format!(
                    "{} after a bound that is not below it: the range is empty",
                    value.get_ref()
                )));
            }
        }
        bounds.push(bound);
    }
    if bounds.len() < 2 {
        return Err((
            span,
            format!("{axis}: a list of bounds needs at least two, as in [{least}, \"inf\"]"),
        ));
    }
    Ok(bounds)
}
