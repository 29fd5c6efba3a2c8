//! `colltune run`: start a job with the tuner in its ranks.
//!
//! ```text
//! $ colltune run --db ./hydra.db -- mpirun -n 8 ./solver input.nml
//! ```
//! The job takes this process's place, so its exit code, its signals and its standard streams are
//! the launcher's own.

mod messages;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use colltune_core::environment;
use colltune_core::levers::{self, Arms};
use colltune_core::library::{Abi, Library, Product};
use colltune_core::request::{self, Forced, Mode};
use colltune_core::spelling::quoted;
use colltune_db::Database;
use colltune_files::site::is_site;

use self::messages::MessageFolder;
use super::{lever, tables};
use crate::variables::Wrong;
use colltune_launch::container::Container;
use colltune_launch::levers::{Lever, filled, line_hash};
use colltune_launch::line::{Context, Line, find_launcher};
use colltune_launch::needs::{self, Needs};
use colltune_launch::nonblocking;
use colltune_launch::prefix::{self, Assignments, Given};
use colltune_launch::{container, library, presets, queue, shim};
use colltune_output::failure::usage;
use colltune_output::parse::{RunsOn, mode, runs_on};
use colltune_output::progress;

/// Starts the job. Returns only if it could not be started.
pub fn run(args: &Args) -> anyhow::Result<()> {
    lever::checked(&args.levers, &args.line)?;
    let mut request = Request::of(args)?;
    for wrong in Wrong::all().filter(|wrong| !args.overrides(wrong.name())) {
        match wrong {
            _ if args.strict => return Err(usage(format!("start the job: {wrong}"))),
            Wrong::Unknown { .. } => progress::hint(&wrong),
            // The shim says so, and runs untuned.
            Wrong::NoText(_) | Wrong::Value { .. } => {}
        }
    }
    request.pull();
    let line = read_line(&filled(&args.line, &request.arms))?;
    let abis = libraries(&line, args.mpi.map(|told| told.abi))?;
    if args.strict && args.mode != Some(Mode::Off) && abis.iter().all(Option::is_none) {
        bail!(
            "start the job: no program of the line needs an MPI library that can be seen, as where it is linked statically, \
             so that it would run untuned; if it loads MPI later on, say which: --mpi openmpi, mpich, intel or mpi_abi"
        );
    }
    let without = line.contexts.iter().zip(&abis);
    for (context, _) in without.filter(|(_, abi)| abi.is_none()) {
        progress::hint(format_args!(
            "{} needs no MPI library that can be seen, so it is started without the tuner \
             (if it loads MPI later on, say which: --mpi openmpi, mpich, intel or mpi_abi)",
            line.words[context.program].display()
        ));
    }
    if let Some(mismatch) = mismatch(&line, &abis) {
        progress::hint(mismatch);
    }
    let messages = match &args.messages {
        Some(folder) => Some(MessageFolder::prepare(folder, &abis)?),
        None => None,
    };
    request.drop_foreign(&line, &abis);
    let library = library(args, &line, &abis);
    check_force(args, library)?;
    let left_out = match library.filter(|_| request.asked().mode == Mode::Tables) {
        Some(library) => tables_left_out(args, library, &line)?,
        None => Vec::new(),
    };
    let variables = match variables(&request, &line, &abis, library) {
        Ok(variables) => variables,
        Err(error) if args.strict => return Err(error),
        // A job that has waited for days must not fail for what only makes it faster.
        Err(error) => {
            progress::hint(format_args!(
                "failed to {error:#}; the job runs untuned (--strict refuses it)"
            ));
            let given = given(&line, &abis, None, messages.as_ref())?;
            return start(&line, &given, &request.arms, &[]);
        }
    };
    let tuner = Some(&variables).filter(|_| messages.is_none() || request.is_for_the_shim());
    let given = given(&line, &abis, tuner, messages.as_ref())?;
    if !left_out.is_empty() {
        progress::hint(format_args!(
            "this job runs without {}: its ranks run what `colltune export` would write now, next to the library's own \
             choice",
            left_out.join(", ")
        ));
    }
    start(&line, &given, &request.arms, &left_out)
}

