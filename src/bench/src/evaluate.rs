//! `colltune-bench evaluate`: what each learner would have cost on the jobs that a database recorded.
//!
//! ```text
//! $ colltune-bench evaluate --db ./hydra.db
//! ```
//! Records say with which probability their variant was drawn, so calls that one learner drew judge any other
//! ([`colltune_models::evaluation`]). Runs are dealt into parts; each part is judged by what is learned from the others, or
//! a learner would be praised for the chance that it learned.

mod learners;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use anyhow::Context as _;
use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::model::{CellModel, Model};
use colltune_core::settings::Settings;
use colltune_core::space::Cell;
use colltune_db::calls::{RecordedCall, recorded};
use colltune_db::evidence::{Said, Store};
use colltune_db::{DataKey, Database};
use colltune_models::ablation::leave_out;
use colltune_models::evaluation::{Evaluation, Trial, evaluate};
use colltune_models::evidence::{Evidence, Shape};
use colltune_models::{Context, learn};
use colltune_output::{print, progress, table};
use serde::Serialize;

use learners::{Ablated, Learner, Range, Shares, Target, ablated, learners, range, share, told};

/// Parts of the runs, fewer where there are fewer runs.
const PARTS: usize = 5;

/// Judges every learner by every library's records.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let db = Database::open(&args.db)?;
    let settings = db.settings()?;
    let mut warnings = Vec::new();
    let mut judged = Vec::new();
    for key in db.keys()? {
        progress::show(&format!("{key}: reading the records"));
        let all = learners(args.ablation);
        judged.extend(judge(&db, &key, &settings, &all, &mut warnings)?);
    }
    progress::clear();
    warnings.iter().for_each(progress::hint);
    anyhow::ensure!(
        !judged.is_empty(),
        "evaluate {}: it holds no record of a drawn call; raw records are kept as long as `keep_raw` says",
        args.db.display()
    );
    let json = || serde_json::to_string_pretty(&judged).context("write JSON");
    print(&match args.json {
        true => json()? + "\n",
        false => judged.iter().map(Judged::text).collect(),
    })
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Learners: `default` is the library's own choice; `colltune` and `ompicolltune` are what each learner
would run when nothing is sampled, `... drawing` what it would draw meanwhile. Of each cell and of
all together the table has the mean time of a call, and its ratio to the default's, with 95 %
intervals over runs. Calls without a probability, as of earlier versions, are left out.
With --ablation the learner colltune stands beside itself without each of its mechanisms, in all
cells together in which calls judge both. What jobs recorded was drawn by the whole learner.
\"nothing\" is the same learner with other random numbers, once. Intervals are those of the judging
runs alone.

Examples:
  colltune-bench evaluate --db ./hydra.db
Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub struct Args {
    /// The tuning database
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: PathBuf,
    /// Leave out each mechanism of the learner colltune, too
    #[arg(long)]
    ablation: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One library's records, and what each learner would have made of them.
#[derive(Serialize)]
struct Judged {
    library: String,
    runs: usize,
    /// Calls that judge, and those that cannot: of no known probability, and where nothing else could be drawn.
    calls: usize,
    without_probability: usize,
    without_choice: usize,
    cells: Vec<JudgedCell>,
    total: Vec<Row>,
    ablation: Vec<Ablated>,
}

#[derive(Serialize)]
struct JudgedCell {
    cell: String,
    calls: usize,
    rows: Vec<Row>,
}

/// One learner in one cell, or in all.
#[derive(Serialize)]
struct Row {
    learner: String,
    /// Mean time of a call; of all cells together there is none.
    time_us: Option<Range>,
    /// That over the default's.
    ratio: Option<Range>,
    /// The calls that count are worth so many equally weighted ones.
    effective: Option<f64>,
}

/// How a learner is asked: what it runs when nothing is sampled, or what it draws.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Choice,
    Draws,
}

