//! A Slurm of two nodes on this machine, for tests that start jobs with srun and sbatch.

use std::fmt::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::job::{is_root, kill_all_with};
use crate::library::target_folder;
use crate::skip::skip;

/// How long a batch job, or what is waited for in it, may take on a busy machine, and how often is looked.
const DEADLINE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(100);

/// The daemons of a cluster; they end with this value.
pub struct Slurm {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
    _turn: MutexGuard<'static, ()>,
}

/// A batch job that was handed in; what is left of it ends with the cluster.
pub struct Batch<'a> {
    slurm: &'a Slurm,
    id: String,
    /// How the files begin that hold what it prints.
    output: String,
}

impl Slurm {
    /// Starts them; where Slurm is not installed, or this is not root, the test counts as skipped.
    pub fn start() -> Option<Slurm> {
        if !is_root() {
            return skip("needs root, to start Slurm's daemons");
        }
        let programs = ["munged", "slurmctld", "slurmd", "srun", "sbatch"];
        let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(Path::new);
        let is_there = |program: &&str| folders.iter().any(|folder| folder.join(program).is_file());
        if let Some(program) = programs.into_iter().find(|program| !is_there(program)) {
            return skip(&format!("Slurm is not installed: no {program}"));
        }
        static TURN: Mutex<()> = Mutex::new(());
        let mut slurm = Slurm {
            folder: crate::folder(),
            daemons: Vec::new(),
            _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner),
        };
        slurm.write_configuration();
        slurm.start_daemons();
        slurm.wait_for_nodes();
        Some(slurm)
    }

    /// Its configuration, for `SLURM_CONF`.
    pub fn configuration(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    /// Hands in a script, with these options and variables beside those that jobs of tests need.
    pub fn submit(&self, options: &[&str], variables: &[(&str, &str)], script: &str) -> Batch<'_> {
        self.write("script", format!("#!/bin/bash\n{script}\n").as_bytes());
        let mut command = self.command("sbatch");
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("COLLTUNE_") || name.starts_with("SLURM_") || name == "LD_PRELOAD" {
                command.env_remove(name);
            }
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let output = format!("out-{}-", COUNT.fetch_add(1, Ordering::Relaxed));
        let file = self.folder.path().join(format!("{output}%j"));
        let to_file = format!("--output={}", file.display());
        let submitted = command
            .env("SLURM_CONF", self.configuration())
            .envs([
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
                ("OMPI_MCA_btl", "self,tcp"),
                ("OMPI_MCA_mpi_yield_when_idle", "1"),
                ("SLURM_PMIX_FENCE", "ring"),
            ])
            .env("COLLTUNE_LIB", target_folder())
            .envs(variables.iter().copied())
            .args(["--parsable", "--overcommit", &to_file])
            .args(options)
            .arg(self.folder.path().join("script"))
            .stdout(Stdio::piped())
            .output()
            .expect("sbatch starts");
        let id = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
        assert!(!id.is_empty(), "sbatch takes no script: {}", self.log());
        Batch {
            slurm: self,
            id,
            output,
        }
    }

    /// What a program of Slurm's prints.
    fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = self.command("timeout");
        command.args(["30", program]).args(arguments);
        let output = command.stdout(Stdio::piped()).output();
        let output = output.unwrap_or_else(|error| panic!("failed to start {program}: {error}"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("controller.log"));
        log.unwrap_or_default()
    }

    fn write_configuration(&self) {
        let folder = self.folder.path().display();
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let listeners = [0; 3].map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let [controller, first, second] =
            listeners.map(|listener| listener.local_addr().expect("it is bound").port());
        let mut text = format!(
            "ClusterName=tests\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={folder}/munge,cred_expire=5\nStateSaveLocation={folder}/state\n\
             SlurmdSpoolDir={folder}/spool-%n\nTmpFS={folder}/tmp-%n\nSlurmctldPidFile={folder}/controller.pid\n\
             SlurmdPidFile={folder}/%n.pid\nSlurmctldLogFile={folder}/controller.log\nSlurmdLogFile={folder}/%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nReturnToService=2\n\
             SlurmdParameters=config_overrides\nSlurmctldPort={controller}\n\
             SchedulerParameters=bf_interval=1\nKillWait=2\nMaxArraySize=100\n"
        );
        for (name, port) in [("n1", first), ("n2", second)] {
            writeln!(
                text,
                "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 State=UNKNOWN"
            )
            .expect("a String takes all");
            for kind in ["spool", "tmp"] {
                self.make_folder(&format!("{kind}-{name}"));
            }
        }
        self.make_folder("state");
        text.push_str("PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES\n");
        self.write("slurm.conf", text.as_bytes());
        // Any key will do: only these daemons have it.
        self.write("key", &[42; 1024]);
        let key = self.folder.path().join("key");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(key, private).expect("the key is ours");
    }

    fn start_daemons(&mut self) {
        let in_folder = |option: &str, file: &str| {
            format!("--{option}={}", self.folder.path().join(file).display())
        };
        let munged = [
            "--foreground".to_owned(),
            "--force".to_owned(),
            in_folder("socket", "munge"),
            in_folder("key-file", "key"),
            in_folder("seed-file", "seed"),
            in_folder("pid-file", "munge.pid"),
            in_folder("log-file", "munge.log"),
        ];
        let munged: Vec<&str> = munged.iter().map(String::as_str).collect();
        let lines = [
            ("munged", munged),
            ("slurmctld", vec!["-D"]),
            ("slurmd", vec!["-D", "-N", "n1"]),
            ("slurmd", vec!["-D", "-N", "n2"]),
        ];
        for (program, arguments) in lines {
            // Nothing of it outlives a test that is killed.
            let mut command = self.command("setpriv");
            command.args(["--pdeathsig", "KILL", program]);
            let daemon = command.args(arguments).spawn();
            self.daemons
                .push(daemon.unwrap_or_else(|error| panic!("failed to start {program}: {error}")));
        }
    }

    /// Both nodes are idle, or the test fails: the daemons are there, so they should work.
    fn wait_for_nodes(&self) {
        let script = "for turn in $(seq 300); do [ \"$(sinfo -h -t idle -o %D)\" = 2 ] && exit 0; sleep 0.1; done; exit 1";
        let ready = self.command("sh").args(["-c", script]).status();
        assert!(
            ready.is_ok_and(|status| status.success()),
            "Slurm does not get ready: {}",
            self.log()
        );
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("SLURM_CONF", self.configuration())
            .env("PATH", format!("{path}:/usr/sbin:/usr/local/sbin"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn make_folder(&self, name: &str) {
        std::fs::create_dir(self.folder.path().join(name)).expect("the folder is ours");
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let file: &Path = &self.folder.path().join(name);
        std::fs::write(file, bytes).expect("the folder is ours");
    }
}

impl Batch<'_> {
    /// Waits for its end, of all its elements; what it printed, element by element.
    #[track_caller]
    pub fn ends(&self) -> String {
        self.waits_until("ends", || self.state().is_empty());
        self.output()
    }

    /// Waits until something holds.
    #[track_caller]
    pub fn waits_until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(
                begun.elapsed() < DEADLINE,
                "the job {} is {:?} and not what is waited for: it {what}\n{}",
                self.id,
                self.state(),
                self.output()
            );
            std::thread::sleep(LOOK);
        }
    }

    /// As Slurm calls it; nothing once it is over.
    pub fn state(&self) -> String {
        self.slurm
            .ask("squeue", &["-h", "-j", &self.id, "-o", "%T"])
    }

    /// What ends a job at its time limit: SIGTERM, and SIGKILL after `KillWait`.
    pub fn cancel(&self) {
        self.slurm.ask("scancel", &[&self.id]);
    }

    pub fn requeue(&self) {
        self.slurm.ask("scontrol", &["requeue", &self.id]);
    }

    fn output(&self) -> String {
        let folder = self.slurm.folder.path();
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().contains(&self.output))
            .collect();
        files.sort();
        let texts = files
            .iter()
            .map(|file| std::fs::read_to_string(file).unwrap_or_default());
        texts.collect()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = kill_process(Pid::from_child(daemon), Signal::TERM);
            let _ = daemon.wait();
        }
        // Daemons leave the keepers of running steps, and those their ranks.
        kill_all_with("SLURM_CONF", &self.configuration().to_string_lossy());
    }
}
