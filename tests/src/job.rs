//! From a description of a job to its outcome.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::library::Mpi;
use crate::outcome::Outcome;
use crate::program::{patience, program};

/// Generous: other work may keep the machine busy. A hang is what it is there to end.
const DEADLINE: Duration = Duration::from_secs(120);
/// What Open MPI's launchers say at times before a program begins, 5.0 and 4.1 in this order; other projects'
/// tests meet it, too.
const LAUNCHER_FAILED: [&str; 2] = [
    "The PMIx server's listener thread failed to start",
    "orte_session_dir failed",
];
const RESTARTS: u32 = 3;
/// Marks every process of a job; see [`sweep`]. Not a `COLLTUNE_` name: those are settings.
const MARK: &str = "TESTED_JOB";

/// One application context of a job: so many ranks of one program in one environment.
#[derive(Clone, Debug)]
pub struct Part {
    n_ranks: u32,
    program: OsString,
    arguments: Vec<String>,
    shim: Shim,
    variables: Vec<(String, String)>,
}

/// Which shim the ranks of a part carry.
#[derive(Clone, Debug)]
enum Shim {
    None,
    TheJobs,
    Other(PathBuf),
}

/// A part of a job with several programs.
pub fn part(n_ranks: u32, program: &str, arguments: &[&str]) -> Part {
    Part {
        n_ranks,
        program: program.into(),
        arguments: arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect(),
        shim: Shim::TheJobs,
        variables: Vec::new(),
    }
}

impl Part {
    /// The ranks of this part run without the shim.
    pub fn without_shim(mut self) -> Part {
        self.shim = Shim::None;
        self
    }

    /// The ranks of this part run with another build of the shim than the job's others.
    pub fn with_shim(mut self, shim: PathBuf) -> Part {
        self.shim = Shim::Other(shim);
        self
    }

