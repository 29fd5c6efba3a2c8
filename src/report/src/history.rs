//! Figure 3: how the probabilities moved from training to training, and whether they have come to rest.

use std::collections::BTreeMap;

use colltune_core::collective::Collective;
use colltune_core::model::{CellModel, Model};
use colltune_core::space::{Cell, Range};
use colltune_db::Generation;
use colltune_models::statistics::CellStatistics;
use serde::Serialize;

use crate::question::Question;

/// So many cells have a panel.
const PANELS_MAX: usize = 6;
/// The newest generations that are looked at.
pub const GENERATIONS_MAX: usize = 40;
/// Variants that had no more after any training are one grey band: the paper's floor.
pub const BAND: f64 = 0.03;
/// The paper's rule for coming to rest: no probability moves by more, and the best stays, for so many trainings.
pub const MOVED_MAX: f64 = 0.02;
pub const TRAININGS_AT_REST: usize = 3;

/// The panels, over the same generations.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Histories {
    pub generations: Vec<GenerationMark>,
    pub panels: Vec<History>,
    /// Of the measured cells, those that have come to rest.
    pub cells_at_rest: usize,
    pub cells: usize,
    /// The most that all variants but the best are drawn once little is left to find, by today's settings.
    pub explore_total: f64,
}

/// One generation, or its gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GenerationMark {
    pub number: u64,
    /// Runs that it was learned from; `None` where it is missing. Generation 0 is made from today's settings.
    pub runs: Option<u64>,
}

/// One cell over the generations. It is followed by a point in it, so that another tuning space breaks no line.
#[derive(Clone, Debug, Serialize)]
pub struct History {
    pub cell: Cell,
    pub samples: u64,
    pub lines: Vec<Line>,
    /// Variants that had no more than the band after any training.
    pub in_band: usize,
    pub best: String,
    /// The generation since which it is at rest.
    pub stable_since: Option<u64>,
    pub settled: String,
}

/// The probability of one variant in each generation; `None` in those that are missing.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub variant: String,
    pub probabilities: Vec<Option<f64>>,
}

/// A generation as it is drawn; `None` for a missing one.
pub struct Past {
    pub number: u64,
    pub runs: u64,
    pub model: Option<Model>,
}

/// Something in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    collective: Collective,
    bytes: u64,
    nodes: u64,
    ppn: u64,
}

impl Point {
    /// The geometric middle of the bytes, the most nodes and ranks on them.
    pub fn of(cell: &Cell) -> Point {
        let top = |range: Range| range.hi.map_or(range.lo, |hi| hi.saturating_sub(1));
        let least = cell.bytes.lo;
        let middle = match cell.bytes.hi {
            Some(hi) => {
                ((least.max(1) as f64) * (hi.saturating_sub(1).max(1) as f64)).sqrt() as u64
            }
            None => least,
        };
        Point {
            collective: cell.collective,
            bytes: if cell.bytes.contains(middle) {
                middle
            } else {
                least
            },
            nodes: top(cell.nodes),
            ppn: top(cell.ppn),
        }
    }

    pub fn is_in(&self, cell: &Cell) -> bool {
        cell.contains(self.collective, self.bytes, self.nodes, self.ppn)
    }
}

pub fn histories(
    generation: &Generation,
    past: &[Past],
    question: &Question,
    explore_total: f64,
) -> Histories {
    let measured = |cell: &&CellStatistics| cell.samples() > 0 && question.holds(&cell.cell);
    let mut cells: Vec<&CellStatistics> = generation.cells.iter().filter(measured).collect();
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.samples()));
    let marks = past.iter().map(|one| GenerationMark {
        number: one.number,
        runs: one.model.as_ref().map(|_| one.runs),
    });
    let followed: Vec<Option<u64>> = follow(&cells, past)
        .iter()
        .map(|entries| stable_since(past, entries))
        .collect();
    // Where nothing was ever to choose from, nothing moves.
    cells.retain(|cell| cell.variants.len() > 1);
    cells.truncate(PANELS_MAX);
    let entries = follow(&cells, past);
    Histories {
        generations: marks.collect(),
        cells: followed.len(),
        cells_at_rest: followed.iter().flatten().count(),
        explore_total,
        panels: cells
            .iter()
            .zip(&entries)
            .map(|(cell, entries)| history(cell, past, entries))
            .collect(),
    }
}

/// Of each cell its entry in every generation that has one.
fn follow<'a>(cells: &[&CellStatistics], past: &'a [Past]) -> Vec<Vec<Option<&'a CellModel>>> {
    let mut found: Vec<Vec<Option<&CellModel>>> = vec![Vec::new(); cells.len()];
    for one in past {
        let mut of_collective: BTreeMap<Collective, Vec<&CellModel>> = BTreeMap::new();
        for entry in one.model.iter().flat_map(|model| &model.cells) {
            of_collective
                .entry(entry.cell.collective)
                .or_default()
                .push(entry);
        }
        for (cell, entries) in cells.iter().zip(&mut found) {
            let point = Point::of(&cell.cell);
            let known = of_collective
                .get(&cell.cell.collective)
                .into_iter()
                .flatten();
            entries.push(known.copied().find(|entry| point.is_in(&entry.cell)));
        }
    }
    found
}

