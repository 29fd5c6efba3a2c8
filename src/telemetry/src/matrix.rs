//! Who gives how much to whom.

mod picture;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::FolderError;
use crate::folder::Folder;
use crate::rows::{self, Partner};
use crate::text::{percent, table};

pub use picture::svg;

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Freight {
    Ghost,
    Flux,
    Block,
    #[default]
    All,
}

impl std::str::FromStr for Freight {
    type Err = String;

    fn from_str(name: &str) -> Result<Freight, String> {
        match name {
            "ghost" => Ok(Freight::Ghost),
            "flux" => Ok(Freight::Flux),
            "block" => Ok(Freight::Block),
            "all" => Ok(Freight::All),
            _ => Err("ghost, flux, block and all are possible".into()),
        }
    }
}

impl Freight {
    fn covers(self, kind: &str) -> bool {
        match self {
            Freight::Ghost => kind == "ghost",
            Freight::Flux => kind == "flux",
            Freight::Block => kind == "block",
            Freight::All => true,
        }
    }
}

/// Rank `from` gives rank `to`, in a step on the average, or in the whole job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    pub from: u32,
    pub to: u32,
    pub messages: f64,
    pub bytes: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrix {
    pub kind: Freight,
    /// The first and the last step; `None` for the whole job, of whose steps nothing is known.
    pub steps: Option<[u64; 2]>,
    pub n_ranks: u32,
    pub cells: Vec<Cell>,
    pub messages_per_rank: f64,
    pub bytes_per_message: f64,
    pub partners_mean: f64,
    pub partners_max: usize,
    /// Share of the bytes that go to the next rank by number, and at most 8 away.
    pub to_next: f64,
    pub to_near: f64,
    /// Share of the bytes that leave their node, where nodes are known.
    pub between_nodes: Option<f64>,
    pub warnings: Vec<String>,
}

/// Sums up who gave what to whom, over all steps or in one.
///
/// Errors: no partners, or none in the step.
pub fn matrix(folder: &Folder, kind: Freight, step: Option<u64>) -> Result<Matrix, FolderError> {
    folder.analysed(|| of_folder(folder, kind, step))
}

fn of_folder(folder: &Folder, kind: Freight, step: Option<u64>) -> Result<Matrix, FolderError> {
    let partners = rows::partners(folder)?;
    let places = rows::places(folder);
    let node_of: BTreeMap<u32, u32> = places.iter().map(|p| (p.rank, p.node)).collect();
    let mut matrix = of_rows(&partners, &node_of, kind, step);
    if matrix.cells.is_empty() {
        let last = partners.iter().map(|row| row.last_step).max().unwrap_or(0);
        let when = step.map_or("in any step".into(), |step| {
            format!("in step {step} of {last}")
        });
        return Err(FolderError::TooLittle {
            folder: folder.path.clone(),
            reason: format!("no rank gave another one anything of this kind {when}"),
        });
    }
    matrix.warnings = folder.warnings();
    Ok(matrix)
}

/// Sums up rows of a job that is not known by steps, with so many ranks.
pub(crate) fn of_whole_job(partners: &[Partner], n_ranks: u32) -> Matrix {
    let ranks = (0..n_ranks).map(|rank| (rank, 0)).collect();
    Matrix {
        steps: None,
        between_nodes: None,
        ..of_rows(partners, &ranks, Freight::All, None)
    }
}