/// `None` where nothing was drawn.
fn judge(
    db: &Database,
    key: &DataKey,
    settings: &Settings,
    learners: &[Learner],
    warnings: &mut Vec<String>,
) -> anyhow::Result<Option<Judged>> {
    let found = recorded(db, key, |_| true, warnings)?;
    if found.records_left_out > 0 {
        let n = found.records_left_out;
        warnings.push(format!("{key}: {n} older records are left out"));
    }
    let space = Cells::new(settings, key.library);
    let (trials, mut judged) = trials(&found.calls, &space, key);
    if trials.is_empty() {
        return Ok(None);
    }
    let jobs = jobs(&found.calls);
    let n_parts = PARTS.min(jobs.len()).max(2);
    let said = Store::open(db, key, warnings)?.read(key.library, warnings);
    let targets = targets(
        &said,
        (&jobs, n_parts),
        (settings, key.library, learners),
        &space,
        warnings,
    );
    let is_default = |trial: &Trial| f64::from(u8::from(trial.variant == 0));
    let of_default = evaluate(&trials, is_default, is_default);
    let mut found = vec![("default".to_owned(), of_default)];
    for target in targets.iter().filter(|one| one.learner.without.is_none()) {
        let name = target.learner.kind.name();
        for (name, shares) in [
            (name.to_owned(), &target.choice),
            (format!("{name} drawing"), &target.draws),
        ] {
            found.push((
                name,
                evaluate(&trials, |trial| share(shares, trial), is_default),
            ));
        }
    }
    judged.fill(&found, &space);
    judged.ablation = ablated(&trials, &targets);
    Ok(Some(judged))
}

/// The runs, by a number each. Those of one layout have numbers in a row, so that each part gets some of them: layouts often
/// come in turns, and a part that had all runs of one would be judged by what is learned from others.
fn jobs(calls: &[RecordedCall]) -> BTreeMap<&str, u32> {
    let mut layouts: BTreeMap<&str, (u32, u32, u32)> = BTreeMap::new();
    for call in calls {
        let Shape {
            nodes,
            ppn,
            n_ranks,
            ..
        } = call.shape;
        let widest = layouts.entry(&call.job).or_default();
        *widest = (*widest).max((n_ranks, nodes, ppn));
    }
    let by_layout: BTreeSet<_> = layouts
        .into_iter()
        .map(|(job, layout)| (layout, job))
        .collect();
    let jobs = by_layout.into_iter().map(|(_, job)| job);
    jobs.zip(0..).collect()
}

/// The tuning space, and the catalogue by name.
struct Cells {
    cells: Vec<Cell>,
    places: HashMap<(Collective, String), u16>,
}

impl Cells {
    fn new(settings: &Settings, library: Library) -> Cells {
        let places = Collective::ALL.into_iter().flat_map(|collective| {
            let variants = catalogue::variants(library, collective).into_iter();
            let names = variants.map(|one| one.name.to_string());
            names
                .zip(0..)
                .map(move |(name, place)| ((collective, name), place))
        });
        Cells {
            cells: settings.space.cells().map(|(cell, _)| cell).collect(),
            places: places.collect(),
        }
    }

    fn of(&self, shape: &Shape) -> Option<usize> {
        let (nodes, ppn) = (shape.nodes.into(), shape.ppn.into());
        let holds = |cell: &Cell| cell.contains(shape.collective, shape.message_bytes, nodes, ppn);
        self.cells.iter().position(holds)
    }

    /// What a model says of each cell in this way.
    fn shares(&self, model: &Model, asked: Asked) -> Shares {
        let mut by_cell = Shares::new();
        for (place, cell) in self.cells.iter().enumerate() {
            let holds = |entry: &&CellModel| {
                let Cell {
                    collective,
                    bytes,
                    nodes,
                    ppn,
                } = *cell;
                entry.cell.contains(collective, bytes.lo, nodes.lo, ppn.lo)
            };
            let Some(entry) = model.cells.iter().find(holds) else {
                continue;
            };
            let place_of = |name: &str| {
                let named = (cell.collective, name.to_owned());
                self.places.get(&named).copied()
            };
            let shares = match asked {
                Asked::Choice => place_of(&entry.best)
                    .map(|best| (best, 1.0))
                    .into_iter()
                    .collect(),
                Asked::Draws => {
                    let drawn = entry.variants.iter();
                    drawn
                        .filter_map(|share| Some((place_of(&share.name)?, share.probability)))
                        .collect()
                }
            };
            by_cell.insert(place, shares);
        }
        by_cell
    }
}

/// The calls that judge, and how many do not.
fn trials(calls: &[RecordedCall], space: &Cells, key: &DataKey) -> (Vec<Trial>, Judged) {
    let jobs = jobs(calls);
    let mut judged = Judged {
        library: key.to_string(),
        runs: jobs.len(),
        calls: 0,
        without_probability: 0,
        without_choice: 0,
        cells: Vec::new(),
        total: Vec::new(),
        ablation: Vec::new(),
    };
    let mut cells: HashMap<Shape, Option<usize>> = HashMap::new();
    let mut trials = Vec::new();
    for call in calls {
        let named = (call.shape.collective, call.variant.clone());
        let cell = cells
            .entry(call.shape)
            .or_insert_with(|| space.of(&call.shape));
        let (Some(cell), Some(&variant)) = (*cell, space.places.get(&named)) else {
            continue;
        };
        match call.probability {
            none if none <= 0.0 => judged.without_probability += 1,
            sure if sure >= 1.0 => judged.without_choice += 1,
            probability => trials.push(Trial {
                run: jobs[call.job.as_str()],
                cell,
                variant,
                probability,
                time_ns: call.time_ns,
            }),
        }
    }
    judged.calls = trials.len();
    (trials, judged)
}