/// The variables by which tables would be in force beside what the ranks run in their place.
fn tables_left_out(
    args: &Args,
    library: Library,
    line: &Line,
) -> anyhow::Result<Vec<&'static str>> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    match tables::left_out(library, &line.words, &names.collect::<Vec<_>>()) {
        Ok(left_out) => Ok(left_out),
        Err(problem) if args.strict || args.mode.is_some() => Err(usage(problem)),
        // Who set a variable in a profile did not mean this job.
        Err(problem) => {
            progress::hint(format_args!("failed to {problem}"));
            Ok(Vec::new())
        }
    }
}

/// What the ranks' environment says, and before that the database made ready.
fn variables(
    request: &Request,
    line: &Line,
    abis: &[Option<Abi>],
    library: Option<Library>,
) -> anyhow::Result<Assignments> {
    let mut variables = request.variables()?;
    // A rank that runs another algorithm than the rest would make them wait for ever.
    let everywhere = abis.iter().all(Option::is_some);
    if let Some(library) = library.filter(|_| everywhere) {
        variables.extend(presets::assignments(library, line, &request.asked())?);
    }
    Ok(variables)
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune run --db ./hydra.db -- mpirun -n 8 ./solver
      Tune: draw variants, record times. The first use creates the database.
  colltune train --db ./hydra.db
      Learn from what the runs recorded.
  colltune run --db ./hydra.db --mode exploit -- srun -n 128 ./solver
      Run the best known variants; record only what watches over them.
  colltune run --db ./hydra.db --mode tables -- mpirun -n 8 ./solver
      Watch exported tables: run the algorithms that they hold, next to the library's own choice.
  colltune run --force 'bcast=native:pipeline:segsize=32KiB' -- mpirun -n 8 ./solver
      One variant on every call that it applies to; `colltune variants` lists them.
  colltune run --db ./hydra.db --lever block=32,64,128 -- mpirun -n 8 ./solver -b {block}
      Try the program's own options, too: each job draws one, and the ledger keeps which.
  colltune run --summary runs.jsonl -- mpirun -n 8 ./solver
      Tune nothing; say how much of the time went into collectives.
  colltune run --messages m --mode off -- mpirun -n 8 ./solver
      Tune nothing; record who sends how much to whom, for `colltune-lab telemetry`.
  colltune run --db ./hydra.db -- mpirun -n 1 ./master : -n 7 ./worker
      Every program of a multi-program line is tuned.

The job's exit code is passed on. 1: the job could not be started, 2: wrong usage.

The tuner is put into the ranks only, by `env LD_PRELOAD=... COLLTUNE_DB=...` in front of each
program of the line. Libraries that you preload yourself are kept and stand behind it. Every
COLLTUNE_* variable of your environment reaches the ranks, on other nodes too.
A program that no MPI library can be seen in is started as it is, with a warning. So is every
program where the database cannot be used. --strict refuses the job instead, with exit code 1.
What is only known in the job ends it in MPI_Init, with a sentence and exit code 1: another library
than was seen, a version of it that is not known yet, processes that do not find each other, or a
database that nothing can be written to.")]
pub struct Args {
    /// The tuning database; made if it does not exist. Or a site folder, to exploit. Without one, nothing is tuned
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// explore (draw and record), exploit (best known), tables (best known of the library's own algorithms), record
    /// (time the library's own choice), off
    /// [default: explore with a database, exploit with a site folder, else off]
    #[arg(long, value_parser = mode(), value_name = "MODE")]
    mode: Option<Mode>,
    /// Seed of every draw; the same seed and calls give the same variants
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Variants for every call that they apply to: COLLECTIVE=VARIANT[;...]
    #[arg(long, value_name = "SPEC")]
    force: Option<String>,
    /// A choice of the program: one arm of NAME takes the place of {NAME} on the line. Explore draws it, exploit runs the
    /// best known, record and off the first
    #[arg(long = "lever", value_parser = Lever::parse, value_name = "NAME=ARM,...")]
    levers: Vec<Lever>,
    /// Write each tuned call as a line of JSON to DIR/rank-N.jsonl
    #[arg(long, value_name = "calls:DIR")]
    log: Option<String>,
    /// Add a line of JSON to FILE when the job ends: time in collectives, waiting, what could be gained at most
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Record point-to-point messages and the waiting for them, a file for each rank in FOLDER. For `colltune-lab telemetry
    /// summary FOLDER` and `telemetry matrix FOLDER`
    #[arg(long, value_name = "FOLDER")]
    messages: Option<PathBuf>,
    /// The MPI library, where program and launcher do not tell
    #[arg(long, value_parser = runs_on(), value_name = "LIBRARY")]
    mpi: Option<RunsOn>,
    /// Refuse the job where it could only run untuned, as with a database that cannot be used
    #[arg(long)]
    strict: bool,
    /// The line that starts the job
    #[arg(last = true, required = true, value_name = "mpirun ...")]
    line: Vec<OsString>,
}

impl Args {
    /// Whether an argument stands in a variable's place.
    fn overrides(&self, name: &str) -> bool {
        match name {
            environment::MODE => self.mode.is_some(),
            environment::FORCE => self.force.is_some(),
            environment::LOG => self.log.is_some(),
            environment::SUMMARY => self.summary.is_some(),
            "COLLTUNE_SEED" => self.seed.is_some(),
            _ => false,
        }
    }
}

/// What is asked of the shim, checked.
struct Request<'a> {
    args: &'a Args,
    log: Option<PathBuf>,
    forced: Vec<Forced>,
    /// What the job runs with.
    arms: Arms,
}

