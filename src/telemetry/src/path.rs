//! The critical path of each window: which ranks, and which of their work, decided when all could go on.
//!
//! From the last rank that came to the collective the path runs back in time. In a round of messages whose last
//! one was waited for it crosses to the rank that sent it, at the moment when that had posted; otherwise it stays.
//! So a window with K rounds has at most K + 1 ranks on its path: that is asserted for each.

mod walk;

mod picture;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::FolderError;
use crate::folder::Folder;
use crate::rows::{self, Block};
use crate::text::{percent, table, time};
use crate::windows::{Meeting, Offset, Run};

pub use picture::svg;
pub use walk::{Part, Path, Piece, Violation, critical};

/// What a message without a waiting rank may take, in nanoseconds; the clocks' uncertainty where that is more.
const PROMPT_NS: i64 = 2_000;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnPath {
    pub rank: u32,
    pub host: Option<String>,
    /// Paths that it is on, as a share of all, and its share of their time.
    pub windows: f64,
    pub time: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockOnPath {
    pub block: u64,
    pub level: u32,
    /// Time of the block in steps in which its owner was on the path, weighted by how much it was.
    pub time: f64,
    pub steps: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paths {
    pub windows: usize,
    pub has_rounds: bool,
    /// Windows by the number of ranks on their path, from one on.
    pub histogram: Vec<usize>,
    pub local: f64,
    pub two_ranks: f64,
    /// Nanoseconds on paths by part.
    pub parts: BTreeMap<&'static str, i64>,
    pub len: i64,
    pub send_first: i64,
    pub overlap: i64,
    pub ranks: Vec<OnPath>,
    pub blocks: Vec<BlockOnPath>,
    pub clocks: Vec<Offset>,
    pub violations: Vec<Violation>,
    pub longest: Option<Path>,
    pub warnings: Vec<String>,
}

/// Follows the paths of all windows of some steps.
///
/// Errors: no windows.
pub fn paths(folder: &Folder, steps: &RangeInclusive<u64>) -> Result<Paths, FolderError> {
    folder.analysed(|| of_folder(folder, steps))
}

fn of_folder(folder: &Folder, steps: &RangeInclusive<u64>) -> Result<Paths, FolderError> {
    let run = Run::read(folder, steps)?;
    if run.rounds.is_empty() {
        folder.warn(
            "there are no rounds, so paths stay on the last rank: record them with `--telemetry_rounds`".into(),
        );
    }
    let blocks = rows::blocks(folder);
    let mut paths = of_run(&run, &blocks);
    paths.warnings = folder.warnings();
    Ok(paths)
}

/// Ranks and blocks that are listed.
const MOST: usize = 10;

fn of_run(run: &Run, blocks: &[Block]) -> Paths {
    let tolerance = PROMPT_NS.max(run.uncertainty());
    let has_rounds = !run.rounds.is_empty();
    let (mut found, mut violations) = (Vec::new(), Vec::new());
    for meeting in &run.meetings {
        let rounds = run.rounds.get(&(meeting.step, meeting.window));
        let path = match rounds {
            Some(rounds) => critical(meeting, rounds, tolerance),
            None if has_rounds => critical(meeting, &[], tolerance),
            None => critical(&without_rounds(meeting), &[], tolerance),
        };
        match path {
            Ok(path) => found.push(path),
            Err(violation) => violations.push(violation),
        }
    }
    let mut histogram = vec![
        0;
        found
            .iter()
            .map(|path| path.ranks().len())
            .max()
            .unwrap_or(0)
    ];
    let mut parts: BTreeMap<&str, i64> = Part::ALL.map(|part| (part.name(), 0)).into();
    let mut windows: BTreeMap<u32, usize> = BTreeMap::new();
    let mut times: BTreeMap<u32, i64> = BTreeMap::new();
    let mut weights: BTreeMap<(u64, u32), f64> = BTreeMap::new();
    for path in &found {
        let ranks = path.ranks();
        if !ranks.is_empty() {
            histogram[ranks.len() - 1] += 1;
        }
        ranks
            .iter()
            .for_each(|&rank| *windows.entry(rank).or_default() += 1);
        for piece in &path.pieces {
            let len = piece.end - piece.begin;
            *parts.entry(piece.part.name()).or_default() += len;
            // A message under way is no rank's work.
            if piece.part != Part::Transit {
                *times.entry(piece.rank).or_default() += len;
                *weights.entry((path.step, piece.rank)).or_default() += len as f64;
            }
        }
    }
    let n = found.len().max(1) as f64;
    let len: i64 = found.iter().map(Path::len).sum();
    let host_of: BTreeMap<u32, &str> = run.places.iter().map(|p| (p.rank, &*p.host)).collect();
    let whole = times.values().sum::<i64>().max(1) as f64;
    let mut ranks: Vec<OnPath> = windows
        .into_iter()
        .map(|(rank, windows)| OnPath {
            rank,
            host: host_of.get(&rank).map(|host| (*host).to_owned()),
            windows: windows as f64 / n,
            time: times.get(&rank).copied().unwrap_or(0) as f64 / whole,
        })
        .collect();
    ranks.sort_by(|a, b| b.time.total_cmp(&a.time));
    let share = |n_ranks: usize| histogram.get(n_ranks - 1).copied().unwrap_or(0) as f64 / n;
    Paths {
        windows: found.len(),
        has_rounds,
        local: share(1),
        two_ranks: share(2),
        parts,
        len,
        send_first: found.iter().map(|path| path.send_first).sum(),
        overlap: found.iter().map(|path| path.overlap).sum(),
        ranks,
        blocks: blocks_on_path(blocks, &weights),
        clocks: run.clocks.clone(),
        violations,
        longest: found.into_iter().max_by_key(Path::len),
        histogram,
        warnings: Vec::new(),
    }
}

fn without_rounds(meeting: &Meeting) -> Meeting {
    let mut meeting = meeting.clone();
    meeting
        .ranks
        .iter_mut()
        .for_each(|window| window.rounds = 0);
    meeting
}

/// Blocks by their time in steps whose paths ran over their owners; a step counts by the owner's share of it.
fn blocks_on_path(blocks: &[Block], weights: &BTreeMap<(u64, u32), f64>) -> Vec<BlockOnPath> {
    let mut of_step: BTreeMap<u64, f64> = BTreeMap::new();
    for ((step, _), weight) in weights {
        *of_step.entry(*step).or_default() += weight;
    }
    let mut found: BTreeMap<u64, BlockOnPath> = BTreeMap::new();
    for block in blocks {
        let Some(weight) = weights.get(&(block.step, block.rank)) else {
            continue;
        };
        let share = weight / of_step[&block.step].max(1.0);
        let of = found.entry(block.block).or_insert(BlockOnPath {
            block: block.block,
            level: block.level,
            time: 0.0,
            steps: 0,
        });
        of.time += share * block.compute as f64;
        of.steps += 1;
    }
    let mut found: Vec<BlockOnPath> = found.into_values().collect();
    found.sort_by(|a, b| b.time.total_cmp(&a.time));
    found.truncate(MOST);
    found
}

impl Paths {
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} windows; the path of {} is one rank's, of {} two ranks'; {} on paths in all\n",
            self.windows,
            percent(self.local),
            percent(self.two_ranks),
            time(self.len as f64)
        );
        for clock in &self.clocks {
            text += &format!(
                "clock {} is {} ahead of clock 0, gains {} in a second, and is known to {}\n",
                clock.clock,
                time(clock.ahead as f64),
                time(clock.drift * 1e9),
                time(clock.uncertainty as f64)
            );
        }
        let rows = self.histogram.iter().enumerate();
        let rows = rows.map(|(n, windows)| vec![(n + 1).to_string(), windows.to_string()]);
        text += "\n";
        text += &table(&["ranks on the path", "windows"], &rows.collect::<Vec<_>>());
        let rows = self.parts.iter().map(|(part, ns)| {
            let share = *ns as f64 / self.len.max(1) as f64;
            vec![(*part).to_owned(), time(*ns as f64), percent(share)]
        });
        text += "\n";
        text += &table(&["part", "on paths", "share"], &rows.collect::<Vec<_>>());
        let rows = self.ranks.iter().take(MOST).map(|rank| {
            vec![
                rank.rank.to_string(),
                rank.host.clone().unwrap_or_default(),
                percent(rank.windows),
                percent(rank.time),
            ]
        });
        text += "\n";
        let header = ["rank", "host", "on paths", "of their time"];
        text += &table(&header, &rows.collect::<Vec<_>>());
        if !self.blocks.is_empty() {
            let rows = self.blocks.iter().map(|block| {
                vec![
                    format!("{:#x}", block.block),
                    block.level.to_string(),
                    time(block.time),
                    block.steps.to_string(),
                ]
            });
            text += "\n";
            let header = ["block", "level", "time on paths", "steps"];
            text += &table(&header, &rows.collect::<Vec<_>>());
        }
        if self.has_rounds {
            text += &format!(
                "\nPosting messages before own copies would save up to {} ({}), overlap could hide up to {} ({}).\n",
                time(self.send_first as f64),
                percent(self.send_first as f64 / self.len.max(1) as f64),
                time(self.overlap as f64),
                percent(self.overlap as f64 / self.len.max(1) as f64),
            );
            text += match self.violations.len() {
                0 => "No path has more ranks than its rounds allow.\n",
                _ => "",
            };
        }
        for violation in self.violations.iter().take(MOST) {
            text += &format!(
                "left out: step {} window {}: {}\n",
                violation.step, violation.window, violation.what
            );
        }
        if self.violations.len() > MOST {
            text += &format!("... and {} more windows\n", self.violations.len() - MOST);
        }
        text
    }
}

#[cfg(test)]
mod tests;
