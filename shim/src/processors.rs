//! What this process may use of its node's processors, as the kernel says.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use colltune_core::processors::{MASK_WORDS, Mask, Quota, of_cpu_max};

const CGROUPS: &str = "/sys/fs/cgroup";

/// The processors that this process may run on; none where there are more than the list holds.
pub fn allowed() -> Mask {
    let mut words = [0; MASK_WORDS];
    // SAFETY: the list has as many bytes as are announced.
    let code = unsafe {
        libc::sched_getaffinity(
            0,
            size_of_val(&words),
            words.as_mut_ptr().cast::<libc::cpu_set_t>(),
        )
    };
    if code == 0 { words } else { [0; MASK_WORDS] }
}

/// The tightest quota of this process's cgroup and of those above it, by version 2 of cgroups.
pub fn quota() -> Quota {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = text.lines().find_map(|line| line.strip_prefix("0::/"));
    let folder = Path::new(CGROUPS).join(own.unwrap_or(""));
    let groups = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(CGROUPS));
    let limits = groups.filter_map(|folder| {
        let text = std::fs::read_to_string(folder.join("cpu.max")).ok()?;
        let processors = of_cpu_max(&text)?;
        // Paths are alike in containers with a namespace of their own.
        let group = folder.metadata().ok()?.ino();
        Some(Quota { group, processors })
    });
    limits
        .min_by_key(|quota| quota.processors)
        .unwrap_or_default()
}