impl Request<'_> {
    fn of(args: &Args) -> anyhow::Result<Request<'_>> {
        let needs_db = args.mode.is_some_and(|mode| mode != Mode::Off);
        if needs_db && args.db.is_none() && args.force.is_none() {
            let mode = args.mode.map_or("", Mode::name);
            return Err(usage(format!(
                "start the job: --mode {mode} needs --db DIR (or COLLTUNE_DB)"
            )));
        }
        let records = args.mode.is_some_and(Mode::records);
        if let Some(site) = args.db.as_deref().filter(|db| records && is_site(db)) {
            return Err(usage(format!(
                "start the job: {} is a site folder, which jobs only read; --mode exploit, or a database of your own",
                site.display()
            )));
        }
        if let Some(seed) = args.seed.filter(|seed| *seed > i64::MAX as u64) {
            return Err(usage(format!(
                "use the seed {seed}: it is a whole number from 0 to {}",
                i64::MAX
            )));
        }
        let log = args
            .log
            .as_deref()
            .map(request::parse_log)
            .transpose()
            .map_err(usage)?;
        let forced = match &args.force {
            Some(force) => request::parse_force(force).map_err(usage)?,
            // As above: a wrong variable is the shim's to report.
            None => request::parse_force(&std::env::var(environment::FORCE).unwrap_or_default())
                .unwrap_or_default(),
        };
        Ok(Request {
            args,
            log: log.map(PathBuf::from),
            forced,
            arms: Arms::new(),
        })
    }

    /// Whether the shim has anything to do: `--mode off` alone keeps it out where something else is preloaded.
    fn is_for_the_shim(&self) -> bool {
        let args = self.args;
        let is_asked = args.db.is_some()
            || args.force.is_some()
            || args.summary.is_some()
            || std::env::var_os(environment::SUMMARY).is_some();
        is_asked || args.mode != Some(Mode::Off)
    }

    /// Settles the arms of the levers, and says which. Nothing that is wrong with the database keeps a job from running.
    fn pull(&mut self) {
        let args = self.args;
        if args.levers.is_empty() {
            return;
        }
        let mode = self.asked().mode;
        let db = args.db.as_deref().filter(|db| db.is_dir() && !is_site(db));
        let db = db.and_then(|db| Database::open(db).ok());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seed = args
            .seed
            .unwrap_or(now.unwrap_or_default().as_nanos() as u64);
        // Ranks that start one by one would draw one by one.
        let of_a_rank = ["PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"];
        let is_rank = of_a_rank
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        if is_rank {
            progress::hint(
                "levers: this is one rank of a job, so the first arms run; name them before the launcher",
            );
        }
        let mode = if args.db.is_none() || is_rank {
            Mode::Off
        } else {
            mode
        };
        let (levers, said) = lever::expanded(&args.levers, &args.line, db.as_ref(), None);
        said.iter().for_each(progress::hint);
        let (arms, how) = lever::of_job(&levers, &args.line, db.as_ref(), (mode, seed));
        if !how.is_empty() {
            for (name, arm) in &arms {
                progress::hint(format_args!("lever {name}: {arm} ({how})"));
            }
        }
        self.arms = arms;
    }

    /// Leaves out the variables of `--lever nonblocking` that this line's library may not know: it may end the job at one.
    fn drop_foreign(&mut self, line: &Line, abis: &[Option<Abi>]) {
        let named = &self.args.levers;
        if !named.iter().any(Lever::is_preset) {
            return;
        }
        let launcher = line.launcher.map(|place| &line.words[place]);
        let library = launcher.and_then(|launcher| library::of_launcher(launcher).library);
        let prefix = match abis.iter().flatten().next() {
            Some(Abi::OpenMpi) => "OMPI_MCA_",
            _ => "MPIR_CVAR_",
        };
        let is_known = |name: &str| match library {
            Some(library) => nonblocking::known(library, name).is_some(),
            None => name.starts_with(prefix),
        };
        self.arms.retain(|name, _| {
            let stays = named.iter().any(|one| one.name == *name) || is_known(name);
            if !stays {
                progress::hint(format_args!(
                    "lever {name}: left out, as this line's library may not know it"
                ));
            }
            stays
        });
    }

    /// What decides before the job begins, for a library that needs that; from arguments or environment.
    fn asked(&self) -> presets::Asked<'_> {
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let is_site = self.args.db.as_deref().is_some_and(is_site);
        let mode = match (self.args.mode, text(environment::MODE)) {
            (Some(mode), _) => mode,
            // The shim says what is wrong with the variable, and runs untuned.
            (None, Some(mode)) => mode.parse().unwrap_or(Mode::Off),
            (None, None) if is_site => Mode::Exploit,
            (None, None) => Mode::Explore,
        };
        presets::Asked {
            db: self.args.db.as_deref(),
            mode,
            seed: self.args.seed,
            forced: &self.forced,
        }
    }

    /// The variables for the ranks: the user's own, then what the arguments say.
    fn variables(&self) -> anyhow::Result<Assignments> {
        let args = self.args;
        let mut variables: Assignments = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| {
                name.starts_with(environment::PREFIX)
                    && ![
                        environment::LIB,
                        environment::MESSAGES,
                        environment::PRESETS,
                        environment::STRICT,
                    ]
                    .contains(&name.as_str())
            })
            .collect();
        variables.sort();
        let mut set = |name: &str, value: OsString| {
            variables.retain(|(other, _)| other != name);
            variables.push((name.to_owned(), value));
        };
        if let Some(db) = &args.db {
            colltune_launch::database::prepare(db)?;
            set(environment::DB, absolute(db)?);
        }
        if let Some(mode) = args.mode {
            set(environment::MODE, mode.name().into());
        }
        // In the environment alone `off` writes nothing.
        if args.mode == Some(Mode::Off) && args.db.is_some() {
            set(environment::LEDGER, "1".into());
        }
        if args.strict && args.mode != Some(Mode::Off) {
            set(environment::STRICT, "1".into());
        }
        if let Some(seed) = args.seed {
            set("COLLTUNE_SEED", seed.to_string().into());
        }
        if let Some(force) = &args.force {
            set(environment::FORCE, force.into());
        }
        if !self.arms.is_empty() {
            let told = std::env::var(environment::LEVERS).unwrap_or_default();
            let mut arms = levers::parse(&told);
            arms.extend(self.arms.clone());
            set(environment::LEVERS, levers::spell(&arms).into());
            set(environment::ARGUMENTS, line_hash(&args.line).into());
        }
        if let Some(file) = &args.summary {
            set(environment::SUMMARY, absolute(file)?);
        }
        if let Some(folder) = &self.log {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("create the log folder {}", folder.display()))?;
            let mut value = OsString::from("calls:");
            value.push(absolute(folder)?);
            set(environment::LOG, value);
        }
        Ok(variables)
    }
}

