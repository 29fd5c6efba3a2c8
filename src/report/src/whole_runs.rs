//! Figure 5: the whole time of runs without the tuner, while it learned, and with what it learned.

use std::collections::BTreeMap;

use colltune_core::account::{Exit, JobSummary};
use colltune_statistics::{Interval, median_ratio, quantile, sorted};
use serde::Serialize;

use crate::question::Question;

/// So many runs of the default, and of another kind, make a panel.
const RUNS_LEAST: usize = 5;
const PANELS_MAX: usize = 12;
/// Beyond these the points are thinned; the box is of them all.
const POINTS_MAX: usize = 60;

/// The panels, and what is missing to others.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WholeRuns {
    pub panels: Vec<RunPanel>,
    pub panels_left_out: usize,
    /// Programs with too few runs to compare: name and layout, runs without the tuner, runs with it.
    pub too_few: Vec<(String, usize, usize)>,
    /// Runs without an end, which are in no box.
    pub without_end: usize,
}

/// Runs of one program with the same arguments or label on the same layout.
#[derive(Clone, Debug, Serialize)]
pub struct RunPanel {
    pub program: String,
    pub label: String,
    pub arguments_hash: String,
    pub nodes: u64,
    pub ppn: u64,
    pub ranks: u64,
    pub boxes: Vec<RunBox>,
    /// Of the first runs that explored over the default: what trying costs, of the median whole time.
    pub overhead: Option<Interval>,
    /// The default over the last runs that exploited.
    pub gain: Option<Interval>,
    /// Runs that explored before the median was below the default's.
    pub runs_to_gain: Option<usize>,
}

/// How runs were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "generation")]
pub enum Kind {
    Default,
    Tuned(u64),
    Exploited(u64),
}

impl Kind {
    fn of(run: &JobSummary) -> Option<Kind> {
        match run.mode.as_str() {
            "off" => Some(Kind::Default),
            "explore" => Some(Kind::Tuned(run.generation)),
            "exploit" => Some(Kind::Exploited(run.generation)),
            _ => None,
        }
    }

    /// As the paper writes it.
    pub fn name(self) -> String {
        match self {
            Kind::Default => "Default".to_owned(),
            Kind::Tuned(generation) => format!("Tuned [{generation}]"),
            Kind::Exploited(generation) => format!("[{generation}*]"),
        }
    }
}

/// The whole times of runs of one kind: seconds.
#[derive(Clone, Debug, Serialize)]
pub struct RunBox {
    #[serde(flatten)]
    pub kind: Kind,
    pub runs: usize,
    pub quartiles: [f64; 3],
    /// The last values within 1.5 interquartile ranges of the box.
    pub whiskers: [f64; 2],
    /// Single runs, thinned where there are very many.
    pub times: Vec<f64>,
}

impl RunBox {
    fn of(kind: Kind, times: &[f64]) -> RunBox {
        let times = sorted(times.to_vec());
        let quartiles = [0.25, 0.5, 0.75].map(|q| quantile(&times, q));
        let reach = 1.5 * (quartiles[2] - quartiles[0]);
        let mut inside = times
            .iter()
            .filter(|time| (quartiles[0] - reach..=quartiles[2] + reach).contains(*time));
        let step = times.len().div_ceil(POINTS_MAX).max(1);
        RunBox {
            kind,
            runs: times.len(),
            quartiles,
            whiskers: [
                inside.clone().next().copied().unwrap_or(quartiles[0]),
                inside.next_back().copied().unwrap_or(quartiles[2]),
            ],
            times: times.iter().step_by(step).copied().collect(),
        }
    }
}

