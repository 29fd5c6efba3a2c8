//! Several nodes on this machine, by namespaces of Linux: what `tests/cluster/cluster` makes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::job::job;
use crate::library::Mpi;
use crate::outcome::Outcome;
use crate::skip::skip;

/// A cluster that is up; it ends with this value, or with this process.
#[derive(Debug)]
pub struct Cluster {
    script: PathBuf,
    state: PathBuf,
    n_ranks: usize,
}

/// The exit status of a machine that cannot make one.
const CANNOT: i32 = 77;

impl Cluster {
    /// `nodes` nodes with `slots` ranks each, pinned, under real-time scheduling with yielding: ranks outnumber cores.
    /// `None`, which counts as skipped, where this machine cannot make one.
    pub fn up(mpi: Mpi, nodes: usize, slots: usize) -> Option<Cluster> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/cluster");
        let mut command = Command::new(&script);
        command.args(["up", "--pin", "--realtime", "--mpi", mpi.name()]);
        for (option, value) in [("--nodes", nodes), ("--slots", slots)] {
            command.args([option, &value.to_string()]);
        }
        command.args(["--owner", &std::process::id().to_string()]);
        let output = command.output().expect("the cluster's script starts");
        if output.status.code() == Some(CANNOT) {
            return skip(String::from_utf8_lossy(&output.stderr).trim());
        }
        assert!(output.status.success(), "{output:?}");
        let state = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Some(Cluster {
            script,
            state,
            n_ranks: nodes * slots,
        })
    }

    /// The launcher that spans all nodes.
    pub fn mpirun(&self) -> String {
        self.state.join("mpirun").to_string_lossy().into_owned()
    }

    /// Runs a program on all slots, with variables whose names begin with COLLTUNE_.
    pub fn run(&self, variables: &[(&str, &str)], program: &str, arguments: &[&str]) -> Outcome {
        let (mpirun, n_ranks) = (self.mpirun(), self.n_ranks.to_string());
        let mut line = vec![mpirun.as_str(), "-n", &n_ranks, program];
        line.extend(arguments);
        let job = variables
            .iter()
            .fold(job(1), |job, (name, value)| job.env(name, value));
        job.run_command(&line)
    }

    /// Runs a command inside a node.
    pub fn on_node(&self, node: usize, command: &[&str]) {
        let mut line = Command::new(&self.script);
        line.arg("exec").arg(&self.state);
        line.args(["--node", &node.to_string(), "--"]).args(command);
        let output = line.output().expect("the cluster's script starts");
        assert!(output.status.success(), "{command:?}: {output:?}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing more can be done about a failure: the script sweeps the cluster once its owner is gone.
        let _ = Command::new(&self.script)
            .arg("down")
            .arg(&self.state)
            .status();
    }
}