fn absolute(path: &Path) -> anyhow::Result<OsString> {
    let path =
        std::path::absolute(path).with_context(|| format!("make {} absolute", path.display()))?;
    Ok(path.into_os_string())
}

/// Finds launcher and programs. The launcher may stand behind other commands (`nice mpirun`),
/// unless the first word is an MPI program itself, whose arguments are its own.
pub fn read_line(words: &[OsString]) -> anyhow::Result<Line> {
    let resolves = |word: &OsStr, wdir: Option<&OsStr>| needs::resolve(word, wdir).is_some();
    if !resolves(&words[0], None) {
        bail!(
            "find {}: there is no such program in PATH, nor a file of this name",
            quoted(&words[0].to_string_lossy())
        );
    }
    let is_mpi_program = || {
        needs::resolve(&words[0], None)
            .is_some_and(|file| matches!(needs::of_file(&file), Needs::Mpi(_)))
    };
    let launcher = find_launcher(words).filter(|place| *place == 0 || !is_mpi_program());
    if let Some(refusal) = queue::refusal(words, launcher.is_some()) {
        return Err(usage(refusal));
    }
    if let Some(launcher) = launcher
        .map(|place| &words[place])
        .filter(|launcher| !resolves(launcher, None))
    {
        bail!(
            "find the launcher {}: there is no such program in PATH, nor a file of this name",
            launcher.display()
        );
    }
    Line::read(words.to_vec(), launcher, &resolves).map_err(anyhow::Error::from)
}

