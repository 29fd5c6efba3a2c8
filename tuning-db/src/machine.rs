//! What the machine is called that this process runs on.

/// The name of this machine: what Slurm calls it, else the host name without trailing digits.
pub fn machine_here() -> String {
    if let Some(name) = std::env::var("SLURM_CLUSTER_NAME")
        .ok()
        .filter(|name| !name.is_empty())
    {
        return name;
    }
    let host = host_name();
    let short = host.split('.').next().unwrap_or(&host);
    let bare = short.trim_end_matches(|c: char| c.is_ascii_digit());
    if bare.is_empty() {
        short.to_owned()
    } else {
        bare.to_owned()
    }
}

pub(crate) fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
