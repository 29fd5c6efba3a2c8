//! A Slurm of two nodes on this machine, for tests that start jobs with srun.

use std::fmt::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::job::is_root;
use crate::skip::skip;

/// The daemons of a cluster; they end with this value.
pub struct Slurm {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Slurm {
    /// Starts them; where Slurm is not installed, or this is not root, the test counts as skipped.
    pub fn start() -> Option<Slurm> {
        if !is_root() {
            return skip("needs root, to start Slurm's daemons");
        }
        let programs = ["munged", "slurmctld", "slurmd", "srun"];
        let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(Path::new);
        let is_there = |program: &&str| folders.iter().any(|folder| folder.join(program).is_file());
        if let Some(program) = programs.into_iter().find(|program| !is_there(program)) {
            return skip(&format!("Slurm is not installed: no {program}"));
        }
        let folder = crate::folder();
        let mut slurm = Slurm {
            folder,
            daemons: Vec::new(),
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
             AuthType=auth/munge\nAuthInfo=socket={folder}/munge\nStateSaveLocation={folder}/state\n\
             SlurmdSpoolDir={folder}/spool-%n\nTmpFS={folder}/tmp-%n\nSlurmctldPidFile={folder}/controller.pid\n\
             SlurmdPidFile={folder}/%n.pid\nSlurmctldLogFile={folder}/controller.log\nSlurmdLogFile={folder}/%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nReturnToService=2\n\
             SlurmdParameters=config_overrides\nSlurmctldPort={controller}\n"
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
        // Any key will do: nobody but these daemons has it.
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
            let daemon = self.command(program).args(arguments).spawn();
            self.daemons
                .push(daemon.unwrap_or_else(|error| panic!("failed to start {program}: {error}")));
        }
    }

    /// Both nodes are idle, or the test fails: the daemons are there, so they should work.
    fn wait_for_nodes(&self) {
        let script = "for turn in $(seq 300); do [ \"$(sinfo -h -t idle -o %D)\" = 2 ] && exit 0; sleep 0.1; done; exit 1";
        let ready = self.command("sh").args(["-c", script]).status();
        let log = std::fs::read_to_string(self.folder.path().join("controller.log"));
        assert!(
            ready.is_ok_and(|status| status.success()),
            "Slurm does not get ready: {}",
            log.unwrap_or_default()
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

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = kill_process(Pid::from_child(daemon), Signal::TERM);
            let _ = daemon.wait();
        }
    }
}
