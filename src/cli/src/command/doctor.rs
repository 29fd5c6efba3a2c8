//! `colltune doctor`: what somebody would stumble over, before they do.
//!
//! ```text
//! $ colltune doctor --db ./hydra.db -- mpirun -n 8 ./solver
//! ok    mpirun.openmpi: mpirun (Open MPI) 4.1.4
//! fail  shim for mpich: not built; `make build` ...
//! ```

mod findings;

mod nodes;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::anyhow;
use colltune_core::environment;
use colltune_core::library::{Abi, Product};
use colltune_core::settings::{Predicting, Settings};
use colltune_core::variant::Size;
use colltune_db::site::SiteFolder;
use colltune_db::{Database, Generation};
use colltune_files::site::is_site;
use colltune_files::{SETTINGS_BYTES_MAX, read_text};

use self::findings::Findings;
use super::compare::interrupted;
use super::publish;
use crate::failure::Reported;
use crate::launch::library::{Launcher, of_launcher};
use crate::launch::needs::{self, Needs};
use crate::launch::shim;
use crate::parse::{RunsOn, runs_on};
use crate::trial::{Interrupt, watched};

/// Prints one line per check; fails when one of them did.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.nodes {
        return nodes::run(&nodes::Asked {
            line: &args.line,
            db: args.db.as_deref(),
            hostfile: args.write_hostfile.as_deref(),
            mpi: args.mpi.map(|told| told.abi),
            json: args.json,
        });
    }
    let mut report = Findings::new(args.json);
    let launchers = check_launchers(&mut report);
    check_shims(&mut report, &launchers);
    check_standard_shim(&mut report);
    check_machine(&mut report);
    check_variables(&mut report);
    match &args.db {
        Some(db) => check_database(&mut report, db),
        None => tell_limits(&mut report, &with_variables(Settings::default())),
    }
    if !args.line.is_empty() {
        check_line(&mut report, &args.line, args.mpi.map(|told| told.abi));
    }
    if !args.no_self_test {
        let interrupt = Interrupt::listen()?;
        for (abi, name) in &launchers {
            self_test(&mut report, *abi, name, &interrupt);
            if let Some(signal) = interrupt.signal() {
                return Err(interrupted(signal));
            }
        }
    }
    match report.end()? {
        true => Err(Reported.into()),
        false => Ok(()),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune doctor
      Launchers, shims, scheduling, disturbing variables, limits, and a self test with two ranks.
  colltune doctor --no-self-test
      The same without the jobs, for a node on which none may run.
  colltune doctor --db ./hydra.db
      The database as well: readable, writable, space, generations.
  colltune doctor -- mpirun -n 8 ./solver
      Also whether this line can be tuned. The line is not started.
  colltune doctor --nodes --db ./hydra.db --write-hostfile healthy -- mpirun -n 64 ./solver
      Instead: whether nodes of this job are sick. A measurement of about a second runs in the
      place of ./solver, on as many ranks: computing, memory, messages between neighbours,
      throttling, beside the other nodes and what hosts were.

Each line begins with ok, warn or fail; what is not well ends with the command or the step that
mends it. Exit codes: 0 no check failed, 1 one did, 2 wrong usage, 3 a node is sick.")]
pub struct Args {
    /// The tuning database, or a site folder
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Start no job: for login nodes
    #[arg(long, conflicts_with = "nodes")]
    no_self_test: bool,
    /// Measure the nodes of the line's job instead, and say which are sick
    #[arg(long, requires = "line")]
    nodes: bool,
    /// Write a host file without what is sick, and without `exclude_hosts` of the database's colltune.toml
    #[arg(long, value_name = "FILE", requires = "nodes")]
    write_hostfile: Option<PathBuf>,
    /// The MPI library of the line, where program and launcher do not tell
    #[arg(long, value_parser = runs_on(), value_name = "LIBRARY", requires = "line")]
    mpi: Option<RunsOn>,
    /// Print JSON: of each check its verdict, what was found, and the way out
    #[arg(long)]
    json: bool,
    /// A line that starts a job; it is read, not started (but for --nodes)
    #[arg(last = true, value_name = "mpirun ...")]
    line: Vec<OsString>,
}

/// What lets root start jobs of Open MPI: both variables, or the launcher's option `--allow-run-as-root`.
const ALLOW_ROOT: [&str; 2] = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];

