//! Where the time of each program's collectives goes, and which variants ran.

use std::collections::{BTreeMap, HashMap, HashSet};

use colltune_core::account::{Exit, JobSummary};
use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::space::{Cell, Range};
use colltune_db::Generation;
use colltune_db::evidence::Said;
use colltune_models::evidence::{Evidence, Shape};
use colltune_models::statistics::{CellStatistics, Contrast};
use serde::Serialize;

use crate::head::seconds;
use crate::question::Question;

/// So many programs, those with most node-hours, and so many cells of each are shown.
const PROGRAMS_MAX: usize = 20;
const CELLS_MAX: usize = 12;
/// So much of a folder's hash tells two of them apart.
const PATH_LETTERS: usize = 6;

/// All runs of one program.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    pub name: String,
    pub runs: u64,
    pub node_hours: f64,
    /// Of the whole time, the part in collectives, and of that the part that is waiting for late ranks, where known.
    pub in_collectives: f64,
    pub waiting: Option<f64>,
    /// The same of the recorded calls: where ranks share processors, runs do not tell.
    pub waiting_of_recorded: Option<f64>,
    /// How many times as fast it would be if collectives took no time but for the waiting that is known.
    pub best_possible_gain: f64,
    /// Runs that used what was learned and reckoned what they gained by it, and how many times as long they would have
    /// taken with the library's own choices.
    pub exploited: u64,
    pub estimated_gain: Option<f64>,
    /// By collective and size, all calls, the largest part first.
    pub parts: Vec<Part>,
    /// By cell and communicator, calls that were recorded, the largest first.
    pub cells: Vec<ProgramCell>,
    pub cells_left_out: usize,
}

/// One collective and range of sizes.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub collective: Collective,
    /// From so many bytes to less than 4 times as many.
    pub bytes: u64,
    pub calls: u64,
    /// Of the whole time of the runs.
    pub share: f64,
    pub waiting: Option<f64>,
    /// Calls that ran another variant than the default.
    pub tuned: f64,
}

impl Part {
    /// The sizes that it holds.
    pub fn range(&self) -> Range {
        let hi = match self.bytes {
            0 => Some(1),
            bytes => bytes.checked_mul(4),
        };
        Range { lo: self.bytes, hi }
    }
}

/// One cell on communicators of one size.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramCell {
    pub cell: Cell,
    pub n_ranks: u32,
    pub nodes: u32,
    pub ppn: u32,
    pub calls: u64,
    pub seconds: f64,
    /// Of the program's recorded time.
    pub share: f64,
    pub waiting: f64,
    /// Those that ran, the most frequent first.
    pub variants: Vec<Ran>,
    pub best: String,
}

/// How often a variant ran, of the recorded calls.
#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    pub name: String,
    pub share: f64,
    pub gain: Option<Contrast>,
}

pub fn programs(
    generation: Option<&Generation>,
    question: &Question,
    said: &Said,
    runs: &[&JobSummary],
) -> Vec<Program> {
    let ended: Vec<&JobSummary> = runs
        .iter()
        .copied()
        .filter(|run| run.exit == Exit::Finalized)
        .collect();
    let mut rows = generation.map(|generation| Rows::new(generation, question, said));
    let mut programs: Vec<(Program, Vec<&JobSummary>)> = by_file(&ended)
        .into_iter()
        .map(|(name, runs)| (of_runs(&name, &runs, question), runs))
        .collect();
    programs.sort_by(|(a, _), (b, _)| b.node_hours.total_cmp(&a.node_hours));
    programs.truncate(PROGRAMS_MAX);
    let with_cells = |(mut program, runs): (Program, Vec<&JobSummary>)| {
        if let Some(rows) = &mut rows {
            let mut cells = rows.of_jobs(&runs);
            let whole: f64 = cells.iter().map(|one| one.seconds).sum();
            let waited: f64 = cells.iter().map(|one| one.seconds * one.waiting).sum();
            program.waiting_of_recorded = (whole > 0.0).then(|| waited / whole);
            program.cells_left_out = cells.len().saturating_sub(CELLS_MAX);
            cells.truncate(CELLS_MAX);
            program.cells = cells;
        }
        program
    };
    programs.into_iter().map(with_cells).collect()
}

