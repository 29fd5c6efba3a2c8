//! Whether these data can be trusted: does work explain time, and what comes on top of it?

mod cells;

mod processors;
mod spikes;
mod variance;
mod waiting;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::FolderError;
use crate::folder::Folder;
use crate::health::{Pace, inflation};
use crate::rows::{self, Block};
use crate::statistics::{mean, median, pearson, spearman};
use crate::text::{percent, table, time};
use crate::windows::Run;
use cells::{OfStep, by_rank_and_step};

use processors::processors;

pub use processors::{Burdened, Processor};
pub use spikes::Spikes;
pub use variance::Variance;
pub use waiting::Waiting;

/// Of time against what was sent: the median over the groups, each a step or a rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Correlation {
    pub time: &'static str,
    pub against: &'static str,
    pub over: &'static str,
    pub pearson: Option<f64>,
    pub spearman: Option<f64>,
    pub r_squared: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Usable {
    pub usable: bool,
    /// Of block times against the mean of their level, class and iterations, as logarithms.
    pub r_squared: Option<f64>,
    /// How much a rank's pace varies from step to step.
    pub step_cv: Option<f64>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Noise {
    pub correlations: Vec<Correlation>,
    pub variance: Variance,
    pub waiting: Waiting,
    pub spikes: Vec<Spikes>,
    pub processors: Vec<Processor>,
    /// The core whose ranks lose it more than others lose theirs.
    pub burdened: Option<Burdened>,
    pub verdict: Usable,
    pub warnings: Vec<String>,
}

/// Judges the data in a folder.
///
/// Errors: no windows.
pub fn noise(folder: &Folder) -> Result<Noise, FolderError> {
    folder.analysed(|| of_folder(folder))
}

fn of_folder(folder: &Folder) -> Result<Noise, FolderError> {
    let run = Run::read(folder, &(0..=u64::MAX))?;
    let blocks = rows::blocks(folder);
    let cells = by_rank_and_step(folder, &run);
    let host_of: BTreeMap<u32, &str> = run.places.iter().map(|p| (p.rank, &*p.host)).collect();
    let processors = processors(&cells, &run.places, &host_of);
    let spikes = spikes::spikes(&run, &host_of);
    let verdict = verdict(&blocks, &processors, &spikes);
    Ok(Noise {
        correlations: correlations(&cells),
        variance: variance::shares(&cells, &blocks, &run.node_of()),
        waiting: waiting::waiting(&cells),
        spikes,
        burdened: processors::burdened(&processors),
        processors,
        verdict,
        warnings: folder.warnings(),
    })
}

fn correlations(cells: &BTreeMap<(u32, u64), OfStep>) -> Vec<Correlation> {
    type Of = fn(&OfStep) -> f64;
    type Group = fn((u32, u64)) -> u64;
    let times: [(&str, Of); 2] = [("wait", |c| c.wait), ("pack + unpack", |c| c.packing)];
    let amounts: [(&str, Of); 2] = [("messages", |c| c.messages), ("bytes", |c| c.bytes)];
    let groups: [(&str, Group); 2] = [
        ("ranks", |(_, step)| step),
        ("steps", |(rank, _)| rank.into()),
    ];
    let mut found = Vec::new();
    for (time, time_of) in times {
        for (against, amount_of) in amounts {
            for (over, group_of) in groups {
                let mut by_group: BTreeMap<u64, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
                for (&key, cell) in cells {
                    let (x, y) = by_group.entry(group_of(key)).or_default();
                    x.push(amount_of(cell));
                    y.push(time_of(cell));
                }
                let middle = |of: fn(&[f64], &[f64]) -> Option<f64>| {
                    let all: Vec<f64> = by_group.values().filter_map(|(x, y)| of(x, y)).collect();
                    (!all.is_empty()).then(|| median(&all))
                };
                found.push(Correlation {
                    time,
                    against,
                    over,
                    pearson: middle(pearson),
                    spearman: middle(spearman),
                    r_squared: middle(|x, y| pearson(x, y).map(|r| r * r)),
                });
            }
        }
    }
    found
}

const R_SQUARED_MIN: f64 = 0.8;
const STEP_CV_MAX: f64 = 0.1;

fn verdict(blocks: &[Block], processors: &[Processor], spikes: &[Spikes]) -> Usable {
    let r_squared = variance::r_squared_of_blocks(blocks);
    let step_cv = step_cv(blocks);
    let steady = step_cv.is_some_and(|cv| cv <= STEP_CV_MAX);
    let explained = r_squared.is_none_or(|r| r >= R_SQUARED_MIN);
    let off = processors::off(processors.iter());
    let spiked = spikes.iter().map(|s| s.share).fold(0.0, f64::max);
    let burdened = processors::burdened(processors);
    let worst = processors.iter().max_by(|a, b| a.off.total_cmp(&b.off));
    let text = match (&burdened, worst) {
        _ if blocks.is_empty() => "blocks were not recorded: `--telemetry_blocks` would say whether costs can be trusted".into(),
        (Some(core), _) if steady && explained => format!("costs are usable, but {}", core.text()),
        _ if steady && explained && r_squared.is_some() => "costs are usable".into(),
        _ if steady && explained => "costs are usable; all blocks are of one kind".into(),
        (Some(core), _) => format!("costs are not usable: {}", core.text()),
        // Before spikes: who waits for a rank without a processor has them.
        (None, Some(worst)) if off >= processors::OFF_MUCH => format!(
            "costs are not usable: ranks were without a processor for {} of their work, rank {} most{}: pin ranks and give each a core of its own",
            percent(off),
            worst.rank,
            match processors::wanderers(processors) {
                0 => String::new(),
                1 => ", and a rank moved between cores".into(),
                n => format!(", and {n} ranks moved between cores"),
            }
        ),
        _ if spiked >= 0.05 => format!(
            "costs are not usable: spikes take {} of the waiting: try another order of sends, and look at `colltune-lab telemetry health`",
            percent(spiked)
        ),
        _ if !steady => "costs are not usable: the pace varies from step to step with no cause that was recorded: look at `colltune-lab telemetry health`".into(),
        _ => "costs are not usable: level, class and iterations do not explain what blocks take".into(),
    };
    Usable {
        usable: !blocks.is_empty() && steady && explained,
        r_squared,
        step_cv,
        text,
    }
}

/// The median over ranks of their inflation's coefficient of variation over steps.
fn step_cv(blocks: &[Block]) -> Option<f64> {
    let of_rank = |steps: &BTreeMap<u64, f64>| {
        let values: Vec<f64> = steps.values().copied().collect();
        let middle = mean(&values);
        let square = values.iter().map(|x| (x - middle).powi(2)).sum::<f64>();
        (square / values.len().max(1) as f64).sqrt() / middle
    };
    let all: Vec<f64> = inflation(blocks, Pace::Mean)
        .values()
        .map(of_rank)
        .collect();
    (!all.is_empty()).then(|| median(&all))
}

impl Noise {
    pub fn text(&self) -> String {
        let number = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.2}"));
        let rows = self.correlations.iter().map(|c| {
            vec![
                format!("{} against {} over {}", c.time, c.against, c.over),
                number(c.pearson),
                number(c.spearman),
                number(c.r_squared),
            ]
        });
        let mut text = table(
            &["time against work", "Pearson", "Spearman", "R2"],
            &rows.collect::<Vec<_>>(),
        );
        text += "\n";
        text += &self.variance.text();
        text += &self.waiting.text();
        for spikes in &self.spikes {
            text += &format!("{}\n", spikes.text());
        }
        let mut ranks: Vec<&Processor> = self.processors.iter().collect();
        ranks.sort_by(|a, b| b.off.total_cmp(&a.off));
        let rows = ranks.iter().take(10).map(|rank| {
            vec![
                rank.rank.to_string(),
                rank.host.clone().unwrap_or_default(),
                percent(rank.off),
                number(rank.involuntary_per_step),
                rank.cores.to_string(),
            ]
        });
        text += "\n";
        let header = [
            "rank",
            "host",
            "off the processor",
            "forced switches a step",
            "cores seen",
        ];
        text += &table(&header, &rows.collect::<Vec<_>>());
        text += &format!(
            "\nR2 of block times {}, step_cv {}: {}.\n",
            number(self.verdict.r_squared),
            number(self.verdict.step_cv),
            self.verdict.text
        );
        text
    }
}

impl Spikes {
    pub fn text(&self) -> String {
        if self.n == 0 {
            return format!("{}: no spikes among {}", self.of, self.all);
        }
        let mut text = format!(
            "{}: {} spikes above {} among {} take {} of the time; the mean is {:.1}x the median",
            self.of,
            self.n,
            time(self.above),
            self.all,
            percent(self.share),
            self.mean_over_median
        );
        if let Some((host, share)) = &self.host {
            text += &format!("; {} are on {host}", percent(*share));
        }
        if let Some(period) = self.period_steps {
            text += &format!("; they come back every {period} steps");
        }
        if let Some(larger) = self.bytes_over_others {
            text += &format!("; their messages are {larger:.1}x as large as others'");
        }
        text
    }
}

#[cfg(test)]
mod tests;