/// Whether this is root, and nothing in the environment allows it to start jobs of Open MPI.
fn refuses_root() -> bool {
    let allowed = |name: &&str| std::env::var_os(name).is_some_and(|value| value == "1");
    rustix::process::geteuid().is_root() && !ALLOW_ROOT.iter().all(allowed)
}

/// The launchers in PATH, one per library.
fn check_launchers(report: &mut Findings) -> Vec<(Abi, OsString)> {
    let mut found: Vec<(Abi, OsString)> = Vec::new();
    for name in [
        "mpirun",
        "mpiexec",
        "mpirun.openmpi",
        "mpirun.mpich",
        "mpiexec.hydra",
        "srun",
    ] {
        if needs::in_path(OsStr::new(name)).is_none() {
            continue;
        }
        let launcher = of_launcher(OsStr::new(name));
        let abi = launcher.abi();
        let Launcher { library, text, .. } = launcher;
        match abi {
            Some(abi) if found.iter().all(|(known, _)| *known != abi) => {
                let version = library.map_or(text, |library| library.to_string());
                report.ok(format!("{name}: starts jobs of {}, {version}", abi.name()));
                if abi == Abi::OpenMpi && refuses_root() {
                    report.warn(
                        format_args!("{name}: Open MPI's launcher starts no job of root's"),
                        format_args!(
                            "`export {}`",
                            ALLOW_ROOT.map(|name| format!("{name}=1")).join(" ")
                        ),
                    );
                }
                found.push((abi, name.into()));
            }
            Some(_) => {}
            None => report.ok(format!(
                "{name}: {text} (the program tells the MPI library)"
            )),
        }
    }
    if found.is_empty() {
        report.fail(
            "no launcher of Open MPI, MPICH or Intel MPI in PATH",
            "load the site's MPI module, or `apt-get install openmpi-bin` or mpich",
        );
    }
    found
}

fn check_shims(report: &mut Findings, launchers: &[(Abi, OsString)]) {
    for (abi, _) in launchers {
        let name = abi.name();
        match shim::file(*abi) {
            Err(error) => {
                // It names the way out itself, in a sentence of its own.
                let text = error.to_string();
                let (found, way_out) = text
                    .split_once(". ")
                    .unwrap_or((&text, "`make build` builds it"));
                report.fail(format_args!("shim for {name}: failed to {found}"), way_out);
            }
            Ok(file) => match needs::of_file(&file) {
                Needs::NoMpi => match shim::newer_sources(&file) {
                    None => report.ok(format!("shim for {name}: {}", file.display())),
                    Some(sources) => report.warn(
                        format_args!(
                            "shim for {name}: {} was built of other sources than those in {}",
                            file.display(),
                            sources.display()
                        ),
                        "`make build` builds it again",
                    ),
                },
                Needs::NotElf => report.fail(
                    format_args!("shim for {name}: {} is no shared library", file.display()),
                    "`make build` builds it again",
                ),
                Needs::Mpi(_) | Needs::UnknownMpi(_) => report.fail(
                    format_args!(
                        "shim for {name}: {} needs an MPI library itself, which breaks programs without it",
                        file.display()
                    ),
                    "`make build` builds it again",
                ),
            },
        }
    }
}

/// Programs on the standard binary interface are no launcher's; a site without any needs no such build.
fn check_standard_shim(report: &mut Findings) {
    if let Ok(file) = shim::file(Abi::Standard) {
        report.ok(format!(
            "shim for {}: {}",
            Abi::Standard.name(),
            file.display()
        ));
    }
}

fn check_machine(report: &mut Findings) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.ok(format!(
        "machine: {} ({cores} cores)",
        colltune_db::database::machine_here()
    ));
    let limit = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    if limit.trim() == "0" {
        report.warn(
            "real-time scheduling is switched off (kernel.sched_rt_runtime_us is 0): benchmarks with more ranks than \
             cores are noise",
            "`sysctl kernel.sched_rt_runtime_us=950000`, as root, allows it",
        );
    }
    if cores < 4 {
        report.warn(
            format_args!("{cores} cores: with more ranks than cores times are noise"),
            "not so under `chrt -r 1 mpirun --oversubscribe --mca mpi_yield_when_idle 1` (Open MPI), each rank pinned \
             to a core",
        );
    }
}