/// The runs of each program, by what it is called. Of two programs of one name the folder's hash tells which it is; runs
/// that do not say theirs are with the only program of the name.
fn by_file<'r>(runs: &[&'r JobSummary]) -> Vec<(String, Vec<&'r JobSummary>)> {
    let mut by_name: BTreeMap<&str, BTreeMap<&str, Vec<&JobSummary>>> = BTreeMap::new();
    for run in runs {
        let of_name = by_name.entry(&run.program).or_default();
        of_name.entry(&run.path_hash).or_default().push(run);
    }
    let mut found = Vec::new();
    for (name, mut by_path) in by_name {
        if by_path.len() == 2
            && let Some(unsaid) = by_path.remove("")
        {
            by_path.values_mut().for_each(|runs| runs.extend(&unsaid));
        }
        let is_alone = by_path.len() == 1;
        for (path, runs) in by_path {
            let told = match path {
                _ if is_alone => name.to_owned(),
                "" => format!("{name} (folder unknown)"),
                path => format!(
                    "{name} (folder {})",
                    path.get(..PATH_LETTERS).unwrap_or(path)
                ),
            };
            found.push((told, runs));
        }
    }
    found
}

/// Sums over the runs of one program.
fn of_runs(name: &str, runs: &[&JobSummary], question: &Question) -> Program {
    /// Calls, tuned calls, seconds, seconds of those that were compared, and waiting among these.
    type Sums = (u64, f64, f64, f64, f64);
    let mut parts: BTreeMap<(Collective, u64), Sums> = BTreeMap::new();
    let (mut wall, mut inside, mut compared, mut waited) = (0.0, 0.0, 0.0, 0.0);
    let mut node_hours = 0.0;
    let (mut exploited, mut tuned_s, mut default_s) = (0, 0.0, 0.0);
    for run in runs {
        wall += run.wall_s;
        if let Some(gain) = run.estimated_gain {
            exploited += 1;
            tuned_s += run.wall_s;
            default_s += run.wall_s * gain;
        }
        node_hours += run.wall_s * run.nodes as f64 / 3600.0;
        inside += run.collectives_s.mean;
        if let Some(share) = run.waiting_share {
            compared += run.collectives_s.mean;
            waited += share * run.collectives_s.mean;
        }
        for one in &run.by_collective {
            if question
                .collective
                .is_some_and(|asked| asked != one.collective)
            {
                continue;
            }
            for size in &one.by_size {
                let sums = parts.entry((one.collective, size.bytes)).or_default();
                sums.0 += size.calls;
                sums.1 += size.calls as f64 * size.tuned_share;
                sums.2 += size.seconds;
                if let Some(share) = size.waiting_share {
                    sums.3 += size.seconds;
                    sums.4 += share * size.seconds;
                }
            }
        }
    }
    let of = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let waiting = (compared > 0.0).then(|| waited / compared);
    let work = of(inside, wall) * (1.0 - waiting.unwrap_or(0.0));
    let part = |((collective, bytes), sums): ((Collective, u64), Sums)| Part {
        collective,
        bytes,
        calls: sums.0,
        share: of(sums.2, wall),
        waiting: (sums.3 > 0.0).then(|| sums.4 / sums.3),
        tuned: of(sums.1, sums.0 as f64),
    };
    let mut parts: Vec<Part> = parts.into_iter().map(part).collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    Program {
        name: name.to_owned(),
        runs: runs.len() as u64,
        node_hours,
        in_collectives: of(inside, wall),
        waiting,
        waiting_of_recorded: None,
        best_possible_gain: 1.0 / (1.0 - work).max(0.001),
        exploited,
        estimated_gain: (tuned_s > 0.0).then(|| default_s / tuned_s),
        parts,
        cells: Vec::new(),
        cells_left_out: 0,
    }
}

/// The evidence by job, with what is known of each cell.
struct Rows<'a> {
    generation: &'a Generation,
    question: &'a Question,
    by_job: HashMap<&'a str, Vec<&'a Evidence>>,
    cell_of: HashMap<Shape, Option<usize>>,
}

