//! `colltune compare`: does it help this program? Its whole time with and without colltune, in alternation.
//!
//! ```text
//! $ colltune compare --db ./hydra.db -- mpirun -n 8 ./solver
//! generation 3 of openmpi-4.1.4: 12 cells run another variant than the default
//! 10 runs each, alternated:
//!                      min   median      max  in collectives
//! without colltune  4.12 s   4.20 s   4.51 s   1.30 s (31 %)
//! with colltune     3.80 s   3.88 s   4.01 s   0.98 s (25 %)
//! With colltune the program is faster: speed-up 1.082 (95 % confidence interval 1.061 to 1.104).
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use colltune_core::account::JobSummary;
use colltune_core::catalogue;
use colltune_core::levers::Arms;
use colltune_core::request::Mode;
use colltune_db::{Database, Generation};
use colltune_statistics::{Interval, Spread};
use serde::Serialize;

use super::lever;
use super::train::goes_on;
use super::trials::TrialArgs;
use super::verdict::{self, Judged, Vetoed};
use crate::comparison::{
    Account, Comparison, Pair, Side, Step, Until, orders, percent, schedule, seconds, tried,
};
use crate::together::{self, Round, Sides};
use colltune_launch::database::usual;
use colltune_launch::levers::{Lever, filled};
use colltune_launch::trial::{Interrupt, Trials, Way};
use colltune_output::parse::mode;
use colltune_output::progress;
use colltune_output::{print, table};

/// Runs the pairs and prints what they say.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let db = db(args.db.as_deref())?;
    let arms = match args.levers.is_empty() {
        true => Default::default(),
        false => lever::compared(&Database::open(&db)?, &args.levers, &args.line)?,
    };
    super::run::read_line(&filled(&args.line, &arms.0))?;
    let interrupt = Interrupt::listen()?;
    let mut trials = args.trials.trials(&args.line, (&db, None), &db, interrupt);
    if !args.levers.is_empty() {
        return together(&mut trials, &db, args, &arms);
    }
    let mut found = Found::default();
    let seed = args.seed.unwrap_or(1);
    let steps = schedule(args.pairs, seed);
    let mut result = found.collect(&mut trials, &steps, args.pairs, args.mode);
    for pair in orders(seed).skip(args.pairs) {
        let until = args.trials.until;
        if result.is_err() || until.is_none_or(|until| !found.wants_more(until)) {
            break;
        }
        result = found.collect(&mut trials, &pair, args.pairs, args.mode);
    }
    progress::clear();
    for line in &trials.said {
        progress::tell(line);
    }
    result?;
    let ratio = found.ratio();
    args.trials.tell_missed(found.pairs.len(), ratio);
    let mut report = Report::of(&db, args, &found)?;
    // Other modes run other things than what is chosen.
    if args.mode == Mode::Exploit {
        report.record(&db, &found, &trials.interrupt);
    }
    print(&if args.json {
        serde_json::to_string(&report)? + "\n"
    } else {
        report.text()
    })
}