fn check_variables(report: &mut Findings) {
    let mut quiet = true;
    for (name, value) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let ours = name.starts_with(environment::PREFIX);
        let Some(value) = value.to_str() else {
            if ours {
                report.fail(
                    format_args!("{name}: it is no text in UTF-8"),
                    format_args!("`unset {name}`"),
                );
                quiet = false;
            }
            continue;
        };
        if ours && !environment::is_known(&name) {
            let near = environment::meant_by(&name)
                .map_or_else(String::new, |near| format!("; did you mean {near}?"));
            report.fail(
                format_args!("{name}: colltune has no such variable{near}"),
                format_args!("`unset {name}`"),
            );
            quiet = false;
        } else if let Err(error) = Settings::default().override_with(&name, value) {
            report.fail(
                format_args!("{name}: failed to {error}"),
                format_args!("set it anew, or `unset {name}`"),
            );
            quiet = false;
        } else if ["OMPI_MCA_coll", "MPIR_CVAR_COLL", "I_MPI_ADJUST"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || forces(&name)
        {
            report.warn(
                format_args!(
                    "{name}={value}: changes what `default` means; data recorded without it do not compare"
                ),
                format_args!("`unset {name}`, or have it in every job"),
            );
            quiet = false;
        }
    }
    if let Some(preload) = std::env::var("LD_PRELOAD")
        .ok()
        .filter(|value| !value.is_empty())
    {
        report.warn(
            format_args!("LD_PRELOAD={preload}: kept, behind the shim"),
            "`unset LD_PRELOAD` where it is not meant for the job",
        );
    }
    if quiet {
        report.ok("variables: none disturbs");
    }
}

fn forces(name: &str) -> bool {
    name.starts_with("MPIR_CVAR_")
        && [
            "_INTRA_ALGORITHM",
            "_DEVICE_COLLECTIVE",
            "_DEVICE_COLLECTIVES",
        ]
        .iter()
        .any(|end| name.ends_with(end))
}

/// What the variables say over some settings. Of one that makes no sense [`check_variables`] tells.
fn with_variables(mut settings: Settings) -> Settings {
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            let _ = settings.override_with(name, value);
        }
    }
    settings
}

/// How much memory a rank gives, and how long it waits before something is said or the job is ended.
fn tell_limits(report: &mut Findings, settings: &Settings) {
    let Settings {
        memory_per_rank_max,
        alone_after,
        wait_word_after,
        ..
    } = settings;
    report.ok(format!(
        "limits: memory_per_rank_max {}, alone_after {alone_after:?}, wait_word_after {wait_word_after:?}",
        Size(*memory_per_rank_max)
    ));
}

fn check_database(report: &mut Findings, path: &Path) {
    let shown = path.display();
    if is_site(path) {
        return check_site(report, path);
    }
    let db = match Database::open(path) {
        Ok(db) => db,
        Err(_) if !path.exists() => {
            return report.warn(
                format_args!("database {shown}: not there yet"),
                format_args!("`colltune run --db {shown} -- mpirun ...` makes it"),
            );
        }
        Err(error) => {
            return report.fail(
                format_args!("failed to {error}"),
                format_args!("`colltune db check --db {shown}` says more"),
            );
        }
    };
    match db.settings() {
        Err(error) => report.fail(
            format_args!("database {shown}: failed to {error}"),
            "mend that line of colltune.toml, or take it out",
        ),
        Ok(settings) => {
            let machine = db.machine(&settings);
            report.ok(format!("database {shown}: serves the machine {machine}"));
            tell_limits(report, &settings);
            if settings.predictor == Predicting::Xgboost {
                match colltune_xgboost::XgBoost::load() {
                    Ok(xgboost) => report.ok(format!("predictor: {}", xgboost.describe())),
                    Err(reason) => report.fail(
                        format_args!("predictor: no XGBoost: {reason}"),
                        "`apt-get install libxgboost0`, name the library by COLLTUNE_XGBOOST, or take `predictor` out of \
                         colltune.toml",
                    ),
                }
            }
        }
    }
    match writable(&db.incoming()) {
        Ok(()) => report.ok(format!("database {shown}: jobs can record here")),
        Err(error) => report.warn(
            format_args!("database {shown}: jobs cannot record here ({error}); --mode exploit still works"),
            format_args!(
                "`chmod u+rwx {0}`, or its owner makes it a group's by `colltune db init --shared GROUP {shown}`",
                db.incoming().display()
            ),
        ),
    }
    match free_bytes(path) {
        Some(free) if free < 64 << 20 => {
            report.fail(
                format_args!(
                    "database {shown}: {} MiB free; traces need room",
                    free >> 20
                ),
                format_args!("`colltune db prune --db {shown}` removes what is old"),
            );
        }
        Some(free) => report.ok(format!("database {shown}: {} MiB free", free >> 20)),
        None => {}
    }
    check_generations(report, &db);
}

