//! Room for blocks: a mesh that this machine cannot hold ends with words, not with a failed allocation.

use std::path::{Path, PathBuf};

use colltune_core::launched;

use super::agree::agree;
use super::state::Run;
use crate::checksum::Broken;
use crate::mesh::{BYTES_PER_LEAF, LEAVES_MAX};
use crate::ranks::Ranks;
use crate::refine::Mark;
use crate::settings::{Settings, Work};

/// Less than this is not asked about: looking costs more than it.
const ASKED_FROM: u64 = 64 << 20;

/// Before anything is allocated: room for the root blocks. Not under `--compat`, whose calls are counted.
///
/// Errors: a rank's share is more than its machine can give; every rank returns the error.
pub(super) fn for_roots(ranks: &dyn Ranks, settings: &Settings) -> Result<(), Broken> {
    if settings.options.compat {
        return Ok(());
    }
    let n_roots = settings.grid.n_roots();
    let shape = settings.shape;
    let n_vars = shape.n_vars + usize::from(settings.work == Work::Seven);
    let per_block = 8 * n_vars as u64 * shape.cells_per_var() as u64;
    let own = n_roots.div_ceil(ranks.n_ranks()) as u64;
    let need = own.saturating_mul(per_block) + (n_roots * BYTES_PER_LEAF) as u64;
    all_have(ranks, 0, need)
}

impl Run<'_> {
    /// Before a pass: room for the blocks that splits add.
    pub(super) fn make_room(&self, step: u64, marks: &[Mark]) -> Result<(), Broken> {
        let n_splits = |marks: &mut dyn Iterator<Item = Mark>| {
            marks.filter(|&mark| mark == Mark::Split).count() as u64
        };
        let of_all = n_splits(&mut marks.iter().copied());
        let n_leaves = self.mesh.len() as u64 + 7 * of_all;
        if n_leaves > LEAVES_MAX as u64 {
            let what = format!("{n_leaves} blocks are more than {LEAVES_MAX}");
            return Err(Broken::NoRoom { step, what });
        }
        if self.compat.is_some() || of_all == 0 {
            return Ok(());
        }
        let mut own = self.mesh.own(self.ranks.rank()).map(|i| marks[i]);
        let blocks = 7 * n_splits(&mut own) * self.blocks.field.bytes_per_block();
        // The old list of leaves goes after the new one has been made.
        let leaves = n_leaves * BYTES_PER_LEAF as u64;
        all_have(self.ranks, step, blocks + leaves)
    }
}

fn all_have(ranks: &dyn Ranks, step: u64, need: u64) -> Result<(), Broken> {
    let has = match need {
        0..ASKED_FROM => u64::MAX,
        _ => available().map_or(u64::MAX, |bytes| bytes / n_neighbours()),
    };
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let complaint = (need > has).then(|| {
        format!(
            "rank {} needs {:.1} GB more, and its share of what this machine has left is {:.1} GB",
            ranks.rank(),
            gigabytes(need),
            gigabytes(has)
        )
    });
    let complaint = agree(ranks, complaint);
    complaint.map_or(Ok(()), |what| Err(Broken::NoRoom { step, what }))
}

/// Bytes that the machine, and the control groups that limit this process, can still give; none where the system does not
/// say.
fn available() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = left_in_groups(&groups, Path::new("/sys/fs/cgroup"));
    of_machine().into_iter().chain(of_groups).min()
}

fn of_machine() -> Option<u64> {
    let all = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = all.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// The least that a control group of this process, or one round it, has left of its limit. `groups` is what
/// `/proc/self/cgroup` says, `root` is where they are mounted.
fn left_in_groups(groups: &str, root: &Path) -> Option<u64> {
    // Version 2 has one line, "0::/path"; in version 1 memory has a separate tree.
    let found = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let path = path.trim_start_matches('/');
        match controllers {
            "" => Some((
                root.to_owned(),
                path,
                ["memory.max", "memory.current", "inactive_file"],
            )),
            list if list.split(',').any(|name| name == "memory") => Some((
                root.join("memory"),
                path,
                [
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                    "total_inactive_file",
                ],
            )),
            _ => None,
        }
    });
    let left = |(tree, path, files): (PathBuf, &str, [&str; 3])| {
        let within = Path::new(path)
            .ancestors()
            .map(move |group| tree.join(group));
        within
            .filter_map(move |group| left_in_group(&group, files))
            .min()
    };
    found.filter_map(left).min()
}

/// None where there is no such group, or no limit.
fn left_in_group(group: &Path, [limit, used, reclaimable]: [&str; 3]) -> Option<u64> {
    let read = |file: &str| std::fs::read_to_string(group.join(file)).ok();
    let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
    let (limit, used) = (number(limit)?, number(used)?);
    let stat = read("memory.stat").unwrap_or_default();
    let cached = stat.lines().find_map(|line| {
        let (name, bytes) = line.split_once(' ')?;
        (name == reclaimable).then(|| bytes.parse().unwrap_or(0))
    });
    Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
}

/// Ranks on this machine, as launchers tell them.
fn n_neighbours() -> u64 {
    let n = launched::ranks_on_node(|name| std::env::var(name).ok());
    n.unwrap_or(1).max(1).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(folder: &Path, files: [(&str, &str); 3]) {
        std::fs::create_dir_all(folder).expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.join(name), text).expect("written");
        }
    }

    #[test]
    fn the_tightest_control_group_round_a_process_says_what_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let stat = ("memory.stat", "anon 7\ninactive_file 100\n");
        let v2 = |limit, used| [("memory.max", limit), ("memory.current", used), stat];
        assert_eq!(
            left_in_groups("0::/job/step\n", root),
            None,
            "no such group"
        );
        group(&root.join("job/step"), v2("max", "500\n"));
        assert_eq!(left_in_groups("0::/job/step\n", root), None, "no limit");
        group(&root.join("job"), v2("2000\n", "1500\n"));
        assert_eq!(left_in_groups("0::/job/step\n", root), Some(600));
        group(&root.join("job/step"), v2("900\n", "900\n"));
        assert_eq!(left_in_groups("0::/job/step\n", root), Some(100));
        let stat = ("memory.stat", "total_inactive_file 10\n");
        let limit = ("memory.limit_in_bytes", "50\n");
        let v1 = [limit, ("memory.usage_in_bytes", "70\n"), stat];
        group(&root.join("memory/batch"), v1);
        let lines = "5:cpu,cpuacct:/job\n4:memory:/batch\n";
        assert_eq!(left_in_groups(lines, root), Some(0));
    }
}
