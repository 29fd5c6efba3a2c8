//! Figure 4: was what was said of cells without data right, once there were data?
//!
//! Two ways to know: cells that a generation predicted and a later one measured; and a layout whose data are kept from
//! the learner, which then says what it would have chosen there.

mod panel;

use std::collections::{BTreeSet, HashMap};

use colltune_core::model::Source;
use colltune_core::settings::Settings;
use colltune_core::space::Cell;
use colltune_core::variant::DEFAULT;
use colltune_db::calls::{self, Recorded, RecordedCall};
use colltune_db::evidence::Said;
use colltune_db::{Database, Generation};
use colltune_models::evidence::Evidence;
use colltune_models::statistics::CellStatistics;
use colltune_models::{Context, learn};
use serde::Serialize;

use crate::cells::expected;
use crate::history::Point;
use crate::question::{Question, Shape};

use panel::Foretold;
pub use panel::{Distribution, Panel};

const PANELS_MAX: usize = 6;
/// As many calls as the paper has of each line; fewer are said.
pub const CALLS_LEAST: usize = 100;
/// A choice that costs no more than this share beyond the best is right.
pub const WITHIN: f64 = 0.05;

/// What is known of predictions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Unseen {
    pub panels: Vec<Panel>,
    /// Cells that were predicted first and measured later, or are held out, with or without raw records.
    pub cells: usize,
    /// Of those the ones in which the choice was within 5 % of the best, by what is known now.
    pub right: usize,
    pub records_left_out: u64,
    pub held_out: bool,
}

/// What the module reads from.
pub struct Sources<'a> {
    pub db: &'a Database,
    pub generation: &'a Generation,
    pub settings: &'a Settings,
    pub said: &'a Said,
    pub question: &'a Question,
}

/// The back test, over the predictions of each generation in turn; `predicted` holds what each said of cells that it
/// had no data of.
pub fn unseen(
    sources: &Sources,
    predicted: &[(u64, Vec<CellStatistics>)],
    warnings: &mut Vec<String>,
) -> Unseen {
    match sources.question.holdout {
        None => back_test(sources, predicted, warnings),
        Some(shape) => match held_out(sources, shape, warnings) {
            Some(said) => Unseen {
                held_out: true,
                ..judged(sources, said, Some(shape), warnings)
            },
            None => Unseen::default(),
        },
    }
}

fn back_test(
    sources: &Sources,
    predicted: &[(u64, Vec<CellStatistics>)],
    warnings: &mut Vec<String>,
) -> Unseen {
    let measured = sources.generation.cells.iter();
    let measured = measured.filter(|cell| cell.source == Source::Measured);
    let said = measured
        .filter(|cell| sources.question.holds(&cell.cell))
        .filter_map(|cell| {
            let point = Point::of(&cell.cell);
            // The last word before there were data.
            let mut words = predicted.iter().rev();
            words.find_map(|(number, cells)| {
                let before = cells.iter().find(|one| point.is_in(&one.cell))?;
                Some(Foretold {
                    cell: cell.cell,
                    choice: expected(before).0.to_owned(),
                    generation: Some(*number),
                })
            })
        });
    judged(sources, said.collect(), None, warnings)
}

/// What a learner says of a layout of which it saw nothing.
fn held_out(sources: &Sources, shape: Shape, warnings: &mut Vec<String>) -> Option<Vec<Foretold>> {
    let is_of = |row: &&Evidence| row.shape.nodes == shape.nodes && row.shape.ppn == shape.ppn;
    let others = sources.said.evidence.iter().filter(|row| !is_of(row));
    let others: Vec<Evidence> = others.copied().collect();
    let generation = &sources.generation;
    let machine = &generation.model.machine;
    let context = Context::first(sources.settings, generation.library, machine);
    let learned = match learn(&others, context) {
        Ok(learned) => learned,
        Err(error) => {
            warnings.push(format!("failed to {error}; nothing is held out"));
            return None;
        }
    };
    let of_shape: BTreeSet<_> = sources
        .said
        .evidence
        .iter()
        .filter(is_of)
        .map(|row| row.shape)
        .collect();
    let is_met = |cell: &Cell| {
        of_shape.iter().any(|one| {
            cell.contains(
                one.collective,
                one.message_bytes,
                one.nodes.into(),
                one.ppn.into(),
            )
        })
    };
    // Other layouts may have measured the cell; what is said of this one is no less said without its data.
    let said = learned
        .statistics
        .iter()
        .filter(|one| is_met(&one.cell) && sources.question.holds(&one.cell));
    Some(
        said.map(|one| Foretold {
            cell: one.cell,
            choice: expected(one).0.to_owned(),
            generation: None,
        })
        .collect(),
    )
}

/// Whether a choice is within 5 % of the best, by what is known now.
fn is_right(generation: &Generation, said: &Foretold) -> bool {
    let now = generation.cells.iter().find(|one| one.cell == said.cell);
    now.is_some_and(|now| {
        let gain = |name: &str| match now.variant(name).and_then(|one| one.contrast) {
            _ if name == DEFAULT => Some(1.0),
            contrast => contrast.map(|contrast| contrast.gain),
        };
        let best = gain(&now.best).unwrap_or(now.gain);
        gain(&said.choice).is_some_and(|choice| choice * (1.0 + WITHIN) >= best)
    })
}

fn judged(
    sources: &Sources,
    said: Vec<Foretold>,
    shape: Option<Shape>,
    warnings: &mut Vec<String>,
) -> Unseen {
    let mut found = Unseen {
        cells: said.len(),
        right: said
            .iter()
            .filter(|one| is_right(sources.generation, one))
            .count(),
        ..Unseen::default()
    };
    if said.is_empty() {
        return found;
    }
    let cell_of = |one: &colltune_models::evidence::Shape| {
        said.iter().position(|said| {
            let (nodes, ppn) = (one.nodes.into(), one.ppn.into());
            let is_asked =
                shape.is_none_or(|shape| (shape.nodes, shape.ppn) == (one.nodes, one.ppn));
            is_asked
                && said
                    .cell
                    .contains(one.collective, one.message_bytes, nodes, ppn)
        })
    };
    let key = &sources.generation.key;
    let recorded = calls::recorded(sources.db, key, |one| cell_of(one).is_some(), warnings);
    let recorded = recorded.unwrap_or_else(|error| {
        warnings.push(format!("failed to {error}"));
        Recorded::default()
    });
    found.records_left_out = recorded.records_left_out;
    let mut by_shape: HashMap<_, Vec<&RecordedCall>> = HashMap::new();
    for call in &recorded.calls {
        by_shape.entry(call.shape).or_default().push(call);
    }
    let mut panels: Vec<Panel> = by_shape
        .into_iter()
        .filter_map(|(one, calls)| {
            let said = &said[cell_of(&one)?];
            Some(panel::panel(sources.generation, said, &one, &calls))
        })
        .filter(|panel| panel.lines.len() > 1)
        .collect();
    panels.sort_by_key(|panel| {
        let calls: usize = panel
            .lines
            .iter()
            .map(|line| line.calls.min(CALLS_LEAST))
            .sum();
        (
            std::cmp::Reverse((panel.ratio.is_some(), calls)),
            panel.collective,
            panel.bytes,
            panel.n_ranks,
        )
    });
    panels.truncate(PANELS_MAX);
    found.panels = panels;
    found
}