/// Where tables come from, and whether jobs get them.
fn check_site(report: &mut Findings, path: &Path) {
    let found = SiteFolder::open(path).map_err(anyhow::Error::from);
    let site = match found.and_then(|site| publish::Report::of(&site)) {
        Ok(site) => site,
        Err(error) => {
            return report.fail(
                format_args!("failed to {error:#}"),
                format_args!(
                    "`colltune publish --db DIR {}` publishes anew",
                    path.display()
                ),
            );
        }
    };
    let is_well = site.is_on() && site.problems().next().is_none();
    for line in site.sentence().lines() {
        match is_well {
            true => report.ok(format!("site folder {line}")),
            false => report.warn(
                format_args!("site folder {line}"),
                format_args!("`colltune publish {} --on` or `--rollback`", path.display()),
            ),
        }
    }
    for problem in site.problems() {
        report.fail(
            format_args!("failed to {problem}; jobs run untuned"),
            format_args!(
                "`colltune publish {} --rollback` takes it back",
                path.display()
            ),
        );
    }
    match crate::database::open(path) {
        Ok(db) => {
            match settings_on_site(&db, path) {
                Ok(settings) => tell_limits(report, &settings),
                Err(error) => report.fail(
                    format_args!("failed to {error}; jobs run untuned"),
                    "mend that line of colltune.toml, or take it out",
                ),
            }
            check_generations(report, &db);
        }
        Err(error) => report.fail(
            format_args!("failed to {error:#}"),
            format_args!(
                "`colltune publish {} --rollback` takes it back",
                path.display()
            ),
        ),
    }
}