fn history(cell: &CellStatistics, past: &[Past], entries: &[Option<&CellModel>]) -> History {
    let mut names: Vec<&str> = Vec::new();
    for share in entries.iter().flatten().flat_map(|entry| &entry.variants) {
        if !names.contains(&share.name.as_str()) {
            names.push(&share.name);
        }
    }
    let line = |name: &str| Line {
        variant: name.to_owned(),
        probabilities: entries
            .iter()
            .map(|entry| entry.map(|entry| probability(entry, name)))
            .collect(),
    };
    // Before any training all are alike.
    let trained = |line: &Line| -> Vec<f64> {
        let all = past.iter().zip(&line.probabilities);
        let known = all.filter_map(|(one, value)| Some((one.number, (*value)?)));
        let later: Vec<f64> = known
            .clone()
            .filter(|(number, _)| *number > 0)
            .map(|(_, value)| value)
            .collect();
        if later.is_empty() {
            known.map(|(_, value)| value).collect()
        } else {
            later
        }
    };
    let most = |line: &Line| trained(line).into_iter().fold(0.0, f64::max);
    let last = |line: &Line| {
        line.probabilities
            .iter()
            .flatten()
            .next_back()
            .copied()
            .unwrap_or(0.0)
    };
    let all = names.len();
    let mut lines: Vec<Line> = names.into_iter().map(line).collect();
    lines.retain(|line| most(line) > BAND);
    lines.sort_by(|a, b| {
        last(b)
            .total_cmp(&last(a))
            .then(most(b).total_cmp(&most(a)))
    });
    History {
        cell: cell.cell,
        samples: cell.samples(),
        in_band: all - lines.len(),
        lines,
        best: cell.best.clone(),
        stable_since: stable_since(past, entries),
        settled: cell.settled.clone(),
    }
}

fn probability(entry: &CellModel, name: &str) -> f64 {
    let mut shares = entry.variants.iter();
    shares
        .find(|share| share.name == name)
        .map_or(0.0, |share| share.probability)
}

/// The generation since which nothing moved, where that is long enough ago.
fn stable_since(past: &[Past], entries: &[Option<&CellModel>]) -> Option<u64> {
    let known: Vec<(u64, &CellModel)> = past
        .iter()
        .zip(entries)
        .filter_map(|(one, entry)| Some((one.number, (*entry)?)))
        .collect();
    let still = |pair: &&[(u64, &CellModel)]| {
        let (before, after) = (pair[0].1, pair[1].1);
        let names = before.variants.iter().chain(&after.variants);
        let moved = names.map(|share| {
            (probability(before, &share.name) - probability(after, &share.name)).abs()
        });
        before.best == after.best && moved.fold(0.0, f64::max) <= MOVED_MAX + 1e-9
    };
    let pairs: Vec<&[(u64, &CellModel)]> = known.windows(2).collect();
    let at_rest = pairs.iter().rev().take_while(|pair| still(pair)).count();
    (at_rest >= TRAININGS_AT_REST).then(|| known[known.len() - 1 - at_rest].0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::model::{Share, Source};

    fn cell(lo: u64, hi: Option<u64>) -> Cell {
        let one = Range { lo: 1, hi: Some(2) };
        Cell {
            collective: Collective::Allreduce,
            bytes: Range { lo, hi },
            nodes: one,
            ppn: Range { lo: 5, hi: Some(9) },
        }
    }

    fn entry(first: f64) -> CellModel {
        let share = |name: &str, probability| Share {
            name: name.to_owned(),
            probability,
        };
        CellModel {
            cell: cell(0, Some(16)),
            source: Source::Measured,
            best: "a".to_owned(),
            gain: 1.0,
            native: None,
            measured_ranks: None,
            variants: vec![share("a", first), share("b", 1.0 - first)],
        }
    }

    fn since(shares: &[f64]) -> Option<u64> {
        let past: Vec<Past> = (0..shares.len() as u64)
            .map(|number| Past {
                number,
                runs: 0,
                model: None,
            })
            .collect();
        let entries: Vec<CellModel> = shares.iter().map(|share| entry(*share)).collect();
        stable_since(&past, &entries.iter().map(Some).collect::<Vec<_>>())
    }

    #[test]
    fn a_cell_is_at_rest_after_three_trainings_that_moved_nothing() {
        assert_eq!(since(&[0.5, 0.9, 0.91, 0.9, 0.92]), Some(1));
        assert_eq!(since(&[0.5, 0.9, 0.91, 0.9]), None);
        assert_eq!(since(&[0.9, 0.9, 0.9, 0.9, 0.7]), None);
        assert_eq!(since(&[]), None);
    }

    #[test]
    fn a_point_is_in_its_cell_whatever_its_ends() {
        for (lo, hi) in [(0, Some(16)), (0, Some(1)), (16, Some(64)), (1 << 22, None)] {
            let cell = cell(lo, hi);
            assert!(Point::of(&cell).is_in(&cell), "{lo} {hi:?}");
        }
    }
}