fn of_rows(
    partners: &[Partner],
    node_of: &BTreeMap<u32, u32>,
    kind: Freight,
    step: Option<u64>,
) -> Matrix {
    let holds =
        |row: &&Partner| step.is_none_or(|step| (row.first_step..=row.last_step).contains(&step));
    let last = partners.iter().map(|row| row.last_step).max().unwrap_or(0);
    let first = partners.iter().map(|row| row.first_step).min().unwrap_or(0);
    let mut sums: BTreeMap<(u32, u32), (f64, f64)> = BTreeMap::new();
    for row in partners
        .iter()
        .filter(holds)
        .filter(|row| kind.covers(&row.kind))
    {
        let steps = match step {
            // A span of steps with one plan: each has its part of it.
            Some(_) => row.last_step - row.first_step + 1,
            None => last - first + 1,
        };
        let (messages, bytes) = sums.entry((row.rank, row.partner)).or_default();
        *messages += row.messages as f64 / steps as f64;
        *bytes += row.bytes as f64 / steps as f64;
    }
    let ranks = partners.iter().flat_map(|row| [row.rank, row.partner]);
    let n_ranks = ranks
        .chain(node_of.keys().copied())
        .max()
        .map_or(0, |rank| rank + 1);
    let cells: Vec<Cell> = sums
        .into_iter()
        .map(|((from, to), (messages, bytes))| Cell {
            from,
            to,
            messages,
            bytes,
        })
        .collect();
    let sum = |of: fn(&Cell) -> f64| cells.iter().map(of).sum::<f64>();
    let (messages, bytes) = (sum(|c| c.messages), sum(|c| c.bytes));
    let share = |of: &dyn Fn(&Cell) -> bool| {
        let part: f64 = cells
            .iter()
            .filter(|cell| of(cell))
            .map(|cell| cell.bytes)
            .sum();
        if bytes > 0.0 { part / bytes } else { 0.0 }
    };
    let mut partners_of = vec![0usize; n_ranks as usize];
    cells
        .iter()
        .for_each(|cell| partners_of[cell.from as usize] += 1);
    let known = !node_of.is_empty();
    Matrix {
        kind,
        steps: Some(step.map_or([first, last], |step| [step, step])),
        n_ranks,
        messages_per_rank: messages / f64::from(n_ranks.max(1)),
        bytes_per_message: bytes / messages.max(1e-9),
        partners_mean: partners_of.iter().sum::<usize>() as f64 / f64::from(n_ranks.max(1)),
        partners_max: partners_of.iter().copied().max().unwrap_or(0),
        to_next: share(&|cell| cell.from.abs_diff(cell.to) == 1),
        to_near: share(&|cell| cell.from.abs_diff(cell.to) <= 8),
        between_nodes: known
            .then(|| share(&|cell| node_of.get(&cell.from) != node_of.get(&cell.to))),
        cells,
        warnings: Vec::new(),
    }
}

impl Matrix {
    /// A line for each pair.
    pub fn csv(&self) -> String {
        let per = self.steps.map_or("", |_| "_per_step");
        let mut text = format!("from,to,messages{per},bytes{per}\n");
        for cell in &self.cells {
            text += &format!(
                "{},{},{:.3},{:.1}\n",
                cell.from, cell.to, cell.messages, cell.bytes
            );
        }
        text
    }

    pub fn text(&self) -> String {
        let mut text = format!(
            "{}{} ranks with {:.1} partners each ({} at most); {:.1} messages a rank{} of {:.0} bytes\n\
             {} of the bytes go to the next rank by number, {} at most 8 away",
            self.steps.map_or(String::new(), |[first, last]| format!(
                "steps {first} to {last}: "
            )),
            self.n_ranks,
            self.partners_mean,
            self.partners_max,
            self.messages_per_rank,
            self.steps.map_or("", |_| " and step"),
            self.bytes_per_message,
            percent(self.to_next),
            percent(self.to_near)
        );
        if let Some(share) = self.between_nodes {
            text += &format!(", {} leave their node", percent(share));
        }
        let mut heaviest: Vec<&Cell> = self.cells.iter().collect();
        heaviest.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
        let rows = heaviest.iter().take(10).map(|cell| {
            vec![
                format!("{} -> {}", cell.from, cell.to),
                format!("{:.1}", cell.messages),
                format!("{:.0}", cell.bytes),
            ]
        });
        text += "\n\n";
        text += &table(
            &match self.steps {
                Some(_) => ["heaviest", "messages a step", "bytes a step"],
                None => ["heaviest", "messages", "bytes"],
            },
            &rows.collect::<Vec<_>>(),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(steps: [u64; 2], rank: u32, partner: u32, bytes: u64, kind: &str) -> Partner {
        Partner {
            first_step: steps[0],
            last_step: steps[1],
            rank,
            partner,
            messages: 2,
            bytes,
            kind: kind.into(),
        }
    }

    #[test]
    fn a_step_has_its_part_of_the_plan_that_held_and_kinds_are_told_apart() {
        let rows = [
            row([1, 5], 0, 1, 500, "ghost"),
            row([6, 10], 0, 1, 1000, "ghost"),
            row([6, 10], 0, 9, 100, "block"),
        ];
        let nodes = BTreeMap::from([(0, 0), (1, 0), (9, 1)]);
        let all = of_rows(&rows, &nodes, Freight::All, None);
        assert_eq!(all.cells[0].bytes, 150.0, "over ten steps");
        assert_eq!(
            (all.n_ranks, all.partners_max, all.steps),
            (10, 2, Some([1, 10]))
        );
        let between = all.between_nodes.expect("known");
        assert!((between - 100.0 / 1600.0).abs() < 1e-12);
        assert!((all.to_next - 1500.0 / 1600.0).abs() < 1e-12);
        let of_step = of_rows(&rows, &nodes, Freight::Ghost, Some(7));
        assert_eq!(of_step.cells.len(), 1);
        assert_eq!(of_step.cells[0].bytes, 200.0);
        assert!(of_rows(&rows, &nodes, Freight::Flux, None).cells.is_empty());
        assert_eq!(all.csv().lines().count(), 3);
        let svg = svg(&all);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"));
    }
}
