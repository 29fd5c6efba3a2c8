//! The tuner's own paper on this machine: what its figures 3, 4 and 5 show, on its problem, with real jobs.
//!
//! The mini-app runs the paper's problem in two ways: with miniAMR's own calls (an allreduce of 8 bytes for each variable)
//! and with exact sums (one of 73 integers for each variable). Batches of ten jobs mix five layouts of ranks and both
//! ways; after each there is a training. Only the library's own algorithms are drawn, as in the paper. All of that is done
//! once by the learner as published and once by colltune's own, each with a separate database. What is the fastest
//! and the slowest of the algorithms in truth is found by forcing each.
//!
//! Source: Hunold & Steiner, OMPICollTune, PMBS 2022, section V.

mod findings;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use colltune_core::catalogue::{self, Facts, Steering};
use colltune_core::collective::Collective;
use colltune_core::model::CellModel;
use colltune_core::request::Mode;
use colltune_core::variant::DEFAULT;
use colltune_db::{Database, Generation, generation};
use serde_json::Value;

use super::Bench;
use super::database;
use super::jobs::{self, Tuner};
use super::place::Place;
use super::report::{Finding, Report, Row};
use colltune_launch::own;
use colltune_launch::shim;
use findings::{Forced, told_of_floor, told_of_history, told_of_unseen, told_of_whole_runs};

/// Nodes, and ranks on each.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    nodes: usize,
    ppn: usize,
    /// Ranks in x, y and z.
    grid: [usize; 3],
}

const fn layout(nodes: usize, ppn: usize, grid: [usize; 3]) -> Layout {
    Layout { nodes, ppn, grid }
}

/// What figures 3 and 5 are about.
const LARGEST: Layout = layout(4, 2, [2, 2, 2]);
const LAYOUTS: [Layout; 5] = [
    LARGEST,
    layout(4, 1, [2, 2, 1]),
    layout(2, 2, [2, 2, 1]),
    layout(2, 1, [2, 1, 1]),
    layout(1, 2, [2, 1, 1]),
];
/// No job of the batches has it: figure 4.
const UNSEEN: Layout = layout(3, 2, [3, 2, 1]);

/// How the mini-app reduces: its options, and the bytes of an allreduce.
#[derive(Clone, Copy)]
struct Calls {
    options: &'static [&'static str],
    bytes: u64,
}

const CALLS: [Calls; 2] = [
    Calls {
        options: &["--compat"],
        bytes: 8,
    },
    Calls {
        options: &[],
        bytes: 73 * 8 * N_VARIABLES,
    },
];
const N_VARIABLES: u64 = 40;
/// Blocks so small that calls count.
const BLOCK: &str = "--deck ompicolltune --nx 8 --ny 8 --nz 8 --num_tsteps";
/// Settings by learner: the library's algorithms alone, and for our own room for 3 % for each of the paper's eight.
const LEARNERS: [(&str, &str); 2] = [
    (
        "ompicolltune",
        "machine = \"bench\"\nlearner = \"ompicolltune\"\n",
    ),
    (
        "colltune",
        "machine = \"bench\"\nfamilies = [\"native\"]\nexplore_total = 0.24\n",
    ),
];

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("library's default, s", "this, s");
    report.notes = [
        "forced: a job's time in reductions where each of its allreduces runs this variant, beside its share of the draws \
         after the first and after the last batch",
        "Tuned [g]: whole jobs that explore after g batches, from mpirun's start to its end; with an asterisk, jobs that \
         exploit",
        "in brackets who learned: ompicolltune as published, and colltune's own, which samples few calls, so that its \
         Tuned [0] is cheaper by design",
        "unlike the paper: 8 ranks on the cores of one machine at 1 Gbit/s instead of 1,024 on Omni-Path; Tuned [g] for \
         no g between the first and the last; the calls of figure 4 are the mini-app's and not ReproMPI's",
    ]
    .map(str::to_owned)
    .to_vec();
    match Place::cluster() {
        Ok(place) => {
            report.notes.push(place.describe());
            Paper { bench, place }.measure(&mut report)?;
        }
        Err(error) => report.skipped.push(format!("failed to {error:#}")),
    }
    Ok(report)
}

struct Paper<'a> {
    bench: &'a Bench,
    place: Place,
}

