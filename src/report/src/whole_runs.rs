//! Figure 5: the whole time of runs without the tuner, while it learned, and with what it learned.

use std::collections::BTreeMap;

use colltune_core::account::{Exit, JobSummary};
use colltune_statistics::{Interval, median_ratio, quantile, sorted, trimmed_mean};
use serde::Serialize;

use crate::question::Question;

/// So many runs of the default, and of another kind, make a panel.
const RUNS_LEAST: usize = 5;
/// Runs that began further apart than a day are not matched: the machine was another one.
const APART_MAX_MS: u64 = 24 * 3600 * 1000;
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
    /// What the times are of.
    pub clock: Clock,
    /// The default over the last runs that exploited, matched in time.
    pub gain: Option<Gained>,
    /// What that takes, where there is none.
    pub missing: String,
    /// Runs that explored before the median was below the default's.
    pub runs_to_gain: Option<usize>,
}

/// What whole runs gain with what was learned.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Gained {
    #[serde(flatten)]
    pub kind: Kind,
    pub ratio: Interval,
    pub pairs: usize,
}

/// From where to where a run's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// From the launcher's start to its end: jobs that `colltune tune` and `compare` started.
    Launcher,
    /// From MPI_Init to MPI_Finalize.
    Ranks,
}

impl Clock {
    pub const fn tells(self) -> &'static str {
        match self {
            Clock::Launcher => "from the launcher’s start to its end",
            Clock::Ranks => "from MPI_Init to MPI_Finalize",
        }
    }
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
            "off" | JobSummary::BARE => Some(Kind::Default),
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

/// Runs that are alike: program, label, arguments, nodes, ranks per node and ranks.
type Alike<'a> = (&'a str, &'a str, &'a str, u64, u64, u64);

/// One run of a group.
#[derive(Clone, Copy)]
struct Timed {
    kind: Kind,
    started_unix_ms: u64,
    wall_s: f64,
    whole_s: Option<f64>,
    is_bare: bool,
}

impl Timed {
    fn of(run: &JobSummary) -> Option<Timed> {
        Some(Timed {
            kind: Kind::of(run)?,
            started_unix_ms: run.started_unix_ms,
            wall_s: run.wall_s,
            whole_s: run.whole_s,
            is_bare: run.mode == JobSummary::BARE,
        })
    }

    /// Its time on a clock; `None` where that did not see it.
    fn seconds(&self, clock: Clock) -> Option<f64> {
        match clock {
            Clock::Launcher => self
                .whole_s
                .filter(|_| self.is_bare || self.kind != Kind::Default),
            Clock::Ranks => (!self.is_bare).then_some(self.wall_s),
        }
    }
}

/// Times by kind on one clock: when each run began, and its seconds.
type Kinds = BTreeMap<Kind, Vec<(u64, f64)>>;

fn by_kind(runs: &[Timed], clock: Clock) -> Kinds {
    let mut kinds = Kinds::new();
    for run in runs {
        if let Some(seconds) = run.seconds(clock) {
            let of_kind = kinds.entry(run.kind).or_default();
            of_kind.push((run.started_unix_ms, seconds));
        }
    }
    kinds
}

/// How many runs there are without the tuner, and of the other kind that has most.
fn sides(kinds: &Kinds) -> (usize, usize) {
    let others = kinds.iter().filter(|(kind, _)| **kind != Kind::Default);
    let most = others.map(|(_, times)| times.len()).max().unwrap_or(0);
    (kinds.get(&Kind::Default).map_or(0, Vec::len), most)
}

