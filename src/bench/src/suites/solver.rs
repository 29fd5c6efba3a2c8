//! A strongly scaled solver: which share of the gain that is there does training reach?
//!
//! Compute of uneven length, a halo exchange, two allreduces of 8 bytes an iteration (`tests/mpi/imbalanced.c`): what
//! its allreduces take says little of what the program takes, because waiting moves between them and the halo. The
//! program's own whole time is the measure. What can be gained is found by forcing every variant, the best of them
//! measured anew beside the tuned program. Ten exploring jobs, one training, and again from nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::library::Abi;
use colltune_core::request::Mode;
use colltune_core::variant::DEFAULT;
use colltune_statistics::{Interval, median, spread};

use super::Bench;
use super::database;
use super::jobs::{self, Cell, Tuner};
use super::place::{Place, in_source_tree};
use super::programs::Kitchen;
use super::report::{Finding, Report, Row, Target};

const CELL: Cell = (Collective::Allreduce, 8);
/// Mean compute of an iteration, in microseconds.
const COMPUTE_US: [u64; 3] = [5, 20, 80];
const ITERATIONS: usize = 3000;
/// Of an iteration.
const ALLREDUCES: usize = 2;
/// The variants that are measured anew after the first look at all.
const FINALISTS: usize = 5;

pub fn run_on_node(bench: &Bench) -> anyhow::Result<Report> {
    run(bench, "node", Place::node(Abi::OpenMpi, bench.ranks()))
}

pub fn run_on_cluster(bench: &Bench) -> anyhow::Result<Report> {
    run(bench, "cluster", Place::cluster())
}

fn run(bench: &Bench, name: &'static str, place: anyhow::Result<Place>) -> anyhow::Result<Report> {
    let mut report = Report::comparing(
        "bare, s between the program's first barrier and its last",
        "tuned, s",
    );
    report.notes = [
        "tuned: exploit after `colltune calibrate`, ten explore runs and one training, each training from nothing; best: \
         the fastest forced variant, found by forcing all and measured anew beside tuned",
        "reached: (bare - tuned) / (bare - best) by medians; above 1 where tuned is faster than the best forced variant",
        "stated: bare over tuned of the whole program as the database has it: what `status` says of the cell, on the \
         share of the program's time that an untuned job spends there",
    ]
    .map(str::to_owned)
    .to_vec();
    match place {
        Ok(place) => on_place(bench, name, &place, &mut report)?,
        Err(error) => report.skipped.push(format!("failed to {error:#}")),
    }
    Ok(report)
}

fn on_place(
    bench: &Bench,
    name: &'static str,
    place: &Place,
    report: &mut Report,
) -> anyhow::Result<()> {
    let folder = bench.out.join("solver");
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let source = in_source_tree("tests/mpi/imbalanced.c").context("find tests/mpi/imbalanced.c")?;
    let kitchen = Kitchen {
        folder,
        abi: place.abi,
        quick: bench.quick,
    };
    let program = kitchen.compile(&source)?;
    let calibrated = database::empty(bench, "solver-calibrated")?;
    bench.progress(&format!("solver, {name}: calibrate"));
    database::calibrate(place, &calibrated)?;
    let nothing_known = database::empty(bench, "solver-forced")?;
    report.notes.push(place.describe());
    let computes = if bench.quick {
        &COMPUTE_US[1..2]
    } else {
        &COMPUTE_US[..]
    };
    for &compute_us in computes {
        let solver = Solver {
            bench,
            place,
            nothing_known: nothing_known.clone(),
            name: format!("{name}, {compute_us} us"),
            line: |iterations| {
                let words = [
                    compute_us.to_string(),
                    "random".to_owned(),
                    iterations.to_string(),
                ];
                let mut line = vec![program.clone()];
                line.extend(words.map(OsString::from));
                line
            },
        };
        solver.measure(&calibrated, report)?;
    }
    Ok(())
}

struct Solver<'a, Line: Fn(usize) -> Vec<OsString>> {
    bench: &'a Bench,
    place: &'a Place,
    name: String,
    /// The database of forced jobs.
    nothing_known: PathBuf,
    /// What starts the program, by the number of its iterations.
    line: Line,
}

/// What the program prints: the time between its first and its last barrier, and the mean time of an allreduce.
struct Printed {
    whole_s: f64,
    allreduce_us: f64,
}

impl Printed {
    fn read(output: &str) -> Option<Printed> {
        let number = |before: &str, unit: &str| {
            let (_, rest) = output.split_once(before)?;
            rest.split_once(unit)?.0.parse().ok()
        };
        Some(Printed {
            whole_s: number("whole ", " s")?,
            allreduce_us: number("allreduce ", " us")?,
        })
    }
}

