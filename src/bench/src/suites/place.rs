//! Where jobs run: this machine's cores, or a simulated cluster on it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use colltune_core::library::{Abi, Library};

use colltune_launch::library::{Launcher, of_abi, of_launcher};
use colltune_launch::measuring::helper;
use colltune_launch::needs::resolve;

/// A place for jobs of one MPI library.
pub struct Place {
    pub abi: Abi,
    pub library: Library,
    pub n_ranks: usize,
    pub nodes: usize,
    launcher: OsString,
    /// Of the jobs' environment.
    pub variables: Vec<(String, String)>,
    /// So many ranks on each node of the cluster that has any; none: as many as it has slots.
    pub ranks_per_node: Option<u32>,
    /// Ranks outnumber cores: only the round-robin real-time scheduler with yielding gives usable times.
    realtime: bool,
    cluster: Option<Cluster>,
}

/// What every link of the cluster carries.
const LINK_GBIT: f64 = 1.0;

/// Runs its arguments on one core; the core follows from the rank.
const PIN: &str =
    r#"exec taskset -c $((${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} % $(nproc --all))) "$0" "$@""#;

/// The launchers that PATH has for each library.
pub fn launchers() -> Vec<(Abi, Launcher)> {
    Abi::COMMON
        .into_iter()
        .filter_map(|abi| launcher_of(abi).map(|name| (abi, of_launcher(&name))))
        .collect()
}

fn launcher_of(abi: Abi) -> Option<OsString> {
    let names = [
        format!("mpirun.{}", abi.name()),
        "mpirun".to_owned(),
        format!("mpiexec.{}", abi.name()),
    ];
    let fits =
        |name: &OsString| resolve(name, None).is_some() && of_launcher(name).abi() == Some(abi);
    names.into_iter().map(OsString::from).find(fits)
}

impl Place {
    /// `n_ranks` ranks on this machine. Errors name what is missing.
    pub fn node(abi: Abi, n_ranks: usize) -> anyhow::Result<Place> {
        let name = abi.name();
        let launcher =
            launcher_of(abi).with_context(|| format!("find an mpirun of {name} in PATH"))?;
        for tool in ["taskset", "timeout", "nproc"] {
            resolve(OsStr::new(tool), None).with_context(|| format!("find {tool} in PATH"))?;
        }
        helper(abi)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // MPICH spins without yielding: real-time ranks that share a core would wait for ever.
        let realtime = abi == Abi::OpenMpi && may_run_in_real_time();
        if n_ranks > cores && !realtime {
            bail!(
                "time {n_ranks} ranks of {name} on {cores} cores: that needs real-time scheduling (chrt -r), and Open MPI"
            );
        }
        let library = of_launcher(&launcher).library.unwrap_or(of_abi(abi));
        Ok(Place {
            abi,
            library,
            n_ranks,
            nodes: 1,
            launcher,
            variables: Vec::new(),
            ranks_per_node: None,
            realtime,
            cluster: None,
        })
    }

    /// One rank on this machine, started by any launcher with these variables in its environment.
    pub fn of_launcher(abi: Abi, launcher: OsString, variables: Vec<(String, String)>) -> Place {
        Place {
            abi,
            library: of_launcher(&launcher).library.unwrap_or(of_abi(abi)),
            n_ranks: 1,
            nodes: 1,
            launcher,
            variables,
            ranks_per_node: None,
            realtime: false,
            cluster: None,
        }
    }

    /// 4 nodes with 2 ranks each and links of 1 Gbit/s.
    pub fn cluster() -> anyhow::Result<Place> {
        let node = Place::node(Abi::OpenMpi, 8)?;
        let cluster = Cluster::start()?;
        let launcher = cluster.state.join("mpirun.openmpi").into_os_string();
        Ok(Place {
            nodes: 4,
            launcher,
            realtime: false,
            cluster: Some(cluster),
            ..node
        })
    }

    pub fn describe(&self) -> String {
        let ranks = match self.nodes {
            1 => format!("{} ranks on one node", self.n_ranks),
            nodes => format!(
                "{nodes} nodes x {} ranks, {LINK_GBIT} Gbit/s links",
                self.n_ranks / nodes
            ),
        };
        let scheduling = if self.realtime || self.cluster.is_some() {
            ", real-time round robin with yielding"
        } else {
            ""
        };
        format!("{}, {ranks}, pinned{scheduling}", self.library)
    }

    /// The line that starts `program` with its arguments on `n_ranks` ranks.
    pub fn line(&self, n_ranks: usize, options: &[String], program: &[OsString]) -> Vec<OsString> {
        let mut line = vec![self.launcher.clone()];
        if self.abi == Abi::OpenMpi && self.cluster.is_none() {
            line.extend(["--oversubscribe", "--bind-to", "none"].map(OsString::from));
            if self.realtime {
                line.extend(["--mca", "mpi_yield_when_idle", "1"].map(OsString::from));
            }
        }
        line.extend(options.iter().map(OsString::from));
        if self.cluster.is_some() {
            // Its remote shell hands over little.
            let passed = self.variables.iter().flat_map(|(name, _)| ["-x", name]);
            line.extend(passed.map(OsString::from));
            if let Some(n) = self.ranks_per_node {
                let mapped = ["--map-by".to_owned(), format!("ppr:{n}:node")];
                line.extend(mapped.map(OsString::from));
            }
        }
        line.extend([OsString::from("-n"), n_ranks.to_string().into()]);
        if self.cluster.is_none() {
            line.extend(["sh", "-c", PIN].map(OsString::from)); // the cluster's own mpirun pins
        }
        line.extend(program.iter().cloned());
        line
    }

    /// What stands before the whole line.
    pub fn scheduler(&self) -> &'static [&'static str] {
        if self.realtime {
            &["chrt", "-r", "1"]
        } else {
            &[]
        }
    }
}

fn may_run_in_real_time() -> bool {
    let tried = Command::new("chrt")
        .args(["-r", "1", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

/// A cluster of network namespaces; gone when this is dropped, or when this process ends in any way.
struct Cluster {
    script: PathBuf,
    state: PathBuf,
}

impl Cluster {
    fn start() -> anyhow::Result<Cluster> {
        let script = in_source_tree("tests/cluster/cluster")
            .context("find the test cluster's script tests/cluster/cluster")?;
        let owner = std::process::id().to_string();
        let rate = format!("{LINK_GBIT}gbit");
        let options = [
            "--nodes",
            "4",
            "--slots",
            "2",
            "--rate",
            &rate,
            "--mpi",
            "openmpi",
            "--pin",
            "--realtime",
        ];
        let mut command = Command::new("timeout");
        command
            .args(["-k", "2", "60"])
            .arg(&script)
            .arg("up")
            .args(options)
            .args(["--owner", &owner]);
        let output = command.output().context("start the test cluster")?;
        if !output.status.success() {
            bail!(
                "start the test cluster: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let state = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Ok(Cluster { script, state })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing more can be done about a failure: the script sweeps the cluster once its owner is gone.
        let _ = Command::new("timeout")
            .args(["-k", "2", "60"])
            .arg(&self.script)
            .arg("down")
            .arg(&self.state)
            .status();
    }
}

/// A script of the source tree, which is the working directory or holds this program's `target`.
pub fn in_source_tree(script: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?.canonicalize().ok()?;
    let roots = [
        Some(PathBuf::from(".")),
        own.ancestors().nth(3).map(Path::to_owned),
    ];
    let mut scripts = roots.into_iter().flatten().map(|root| root.join(script));
    scripts.find(|script| script.is_file())?.canonicalize().ok()
}