impl Paper<'_> {
    fn measure(&mut self, report: &mut Report) -> anyhow::Result<()> {
        let plain = self.database("plain", LEARNERS[1].1)?;
        let [eight, many] = CALLS.map(|calls| self.forced(&plain, calls));
        let forced = [eight?, many?];
        for (learner, settings) in LEARNERS {
            let mut found = Report::default();
            self.learner((learner, settings), &forced, &mut found)?;
            let named = |text: &str| format!("{text} [{learner}]");
            report.rows.extend(found.rows.into_iter().map(|row| Row {
                case: named(&row.case),
                ..row
            }));
            report
                .findings
                .extend(found.findings.into_iter().map(|one| Finding {
                    what: named(&one.what),
                    ..one
                }));
        }
        Ok(())
    }

    fn database(&self, name: &str, settings: &str) -> anyhow::Result<PathBuf> {
        let db = database::empty(self.bench, &format!("ompicolltune-{name}"))?;
        std::fs::write(db.join("colltune.toml"), settings)
            .with_context(|| format!("write the settings of {}", db.display()))?;
        Ok(db)
    }

    /// The whole protocol by one learner.
    fn learner(
        &mut self,
        (learner, settings): (&str, &str),
        forced: &[Forced],
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let db = self.database(learner, settings)?;
        let untrained = database::copy(
            self.bench,
            &db,
            &format!("ompicolltune-{learner}-untrained"),
        )?;
        let n_batches = self.bench.pick(20, 3);
        for batch in 0..n_batches {
            self.batch(&db, batch as u64)?;
        }
        let mut chosen = Vec::new();
        for (calls, forced) in CALLS.iter().zip(forced) {
            let bytes = calls.bytes.to_string();
            let said = said(&db, &["--shape", "4x2", "--bytes", &bytes])?;
            let histories = &said["histories"];
            if learner == LEARNERS[0].0 {
                told_of_floor(least_share(&db, calls.bytes)?, calls.bytes, report);
            }
            chosen.push(told_of_history(histories, calls.bytes, forced, report)?);
        }
        let trained = database::copy(self.bench, &db, &format!("ompicolltune-{learner}-trained"))?;
        let whole = self.whole_runs(&untrained, &trained)?;
        told_of_whole_runs(&whole, n_batches, &chosen[0], report);
        for run in 0..database::RUNS {
            let calls = CALLS[run as usize % CALLS.len()];
            self.progress(&format!("jobs of the unseen layout, {}", run + 1));
            self.job(&Tuner::shim(&db, Mode::Explore, 9000 + run), UNSEEN, calls)?;
        }
        database::train(self.bench, &db)?;
        told_of_unseen(&said(&db, &["--holdout", "3x2"])?["unseen"], report)
    }

    /// Every variant that may be drawn, and the default, on all ranks; each round in another order.
    fn forced(&mut self, db: &Path, calls: Calls) -> anyhow::Result<Forced> {
        let facts = Facts::usual(Collective::Allreduce, calls.bytes, 8, 4);
        let all = catalogue::variants(self.place.library, Collective::Allreduce);
        let applies = all
            .iter()
            .filter(|variant| variant.steering != Steering::None && variant.applies(&facts));
        let names = applies.map(|variant| variant.name.to_string());
        let names: Vec<String> = std::iter::once(DEFAULT.to_owned()).chain(names).collect();
        let mut forced = Forced::new();
        let n_rounds = self.bench.pick(5, 2);
        for round in 0..n_rounds {
            for turn in 0..names.len() {
                let name = &names[(round + turn) % names.len()];
                self.progress(&format!("{} bytes, {name} forced", calls.bytes));
                let tuner = Tuner::Shim {
                    db: Some(db.to_owned()),
                    mode: Mode::Exploit,
                    seed: 7,
                    settings: vec![("COLLTUNE_FORCE", format!("allreduce={name}"))],
                };
                let done = self.job(&tuner, LARGEST, calls)?;
                forced.entry(name.clone()).or_default().push(done.reducing);
            }
        }
        Ok(forced)
    }

    /// Ten jobs that explore, in all layouts and both ways, and a training.
    fn batch(&mut self, db: &Path, batch: u64) -> anyhow::Result<()> {
        for run in 0..database::RUNS {
            self.progress(&format!("batch {}, run {}", batch + 1, run + 1));
            let seed = 1000 + batch * database::RUNS + run;
            let layout = LAYOUTS[run as usize % LAYOUTS.len()];
            let calls = CALLS[run as usize / LAYOUTS.len() % CALLS.len()];
            self.job(&Tuner::shim(db, Mode::Explore, seed), layout, calls)?;
        }
        database::train(self.bench, db).map(drop)
    }

    /// Whole times without the tuner, before any training, after the last one, and exploiting that, in turns.
    fn whole_runs(&mut self, untrained: &Path, db: &Path) -> anyhow::Result<[Vec<f64>; 4]> {
        let mut times: [Vec<f64>; 4] = Default::default();
        let n_rounds = self.bench.pick(20, 3);
        for round in 0..n_rounds {
            for turn in 0..times.len() {
                let way = (round + turn) % times.len();
                self.progress(&format!("whole runs, round {} of {n_rounds}", round + 1));
                let seed = 5000 + round as u64;
                let tuner = match way {
                    0 => Tuner::Bare,
                    1 => Tuner::shim(untrained, Mode::Explore, seed),
                    2 => Tuner::shim(db, Mode::Explore, seed),
                    _ => Tuner::shim(db, Mode::Exploit, seed),
                };
                times[way].push(self.job(&tuner, LARGEST, CALLS[0])?.whole);
            }
        }
        Ok(times)
    }

    fn job(&mut self, tuner: &Tuner, layout: Layout, calls: Calls) -> anyhow::Result<Times> {
        let app = shim::file(self.place.abi)?.with_file_name("colltune-amr");
        let file = format!(".ompicolltune.{}.json", std::process::id());
        let file = self.bench.out.join(file);
        let line = format!("{BLOCK} {}", self.bench.pick(60, 20));
        let mut program: Vec<OsString> = vec![app.into_os_string()];
        program.extend(line.split_whitespace().map(OsString::from));
        program.extend(calls.options.iter().map(OsString::from));
        for (axis, n) in ["--npx", "--npy", "--npz"].into_iter().zip(layout.grid) {
            program.extend([axis.into(), n.to_string().into()]);
        }
        program.extend(["--json".into(), file.clone().into_os_string()]);
        let mapping = format!("ppr:{}:node", layout.ppn);
        self.place.variables = vec![("OMPI_MCA_rmaps_base_mapping_policy".to_owned(), mapping)];
        let n_ranks = layout.nodes * layout.ppn;
        let whole = jobs::run_program(self.bench, &self.place, n_ranks, tuner, &program)?;
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let _ = std::fs::remove_file(&file);
        let summary: Value = serde_json::from_str(&text).context("read what colltune-amr wrote")?;
        let reducing = summary.pointer("/time_s/reduce").and_then(Value::as_f64);
        Ok(Times {
            whole: whole.as_secs_f64(),
            reducing: reducing.context("find time_s.reduce in what colltune-amr wrote")?,
        })
    }

    fn progress(&self, what: &str) {
        self.bench.progress(&format!("ompicolltune: {what}"));
    }
}

