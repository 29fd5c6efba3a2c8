//! What is said of a job when it ends: one JSON object, and one sentence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Cause, KINDS, MeasuredGain, SIZES, Scope, least_bytes};
use crate::collective::Collective;
use crate::levers::Arms;
use crate::levers::asked::Asked;

/// What the ranks together have seen of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    pub calls: u64,
    /// Calls that ran something else than the library's own choice.
    pub tuned: u64,
    pub ns: u64,
    /// Of calls that the ranks have compared: what they took each rank, and what they took from the last one's
    /// arrival to the last one's departure.
    pub compared_ns: u64,
    pub work_ns: u64,
    /// What they would have taken with the library's own choices, by what trainings have measured on communicators of
    /// their shapes.
    pub default_ns: u64,
}

/// How many numbers of a kind the ranks add up.
pub const WORDS: usize = 6;

impl Together {
    pub const fn words(self) -> [u64; WORDS] {
        [
            self.calls,
            self.tuned,
            self.ns,
            self.compared_ns,
            self.work_ns,
            self.default_ns,
        ]
    }

    pub const fn of(words: [u64; WORDS]) -> Together {
        let [calls, tuned, ns, compared_ns, work_ns, default_ns] = words;
        Together {
            calls,
            tuned,
            ns,
            compared_ns,
            work_ns,
            default_ns,
        }
    }

    /// The time that is waiting for late ranks; `None` where nothing was compared.
    fn waiting_ns(self) -> Option<f64> {
        let share = self.work_ns as f64 / self.compared_ns as f64;
        (self.compared_ns > 0).then(|| self.ns as f64 * (1.0 - share).max(0.0))
    }

    fn add(&mut self, other: Together) {
        let sums = self.words().into_iter().zip(other.words());
        let mut words = [0; WORDS];
        for (word, (one, other)) in words.iter_mut().zip(sums) {
            *word = one.saturating_add(other);
        }
        *self = Together::of(words);
    }
}

/// What one line of a summary's file, or one `.run` file of a database, says of a job. It never holds the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    pub schema: u32,
    pub job: String,
    /// The name of the program's file, without folder and arguments.
    pub program: String,
    pub mode: String,
    pub library: String,
    pub machine: String,
    /// The same for runs with the same arguments, which themselves are not kept; where `--lever` chose some of them,
    /// for runs of the same line.
    #[serde(default)]
    pub arguments_hash: String,
    /// A hash of the folder that the program's file is in, so that two programs of one name are kept apart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path_hash: String,
    /// What the user calls such runs: `COLLTUNE_LABEL`.
    #[serde(default)]
    pub label: String,
    /// The arms of the levers, as in `colltune run --lever`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levers: Arms,
    /// What the program asked about its levers by `colltune_choose`, and how long the epochs took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// 0 where nothing was learned before, or nothing is steered.
    pub generation: u64,
    pub ranks: u64,
    pub nodes: u64,
    /// The most ranks on one node.
    #[serde(default)]
    pub ppn: u64,
    /// Of the draws.
    #[serde(default)]
    pub seed: u64,
    pub started_unix_ms: u64,
    #[serde(default)]
    pub exit: Exit,
    /// From MPI_Init's return to MPI_Finalize, on the rank where that is the longest.
    pub wall_s: f64,
    /// From the launcher's start to its end, where `colltune tune` or `compare` started the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_s: Option<f64>,
    /// Estimated time of a rank in blocking collectives.
    pub collectives_s: OverRanks,
    /// Blocking collectives, of all ranks together.
    pub calls: u64,
    /// Nonblocking, persistent and neighbourhood collectives, which pass through; of all ranks together. They are not
    /// in the times.
    pub passed: u64,
    /// The share of the calls that ran something else than the library's own choice.
    pub tuned_share: f64,
    /// Calls whose variant was drawn and timed to learn from; of all ranks together.
    #[serde(default)]
    pub sampled: u64,
    /// Time of a rank in which the tuner's ranks agreed: set-ups of communicators, reviews, what variants need.
    #[serde(default)]
    pub overhead_s: OverRanks,
    pub by_collective: Vec<OfCollective>,
    /// The share of the time in collectives that is waiting for late ranks; `None` where no calls were compared.
    pub waiting_share: Option<f64>,
    /// How many times as fast the program would be if collectives took no time, but for the waiting that is known.
    pub best_possible_gain: f64,
    /// Whether some node has more ranks than processors. There most of the time in a collective is others' turns on
    /// them, which no variant saves: far less than `best_possible_gain` can be had.
    #[serde(default)]
    pub shares_processors: bool,
    /// How many times as fast the job was as it would have been with the library's own choices, by what trainings have
    /// measured; `None` where nothing was learned before, or the job explored.
    #[serde(default)]
    pub estimated_gain: Option<f64>,
    /// The same as measured in the job itself, by epochs with the choices and without them in turns; `None` where there
    /// were too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_gain: Option<MeasuredGain>,
    /// For how many calls which variants were left out, or replaced by the library's own choice, and why.
    pub refused: Vec<Refused>,
}