/// The program's whole times in jobs that ran beside each other, in seconds.
#[derive(Default)]
struct Rounds {
    bare: Vec<f64>,
    tuned: Vec<f64>,
    best: Vec<f64>,
}

/// What the database says of the cell.
struct Stated {
    best: String,
    gain: Interval,
}

/// What a training states of the speed-up of the whole program, and what was measured of it.
struct Statement {
    stated: Interval,
    measured: f64,
}

impl Statement {
    /// `None` where it states no gain, and so has no interval: there the program runs as without it.
    fn holds(&self) -> Option<bool> {
        let Interval { low, high, .. } = self.stated;
        (low < high).then(|| (low..=high).contains(&self.measured))
    }
}

/// How many of the statements hold, each of which has to.
fn holding(name: &str, statements: &[Statement]) -> Option<Finding> {
    let hold: Vec<bool> = statements.iter().filter_map(Statement::holds).collect();
    let count = hold.iter().filter(|holds| **holds).count() as f64;
    (!hold.is_empty()).then(|| Finding {
        what: format!(
            "{name}: trainings whose stated interval holds bare over tuned, of {} that state a gain ({} in all)",
            hold.len(),
            statements.len()
        ),
        found: Interval {
            low: count,
            value: count,
            high: count,
        },
        unit: "",
        target: Target::AtLeast(hold.len() as f64),
    })
}