/// The binary interface of each program's MPI library; `None` where it has none.
pub fn libraries(line: &Line, told: Option<Abi>) -> anyhow::Result<Vec<Option<Abi>>> {
    line.contexts
        .iter()
        .map(|context| match told {
            Some(abi) => Ok(Some(abi)),
            None => library_of(line, context),
        })
        .collect()
}

fn library_of(line: &Line, context: &Context) -> anyhow::Result<Option<Abi>> {
    let words = &line.words[context.program..context.end];
    let mut may_load_mpi_later = false;
    for (place, word) in words.iter().enumerate() {
        let Some(file) = needs::resolve(word, context.wdir.as_deref()) else {
            continue;
        };
        match needs::of_file(&file) {
            Needs::Mpi(abi) => return Ok(Some(abi)),
            Needs::UnknownMpi(name) => bail!(
                "tune {}: it needs {name}, an MPI library that no build of colltune serves (served: libraries with \
                 the binary interface of Open MPI 4 and 5, of MPICH, and of MPI 5)",
                file.display()
            ),
            Needs::NotElf => may_load_mpi_later |= place == 0 || needs::is_script(&file),
            Needs::NoMpi => may_load_mpi_later |= place == 0 && is_interpreter(&file),
        }
    }
    // Its programs are not to be seen from here.
    may_load_mpi_later |= container::find(words).is_some();
    if needs::resolve(&words[0], context.wdir.as_deref()).is_none() {
        may_load_mpi_later = true; // the launcher may find it on another node, or will say itself that it is missing
    }
    if !may_load_mpi_later {
        return Ok(None);
    }
    let launcher = line
        .launcher
        .map_or(OsStr::new("mpirun"), |place| &line.words[place]);
    let product =
        library::seen_in_file(launcher).or_else(|| library::of_launcher(launcher).product);
    let abi = product.and_then(library::abi_of).with_context(|| {
        format!(
            "find the MPI library of {}: neither the program nor {} tells; say it with --mpi openmpi, mpich, intel or mpi_abi",
            words[0].display(),
            launcher.display()
        )
    })?;
    Ok(Some(abi))
}