/// How far a job came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// To MPI_Finalize.
    #[default]
    Finalized,
    /// It has begun, and of its end nothing is known: it runs, or it died.
    Missing,
}

/// A time of the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OverRanks {
    pub mean: f64,
    pub max: f64,
}

/// The part of one collective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfCollective {
    pub collective: Collective,
    pub calls: u64,
    pub tuned_share: f64,
    pub seconds: OverRanks,
    pub waiting_share: Option<f64>,
    pub by_size: Vec<OfSize>,
}

/// The part of one range of message bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfSize {
    /// The least; the next range begins at 4 times as many.
    pub bytes: u64,
    pub calls: u64,
    pub tuned_share: f64,
    /// In the mean over ranks.
    pub seconds: f64,
    pub waiting_share: Option<f64>,
}

/// Calls of all ranks that one cause concerns: they ran the library's own choice though another variant was meant, or drew
/// from fewer variants. Several causes may concern a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// `None` where whole communicators are concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collective: Option<Collective>,
    pub calls: u64,
    /// Its name in the table of causes; empty in files of version 1.
    #[serde(default)]
    pub cause: String,
    pub reason: String,
    /// Empty where nothing is to be done.
    #[serde(default)]
    pub remedy: String,
}

impl Refused {
    pub fn new(cause: Cause, collective: Option<Collective>, calls: u64) -> Refused {
        let row = cause.row();
        Refused {
            collective,
            calls,
            cause: row.name.to_owned(),
            reason: row.reason.to_owned(),
            remedy: row.remedy.to_owned(),
        }
    }

    /// The cause, where this version knows it.
    pub fn known(&self) -> Option<Cause> {
        Cause::of_name(&self.cause)
    }

    /// Whether a variant was meant for each of these calls.
    pub fn was_meant(&self) -> bool {
        self.known()
            .is_none_or(|cause| cause.row().scope == Scope::Call)
    }

    /// Whether a job of so many calls says it in its sentence.
    fn is_worth_a_word(&self, calls: u64) -> bool {
        let is_usual = self.known().is_some_and(Cause::is_usual);
        !is_usual && u128::from(self.calls) * 20 >= calls.into()
    }

    /// Which calls, and why.
    pub fn sentence(&self) -> String {
        let Refused { calls, reason, .. } = self;
        let of = (self.collective).map_or(String::new(), |collective| format!(" of {collective}"));
        let remedy = match &*self.remedy {
            "" => String::new(),
            remedy => format!(" ({remedy})"),
        };
        format!("{calls} calls{of}: {reason}{remedy}")
    }
}

/// What is known of the job itself.
#[derive(Clone, Debug, Default)]
pub struct JobFacts {
    pub job: String,
    pub program: String,
    pub mode: String,
    pub library: String,
    pub machine: String,
    pub arguments_hash: String,
    pub path_hash: String,
    pub label: String,
    pub levers: Arms,
    pub asked: Vec<Asked>,
    pub generation: u64,
    pub ranks: u64,
    pub nodes: u64,
    pub ppn: u64,
    pub seed: u64,
    pub started_unix_ms: u64,
    pub wall_ns: u64,
    /// Time of a rank in collectives, the longest.
    pub longest_ns: u64,
    /// The same by collective.
    pub longest_of_ns: [u64; Collective::ALL.len()],
    pub passed: u64,
    pub sampled: u64,
    /// Of all ranks together, and of the one where it is longest.
    pub overhead_ns: u64,
    pub longest_overhead_ns: u64,
    pub refused: Vec<Refused>,
    /// Whether it runs what was learned, so that there is something to compare the library's own choices with.
    pub runs_choices: bool,
    pub shares_processors: bool,
    pub measured_gain: Option<MeasuredGain>,
}