/// As a job reads them: a version's, what the site decides over them, and the variables over both.
fn settings_on_site(version: &Database, site: &Path) -> anyhow::Result<Settings> {
    let settings = version.settings()?;
    let file = site.join("colltune.toml");
    let settings = match read_text(&file, SETTINGS_BYTES_MAX) {
        Ok(text) => settings
            .with_toml(&text)
            .map_err(|error| anyhow!("{error} ({})", file.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => settings,
        Err(error) => return Err(anyhow!("read {}: {error}", file.display())),
    };
    Ok(with_variables(settings))
}

fn check_generations(report: &mut Findings, db: &Database) {
    match db.keys() {
        Err(error) => report.fail(
            format_args!("failed to {error}"),
            format_args!("`colltune db check --db {}` says more", db.root().display()),
        ),
        Ok(libraries) => {
            libraries
                .into_iter()
                .for_each(|library| match Generation::load(db, &library) {
                    Ok(generation) if generation.number == 0 => {
                        report.warn(
                            format_args!("{library}: recorded, not trained"),
                            format_args!(
                                "`colltune train --db {}` learns from it",
                                db.root().display()
                            ),
                        );
                    }
                    Ok(generation) => report.ok(format!(
                        "{library}: generation {} is readable",
                        generation.number
                    )),
                    Err(error) => report.fail(
                        format_args!("{library}: failed to {error}"),
                        format_args!(
                            "`colltune train --force --db {}` publishes a new one",
                            db.root().display()
                        ),
                    ),
                })
        }
    }
    let refused = std::fs::read_dir(db.quarantine()).map_or(0, |entries| {
        entries
            .flatten()
            .filter(|entry| entry.path().extension() == Some(OsStr::new("reason")))
            .count()
    });
    if refused > 0 {
        report.warn(
            format_args!("{refused} refused traces in {}", db.quarantine().display()),
            format_args!(
                "`colltune db show --quarantine --db {0}` says why, `colltune db restore` brings them back",
                db.root().display()
            ),
        );
    }
}

fn writable(folder: &Path) -> std::io::Result<()> {
    let file = folder.join(format!(".doctor-{}", std::process::id()));
    std::fs::write(&file, "")?;
    std::fs::remove_file(&file)
}

/// Bytes that are free for this user where `path` is.
fn free_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Whether a line can be read and its programs' library is known; `told` is what the user says of it.
fn check_line(report: &mut Findings, words: &[OsString], told: Option<Abi>) {
    let outcome = super::run::read_line(words)
        .and_then(|line| Ok((super::run::libraries(&line, told)?, line)));
    let (abis, line) = match outcome {
        Err(error) => {
            return report.fail(
                format_args!("line: failed to {error:#}"),
                "write the line as in `colltune run -- mpirun -n 2 ./solver`",
            );
        }
        Ok(found) => found,
    };
    if abis.is_empty() {
        report.warn(
            "line: it starts no program",
            "write the program behind the launcher's options",
        );
    }
    for (abi, context) in abis.iter().zip(&line.contexts) {
        let program = line.words[context.program].display();
        match abi {
            Some(abi) => report.ok(format!("line: {program} runs on {}", abi.name())),
            None => report.warn(
                format_args!(
                    "line: {program} needs no MPI library that can be seen and would not be tuned"
                ),
                "if it loads MPI later on, say which, as in `colltune run --mpi openmpi`",
            ),
        }
    }
}

/// Two ranks under the preloaded shim check the results of every collective.
fn self_test(report: &mut Findings, abi: Abi, launcher: &OsStr, interrupt: &Interrupt) {
    let name = abi.name();
    let Ok(shim) = shim::file(abi) else { return };
    let helper = shim.with_file_name("colltune-mpibench");
    if !helper.is_file() {
        return report.warn(
            format_args!("self test for {name}: {} is missing", helper.display()),
            "`make build` builds it",
        );
    }
    let folder = std::env::temp_dir().join(format!("colltune-doctor-{}", std::process::id()));
    let _ = std::fs::create_dir_all(&folder);
    let mut preload = OsString::from("LD_PRELOAD=");
    preload.push(&shim);
    let mut command = Command::new(launcher);
    command.args(["-n", "2", "env"]);
    if of_launcher(launcher).product == Some(Product::Intel) {
        // It is told before a job what others are told during it.
        command.arg("I_MPI_ADJUST_ALLREDUCE=1").arg(assigned(
            environment::PRESETS,
            "allreduce[0,inf)=native:recursive_doubling",
        ));
    }
    command.arg(preload).arg(assigned(
        environment::FORCE,
        "allreduce=native:recursive_doubling",
    ));
    command.arg("COLLTUNE_SETUP_AFTER=1").arg(assigned(
        environment::LOG,
        &format!("calls:{}", folder.display()),
    ));
    command
        .arg(&helper)
        .args(["reference-check", "--sizes", "8,4KiB"]);
    command.envs(ALLOW_ROOT.map(|name| (name, "1")));
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    let result = ends_within(command, Duration::from_secs(60), interrupt);
    let log = std::fs::read_to_string(folder.join("rank-0.jsonl")).unwrap_or_default();
    let _ = std::fs::remove_dir_all(&folder);
    match result {
        Err(problem) => report.fail(
            format_args!("self test for {name}: {problem}"),
            format_args!(
                "`{} -n 2 {} reference-check` shows what it says; where no job may run, `colltune doctor --no-self-test`",
                launcher.display(),
                helper.display()
            ),
        ),
        Ok(()) if !log.contains("native:recursive_doubling") => report.fail(
            format_args!("self test for {name}: results are right, but no call was steered"),
            format_args!(
                "`colltune run --force allreduce=native:recursive_doubling -- {} -n 2 {} reference-check` says why",
                launcher.display(),
                helper.display()
            ),
        ),
        Ok(()) => report.ok(format!("self test for {name}: 2 ranks, steered calls, right results")),
    }
}

fn assigned(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

/// Runs a command silently; the error says how it ended.
fn ends_within(mut command: Command, limit: Duration, interrupt: &Interrupt) -> Result<(), String> {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match watched(quiet, Some(limit), interrupt, &mut || ()) {
        Ok((_, status)) if status.success() => Ok(()),
        Ok((_, status)) => Err(format!("it ended with {status}")),
        Err(ended) => Err(ended.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_space_of_a_folder_is_read() {
        assert!(free_bytes(&std::env::temp_dir()).is_some_and(|free| free > 0));
    }
}