impl<'a> Rows<'a> {
    fn new(generation: &'a Generation, question: &'a Question, said: &'a Said) -> Rows<'a> {
        let mut by_job: HashMap<&str, Vec<&Evidence>> = HashMap::new();
        for row in &said.evidence {
            if let Some(job) = said.jobs.get(row.run as usize) {
                by_job.entry(job).or_default().push(row);
            }
        }
        Rows {
            generation,
            question,
            by_job,
            cell_of: HashMap::new(),
        }
    }

    fn cell_of(&mut self, shape: Shape) -> Option<usize> {
        let cells = &self.generation.cells;
        *self.cell_of.entry(shape).or_insert_with(|| {
            let (nodes, ppn) = (shape.nodes.into(), shape.ppn.into());
            cells.iter().position(|one| {
                one.cell
                    .contains(shape.collective, shape.message_bytes, nodes, ppn)
            })
        })
    }

    /// The cells in which some jobs recorded calls, those with most time first.
    fn of_jobs(&mut self, runs: &[&JobSummary]) -> Vec<ProgramCell> {
        let mut groups: HashMap<(usize, u32, u32, u32), Vec<&Evidence>> = HashMap::new();
        let jobs: HashSet<&str> = runs.iter().map(|run| run.job.as_str()).collect();
        let rows: Vec<&Evidence> = jobs
            .into_iter()
            .filter_map(|job| self.by_job.get(job))
            .flatten()
            .copied()
            .collect();
        for row in rows {
            let Shape {
                n_ranks,
                nodes,
                ppn,
                ..
            } = row.shape;
            if let Some(cell) = self.cell_of(row.shape) {
                groups
                    .entry((cell, n_ranks, nodes, ppn))
                    .or_default()
                    .push(row);
            }
        }
        let whole: f64 = groups.values().flatten().map(|row| seconds(row)).sum();
        let one =
            |((place, n_ranks, nodes, ppn), rows): ((usize, u32, u32, u32), Vec<&Evidence>)| {
                let statistics = &self.generation.cells[place];
                let time: f64 = rows.iter().map(|row| seconds(row)).sum();
                let work: f64 = rows
                    .iter()
                    .map(|row| row.level_ns * row.calls as f64 * row.work / 1e9)
                    .sum();
                ProgramCell {
                    cell: statistics.cell,
                    n_ranks,
                    nodes,
                    ppn,
                    calls: rows.iter().map(|row| row.calls).sum(),
                    seconds: time,
                    share: if whole > 0.0 { time / whole } else { 0.0 },
                    waiting: if time > 0.0 {
                        (1.0 - work / time).clamp(0.0, 1.0)
                    } else {
                        0.0
                    },
                    variants: ran(&rows, statistics, self.generation),
                    best: statistics.best.clone(),
                }
            };
        let mut cells: Vec<ProgramCell> = groups
            .into_iter()
            .map(one)
            .filter(|one| self.question.holds(&one.cell))
            .collect();
        cells.sort_by(|a, b| {
            let order = b.seconds.total_cmp(&a.seconds);
            order.then_with(|| (a.cell, a.n_ranks).cmp(&(b.cell, b.n_ranks)))
        });
        cells
    }
}

fn ran(rows: &[&Evidence], cell: &CellStatistics, generation: &Generation) -> Vec<Ran> {
    let known = catalogue::variants(generation.library, cell.cell.collective);
    let mut calls: BTreeMap<u16, u64> = BTreeMap::new();
    for row in rows {
        *calls.entry(row.variant).or_default() += row.calls;
    }
    let all: u64 = calls.values().sum();
    let mut ran: Vec<Ran> = calls
        .into_iter()
        .filter_map(|(variant, calls)| {
            let name = known.get(usize::from(variant))?.name.to_string();
            Some(Ran {
                gain: cell.variant(&name).and_then(|one| one.contrast),
                share: calls as f64 / all.max(1) as f64,
                name,
            })
        })
        .collect();
    ran.sort_by(|a, b| b.share.total_cmp(&a.share));
    ran
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::account::JobFacts;

    #[test]
    fn programs_of_one_name_are_told_apart_by_their_folders() {
        let run = |program: &str, path_hash: &str| {
            JobSummary::begun(JobFacts {
                program: program.to_owned(),
                path_hash: path_hash.to_owned(),
                ..JobFacts::default()
            })
        };
        let told = |runs: &[JobSummary]| {
            let runs: Vec<&JobSummary> = runs.iter().collect();
            let found = by_file(&runs).into_iter();
            found
                .map(|(name, runs)| (name, runs.len()))
                .collect::<Vec<_>>()
        };
        let named = |all: &[(&str, usize)]| {
            let owned = |(name, n): &(&str, usize)| ((*name).to_owned(), *n);
            all.iter().map(owned).collect::<Vec<_>>()
        };
        let (one, other) = (run("heat", "0123456789"), run("heat", "fedcba98"));
        let unsaid = run("heat", "");
        let alone = [one.clone(), one.clone(), run("solver", "77")];
        assert_eq!(told(&alone), named(&[("heat", 2), ("solver", 1)]));
        let both = [one.clone(), other.clone(), one.clone()];
        let apart = [("heat (folder 012345)", 2), ("heat (folder fedcba)", 1)];
        assert_eq!(told(&both), named(&apart));
        // Runs of an earlier version say no folder.
        assert_eq!(told(&[unsaid.clone(), one.clone()]), named(&[("heat", 2)]));
        let three = [unsaid, one, other];
        assert_eq!(told(&three)[0], ("heat (folder unknown)".to_owned(), 1));
    }
}