impl JobSummary {
    /// The version of the format.
    pub const SCHEMA: u32 = 2;
    /// The mode of a job that ran without the tuner.
    pub const BARE: &str = "bare";

    /// That of a job that begins.
    pub fn begun(facts: JobFacts) -> JobSummary {
        JobSummary {
            exit: Exit::Missing,
            ..JobSummary::new(facts, &vec![Together::default(); KINDS])
        }
    }

    /// From what the ranks have seen of each kind.
    pub fn new(facts: JobFacts, kinds: &[Together]) -> JobSummary {
        let ranks = facts.ranks.max(1) as f64;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mean_s = |ns: u64| ns as f64 / 1e9 / ranks;
        let wall_s = seconds(facts.wall_ns);
        let mut all = Together::default();
        let mut by_collective = Vec::new();
        for collective in Collective::ALL {
            let place = collective.index();
            let of_sizes = &kinds[place * SIZES..(place + 1) * SIZES];
            let sum = total(of_sizes);
            all.add(sum);
            if sum.calls == 0 {
                continue;
            }
            let sizes = of_sizes.iter().enumerate();
            let by_size = sizes.filter(|(_, kind)| kind.calls > 0);
            by_collective.push(OfCollective {
                collective,
                calls: sum.calls,
                tuned_share: share(sum.tuned, sum.calls),
                seconds: OverRanks {
                    mean: mean_s(sum.ns),
                    max: seconds(facts.longest_of_ns[place]),
                },
                waiting_share: waiting_share(of_sizes),
                by_size: by_size
                    .map(|(size, kind)| OfSize {
                        bytes: least_bytes(size),
                        calls: kind.calls,
                        tuned_share: share(kind.tuned, kind.calls),
                        seconds: mean_s(kind.ns),
                        waiting_share: waiting_share(std::slice::from_ref(kind)),
                    })
                    .collect(),
            });
        }
        by_collective.sort_by(|one, other| other.seconds.mean.total_cmp(&one.seconds.mean));
        let waiting_share = waiting_share(kinds);
        let work_s = mean_s(all.ns) * (1.0 - waiting_share.unwrap_or(0.0));
        JobSummary {
            schema: Self::SCHEMA,
            job: facts.job,
            program: facts.program,
            mode: facts.mode,
            library: facts.library,
            machine: facts.machine,
            arguments_hash: facts.arguments_hash,
            path_hash: facts.path_hash,
            label: facts.label,
            levers: facts.levers,
            asked: facts.asked,
            generation: facts.generation,
            ranks: facts.ranks,
            nodes: facts.nodes,
            ppn: facts.ppn,
            seed: facts.seed,
            exit: Exit::Finalized,
            started_unix_ms: facts.started_unix_ms,
            wall_s,
            whole_s: None,
            collectives_s: OverRanks {
                mean: mean_s(all.ns),
                max: seconds(facts.longest_ns),
            },
            calls: all.calls,
            passed: facts.passed,
            tuned_share: share(all.tuned, all.calls),
            sampled: facts.sampled,
            overhead_s: OverRanks {
                mean: mean_s(facts.overhead_ns),
                max: seconds(facts.longest_overhead_ns),
            },
            by_collective,
            waiting_share,
            best_possible_gain: best_possible_gain(work_s, wall_s),
            shares_processors: facts.shares_processors,
            estimated_gain: facts
                .runs_choices
                .then(|| estimated_gain(mean_s(all.default_ns) - mean_s(all.ns), wall_s)),
            measured_gain: facts.measured_gain,
            refused: facts.refused,
        }
    }

    /// That of a job without the tuner, of which nothing else is known than how long its launcher ran: the same program
    /// as in this account.
    pub fn bare(&self, job: String, started_unix_ms: u64, whole_s: f64) -> JobSummary {
        let like = self.clone();
        let facts = JobFacts {
            job,
            program: like.program,
            mode: Self::BARE.to_owned(),
            library: like.library,
            machine: like.machine,
            arguments_hash: like.arguments_hash,
            path_hash: like.path_hash,
            label: like.label,
            ranks: like.ranks,
            nodes: like.nodes,
            ppn: like.ppn,
            started_unix_ms,
            ..JobFacts::default()
        };
        JobSummary {
            whole_s: Some(whole_s),
            ..JobSummary::new(facts, &vec![Together::default(); KINDS])
        }
    }