impl<Line: Fn(usize) -> Vec<OsString>> Solver<'_, Line> {
    fn measure(&self, calibrated: &Path, report: &mut Report) -> anyhow::Result<()> {
        let best = self.best_forced()?;
        let (mut reached, mut statements) = (Vec::new(), Vec::new());
        for training in 0..self.bench.trainings() {
            let db = database::copy(self.bench, calibrated, "solver")?;
            for run in 0..database::RUNS {
                self.progress(&format!(
                    "training {}, run {} of {}",
                    training + 1,
                    run + 1,
                    database::RUNS
                ));
                let seed = 1000 + 100 * training as u64 + run;
                self.whole(&Tuner::shim(&db, Mode::Explore, seed))?;
            }
            self.progress("learning");
            database::train(self.bench, &db)?;
            let stated = self.stated(&db)?;
            let share = self.share_in_collectives()?;
            let rounds = self.rounds(&db, &best)?;
            let [bare, tuned, forced] =
                [&rounds.bare, &rounds.tuned, &rounds.best].map(|times| median(times));
            reached.push((bare - tuned) / (bare - forced));
            let whole = |gain: f64| 1.0 / (1.0 - share * (1.0 - 1.0 / gain));
            let statement = Statement {
                stated: Interval {
                    low: whole(stated.gain.low),
                    value: whole(stated.gain.value),
                    high: whole(stated.gain.high),
                },
                measured: bare / tuned,
            };
            let row = Row::of_rounds(
                format!("{}, training {}", self.name, training + 1),
                &rounds.bare,
                &rounds.tuned,
            );
            report.rows.push(
                row.with("possible", bare / forced)
                    .with("reached", (bare - tuned) / (bare - forced))
                    .with("best", best.clone())
                    .with("tuned_runs", stated.best)
                    .with("in_collectives", share)
                    .with("stated", statement.stated.value)
                    .with("stated_low", statement.stated.low)
                    .with("stated_high", statement.stated.high),
            );
            statements.push(statement);
        }
        let found = spread(&reached);
        report.findings.push(Finding {
            what: format!(
                "{}: share of the reachable gain after ten jobs ({} trainings)",
                self.name,
                reached.len()
            ),
            found: Interval {
                low: found.min,
                value: found.median,
                high: found.max,
            },
            unit: "",
            target: Target::AtLeast(0.8),
        });
        report.findings.extend(holding(&self.name, &statements));
        Ok(())
    }

    /// The variant with which the program is fastest: each once, then the first few in several rounds.
    fn best_forced(&self) -> anyhow::Result<String> {
        let facts = jobs::facts(self.place, CELL);
        let all = catalogue::variants(self.place.library, CELL.0);
        let names = all.iter().filter(|variant| variant.applies(&facts));
        let names: Vec<String> = names.map(|variant| variant.name.to_string()).collect();
        let mut times = Vec::new();
        for (k, name) in names.iter().enumerate() {
            self.progress(&format!("variant {} of {}", k + 1, names.len()));
            times.push((self.seconds(&self.forced(name), ITERATIONS / 3)?, name));
        }
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        times.truncate(FINALISTS);
        let finalists: Vec<&String> = times.into_iter().map(|(_, name)| name).collect();
        let mut again = vec![Vec::new(); finalists.len()];
        for round in 0..self.bench.pick(5, 3) {
            for place in 0..finalists.len() {
                let k = (round + place) % finalists.len();
                self.progress(&format!("finalists, round {}", round + 1));
                again[k].push(self.whole(&self.forced(finalists[k]))?);
            }
        }
        let medians = again.iter().map(|times| median(times));
        let best = medians.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(k, _)| finalists[k].clone())
            .context("find a variant of the solver's allreduce")
    }

    fn rounds(&self, db: &Path, best: &str) -> anyhow::Result<Rounds> {
        let mut rounds = Rounds::default();
        let ways = [
            Tuner::Bare,
            Tuner::shim(db, Mode::Exploit, 7),
            self.forced(best),
        ];
        let n = self.bench.pick(5, 3);
        for round in 0..n {
            self.progress(&format!("round {} of {n}", round + 1));
            for place in 0..ways.len() {
                let k = (round + place) % ways.len();
                let seconds = self.whole(&ways[k])?;
                [&mut rounds.bare, &mut rounds.tuned, &mut rounds.best][k].push(seconds);
            }
        }
        Ok(rounds)
    }

    fn stated(&self, db: &Path) -> anyhow::Result<Stated> {
        let cells = database::status(db)?;
        let cell = cells
            .iter()
            .find(|cell| database::holds(cell, self.place, CELL));
        let cell = cell.context("find the solver's cell in what `colltune status` says")?;
        let number = |key: &str| cell[key].as_f64().unwrap_or(1.0);
        let best = cell["best"].as_str().unwrap_or(DEFAULT).to_owned();
        let gain = Interval {
            low: number("gain_lo"),
            value: number("gain"),
            high: number("gain_hi"),
        };
        Ok(Stated { best, gain })
    }

    /// Which share of its whole time the program spends in allreduces that run the default, as it prints both: of the
    /// same time that is measured, without the start and the end of the job.
    fn share_in_collectives(&self) -> anyhow::Result<f64> {
        let untuned = Tuner::Shim {
            db: None,
            mode: Mode::Off,
            seed: 7,
            settings: Vec::new(),
        };
        let printed = self.printed(&untuned, ITERATIONS)?;
        let allreduces = 1e-6 * printed.allreduce_us * (ALLREDUCES * ITERATIONS) as f64;
        Ok(allreduces / printed.whole_s)
    }

    fn whole(&self, tuner: &Tuner) -> anyhow::Result<f64> {
        self.seconds(tuner, ITERATIONS)
    }

    /// The program's whole time.
    fn seconds(&self, tuner: &Tuner, iterations: usize) -> anyhow::Result<f64> {
        Ok(self.printed(tuner, iterations)?.whole_s)
    }

    fn printed(&self, tuner: &Tuner, iterations: usize) -> anyhow::Result<Printed> {
        let line = (self.line)(iterations);
        let (_, output) =
            jobs::output_of(self.bench, self.place, self.place.n_ranks, tuner, &line)?;
        Printed::read(&output).with_context(|| format!("read the solver's times in {output:?}"))
    }

    fn progress(&self, what: &str) {
        self.bench
            .progress(&format!("solver, {}: {what}", self.name));
    }

    fn forced(&self, name: &str) -> Tuner {
        Tuner::Shim {
            db: Some(self.nothing_known.clone()),
            mode: Mode::Exploit,
            seed: 7,
            settings: vec![("COLLTUNE_FORCE", format!("{}={name}", CELL.0.name()))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_prints_is_read_among_other_words() {
        let printed = Printed::read("a warning\nwhole 0.5012 s, halo 12.5 us, allreduce 31.4 us\n");
        let printed = printed.expect("both times stand there");
        assert_eq!((printed.whole_s, printed.allreduce_us), (0.5012, 31.4));
        assert!(Printed::read("whole 0.5012 s").is_none());
    }

    fn stated(low: f64, high: f64, measured: f64) -> Statement {
        Statement {
            stated: Interval {
                low,
                value: (low + high) / 2.0,
                high,
            },
            measured,
        }
    }

    #[test]
    fn a_statement_that_does_not_hold_is_a_miss_and_one_of_no_gain_is_none() {
        let nothing = || stated(1.0, 1.0, 0.99);
        assert!(holding("x", &[nothing()]).is_none());
        let true_one = || stated(1.08, 1.12, 1.09);
        let found = holding("x", &[true_one(), nothing(), true_one()]).expect("two state a gain");
        assert_eq!((found.found.value, found.verdict()), (2.0, "met"));
        assert!(found.what.contains("of 2 that state a gain (3 in all)"));
        for wrong in [stated(1.3, 1.5, 1.1), stated(1.05, 1.08, 1.1)] {
            let found = holding("x", &[true_one(), wrong]).expect("two state a gain");
            assert_eq!((found.found.value, found.verdict()), (1.0, "MISSED"));
        }
    }
}