/// What there is to say of a line whose launcher belongs to another library than one of its programs. It may work: MPICH
/// can be built for the launcher of Open MPI 5.
pub fn mismatch(line: &Line, abis: &[Option<Abi>]) -> Option<String> {
    let launcher = &line.words[line.launcher?];
    // Slurm and others start the programs of every library.
    let product = library::seen_in_file(launcher)?;
    let of_another = |abi: &Abi| *abi != Abi::Standard && !abi.serves(product);
    let (place, abi) = abis
        .iter()
        .enumerate()
        .find_map(|(place, abi)| Some((place, abi.filter(of_another)?)))?;
    let program = &line.words[line.contexts[place].program];
    let own = library::abi_title(abi);
    Some(format!(
        "{} was built for {own}, {} is the launcher of {}: its processes may each start as a world of one; start it with \
         the mpiexec of {own}",
        program.display(),
        launcher.display(),
        product.title()
    ))
}

/// Programs that run other code, which may load MPI.
fn is_interpreter(file: &Path) -> bool {
    const STEMS: [&str; 19] = [
        "python", "pypy", "perl", "ruby", "lua", "julia", "node", "java", "R", "Rscript", "octave",
        "matlab", "guile", "bash", "sh", "dash", "zsh", "ksh", "busybox",
    ];
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or("");
    STEMS.iter().any(|stem| {
        name.strip_prefix(stem).is_some_and(|rest| {
            rest.chars()
                .all(|c| c.is_ascii_digit() || ".-m".contains(c))
        })
    })
}

/// The library that the job runs on, as the launcher names it; `None` where nothing runs on one. Its version decides
/// what can be forced and what is preset for Intel MPI before a job; without either, the launcher is not started.
fn library(args: &Args, line: &Line, abis: &[Option<Abi>]) -> Option<Library> {
    let abi = abis.iter().flatten().next().copied()?;
    let told = args.mpi.and_then(|told| told.product);
    let fits = |product: Product| abi.serves(product) && told.is_none_or(|told| told == product);
    let launcher = line.launcher.map(|place| &line.words[place]);
    let seen = || library::only_product(abi).or_else(|| library::seen_in_file(launcher?));
    if args.force.is_none()
        && let Some(product) = seen().filter(|product| fits(*product))
        && product != Product::Intel
    {
        return Some(library::reference(product));
    }
    let launched_by = launcher.and_then(|launcher| library::of_launcher(launcher).library);
    Some(
        launched_by
            .filter(|library| fits(library.product))
            .unwrap_or_else(|| told.map_or(library::of_abi(abi), library::reference)),
    )
}

/// Checks `--force` against the catalogue of the library that the job runs on.
fn check_force(args: &Args, library: Option<Library>) -> anyhow::Result<()> {
    let (Some(force), Some(library)) = (&args.force, library) else {
        return Ok(());
    };
    let forced = request::parse_force(force).map_err(usage)?;
    request::check_force(&forced, library).map_err(usage)
}

/// The runtime of a sanitizer that one of a context's programs needs.
fn sanitizer(line: &Line, context: &Context) -> Option<String> {
    let words = &line.words[context.program..context.end];
    let mut files = words
        .iter()
        .filter_map(|word| needs::resolve(word, context.wdir.as_deref()));
    files.find_map(|file| needs::sanitizer_of(&file))
}