    /// A variable for the ranks of this part.
    pub fn env(mut self, name: &str, value: &str) -> Part {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A job to be run.
#[derive(Clone, Debug)]
pub struct Job {
    n_ranks: u32,
    mpi: Mpi,
    preload: Vec<PathBuf>,
    shim_at: Option<usize>,
    variables: Vec<(String, OsString)>,
    launcher_arguments: Vec<String>,
    deadline: Duration,
    prefix: Vec<String>,
}

/// A job with `n_ranks` ranks, without the shim, on Open MPI.
pub fn job(n_ranks: u32) -> Job {
    Job {
        n_ranks,
        mpi: Mpi::OpenMpi,
        preload: Vec::new(),
        shim_at: None,
        variables: Vec::new(),
        launcher_arguments: Vec::new(),
        deadline: DEADLINE,
        prefix: Vec::new(),
    }
}

impl Job {
    pub fn mpi(mut self, mpi: Mpi) -> Job {
        self.mpi = mpi;
        self
    }

    pub fn library(&self) -> Mpi {
        self.mpi
    }

    /// Preloads the shim that serves the job's library; call after [`Job::mpi`].
    pub fn preload(self) -> Job {
        let shim = self.mpi.shim();
        self.preload_shim(shim)
    }

    /// Preloads another build of the shim.
    pub fn preload_shim(mut self, shim: PathBuf) -> Job {
        self.shim_at = Some(self.preload.len());
        self.preload.push(shim);
        self
    }

    /// Preloads another tool: before or behind the shim in the order of these calls.
    pub fn preload_tool(mut self, tool: PathBuf) -> Job {
        self.preload.push(tool);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Job {
        self.variables
            .push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    pub fn db(self, db: impl AsRef<Path>) -> Job {
        self.env("COLLTUNE_DB", db.as_ref())
    }

    pub fn mode(self, mode: &str) -> Job {
        self.env("COLLTUNE_MODE", mode)
    }

    pub fn seed(self, seed: u64) -> Job {
        self.env("COLLTUNE_SEED", seed.to_string())
    }

    pub fn force(self, force: &str) -> Job {
        self.env("COLLTUNE_FORCE", force)
    }

    /// Logs every call into `folder`; read it with [`crate::read_log`].
    pub fn log(self, folder: impl AsRef<Path>) -> Job {
        let value = format!("calls:{}", folder.as_ref().display());
        self.env("COLLTUNE_LOG", value)
    }

    /// MPICH 5's own short-cuts in shared memory, which wait without yielding, are left out: on shared cores a call
    /// takes seconds with them. Other libraries do not look at it.
    pub fn without_short_cuts(self) -> Job {
        let collectives = ["ALLREDUCE", "BARRIER", "BCAST", "REDUCE"];
        collectives.iter().fold(self, |job, name| {
            job.env(&format!("MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM"), "mpir")
        })
    }

    /// An argument for mpirun itself.
    pub fn launcher_argument(mut self, argument: &str) -> Job {
        self.launcher_arguments.push(argument.to_owned());
        self
    }

    pub fn deadline(mut self, deadline: Duration) -> Job {
        self.deadline = deadline;
        self
    }

    /// The deadline comes later, because the job does more than others.
    pub fn more_time(mut self, more: Duration) -> Job {
        self.deadline += more;
        self
    }

    /// Starts the launcher through another command: `prefix... mpirun ...`.
    pub fn prefix(mut self, prefix: &[&str]) -> Job {
        self.prefix = prefix.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Runs the whole job as a user without rights; `None` where that needs root.
    pub fn as_nobody(mut self) -> Option<Job> {
        if !is_root() {
            return crate::skip("needs root, to run a job as another user");
        }
        let rights = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        let before = rights.map(str::to_owned);
        self.prefix.splice(0..0, before);
        Some(self.env("HOME", "/tmp"))
    }

    /// Runs the job with a file system of its own mounted at `folder`, such as `size=64k` or `ro`;
    /// what it holds in the end is copied to `kept`. `None` where that needs root.
    pub fn with_tmpfs(self, folder: &Path, options: &str, kept: &Path) -> Option<Job> {
        let works = || {
            Command::new("unshare")
                .args(["-m", "true"])
                .output()
                .is_ok_and(|output| output.status.success())
        };
        if !is_root() || !works() {
            return crate::skip("needs root, to mount a small file system");
        }
        let script = "mount -t tmpfs -o \"$1\" tmpfs \"$0\" || exit 125; folder=$0; kept=$2; shift 2; \"$@\"; \
                      code=$?; cp -r \"$folder/.\" \"$kept\"; exit $code";
        Some(self.prefix(&[
            "unshare",
            "-m",
            "sh",
            "-c",
            script,
            &folder.to_string_lossy(),
            options,
            &kept.to_string_lossy(),
        ]))
    }

    /// Gives the job a new session, whose launcher may be killed with its process group, and waits up to ten seconds
    /// for what is left of it. [`Outcome::strays`] counts processes that do not end by themselves.
    pub fn outliving_its_launcher(mut self) -> Job {
        let script = "setsid --wait \"$@\"; code=$?; own=$(ps -o sess= -p $$); for turn in $(seq 100); do left=0; \
                      for process in $(grep -lzsx \"$0=$(printenv \"$0\")\" /proc/[0-9]*/environ); do \
                      process=${process#/proc/}; session=$(ps -o sess= -p ${process%/environ}); \
                      [ -z \"$session\" ] || [ \"$session\" = \"$own\" ] || left=1; done; \
                      [ $left = 0 ] && break; sleep 0.1; done; exit $code";
        let words = ["sh", "-c", script, MARK].map(str::to_owned);
        self.prefix.extend(words);
        self
    }

    /// Runs `tests/mpi/PROGRAM.c`.
    pub fn run(self, program: &str, arguments: &[&str]) -> Outcome {
        let whole = part(self.n_ranks, program, arguments);
        self.run_parts(&[whole])
    }

    /// Runs a job of several application contexts: `mpirun -n A a : -n B b`.
    pub fn run_parts(mut self, parts: &[Part]) -> Outcome {
        let n_ranks: u32 = parts.iter().map(|part| part.n_ranks).sum();
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        if self.mpi == Mpi::Mpich && n_ranks as usize > cores {
            self.preload.push(patience());
        }
        let mut arguments: Vec<OsString> = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            if place > 0 {
                arguments.push(":".into());
            }
            arguments.extend(["-n".into(), part.n_ranks.to_string().into(), "env".into()]);
            arguments.extend(
                part.variables
                    .iter()
                    .map(|(name, value)| OsString::from(format!("{name}={value}"))),
            );
            arguments.extend(self.preload_argument(&part.shim));
            let path = Path::new(&part.program);
            let path = if path.is_absolute() {
                path.to_owned()
            } else {
                program(self.mpi, &path.to_string_lossy())
            };
            arguments.push(path.into());
            arguments.extend(part.arguments.iter().map(OsString::from));
        }
        let mut launcher: Vec<OsString> = self.prefix.iter().map(OsString::from).collect();
        launcher.push(self.mpi.launcher().into());
        if self.mpi.is_openmpi() {
            launcher.extend(
                ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"].map(OsString::from),
            );
        }
        launcher.extend(self.launcher_arguments.iter().map(OsString::from));
        launcher.extend(arguments);
        let mut outcome = self.start(&launcher);
        for _ in 0..RESTARTS {
            let said = LAUNCHER_FAILED
                .iter()
                .find(|said| outcome.stderr.contains(**said));
            let Some(said) = said else {
                break;
            };
            println!("started again: {said}");
            outcome = self.start(&launcher);
        }
        outcome
    }

    /// Runs a command that is no MPI job, with the shim preloaded into it.
    pub fn run_command(self, command: &[&str]) -> Outcome {
        let mut line = vec![OsString::from("env")];
        line.extend(self.preload_argument(&Shim::TheJobs));
        line.extend(command.iter().map(OsString::from));
        self.start(&line)
    }

    fn preload_argument(&self, shim: &Shim) -> Option<OsString> {
        let objects: Vec<&PathBuf> = (0..)
            .zip(&self.preload)
            .filter_map(|(place, object)| match shim {
                Shim::None => (Some(place) != self.shim_at).then_some(object),
                Shim::Other(other) if Some(place) == self.shim_at => Some(other),
                Shim::TheJobs | Shim::Other(_) => Some(object),
            })
            .collect();
        if objects.is_empty() {
            return None;
        }
        let mut argument = OsString::from("LD_PRELOAD=");
        for (place, object) in objects.iter().enumerate() {
            if place > 0 {
                argument.push(":");
            }
            argument.push(object);
        }
        Some(argument)
    }

    fn start(&self, line: &[OsString]) -> Outcome {
        // One job at a time: two cores, and libraries that spin.
        let _turn = turn();
        let scratch = crate::folder();
        let (stdout, stderr) = (scratch.path().join("stdout"), scratch.path().join("stderr"));
        let create = |path: &Path| {
            File::create(path)
                .unwrap_or_else(|error| panic!("failed to write {}: {error}", path.display()))
        };
        let mark = new_mark();
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .stdin(Stdio::null())
            .stdout(create(&stdout))
            .stderr(create(&stderr));
        // Settings of the person who runs the tests must not leak in.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["COLLTUNE_", "OMPI_MCA_coll", "MPIR_CVAR_", "I_MPI_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
                || name == "LD_PRELOAD"
            {
                command.env_remove(name);
            }
        }
        command
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .envs(self.mpi.variables());
        if self.mpi == Mpi::OpenMpi {
            // All its jobs of a user make and remove one folder, and now and then one finds it gone.
            command.env("OMPI_MCA_orte_tmpdir_base", open_folder(scratch.path()));
        }
        command
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env(MARK, &mark);
        let shown = self.shown(line);
        let begun = Instant::now();
        let mut child = command
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("failed to start {shown}: {error}"));
        let process = Pid::from_child(&child);
        let (tell, told) = mpsc::channel();
        let waiter = std::thread::spawn(move || {
            let _ = tell.send(child.wait());
        });
        let first = told.recv_timeout(self.deadline).ok();
        let timed_out = first.is_none();
        // Also after a regular end: nothing of a job may outlive it.
        let _ = kill_process_group(process, Signal::KILL);
        let strays = sweep(&mark);
        let status = first.or_else(|| told.recv().ok()).and_then(Result::ok);
        let _ = waiter.join();
        let read = |path: &Path| {
            String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
        };
        Outcome {
            command: shown,
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            stdout: read(&stdout),
            stderr: read(&stderr),
            timed_out,
            strays,
            took: begun.elapsed(),
        }
    }

    /// The command as one could paste it, seeds and all.
    fn shown(&self, line: &[OsString]) -> String {
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| format!("{name}='{}'", value.to_string_lossy()));
        let words = line.iter().map(|word| word.to_string_lossy().into_owned());
        variables.chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// A folder in which every user may write.
fn open_folder(inside: &Path) -> PathBuf {
    let folder = inside.join("open");
    std::fs::create_dir(&folder)
        .and_then(|()| std::fs::set_permissions(&folder, Permissions::from_mode(0o777)))
        .unwrap_or_else(|error| panic!("failed to make {}: {error}", folder.display()));
    folder
}

/// Whether the tests may play other users.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A failed test leaves the lock poisoned and everything else intact.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Kills what the launcher put into process groups of its own: every process that carries the mark
/// in its environment. Returns how many there were.
fn sweep(mark: &str) -> usize {
    kill_all_with(MARK, mark)
}

/// Kills every process with this variable in its environment. Returns how many there were.
pub(crate) fn kill_all_with(name: &str, value: &str) -> usize {
    let wanted = format!("{name}={value}");
    let carries = |process: &str| {
        std::fs::read(format!("/proc/{process}/environ")).is_ok_and(|text| {
            text.split(|byte| *byte == 0)
                .any(|entry| entry == wanted.as_bytes())
        })
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let found = names
        .filter(|name| carries(name))
        .filter_map(|name| Pid::from_raw(name.parse().ok()?));
    found
        .filter(|process| kill_process(*process, Signal::KILL).is_ok())
        .count()
}