/// Compares arms of levers, and where something else than the default is chosen for collectives, these as well.
fn together(
    trials: &mut Trials,
    db: &Path,
    args: &Args,
    (first, chosen): &(Arms, Arms),
) -> anyhow::Result<()> {
    let n_tuned: usize = in_force(db)?.iter().map(|one| one.cells_tuned).sum();
    let n_sides = if n_tuned == 0 && args.mode == Mode::Exploit {
        2
    } else {
        4
    };
    let sides = [first, chosen].map(|arms| Sides {
        line: arms.clone(),
        asked: Arms::new(),
    });
    let mut rounds = Vec::new();
    let seed = args.seed.unwrap_or(0) as usize;
    let until = args.trials.until;
    let wants_more = |rounds: &[Round]| {
        let ratio = together::last_beside_first(rounds);
        until.is_some_and(|until| until.wants_more(rounds.len(), ratio))
    };
    for number in 0.. {
        if number >= args.pairs && !wants_more(&rounds) {
            break;
        }
        let how = (args.mode, seed + number);
        let round = Round::run(
            trials,
            (&sides[0], &sides[1]),
            n_sides,
            how,
            &mut Vec::new(),
        );
        if round.is_err() {
            progress::clear();
        }
        rounds.push(round?);
    }
    progress::clear();
    for line in &trials.said {
        progress::tell(line);
    }
    let ratio = together::last_beside_first(&rounds);
    args.trials.tell_missed(rounds.len(), ratio);
    if args.json {
        let told = serde_json::json!({"schema": 1, "db": db, "mode": args.mode.name(), "first": first,
            "chosen": chosen, "rounds": rounds});
        return print(&format!("{told}\n"));
    }
    print(&(crate::together::text(&rounds) + &lever::verdict(&rounds, first, chosen)))
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune compare --db ./hydra.db -- mpirun -n 8 ./solver
      Ten runs with the best known variants (`run --mode exploit`) and ten of the bare program, in
      alternation; who is first in a pair is drawn. Beside them, up to three runs in which the tuner
      only looks (`run --mode record`) how much of the time without it is spent in collectives.
  colltune compare -n 30 --db ./hydra.db -- mpirun -n 8 ./solver
      More runs show smaller differences.
  colltune compare --until 1% --warmup 1 --prepare 'rm -rf output' -- mpirun -n 8 ./solver
      Ten pairs, and more until the ratio is known to 1 %.
  colltune compare --lever placement=cplx:50 --db ./hydra.db -- mpirun -n 8 ./app {placement}
      One arm of the program's own choice beside the first one. If the collectives are tuned:
      each alone, and both.
  colltune compare --mode explore --db ./hydra.db -- mpirun -n 8 ./solver
      What it costs this program to try variants and to record (or what that gains already). As in
      `run`, the ten jobs leave their records in the database.

The speed-up is the geometric mean over pairs of time without over time with; one wild pair in
ten does not move it. If its 95 % confidence interval holds 1, no difference can be shown. If the
interval lies below 1 with the best known variants, and their calls take more time than is lost,
the variants chosen for this program are withdrawn: a new generation runs the default there, and
jobs that try variants measure them again.

The program's output is not shown (--show-output passes it to standard error). Standard input,
where it is a file, is read anew by each run; else there is none.
Exit codes: 0 compared, whatever was found; 1 failed, or a run did; 2 wrong usage; 124 a run took
longer than --timeout; 128 + N ended by signal N, as 130 by Ctrl-C.")]
pub struct Args {
    /// The tuning database [default: ./colltune-db]
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// The mode of `colltune run` that is compared with the bare program
    #[arg(long, value_name = "MODE", default_value = Mode::Exploit.name(), value_parser = mode())]
    mode: Mode,
    /// How many runs on each side
    #[arg(short = 'n', long = "pairs", value_name = "N", default_value = "10", value_parser = pairs)]
    pairs: usize,
    /// An option of the program in place of {NAME} on the line: NAME=ARM beside the first arm that the database knows,
    /// NAME=FIRST,ARM, or of more arms the best known beside the first
    #[arg(long = "lever", value_parser = Lever::parse, value_name = "NAME=ARM,...")]
    levers: Vec<Lever>,
    /// Seed of the coin that says who is first in a pair
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    trials: TrialArgs,
    /// Print the findings and every time as JSON
    #[arg(long)]
    json: bool,
    /// The line that starts the job
    #[arg(last = true, required = true, value_name = "mpirun ...")]
    line: Vec<OsString>,
}

/// The most that `--pairs` takes.
const PAIRS_MOST: usize = 1000;

pub fn pairs(text: &str) -> Result<usize, String> {
    let number: usize = text
        .parse()
        .map_err(|_| "it is no whole number".to_owned())?;
    match number {
        1..=PAIRS_MOST => Ok(number),
        _ => Err(format!("allowed are 1 to {PAIRS_MOST}")),
    }
}

/// The database to compare with; there has to be one.
fn db(told: Option<&Path>) -> anyhow::Result<PathBuf> {
    let db = std::path::absolute(usual(told)).context("make the database's path absolute")?;
    if !db.is_dir() {
        bail!(
            "open the database {}: there is none; `colltune tune -- mpirun ...` makes one and tunes it",
            db.display()
        );
    }
    Ok(db)
}

/// What the trials gave.
#[derive(Debug, Default)]
pub struct Found {
    pub pairs: Vec<Pair>,
    pub with: Vec<JobSummary>,
    pub accounts: Vec<JobSummary>,
}

impl Found {
    /// How many times as fast colltune makes it, as far as is known.
    pub fn ratio(&self) -> Option<Interval> {
        Comparison::of(&self.pairs).map(|found| found.ratio)
    }

    pub fn wants_more(&self, until: Until) -> bool {
        until.wants_more(self.pairs.len(), self.ratio())
    }

    /// Runs the steps one after the other, of a comparison of `n_pairs` pairs with colltune in this mode.
    ///
    /// Errors: the first trial that does not end well ends the comparison.
    pub fn collect(
        &mut self,
        trials: &mut Trials,
        steps: &[Step],
        n_pairs: usize,
        mode: Mode,
    ) -> anyhow::Result<()> {
        let mut half: Option<(Side, f64)> = None;
        let mut is_told = true;
        for step in steps {
            let so_far =
                Comparison::of(&self.pairs).map_or_else(String::new, |found| found.so_far());
            let pair = self.pairs.len() + 1;
            let pair = match pair <= n_pairs {
                true => format!("{pair} of {n_pairs}"),
                false => pair.to_string(),
            };
            match step {
                // A tuner without a summary the first time will have none later.
                Step::Account if !is_told => {}
                Step::Account => {
                    progress::show(&format!("where the time goes without tuning{so_far}"));
                    let done = tried(
                        trials,
                        Way::Tuned(Mode::Record),
                        "to see where the time goes",
                    )?;
                    is_told = done.summary.is_some();
                    self.accounts.extend(done.summary);
                }
                Step::Timed(side) => {
                    progress::show(&format!("pair {pair}, {}{so_far}", side.name()));
                    let done = tried(trials, side.way(mode), side.name())?;
                    if *side == Side::With {
                        self.with.extend(done.summary);
                    }
                    match half.take() {
                        None => half = Some((*side, done.wall_s)),
                        Some((first, wall_s)) => self.pairs.push(match first {
                            Side::With => Pair {
                                first,
                                without_s: done.wall_s,
                                with_s: wall_s,
                            },
                            Side::Without => Pair {
                                first,
                                without_s: wall_s,
                                with_s: done.wall_s,
                            },
                        }),
                    }
                }
            }
        }
        Ok(())
    }
}

/// The contents of `compare --json`.
#[derive(Serialize)]
struct Report {
    schema: u32,
    line: Vec<String>,
    db: PathBuf,
    mode: &'static str,
    /// What is in force for each library of the database.
    generations: Vec<InForce>,
    pairs: Vec<Pair>,
    #[serde(flatten)]
    comparison: Comparison,
    /// Where the time goes without tuning, and with it; null where the tuner did not tell.
    account_without: Option<Account>,
    account_with: Option<Account>,
    /// What is withdrawn by this comparison.
    vetoed: Vec<Vetoed>,
    /// Why no verdict is recorded, or why nothing is withdrawn though the program is slower.
    why_not_vetoed: Option<String>,
}

/// A library's generation in force.
#[derive(Serialize)]
struct InForce {
    library: String,
    generation: u64,
    /// Cells in which another variant than the default is chosen.
    cells_tuned: usize,
}

impl Report {
    fn of(db: &Path, args: &Args, found: &Found) -> anyhow::Result<Report> {
        Ok(Report {
            schema: 1,
            line: args
                .line
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            db: db.to_owned(),
            mode: args.mode.name(),
            generations: in_force(db)?,
            pairs: found.pairs.clone(),
            comparison: Comparison::of(&found.pairs).context("compare without a pair")?,
            account_without: Account::of(&found.accounts),
            account_with: Account::of(&found.with),
            vetoed: Vec::new(),
            why_not_vetoed: None,
        })
    }

    /// Leaves the verdict in the database.
    fn record(&mut self, db: &Path, found: &Found, interrupt: &Interrupt) {
        let compared = (&self.comparison, found.pairs.len());
        let recorded = Database::open_to_change(db)
            .map_err(anyhow::Error::from)
            .and_then(|db| verdict::record(&db, compared, &found.with, &|| goes_on(interrupt)));
        let judged = recorded.unwrap_or_else(|error| Judged::failed(&error));
        (self.vetoed, self.why_not_vetoed) = (judged.vetoed, judged.why_not);
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.generations {
            text += &match one.generation {
                0 => format!("{}: not trained yet, nothing is chosen\n", one.library),
                _ => format!(
                    "generation {} of {}: {} cells run another variant than the default\n",
                    one.generation, one.library, one.cells_tuned
                ),
            };
        }
        if self.generations.is_empty() {
            text += "the database is empty, nothing is chosen\n";
        }
        if self.mode != Mode::Exploit.name() {
            text += &format!("with colltune: --mode {}\n", self.mode);
        }
        text += &summary_of(
            &self.comparison,
            self.pairs.len(),
            &self.account_without,
            &self.account_with,
        );
        let (vetoed, why_not) = (self.vetoed.clone(), self.why_not_vetoed.clone());
        text + &Judged { vetoed, why_not }.text()
    }
}

/// The table of both sides and the finding.
pub fn summary_of(
    comparison: &Comparison,
    n_pairs: usize,
    without: &Option<Account>,
    with: &Option<Account>,
) -> String {
    let runs = if n_pairs == 1 { "run" } else { "runs" };
    let mut text = format!("{n_pairs} {runs} each, alternated:\n");
    let row = |side: Side, spread: Spread, account: &Option<Account>| {
        let [min, median, max] = [spread.min, spread.median, spread.max].map(seconds);
        let account = account.map_or_else(
            || "not known".to_owned(),
            |account| {
                let (time, share) = (account.collectives_s, account.collectives_share);
                format!("{} ({})", seconds(time), percent(share))
            },
        );
        vec![side.name().to_owned(), min, median, max, account]
    };
    let rows = [
        row(Side::Without, comparison.without_s, without),
        row(Side::With, comparison.with_s, with),
    ];
    text += &table(&["", "min", "median", "max", "in collectives"], &rows);
    if let Some((share, waiting)) =
        without.and_then(|one| Some((one.beyond_waiting?, one.waiting_share?)))
    {
        text += &format!(
            "Without tuning {} of the time in collectives is waiting for late ranks; the rest is {} of the whole time.\n",
            percent(waiting),
            percent(share)
        );
    }
    text + &comparison.sentence() + "\n"
}

fn in_force(db: &Path) -> anyhow::Result<Vec<InForce>> {
    let db = Database::open(db)?;
    let mut found = Vec::new();
    for key in db.keys()? {
        let library = key.to_string();
        let generation = Generation::load(&db, key)?;
        let tuned = generation
            .cells
            .iter()
            .filter(|cell| !catalogue::is_default(&cell.best));
        found.push(InForce {
            library,
            generation: generation.number,
            cells_tuned: tuned.count(),
        });
    }
    Ok(found)
}
