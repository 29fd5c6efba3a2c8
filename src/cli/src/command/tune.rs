//! `colltune tune`: everything for one program: calibrate, jobs that explore, trainings, and whether it helped.
//!
//! ```text
//! $ colltune tune -- mpirun -n 8 ./solver
//! A job takes 4.20 s, 31 % of it in collectives, 40 % of that waiting for late ranks.
//! After 1 job that tried variants: another variant than the default in 3 of the 9 cells that matter. ...
//! After 4 jobs that tried variants: another variant than the default in 5 of the 9 cells that matter; ...
//! After 10 jobs that tried variants: what is chosen is stable, another variant than the default in 5 of the 9 ...
//! With colltune the program is faster: speed-up 1.082 (95 % confidence interval 1.061 to 1.104).
//! ```

mod state;
mod words;

mod session;

mod limits;

mod rounds;

mod report;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use colltune_core::settings::LearnerKind;
use colltune_db::Database;

use self::session::Session;
use self::state::{End, Kept};
use super::compare::pairs;
use super::lever;
use super::trials::TrialArgs;
use super::verdict::Judged;
use colltune_launch::database::usual;
use colltune_launch::levers::{Lever, filled};
use colltune_launch::library::of_launcher;
use colltune_launch::line::Line;
use colltune_launch::trial::Interrupt;
use colltune_output::failure::{Stopped, usage};
use colltune_output::parse::{RunsOn, learner};
use colltune_output::progress;

/// Pairs of runs in a comparison whose outcome is not clear before.
const PAIRS: usize = 10;

/// Tunes until there is no more to gain.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let begun = Instant::now();
    lever::checked(&args.levers, &args.line)?;
    if let Some(one) = args.levers.iter().find(|lever| lever.arms.len() == 1) {
        return Err(usage(format!(
            "tune with the lever {0}: it has one arm, so there is nothing to choose; name others, or write {1} on the line",
            one.name, one.arms[0]
        )));
    }
    let named: Vec<Lever> = args
        .levers
        .iter()
        .filter(|one| !one.is_preset())
        .cloned()
        .collect();
    let (levers, said) = lever::expanded(&named, &args.line, None, None);
    said.iter().for_each(|sentence| progress::tell(sentence));
    let line = filled(&args.line, &lever::first(&levers));
    let line = super::run::read_line(&line)?;
    let interrupt = Interrupt::listen()?;
    let place = usual(args.db.as_deref());
    let place = std::path::absolute(place).context("make the database's path absolute")?;
    let is_new = !place.is_dir();
    let db = Database::create_or_open(&place)?.learning_by(args.learner);
    let what = if is_new { "made it" } else { "it is there" };
    progress::tell(&format!("Database: {} ({what}).", place.display()));
    let mut kept = Kept::open(&place, &args.line)?;
    resume(&mut kept, args.anyway);
    let of_db = (&*place, args.learner);
    let scratch = place.join("tune");
    let mut session = Session {
        trials: args.trials.trials(&args.line, of_db, &scratch, interrupt),
        db,
        batch: args.batch,
        pairs: args.pairs.unwrap_or(PAIRS),
        is_brief: args.pairs.is_none() && args.trials.until.is_none(),
        until: args.trials.until,
        budget: args.budget,
        max_jobs: args.max_jobs,
        n_jobs_before: kept.state.n_jobs(),
        kept,
        anyway: args.anyway,
        wants_nonblocking: named.len() < args.levers.len(),
        levers,
        as_json: args.json,
        begun,
        counted_until: begun,
        told: Default::default(),
    };
    let end = tuned(&mut session, &line, args);
    if end.is_err() {
        session.save()?;
    }
    let end = end.map_err(|error| report::kept(error, &session))?;
    progress::clear();
    if end == End::Compared {
        args.trials.tell_missed(session.n_rounds(), session.ratio());
    }
    let judged = session.judge();
    // Without a verdict the same line comes back to it, and to nothing else.
    session.kept.state.end = judged.is_ok().then_some(end);
    session.save()?;
    let judged = judged.unwrap_or_else(|error| {
        let mut judged = Judged::failed(&error);
        let again = |why: String| why + " The same line tells it again.";
        judged.why_not = judged.why_not.map(again);
        judged
    });
    report::report(&session, end, &judged)
}