pub fn whole_runs(runs: &[&JobSummary], question: &Question) -> WholeRuns {
    let mut groups: BTreeMap<_, BTreeMap<Kind, Vec<f64>>> = BTreeMap::new();
    let mut found = WholeRuns::default();
    for run in runs {
        if question
            .label
            .as_ref()
            .is_some_and(|label| *label != run.label)
        {
            continue;
        }
        let of_shape = |shape: crate::Shape| {
            (u64::from(shape.nodes), u64::from(shape.ppn)) == (run.nodes, run.ppn)
        };
        if !question.shape.is_none_or(of_shape) {
            continue;
        }
        if run.exit == Exit::Missing {
            found.without_end += 1;
            continue;
        }
        let Some(kind) = Kind::of(run) else { continue };
        // A label says that arguments do not matter.
        let hash = if run.label.is_empty() {
            run.arguments_hash.as_str()
        } else {
            ""
        };
        let same = (
            run.program.as_str(),
            run.label.as_str(),
            hash,
            run.nodes,
            run.ppn,
            run.ranks,
        );
        let times = groups.entry(same).or_default().entry(kind).or_default();
        times.push(run.wall_s);
    }
    for ((program, label, hash, nodes, ppn, ranks), kinds) in groups {
        let n_default = kinds.get(&Kind::Default).map_or(0, Vec::len);
        let others = kinds.iter().filter(|(kind, _)| **kind != Kind::Default);
        let most = others
            .clone()
            .map(|(_, times)| times.len())
            .max()
            .unwrap_or(0);
        if n_default < RUNS_LEAST || most < RUNS_LEAST {
            let with = others.map(|(_, times)| times.len()).sum();
            let name = if label.is_empty() { program } else { label };
            let name = format!("{name} on {nodes} × {ppn}");
            found.too_few.push((name, n_default, with));
            continue;
        }
        found.panels.push(RunPanel {
            program: program.to_owned(),
            label: label.to_owned(),
            arguments_hash: hash.to_owned(),
            nodes,
            ppn,
            ranks,
            overhead: first_of(&kinds, |kind| matches!(kind, Kind::Tuned(0)))
                .map(|tuned| median_ratio(tuned, &kinds[&Kind::Default])),
            gain: last_of(&kinds, |kind| matches!(kind, Kind::Exploited(_)))
                .map(|exploited| median_ratio(&kinds[&Kind::Default], exploited)),
            runs_to_gain: runs_to_gain(&kinds),
            boxes: kinds
                .iter()
                .map(|(kind, times)| RunBox::of(*kind, times))
                .collect(),
        });
    }
    found.panels.sort_by_key(|panel| {
        std::cmp::Reverse(panel.boxes.iter().map(|one| one.runs).sum::<usize>())
    });
    found.panels_left_out = found.panels.len().saturating_sub(PANELS_MAX);
    found.panels.truncate(PANELS_MAX);
    found
}

fn first_of(kinds: &BTreeMap<Kind, Vec<f64>>, wanted: fn(&Kind) -> bool) -> Option<&Vec<f64>> {
    let mut of_kind = kinds.iter().filter(|(kind, _)| wanted(kind));
    of_kind.next().map(|(_, times)| times)
}

fn last_of(kinds: &BTreeMap<Kind, Vec<f64>>, wanted: fn(&Kind) -> bool) -> Option<&Vec<f64>> {
    let mut of_kind = kinds.iter().filter(|(kind, _)| wanted(kind));
    of_kind.next_back().map(|(_, times)| times)
}

fn runs_to_gain(kinds: &BTreeMap<Kind, Vec<f64>>) -> Option<usize> {
    let default = colltune_statistics::median(kinds.get(&Kind::Default)?);
    let mut before = 0;
    for (kind, times) in kinds {
        if let Kind::Tuned(_) = kind {
            if colltune_statistics::median(times) < default {
                return Some(before);
            }
            before += times.len();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::account::{JobFacts, KINDS};

    fn run(mode: &str, generation: u64, seconds: f64) -> JobSummary {
        let facts = JobFacts {
            job: format!("{mode}{generation}{seconds}"),
            program: "solver".to_owned(),
            mode: mode.to_owned(),
            generation,
            ranks: 8,
            nodes: 1,
            ppn: 8,
            wall_ns: (seconds * 1e9) as u64,
            ..JobFacts::default()
        };
        JobSummary::new(facts, &vec![Default::default(); KINDS])
    }

    #[test]
    fn boxes_stand_in_the_papers_order_and_say_what_was_gained() {
        let mut runs = Vec::new();
        for place in 0..6 {
            let more = f64::from(place) * 0.01;
            runs.push(run("exploit", 2, 8.0 + more));
            runs.push(run("explore", 0, 10.5 + more));
            runs.push(run("off", 0, 10.0 + more));
            runs.push(run("explore", 1, 9.0 + more));
            runs.push(run("record", 1, 99.0));
        }
        let mut died = run("explore", 1, 0.0);
        died.exit = Exit::Missing;
        runs.push(died);
        let found = whole_runs(&runs.iter().collect::<Vec<_>>(), &Question::default());
        let panel = &found.panels[0];
        let names: Vec<String> = panel.boxes.iter().map(|one| one.kind.name()).collect();
        assert_eq!(names, ["Default", "Tuned [0]", "Tuned [1]", "[2*]"]);
        assert!(panel.boxes.iter().all(|one| one.runs == 6));
        assert!((panel.overhead.unwrap().value - 1.05).abs() < 0.001);
        assert!((panel.gain.unwrap().value - 1.25).abs() < 0.005);
        assert_eq!((panel.runs_to_gain, found.without_end), (Some(6), 1));
        let few: Vec<&JobSummary> = runs.iter().take(8).collect();
        let found = whole_runs(&few, &Question::default());
        assert_eq!(
            (found.panels.len(), &found.too_few[0]),
            (0, &("solver on 1 × 8".to_owned(), 2, 5))
        );
    }

    #[test]
    fn whiskers_end_at_values_and_a_wild_one_is_outside() {
        let one = RunBox::of(Kind::Default, &[1.0, 2.0, 3.0, 4.0, 100.0]);
        assert_eq!((one.quartiles, one.whiskers), ([2.0, 3.0, 4.0], [1.0, 4.0]));
    }
}