/// What each learner learns from all parts of the runs but one. One that cannot be had here is left out, with a warning.
fn targets(
    said: &Said,
    (jobs, n_parts): (&BTreeMap<&str, u32>, usize),
    (settings, library, learners): (&Settings, Library, &[Learner]),
    space: &Cells,
    warnings: &mut Vec<String>,
) -> Vec<Target> {
    let part_of = |row: &Evidence| {
        let job = said.jobs.get(row.run as usize)?;
        jobs.get(job.as_str()).map(|run| *run as usize % n_parts)
    };
    let mut targets: Vec<Target> = Vec::new();
    'learners: for learner in learners {
        let mut target = Target {
            learner: learner.clone(),
            choice: Vec::new(),
            draws: Vec::new(),
        };
        let settings = Settings {
            learner: learner.kind,
            ..settings.clone()
        };
        for part in 0..n_parts {
            progress::show(&format!(
                "{}: part {} of {n_parts}",
                learner.name(),
                part + 1
            ));
            let others = said
                .evidence
                .iter()
                .filter(|row| part_of(row) != Some(part));
            let others: Vec<Evidence> = others.copied().collect();
            let context = Context {
                seed: learner.seed,
                ..Context::first(&settings, library, "any")
            };
            let left_out = leave_out(learner.without.as_deref().unwrap_or_default());
            let learned = learn(&others, context);
            drop(left_out);
            match learned {
                Ok(learned) => {
                    target
                        .choice
                        .push(space.shares(&learned.model, Asked::Choice));
                    target
                        .draws
                        .push(space.shares(&learned.model, Asked::Draws));
                }
                Err(error) => {
                    warnings.push(format!("{} is left out: failed to {error}", learner.name()));
                    continue 'learners;
                }
            }
        }
        targets.push(target);
    }
    targets
}

impl Judged {
    fn fill(&mut self, found: &[(String, Evaluation)], space: &Cells) {
        let Some((_, first)) = found.first() else {
            return;
        };
        for (&cell, of_cell) in &first.cells {
            let rows = found.iter().map(|(learner, all)| {
                let one = &all.cells[&cell];
                Row {
                    learner: learner.clone(),
                    time_us: one.time_ns.map(|time| range(time, 1e3)),
                    ratio: one.ratio.map(|ratio| range(ratio, 1.0)),
                    effective: Some(one.effective.round()),
                }
            });
            self.cells.push(JudgedCell {
                cell: space.cells[cell].to_string(),
                calls: of_cell.calls,
                rows: rows.collect(),
            });
        }
        self.total = found
            .iter()
            .map(|(learner, all)| Row {
                learner: learner.clone(),
                time_us: None,
                ratio: all.ratio.map(|ratio| range(ratio, 1.0)),
                effective: None,
            })
            .collect();
    }

    fn text(&self) -> String {
        let head = [
            "cell",
            "calls",
            "learner",
            "us a call",
            "over the default's",
            "worth calls",
        ];
        let mut rows: Vec<Vec<String>> = Vec::new();
        for cell in &self.cells {
            for row in &cell.rows {
                rows.push(row.words(&cell.cell, cell.calls));
            }
        }
        for row in &self.total {
            rows.push(row.words("all together", self.calls));
        }
        format!(
            "{}: {} runs; {} calls judge, {} have no known probability, in {} nothing else could be drawn\n{}",
            self.library,
            self.runs,
            self.calls,
            self.without_probability,
            self.without_choice,
            table(&head, &rows)
        ) + &learners::text(&self.ablation)
    }
}

impl Row {
    fn words(&self, cell: &str, calls: usize) -> Vec<String> {
        let effective = self
            .effective
            .map_or_else(|| "-".to_owned(), |n| format!("{n:.0}"));
        vec![
            cell.to_owned(),
            calls.to_string(),
            self.learner.to_owned(),
            told(&self.time_us, 1),
            told(&self.ratio, 3),
            effective,
        ]
    }
}

#[cfg(test)]
mod tests;
