//! Programs that people run, and programs of ours in their manner: what tuning does to their whole time.
//!
//! A program is bare, counted (`off` with a summary, which gives its time in collectives), exploring (two batches, the
//! database empty before the first) and tuned (`exploit`) after one batch and after two. What could be gained at all
//! stands beside it: the time in collectives, but for the waiting that is known.

mod table;

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context;
use colltune_core::account::JobSummary;
use colltune_core::library::Abi;
use colltune_core::request::Mode;
use colltune_statistics::{Interval, median, spread};
use serde_json::Value;

use super::jobs::{self, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row, Target};
use super::{Bench, database};
use table::{PROGRAMS, Program};

pub use table::Kitchen;

/// The names of the programs.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|program| program.name)
}

pub fn run_on_node(bench: &Bench) -> anyhow::Result<Report> {
    run(bench, Place::node(Abi::OpenMpi, bench.ranks()))
}

pub fn run_on_cluster(bench: &Bench) -> anyhow::Result<Report> {
    run(bench, Place::cluster())
}

fn run(bench: &Bench, place: anyhow::Result<Place>) -> anyhow::Result<Report> {
    let mut report = Report::comparing("bare, s per job", "with colltune, s per job");
    report.notes = [
        "a: the job without the shim, from the start of mpirun to its end, beside each job of b; ratio above 1: faster with \
         colltune",
        "counted: mode off with a summary; exploring: both batches; tuned: mode exploit after `colltune calibrate` and one \
         batch of explore runs, or two",
        "in collectives: share of the time from MPI_Init to MPI_Finalize, mean over ranks, median over jobs; possible: how \
         many times as fast the counted job were without collectives, but for the waiting that explore runs know of; where \
         ranks share a core, most of that is others' turns on it, and far less can be gained",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut place = match place {
        Ok(place) => place,
        Err(error) => {
            report.skipped.push(format!("failed to {error:#}"));
            return Ok(report);
        }
    };
    place
        .variables
        .push(("OMP_NUM_THREADS".to_owned(), "1".to_owned()));
    report.notes.push(place.describe());
    let calibrated = database::empty(bench, "programs")?;
    bench.progress("programs: calibrate");
    database::calibrate(&place, &calibrated)?;
    let wanted = |program: &&Program| {
        bench.programs.is_empty() || bench.programs.iter().any(|name| name == program.name)
    };
    let mut missing = 0;
    for program in PROGRAMS.iter().filter(wanted) {
        let measured = prepare(bench, &place, program).and_then(|line| {
            let subject = Subject {
                bench,
                place: &place,
                name: program.name,
                line,
            };
            subject.measure(&calibrated, &mut report)
        });
        match measured {
            Ok(()) => report
                .notes
                .push(format!("{}: {}", program.name, program.about)),
            Err(error) => {
                missing += 1;
                let skipped = format!("{}: failed to {error:#}", program.name);
                report.skipped.push(skipped);
            }
        }
    }
    if missing > 0 {
        report
            .notes
            .push(format!("{missing} programs were left out"));
    }
    Ok(report)
}

/// Makes a program's folder and inputs.
fn prepare(bench: &Bench, place: &Place, program: &Program) -> anyhow::Result<Vec<OsString>> {
    bench.progress(&format!("programs, {}: inputs", program.name));
    let folder = bench.out.join("programs").join(program.name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let kitchen = Kitchen {
        folder,
        abi: place.abi,
        quick: bench.quick,
    };
    (program.prepare)(&kitchen)
}

/// A program that is being measured.
struct Subject<'a> {
    bench: &'a Bench,
    place: &'a Place,
    name: &'static str,
    line: Vec<OsString>,
}

/// The jobs of one way, and the bare ones beside them.
struct Jobs {
    what: &'static str,
    bare_s: Vec<f64>,
    with_s: Vec<f64>,
    summaries: Vec<JobSummary>,
}

impl Jobs {
    fn of(what: &'static str) -> Jobs {
        Jobs {
            what,
            bare_s: Vec::new(),
            with_s: Vec::new(),
            summaries: Vec::new(),
        }
    }

    fn share_in_collectives(&self) -> f64 {
        let shares = self.summaries.iter().map(share_in_collectives);
        median(&shares.collect::<Vec<_>>())
    }

    /// The share of that time that is waiting, where it is known.
    fn waiting(&self) -> Option<f64> {
        let known = self.summaries.iter().filter_map(|one| one.waiting_share);
        let known: Vec<f64> = known.collect();
        (!known.is_empty()).then(|| median(&known))
    }
}

fn share_in_collectives(summary: &JobSummary) -> f64 {
    match summary.wall_s > 0.0 {
        true => summary.collectives_s.mean / summary.wall_s,
        false => 0.0,
    }
}

impl Subject<'_> {
    fn measure(&self, calibrated: &Path, report: &mut Report) -> anyhow::Result<()> {
        let after_two = database::copy(self.bench, calibrated, "programs-two")?;
        let mut exploring = Jobs::of("exploring");
        self.batch(&after_two, 0, &mut exploring)?;
        let after_one = database::copy(self.bench, &after_two, "programs-one")?;
        self.batch(&after_two, 1, &mut exploring)?;

        let off = Tuner::Shim {
            db: None,
            mode: Mode::Off,
            seed: 7,
            settings: Vec::new(),
        };
        let tuned = |db: &Path| Tuner::shim(db, Mode::Exploit, 7);
        let mut ways = [
            (Jobs::of("counted"), off),
            (Jobs::of("tuned after one batch"), tuned(&after_one)),
            (Jobs::of("tuned after two"), tuned(&after_two)),
        ];
        let rounds = self.bench.pick(10, 3);
        for round in 0..rounds {
            self.progress(&format!("round {} of {rounds}", round + 1));
            let bare = self.bare()?;
            let first = round % ways.len();
            for place in 0..ways.len() {
                let (jobs, tuner) = &mut ways[(first + place) % 3];
                jobs.bare_s.push(bare);
                self.job(tuner.clone(), jobs)?;
            }
        }
        let [(counted, _), (one, _), (two, _)] = ways;
        self.tell(&[counted, exploring, one, two], report);
        Ok(())
    }

    fn batch(&self, db: &Path, batch: u64, jobs: &mut Jobs) -> anyhow::Result<()> {
        let runs = self.bench.pick(database::RUNS as usize, 3) as u64;
        for run in 0..runs {
            self.progress(&format!("batch {}, run {} of {runs}", batch + 1, run + 1));
            let explore = Tuner::shim(db, Mode::Explore, 1000 + batch * runs + run);
            if run % 2 == 0 {
                jobs.bare_s.push(self.bare()?);
                self.job(explore, jobs)?;
            } else {
                self.job(explore, jobs)?;
                jobs.bare_s.push(self.bare()?);
            }
        }
        self.progress("learning");
        database::train(self.bench, db).map(drop)
    }

    fn bare(&self) -> anyhow::Result<f64> {
        let n_ranks = self.place.n_ranks;
        let wall = jobs::run_program(self.bench, self.place, n_ranks, &Tuner::Bare, &self.line)?;
        Ok(wall.as_secs_f64())
    }

    /// Runs a job with the shim, and reads what it says of itself.
    fn job(&self, tuner: Tuner, jobs: &mut Jobs) -> anyhow::Result<()> {
        let file = self
            .bench
            .out
            .join(format!(".summary.{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let tuner = match tuner {
            Tuner::Shim { db, mode, seed, .. } => Tuner::Shim {
                db,
                mode,
                seed,
                settings: vec![("COLLTUNE_SUMMARY", file.to_string_lossy().into_owned())],
            },
            other => other,
        };
        let n_ranks = self.place.n_ranks;
        let wall = jobs::run_program(self.bench, self.place, n_ranks, &tuner, &self.line)?;
        let text = std::fs::read_to_string(&file)
            .context("read the job's summary: it wrote none, so the shim was not in it")?;
        let _ = std::fs::remove_file(&file);
        jobs.with_s.push(wall.as_secs_f64());
        jobs.summaries
            .push(serde_json::from_str(&text).context("read the job's summary")?);
        Ok(())
    }

    fn tell(&self, ways: &[Jobs], report: &mut Report) {
        let [counted, exploring, ..] = ways else {
            return;
        };
        let waiting = exploring.waiting();
        let possible = counted.summaries.iter().map(|summary| {
            let work = share_in_collectives(summary) * (1.0 - waiting.unwrap_or(0.0));
            1.0 / (1.0 - work).max(0.001)
        });
        let possible = spread(&possible.collect::<Vec<_>>());
        for way in ways {
            let case = format!("{}, {}", self.name, way.what);
            let row = Row::of_rounds(case, &way.bare_s, &way.with_s);
            let tuned: Vec<f64> = way.summaries.iter().map(|one| one.tuned_share).collect();
            let row = row.with("in_collectives", way.share_in_collectives());
            let row = row.with("waiting", way.waiting().map_or(Value::Null, Value::from));
            let row = row.with("tuned_calls", median(&tuned));
            report.rows.push(row.with("possible", possible.median));
        }
        report.findings.push(Finding {
            what: format!(
                "{}: what can be gained at all (n = {})",
                self.name,
                counted.summaries.len()
            ),
            found: Interval {
                low: possible.min,
                value: possible.median,
                high: possible.max,
            },
            unit: "x",
            target: Target::None,
        });
    }

    fn progress(&self, what: &str) {
        self.bench
            .progress(&format!("programs, {}: {what}", self.name));
    }
}