fn tuned(session: &mut Session, line: &Line, args: &Args) -> anyhow::Result<End> {
    if let Some(end) = session.look()? {
        return Ok(end);
    }
    if session.wants_nonblocking
        && let Some(end) = session.expand(&args.levers)?
    {
        return Ok(end);
    }
    let names: Vec<String> = session.levers.iter().map(|one| one.name.clone()).collect();
    let state = &mut session.kept.state;
    if state.levers != names {
        // What was compared, or found stable, had other levers.
        if state.n_learned() > 0 {
            state.reopen();
        }
        state.levers = names;
    }
    // Not before it is known that there is something to gain.
    if !args.no_calibration {
        calibrate(session, line, args)?;
    }
    session.run()
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune tune -- mpirun -n 8 ./solver
      In ./colltune-db: calibrates, runs jobs that try variants, learns from each, and when the
      choices stay the same compares the program's whole time with and without colltune: some
      twenty to fifty jobs.
  colltune tune --lever block=32,64,128 -- mpirun -n 8 ./solver -b {block}
      The program's own options together with its collectives: each job draws an arm of every
      lever, and the comparison at the end has neither, levers, collectives, and both.
  colltune tune --lever nonblocking -- mpirun -n 8 ./solver
      The MPI library's own variables for nonblocking, persistent and neighbourhood collectives:
      one algorithm for each that the database has seen, and for the whole job.
  colltune tune --max-jobs 16 -- mpirun -n 8 ./solver
      In sixteen jobs: what is chosen by then is compared as it is.
  colltune tune --db ./hydra.db --budget 2h -- srun --mpi=pmix -n 128 ./solver
      As much as fits into two hours, seven times a job's length or more. Then it says what is
      gained so far, writes no tables, and ends with exit code 3. Run it again to continue.

A program whose collectives, beyond waiting for late ranks, take less than 2 % of its time is told
so after one to three jobs, and that is the end (--anyway goes on). So is it where three or more
jobs that tried variants leave so little to find that more of them would not pay. Every sixth job
runs the default, to compare with. The choices are stable when ten jobs or more have tried
variants and the trainings of the last half of them changed none in the cells with 1 % of the
time or more, but for others that are as good; after fifty, or where --max-jobs leaves room for no
other, they are compared as they are. Without levers the comparison ends from five pairs of runs on
where a speed-up is beyond doubt; a slowdown is compared in full. Where the whole program is slower
with them, no tables are written; they are withdrawn where their time can explain that, and later
jobs measure them again.

Each job runs the line as it stands, as `colltune run` would: its output is not shown
(--show-output passes it to standard error), its standard input is read anew where it is a file.
What was done is kept in DB/tune after every job, the line itself as a hash alone.
Exit codes: 0 done; 1 failed, or a job did; 2 wrong usage; 3 the budget ended first; 124 a job
took longer than --timeout; 128 + N ended by signal N, as 130 by Ctrl-C. After 1, 3, 124 and a
signal the same command continues.")]
pub struct Args {
    /// The tuning database; made if it does not exist [default: ./colltune-db]
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// The most time that this invocation takes, as in 90min [default: none]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,
    /// The most jobs that this invocation runs, those of the comparison among them, and not those of --warmup [default: none]
    #[arg(long, value_name = "N")]
    max_jobs: Option<usize>,
    /// Jobs between two trainings; each takes a fraction of a second
    #[arg(long, value_name = "N", default_value = "1", value_parser = pairs)]
    batch: usize,
    /// How many runs the comparison has on each side [default: 10, or fewer where it is clear before]
    #[arg(short = 'n', long = "pairs", value_name = "N", value_parser = pairs)]
    pairs: Option<usize>,
    /// Who learns, whatever the settings say
    #[arg(long, value_parser = learner())]
    learner: Option<LearnerKind>,
    /// Tune an option of the program, too: each job runs one arm of NAME in place of {NAME} on the line; the first is what it
    /// runs with today. A NAME such as MPIR_CVAR_... is a variable for the ranks; `nonblocking` stands for several
    #[arg(long = "lever", value_parser = Lever::parse, value_name = "NAME=ARM,ARM,...")]
    levers: Vec<Lever>,
    /// Go on where nothing can be gained, or begin anew where the tuning is done
    #[arg(long)]
    anyway: bool,
    /// Do not measure the machine first: more variants are tried
    #[arg(long)]
    no_calibration: bool,
    #[command(flatten)]
    trials: TrialArgs,
    /// Print how it ended as JSON
    #[arg(long)]
    json: bool,
    /// The line that starts the job
    #[arg(last = true, required = true, value_name = "mpirun ...")]
    line: Vec<OsString>,
}

/// Says where an earlier invocation was; a tuning that is done begins anew where that is asked for.
fn resume(kept: &mut Kept, anyway: bool) {
    let state = &mut kept.state;
    match state.end {
        Some(_) if anyway => state.again(),
        Some(End::NothingToGain) => state.again(),
        Some(End::Compared) => {
            // The same line again asks for more: further jobs, then another comparison.
            progress::tell("This line was tuned and compared before; going on with further jobs.");
            state.reopen();
        }
        None if state.n_jobs() > 0 => progress::tell(&words::place(state)),
        None => {}
    }
}

/// Measures the machine where that was not done, and the launcher tells how.
///
/// Errors: only where a signal ends this command. A machine that is not measured makes exploring dearer, no more.
fn calibrate(session: &Session, line: &Line, args: &Args) -> anyhow::Result<()> {
    let db = &session.db;
    let (Some(launcher), Some(first)) = (line.launcher, line.contexts.first()) else {
        return Ok(());
    };
    let known = of_launcher(&line.words[launcher]);
    // Slurm does not say which library it starts; the program does.
    let told = args.trials.mpi.as_deref().and_then(RunsOn::of);
    let told = || {
        let abis = super::run::libraries(line, told.map(|told| told.abi)).ok()?;
        abis.into_iter().flatten().next()
    };
    let Some(abi) = known.abi().or_else(told) else {
        progress::tell(
            "Not calibrated: neither launcher nor program says which MPI library it is.",
        );
        return Ok(());
    };
    // It is written last: what was interrupted before goes on.
    let is_there = match known.library {
        Some(library) => db.simulated(library).exists(),
        None => db
            .settings()?
            .simulated
            .keys()
            .any(|library| abi.serves(library.product)),
    };
    if is_there {
        return Ok(());
    }
    progress::show("calibrating: what messages cost on this machine");
    let words = &args.line[..first.program];
    let until = args.budget.map(|budget| session.begun + budget);
    match super::calibrate::into(db, words, Some(abi), &session.trials.interrupt, until) {
        Ok((library, _)) => progress::tell(&format!(
            "Calibrated: variants that are predicted to take over {} times as long as another are not tried.",
            db.settings()?.hopeless_factor_on(library)
        )),
        Err(error) if error.is::<Stopped>() => return Err(error),
        // One rank alone sends no messages; a launcher may be bound to this program.
        Err(error) => progress::tell(&format!(
            "Not calibrated, which only makes exploring dearer: failed to {error:#}"
        )),
    }
    Ok(())
}