pub fn whole_runs(runs: &[&JobSummary], question: &Question) -> WholeRuns {
    let mut groups: BTreeMap<Alike, Vec<Timed>> = BTreeMap::new();
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
        let Some(timed) = Timed::of(run) else {
            continue;
        };
        // A label says that arguments do not matter.
        let hash = if run.label.is_empty() {
            run.arguments_hash.as_str()
        } else {
            ""
        };
        let alike = (
            run.program.as_str(),
            run.label.as_str(),
            hash,
            run.nodes,
            run.ppn,
            run.ranks,
        );
        groups.entry(alike).or_default().push(timed);
    }
    for (alike, runs) in groups {
        let enough = |(without, with): (usize, usize)| without >= RUNS_LEAST && with >= RUNS_LEAST;
        let clocks = [Clock::Launcher, Clock::Ranks].map(|clock| (clock, by_kind(&runs, clock)));
        match clocks.into_iter().find(|(_, kinds)| enough(sides(kinds))) {
            Some((clock, kinds)) => found.panels.push(panel(alike, clock, kinds)),
            None => {
                let without = runs.iter().filter(|run| run.kind == Kind::Default).count();
                found
                    .too_few
                    .push((named(alike), without, runs.len() - without));
            }
        }
    }
    found.panels.sort_by_key(|panel| {
        std::cmp::Reverse(panel.boxes.iter().map(|one| one.runs).sum::<usize>())
    });
    found.panels_left_out = found.panels.len().saturating_sub(PANELS_MAX);
    found.panels.truncate(PANELS_MAX);
    found
}

/// A name that no other group has: programs of one name differ in arguments or ranks.
fn named((program, label, hash, nodes, ppn, ranks): Alike) -> String {
    let name = if label.is_empty() { program } else { label };
    let arguments = match hash {
        "" => String::new(),
        hash => format!(", arguments {}", hash.chars().take(8).collect::<String>()),
    };
    let uneven = match nodes * ppn == ranks {
        true => String::new(),
        false => format!(", {ranks} ranks"),
    };
    format!("{name} on {nodes} × {ppn}{uneven}{arguments}")
}

fn panel(alike: Alike, clock: Clock, kinds: Kinds) -> RunPanel {
    let (program, label, hash, nodes, ppn, ranks) = alike;
    let seconds = |times: &[(u64, f64)]| times.iter().map(|(_, seconds)| *seconds).collect();
    let times: BTreeMap<Kind, Vec<f64>> = kinds
        .iter()
        .map(|(kind, times)| (*kind, seconds(times)))
        .collect();
    let default = &kinds[&Kind::Default];
    let exploited = kinds
        .iter()
        .rev()
        .find(|(kind, times)| matches!(kind, Kind::Exploited(_)) && times.len() >= RUNS_LEAST);
    let matched = exploited.map(|(kind, times)| (*kind, matched(default, times)));
    let gain = matched.as_ref().and_then(|(kind, pairs)| {
        (pairs.len() >= RUNS_LEAST).then(|| Gained {
            kind: *kind,
            ratio: paired_ratio(pairs),
            pairs: pairs.len(),
        })
    });
    let missing = match (&gain, &matched) {
        (Some(_), _) => String::new(),
        (None, None) => format!(
            "what is chosen is not compared: that takes {RUNS_LEAST} runs of one generation that only used it"
        ),
        (None, Some((_, pairs))) => format!(
            "what is chosen is not compared: only {} of its runs have one without the tuner within a day, and that \
             takes {RUNS_LEAST}",
            pairs.len()
        ),
    };
    let tuned = times
        .get(&Kind::Tuned(0))
        .filter(|times| times.len() >= RUNS_LEAST);
    RunPanel {
        program: program.to_owned(),
        label: label.to_owned(),
        arguments_hash: hash.to_owned(),
        nodes,
        ppn,
        ranks,
        clock,
        overhead: tuned.map(|tuned| median_ratio(tuned, &times[&Kind::Default])),
        gain,
        missing,
        runs_to_gain: runs_to_gain(&times),
        boxes: times
            .iter()
            .map(|(kind, times)| RunBox::of(*kind, times))
            .collect(),
    }
}

/// Each run beside the one without the tuner that is nearest in time and not beside another one; none further than
/// [`APART_MAX_MS`].
fn matched(default: &[(u64, f64)], others: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let mut near: Vec<(u64, usize, usize)> = Vec::new();
    for (place, (began, _)) in others.iter().enumerate() {
        for (of_default, (other, _)) in default.iter().enumerate() {
            let apart = began.abs_diff(*other);
            if apart <= APART_MAX_MS {
                near.push((apart, of_default, place));
            }
        }
    }
    near.sort_unstable();
    let (mut taken, mut placed) = (vec![false; default.len()], vec![false; others.len()]);
    let mut pairs = Vec::new();
    for (_, of_default, place) in near {
        if !taken[of_default] && !placed[place] {
            (taken[of_default], placed[place]) = (true, true);
            pairs.push((default[of_default].1, others[place].1));
        }
    }
    pairs
}