/// What each program is given: the shim, whose variables `tuner` are, what records messages, or both.
fn given(
    line: &Line,
    abis: &[Option<Abi>],
    tuner: Option<&Assignments>,
    messages: Option<&MessageFolder>,
) -> anyhow::Result<Vec<Option<Given>>> {
    let of_program = |(abi, context): (&Option<Abi>, &Context)| {
        let Some(abi) = abi.filter(|_| tuner.is_some() || messages.is_some()) else {
            return Ok(None);
        };
        let mut preload: Vec<OsString> = sanitizer(line, context)
            .map(Into::into)
            .into_iter()
            .collect();
        let mut variables = Assignments::new();
        if let Some(tuner) = tuner {
            preload.push(shim::file(abi)?.into());
            variables.extend(tuner.iter().cloned());
        }
        if let Some(messages) = messages {
            preload.push(shim::messages(abi)?.into());
            variables.extend(messages.variable());
        }
        variables.insert(0, ("LD_PRELOAD".to_owned(), preload.join(OsStr::new(":"))));
        Ok(Some(Given { abi, variables }))
    };
    abis.iter().zip(&line.contexts).map(of_program).collect()
}

/// Replaces this process by the job, whose environment has the variables among the arms and lacks what is `left_out`.
fn start(
    line: &Line,
    given: &[Option<Given>],
    arms: &Arms,
    left_out: &[&str],
) -> anyhow::Result<()> {
    let own_preload = std::env::var_os("LD_PRELOAD");
    let mut command;
    if let Some(launcher) = line.launcher {
        for (context, _) in line
            .contexts
            .iter()
            .zip(given)
            .filter(|one| one.1.is_some())
        {
            tell_unsure(&line.words[launcher], context);
        }
        for (context, given) in line.contexts.iter().zip(given) {
            let words = &line.words[context.program..context.end];
            if let (Some(container), Some(given)) = (container::find(words), given) {
                tell_container(container, words, given);
            }
        }
        let applied = prefix::apply(line, given, own_preload.as_deref());
        tell_start(&applied.environment, &applied.words);
        command = Command::new(&applied.words[0]);
        command.args(&applied.words[1..]).envs(applied.environment);
    } else {
        let variables = given.iter().flatten().flat_map(|given| &given.variables);
        tell_start(variables, &line.words);
        command = Command::new(&line.words[0]);
        command.args(&line.words[1..]);
        for (name, value) in given.iter().flatten().flat_map(|given| &given.variables) {
            match name.as_str() {
                "LD_PRELOAD" => command.env(name, prefix::preload(value, own_preload.as_deref())),
                _ => command.env(name, value),
            };
        }
    }
    command.envs(nonblocking::assignments(arms));
    for name in left_out {
        command.env_remove(name);
    }
    let error = command.exec();
    Err(error).with_context(|| format!("start {}", line.words[0].display()))
}

/// The line as it is started, with what is put into its environment.
fn tell_start<'a>(variables: impl IntoIterator<Item = &'a (String, OsString)>, words: &[OsString]) {
    let variables = variables.into_iter();
    let variables = variables.map(|(name, value)| format!("{name}={}", value.display()));
    let words = words.iter().map(|word| word.display().to_string());
    let told: Vec<_> = variables.chain(words).collect();
    progress::detail(format_args!("starts {}", told.join(" ")));
}

fn tell_unsure(launcher: &OsStr, context: &Context) {
    if let Some(option) = &context.unsure {
        progress::hint(format_args!(
            "{option} of {0} is not known here, so it is not certain which word is the program: the tuner is put \
             into the ranks' environment by {0}'s own means",
            launcher.display()
        ));
    }
}

/// What a user has to do, or know, before ranks in a container are tuned.
fn tell_container(container: Container, words: &[OsString], given: &Given) {
    let paths = container::to_bind(&given.variables);
    let paths: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let floor = paths
        .first()
        .and_then(|shim| shim::glibc_floor(Path::new(shim)));
    let floor = floor.map_or_else(
        || "that of this machine".to_owned(),
        |minor| format!("glibc 2.{minor}"),
    );
    if !container.binds() {
        progress::hint(format_args!(
            "bind these into the container, at the same place, or its ranks run untuned: {}",
            paths.join(", ")
        ));
    }
    if !container.tries(words) {
        progress::hint(format_args!(
            "the container's C library has to be {floor} or newer: no program starts in it where it is older \
             (--mode off then)"
        ));
    }
}
