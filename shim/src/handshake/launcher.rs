//! What the launcher left in the environment: who manages the processes, what this world is called, and how many
//! of its ranks are on this node.

use std::ffi::c_int;
use std::path::Path;

use colltune_core::launched;
use colltune_core::library::{Library, Product};
use colltune_core::roster::hash_bytes;

use crate::handshake::board::Board;
use crate::handshake::names::Names;
use crate::handshake::pmi::Pmi;
use crate::handshake::pmix::Pmix;
use crate::library::{Handles, Pmpi};

/// Ancestors of this process among which Hydra's proxy is looked for.
const ANCESTORS_MAX: u32 = 64;

/// Who started the ranks, as far as the ways to meet differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manager {
    /// Slurm's own PMIx server, which has no name service; Open MPI prints a page about every attempt to use it.
    SlurmPmix { namespace: String },
    /// Slurm's PMI-1, by the descriptor of the connection with it.
    SlurmPmi { socket: c_int, job: String },
    /// A launcher with a name service, perhaps. `world` is what no other job at the same name server has, or empty.
    Other { world: String },
}

impl Manager {
    /// Alike on all ranks of a job. `library_text` is what the library says of itself.
    pub fn find(library: Library, library_text: &str) -> Manager {
        let namespace = variable("PMIX_NAMESPACE").unwrap_or_default();
        if namespace.starts_with("slurm.pmix") {
            return Manager::SlurmPmix { namespace };
        }
        let job = variable("PMI_JOBID").unwrap_or_default();
        let socket = variable("PMI_FD").and_then(|socket| socket.parse().ok());
        match socket {
            Some(socket) if is_slurm_step(&job) && speaks_pmi_1(library, library_text) => {
                Manager::SlurmPmi { socket, job }
            }
            _ => Manager::Other {
                world: launched::world(
                    [namespace, job, hydra_port().unwrap_or_default()].concat(),
                    variable,
                ),
            },
        }
    }

    /// The board of this job; alike on all its ranks, because the launcher and the library decide. `None`: there is
    /// none, which is known without asking.
    pub fn board<'a>(&self, pmpi: &'a Pmpi, handles: &'a Handles) -> Option<Box<dyn Board + 'a>> {
        match self {
            Manager::SlurmPmix { namespace } => {
                Pmix::find(namespace).map(|board| Box::new(board) as Box<dyn Board>)
            }
            Manager::SlurmPmi { socket, job } => Some(Box::new(Pmi::new(*socket, job.clone()))),
            Manager::Other { world } => Some(Box::new(Names::new(pmpi, handles, world.clone()))),
        }
    }

    /// A name under which the ranks of this world on this node can find each other; `None` where the world has none.
    pub fn meeting_place(&self) -> Option<String> {
        let world = match self {
            Manager::SlurmPmix { namespace } => namespace,
            Manager::SlurmPmi { job, .. } => job,
            Manager::Other { world } => world,
        };
        if world.is_empty() {
            return None;
        }
        // A node's own server tells apart what a short name of the world may not.
        let servers = ["PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI2"];
        let server = servers.into_iter().find_map(variable).unwrap_or_default();
        let hash = hash_bytes(hash_bytes(3, world.as_bytes()), server.as_bytes());
        // SAFETY: it only asks for a number.
        let user = unsafe { libc::geteuid() };
        Some(format!("colltune-{user}-{hash:016x}"))
    }
}

/// How many ranks but rank 0 the launcher says it started on this node; `None` where it does not say.
pub fn followers_on_node(rank: u32) -> Option<u32> {
    launched::followers_on_node(rank, variable)
}

/// Whether the launcher says that it started all ranks on this node.
pub fn has_one_node(n_ranks: u32) -> bool {
    launched::ranks_on_node(variable) == Some(n_ranks)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .map(|value| value.replace('\0', ""))
}

/// Whether PMI's name of the job is that of the Slurm step that this process is in.
fn is_slurm_step(job: &str) -> bool {
    let step = variable("SLURM_JOB_ID").zip(variable("SLURM_STEP_ID"));
    step.is_some_and(|(step_job, step)| job == format!("{step_job}.{step}"))
}

/// Whether the library speaks PMI-1 over the socket: MPICH unless its build or the environment says otherwise.
fn speaks_pmi_1(library: Library, library_text: &str) -> bool {
    let told = ["MPIR_CVAR_PMI_VERSION", "MPICH_PMI_VERSION", "PMI_VERSION"];
    library.product == Product::Mpich
        && library_text.contains("--with-")
        && !library_text.contains("--with-pmi")
        && told.into_iter().all(|name| variable(name).is_none())
}

/// The address at which Hydra's proxies on all nodes have found their mpiexec: no other job has it at the same
/// time. It stands in the proxy's arguments alone, and the proxy is an ancestor of every rank.
fn hydra_port() -> Option<String> {
    variable("PMI_FD")?;
    // SAFETY: it only asks for a number.
    let mut process = unsafe { libc::getppid() }.to_string();
    for _ in 0..ANCESTORS_MAX {
        let folder = Path::new("/proc").join(&process);
        let line = std::fs::read(folder.join("cmdline")).ok()?;
        let mut words = line.split(|byte| *byte == 0);
        if words.any(|word| word == b"--control-port") {
            return String::from_utf8(words.next()?.to_vec()).ok();
        }
        let status = std::fs::read_to_string(folder.join("stat")).ok()?;
        // The command's name in brackets may hold spaces and brackets.
        let (_, fields) = status.rsplit_once(") ")?;
        process = fields.split(' ').nth(1)?.to_owned();
    }
    None
}