/// The first of each pair over the second, as `colltune compare` has it.
fn paired_ratio(pairs: &[(f64, f64)]) -> Interval {
    let logs = pairs.iter().map(|(one, other)| (one / other).ln());
    let found = trimmed_mean(&logs.collect::<Vec<_>>());
    let [low, value, high] = [-found.half, 0.0, found.half].map(|by| (found.mean + by).exp());
    Interval { low, value, high }
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
        let gain = panel.gain.unwrap();
        assert!((gain.ratio.value - 1.25).abs() < 0.005);
        assert_eq!((gain.kind, gain.pairs), (Kind::Exploited(2), 6));
        assert_eq!(panel.clock, Clock::Ranks);
        assert_eq!((panel.runs_to_gain, found.without_end), (Some(6), 1));
        let few: Vec<&JobSummary> = runs.iter().take(8).collect();
        let found = whole_runs(&few, &Question::default());
        assert_eq!(
            (found.panels.len(), &found.too_few[0]),
            (0, &("solver on 1 × 8".to_owned(), 2, 5))
        );
    }

    #[test]
    fn what_is_chosen_is_compared_by_five_runs_of_each_side_within_a_day() {
        let day = 24 * 3600 * 1000;
        let began = |mode: &str, seconds: f64, at: u64| JobSummary {
            started_unix_ms: at,
            ..run(mode, u64::from(mode == "exploit"), seconds)
        };
        let gain = |exploited: usize, at: u64| {
            let mut runs: Vec<JobSummary> = (0..6)
                .map(|place| began("off", 10.0 + 0.01 * f64::from(place), 1000))
                .collect();
            runs.extend((0..6).map(|place| began("explore", 9.9 + 0.01 * f64::from(place), 1000)));
            runs.extend(
                (0..exploited).map(|place| began("exploit", 5.0 + 0.01 * place as f64, at)),
            );
            let found = whole_runs(&runs.iter().collect::<Vec<_>>(), &Question::default());
            let panel = found.panels[0].clone();
            assert_eq!(panel.gain.is_none(), !panel.missing.is_empty());
            (panel.gain.map(|gain| gain.pairs), panel.missing)
        };
        assert_eq!(gain(6, 2000).0, Some(6));
        // One run is no interval of no width, and runs of other months are no comparison.
        let (none, missing) = gain(1, 2000);
        assert!(
            none.is_none() && missing.contains("takes 5 runs"),
            "{missing}"
        );
        let (none, missing) = gain(6, 2 * day);
        assert!(
            none.is_none() && missing.contains("within a day"),
            "{missing}"
        );
    }

    #[test]
    fn runs_without_the_tuner_are_compared_by_their_launchers_and_never_with_the_ranks_times() {
        let mut runs = Vec::new();
        for place in 0..5 {
            let more = 0.01 * f64::from(place);
            let tuned = JobSummary {
                whole_s: Some(2.0 + more),
                ..run("exploit", 1, 1.0 + more)
            };
            runs.push(tuned.bare(format!("bare{place}"), 0, 1.9 + more));
            runs.push(tuned);
        }
        let found = whole_runs(&runs.iter().collect::<Vec<_>>(), &Question::default());
        let panel = &found.panels[0];
        assert_eq!(panel.clock, Clock::Launcher);
        assert!(panel.gain.unwrap().ratio.high < 1.0, "{panel:?}");
        // Fewer say what is missing.
        let few: Vec<&JobSummary> = runs.iter().take(8).collect();
        let found = whole_runs(&few, &Question::default());
        assert_eq!(
            (found.panels.len(), found.too_few[0].1, found.too_few[0].2),
            (0, 4, 4)
        );
    }

    #[test]
    fn whiskers_end_at_values_and_a_wild_one_is_outside() {
        let one = RunBox::of(Kind::Default, &[1.0, 2.0, 3.0, 4.0, 100.0]);
        assert_eq!((one.quartiles, one.whiskers), ([2.0, 3.0, 4.0], [1.0, 4.0]));
    }
}
