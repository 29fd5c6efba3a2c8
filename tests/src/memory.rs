//! Jobs that get so much memory and no more.

use std::path::Path;
use std::process::Command;

use crate::job::{Job, is_root};

/// Where control groups limit memory, of both versions, the file that holds a group's limit, and a command that makes
/// groups below there have one.
const GROUPS: [(&str, &str, &str); 2] = [
    (
        "/sys/fs/cgroup",
        "memory.max",
        "echo +memory > /sys/fs/cgroup/cgroup.subtree_control",
    ),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "true"),
];

impl Job {
    /// Runs the job in a control group with so much memory; more kills it. `None` where there can be none.
    pub fn within_memory(self, bytes: u64) -> Option<Job> {
        let works = |(root, file, prepare): &&(&str, &str, &str)| {
            let probe = format!("{root}/colltune-probe-{}", std::process::id());
            let script = format!(
                "{prepare}; mkdir {probe} && test -e {probe}/{file}; code=$?; rmdir {probe}; exit $code"
            );
            let done = Command::new("sh").args(["-c", &script]).output();
            Path::new(root).is_dir() && done.is_ok_and(|output| output.status.success())
        };
        let Some((root, file, _)) = GROUPS.iter().find(works).filter(|_| is_root()) else {
            return crate::skip("needs root and control groups, to limit a job's memory");
        };
        let script = "group=$0/colltune-$$; limit=$1; file=$2; shift 2; mkdir \"$group\" || exit 125; \
                      echo \"$limit\" > \"$group/$file\"; sh -c 'echo $$ > \"$0/cgroup.procs\"; exec \"$@\"' \"$group\" \"$@\"; \
                      code=$?; for turn in 1 2 3 4 5 6 7 8 9; do rmdir \"$group\" 2> /dev/null && break; sleep 0.1; done; \
                      exit $code";
        Some(self.prefix(&["sh", "-c", script, root, &bytes.to_string(), file]))
    }
}