    /// By how many seconds it was shorter than with the library's own choices, as far as that is known.
    pub fn saved_s(&self) -> f64 {
        let gain = self.estimated_gain.unwrap_or(1.0);
        (gain.clamp(0.0, GAIN_MAX) - 1.0) * self.wall_s
    }

    /// One line of a file.
    pub fn line(&self) -> String {
        // Numbers and strings alone, so nothing can fail.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }

    /// The same for the person who ran the job, in one sentence.
    pub fn sentence(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let in_them = match self.wall_s > 0.0 {
            true => self.collectives_s.mean / self.wall_s,
            false => 0.0,
        };
        let waiting = match self.waiting_share {
            Some(share) => format!(", {} of it waiting for late ranks", percent(share)),
            None => String::new(),
        };
        let gained = match (self.measured_gain, self.estimated_gain) {
            (Some(measured), _) => format!("; {}", measured.sentence()),
            (None, Some(gain)) => format!(
                "; with the library's own choices it would have taken about {gain:.2} times as long"
            ),
            (None, None) => String::new(),
        };
        let refused = self.refused.iter();
        let refused = refused.filter(|one| one.is_worth_a_word(self.calls));
        let refused = refused.map(|one| format!("; {}", one.sentence()));
        let shared = match self.shares_processors {
            true => ", far less where ranks share processors, as here",
            false => "",
        };
        format!(
            "{:.3} s from MPI_Init to MPI_Finalize on {} ranks, {} of it in collectives{waiting}; {} calls, {} of them tuned{gained}; faster \
             collectives can make the job {:.2} times as fast at most{shared}{}",
            self.wall_s,
            self.ranks,
            percent(in_them),
            self.calls,
            percent(self.tuned_share),
            self.best_possible_gain,
            refused.collect::<String>(),
        )
    }
}

/// No program gains more: there is always something left.
const GAIN_MAX: f64 = 1000.0;

/// The most that a program gains where work of `work_s` takes no time any more.
fn best_possible_gain(work_s: f64, wall_s: f64) -> f64 {
    let share = if wall_s > 0.0 { work_s / wall_s } else { 0.0 };
    1.0 / (1.0 - share).max(1.0 / GAIN_MAX)
}

/// The job's time with the library's own choices over its own, of which they would have added `saved_s`.
fn estimated_gain(saved_s: f64, wall_s: f64) -> f64 {
    match wall_s > 0.0 {
        true => 1.0 + saved_s / wall_s,
        false => 1.0,
    }
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        part as f64 / of as f64
    }
}

fn total(kinds: &[Together]) -> Together {
    let mut sum = Together::default();
    kinds.iter().for_each(|kind| sum.add(*kind));
    sum
}

/// Of the kinds that were compared, each by its time.
fn waiting_share(kinds: &[Together]) -> Option<f64> {
    let known = kinds
        .iter()
        .filter_map(|kind| Some((kind.waiting_ns()?, kind.ns as f64)));
    let (waiting, all) = known.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (all > 0.0).then(|| waiting / all)
}

#[cfg(test)]
mod tests {
    use super::super::kind;
    use super::*;

    fn facts() -> JobFacts {
        JobFacts {
            job: "j".to_owned(),
            program: "solver".to_owned(),
            mode: "explore".to_owned(),
            library: "mpich-4.0.2".to_owned(),
            machine: "m".to_owned(),
            generation: 3,
            ranks: 2,
            nodes: 1,
            started_unix_ms: 0,
            wall_ns: 10_000_000_000,
            longest_ns: 6_000_000_000,
            longest_of_ns: [3_000_000_000; Collective::ALL.len()],
            ..JobFacts::default()
        }
    }