/// Seconds of a job.
struct Times {
    whole: f64,
    reducing: f64,
}

/// The least probability that any training gave a variant for these allreduces on the largest layout.
fn least_share(db: &Path, bytes: u64) -> anyhow::Result<f64> {
    let db = Database::open(db)?;
    let (nodes, ppn) = (LARGEST.nodes as u64, LARGEST.ppn as u64);
    let mut least = 1.0_f64;
    for key in db.keys()? {
        for number in generation::numbers(&db, &key)? {
            let model = Generation::load_number(&db, key.clone(), number)?.model;
            let mut entries = model.cells.iter();
            let holds =
                |one: &&CellModel| one.cell.contains(Collective::Allreduce, bytes, nodes, ppn);
            let shares = entries.find(holds).map(|entry| &entry.variants);
            let shares = shares.into_iter().flatten();
            least = shares.map(|share| share.probability).fold(least, f64::min);
        }
    }
    Ok(least)
}

/// What `colltune report --json` says of the database's allreduces.
fn said(db: &Path, more: &[&str]) -> anyhow::Result<Value> {
    let own = own::colltune()?;
    let mut command = std::process::Command::new(own);
    command
        .args(["report", "--json", "--collective", "allreduce", "--db"])
        .arg(db)
        .args(more);
    let output = command.output().context("start colltune report")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        anyhow::bail!("report on {}: {}", db.display(), stderr.trim());
    }
    serde_json::from_slice(&output.stdout).context("read what colltune report wrote")
}
