//! Room for blocks: a mesh that this machine cannot hold ends with words, not with a failed allocation.

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
/// Errors: a rank's share is more than its machine can give; every rank is told.
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

/// Bytes that the machine can still give; none where the system does not say.
fn available() -> Option<u64> {
    let all = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = all.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Ranks on this machine, as Open MPI and MPICH tell their programs.
fn n_neighbours() -> u64 {
    let names = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
    let told = names.iter().find_map(|name| std::env::var(name).ok());
    let n = told.and_then(|n| n.parse().ok()).unwrap_or(1);
    u64::max(n, 1)
}