    #[test]
    fn the_parts_add_up_and_the_gain_leaves_waiting_out() {
        let mut kinds = vec![Together::default(); KINDS];
        let seen = |ns, work_ns| Together {
            calls: 10,
            tuned: 5,
            ns,
            compared_ns: 100,
            work_ns,
            default_ns: ns,
        };
        kinds[kind(Collective::Allreduce, 8)] = seen(6_000_000_000, 50);
        kinds[kind(Collective::Allreduce, 800)] = seen(2_000_000_000, 300);
        kinds[kind(Collective::Barrier, 0)] = Together {
            compared_ns: 0,
            ..seen(2_000_000_000, 0)
        };
        let summary = JobSummary::new(facts(), &kinds);
        assert_eq!(summary.calls, 30);
        assert_eq!(summary.tuned_share, 0.5);
        assert_eq!(summary.collectives_s.mean, 5.0);
        let parts = summary.by_collective.iter().map(|one| one.seconds.mean);
        assert_eq!(parts.sum::<f64>(), 5.0);
        assert_eq!(summary.by_collective[0].collective, Collective::Allreduce);
        let sizes = &summary.by_collective[0].by_size;
        assert_eq!(
            [sizes[0].waiting_share, sizes[1].waiting_share],
            [Some(0.5), Some(0.0)]
        );
        // 3 of 8 s of what was compared; the barrier was not.
        assert_eq!(summary.waiting_share, Some(0.375));
        let expected = 1.0 / (1.0 - 5.0 * 0.625 / 10.0);
        assert!((summary.best_possible_gain - expected).abs() < 1e-12);
        let line = summary.line();
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(serde_json::from_str::<JobSummary>(&line).unwrap(), summary);
        assert!(
            summary
                .sentence()
                .contains("50.0 % of it in collectives, 37.5 %")
        );
    }

    #[test]
    fn what_was_gained_is_said_where_it_is_known() {
        let mut kinds = vec![Together::default(); KINDS];
        kinds[kind(Collective::Allreduce, 8)] = Together {
            calls: 10,
            tuned: 10,
            ns: 4_000_000_000,
            default_ns: 6_000_000_000,
            ..Together::default()
        };
        let unknown = JobSummary::new(facts(), &kinds);
        assert_eq!((unknown.estimated_gain, unknown.saved_s()), (None, 0.0));
        assert!(!unknown.sentence().contains("would have taken"));
        let known = JobFacts {
            runs_choices: true,
            ..facts()
        };
        let summary = JobSummary::new(known, &kinds);
        // 2 s a rank of 10 s, for which the library's own choices would have needed half as much time again.
        assert_eq!(summary.estimated_gain, Some(1.1));
        assert!((summary.saved_s() - 1.0).abs() < 1e-9);
        assert!(summary.sentence().contains("about 1.10 times as long;"));
        let line = summary.line();
        assert_eq!(serde_json::from_str::<JobSummary>(&line).unwrap(), summary);
        let older = line.replace(r#""estimated_gain":1.1,"#, "");
        let older: JobSummary = serde_json::from_str(&older).unwrap();
        assert_eq!(older.estimated_gain, None);
    }

    #[test]
    fn a_bound_that_counts_turns_on_processors_is_called_far_off() {
        let kinds = vec![Together::default(); KINDS];
        let [alone, shared] = [false, true].map(|shares_processors| {
            let facts = JobFacts {
                shares_processors,
                ..facts()
            };
            JobSummary::new(facts, &kinds)
        });
        assert!(!alone.sentence().contains("share processors"));
        assert!(
            shared
                .sentence()
                .ends_with("at most, far less where ranks share processors, as here")
        );
        let older = shared.line().replace(r#","shares_processors":true"#, "");
        assert_eq!(serde_json::from_str::<JobSummary>(&older).unwrap(), alone);
    }

    #[test]
    fn a_job_that_begins_has_no_end_and_files_without_the_word_have_one() {
        let begun = JobSummary::begun(facts());
        assert_eq!((begun.exit, begun.calls), (Exit::Missing, 0));
        let line = begun.line();
        assert!(line.contains(r#""exit":"missing""#), "{line}");
        let older = line.replace(r#""exit":"missing","#, "");
        let older: JobSummary = serde_json::from_str(&older).unwrap();
        assert_eq!(older.exit, Exit::Finalized);
    }

    #[test]
    fn a_job_without_collectives_has_nothing_to_gain() {
        let nothing = vec![Together::default(); KINDS];
        let summary = JobSummary::new(facts(), &nothing);
        assert_eq!(summary.best_possible_gain, 1.0);
        assert_eq!(summary.waiting_share, None);
        let at_once = JobFacts {
            wall_ns: 0,
            ..facts()
        };
        let text = JobSummary::new(at_once, &nothing).line();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
