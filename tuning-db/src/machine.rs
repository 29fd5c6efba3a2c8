//! What the machine is called that this process runs on.

use colltune_core::machine;

/// The name of this machine, as its jobs find it.
pub fn machine_here() -> String {
    let slurm = std::env::var("SLURM_CLUSTER_NAME").ok();
    machine::name(slurm.as_deref(), &host_name())
}

pub fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
