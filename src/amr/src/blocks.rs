//! A rank's blocks through refinement and migration: only what changes rank travels.

use std::collections::BTreeMap;

use crate::field::{Field, Meaning, Slot};
use crate::mesh::Mesh;
use crate::ranks::{Ranks, Request};
use crate::refine::Origin;

/// Marks a leaf that another rank owns.
pub const ELSEWHERE: Slot = Slot::MAX;

/// The cells of this rank's leaves, and where each of them lies.
#[derive(Clone, Debug)]
pub struct Blocks {
    pub field: Field,
    /// One for each leaf of the mesh: 4 bytes a leaf on every rank.
    pub slots: Vec<Slot>,
    pub meaning: Meaning,
}

/// Blocks and bytes that left this rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub n_blocks: u64,
    pub n_bytes: u64,
}

const TAG_JOIN: i32 = 110;
const TAG_MOVE: i32 = 111;
/// The messages of this module.
pub const TAGS: [i32; 2] = [TAG_JOIN, TAG_MOVE];
/// Values in a message of several blocks: 4 MB.
pub const MESSAGE_LEN: usize = 1 << 19;

impl Blocks {
    /// Zeroed blocks for the leaves of `rank`, in an empty field.
    pub fn new(field: Field, meaning: Meaning, mesh: &Mesh, rank: usize) -> Blocks {
        let mut blocks = Blocks {
            field,
            slots: vec![ELSEWHERE; mesh.len()],
            meaning,
        };
        for i in mesh.own(rank) {
            blocks.slots[i] = blocks.field.take_slot();
        }
        blocks
    }

    /// Makes the blocks of `new` from those of `old`; `origins` says where each comes from.
    ///
    /// Children are made where their parent is. Joined blocks are made on their owner, to which other
    /// ranks send their children's share: an eighth of the cells.
    pub fn follow(
        &mut self,
        ranks: &dyn Ranks,
        old: &Mesh,
        new: &Mesh,
        origins: &[Origin],
    ) -> Moved {
        let rank = ranks.rank();
        let owner = |mesh: &Mesh, i: usize| mesh.owners()[i] as usize;
        let (mut moved, mut sends) = (Moved::default(), Vec::new());
        let mut slots = vec![ELSEWHERE; new.len()];
        // Shares that leave go first, while their blocks are still there.
        for (i, origin) in origins.iter().enumerate() {
            let Origin::Joined(first) = *origin else {
                continue;
            };
            let home = owner(new, i);
            for child in (first..first + 8).filter(|&child| owner(old, child) == rank) {
                if home == rank {
                    continue;
                }
                let mut share = Vec::new();
                self.field
                    .read_coarsened(self.slots[child], self.meaning, &mut share);
                moved.n_blocks += 1;
                moved.n_bytes += 8 * share.len() as u64;
                sends.push(ranks.start_send(home, TAG_JOIN, share));
                self.field.give_back(self.slots[child]);
            }
        }
        let receives = self.receive_shares(ranks, old, new, origins);
        let mut receives = receives.into_iter();
        for (i, origin) in origins.iter().enumerate() {
            if owner(new, i) != rank {
                continue;
            }
            slots[i] = match *origin {
                Origin::Kept(j) => self.slots[j],
                Origin::Part(j, octant) => self.part(self.slots[j], octant),
                Origin::Joined(first) => {
                    let whole = self.field.take_slot();
                    for octant in 0..8 {
                        let child = first + octant;
                        let mut share = Vec::new();
                        if owner(old, child) == rank {
                            let slot = self.slots[child];
                            self.field.read_coarsened(slot, self.meaning, &mut share);
                            self.field.give_back(slot);
                        } else {
                            let request = receives.next().expect("posted in this order");
                            share = ranks.finish(request);
                        }
                        self.field.write_octant(whole, octant, &share);
                    }
                    whole
                }
            };
        }
        sends.into_iter().for_each(|send| drop(ranks.finish(send)));
        self.slots = slots;
        moved
    }

    /// The child in `octant` of the block in `parent`, whose slot is free again after the last one.
    fn part(&mut self, parent: Slot, octant: usize) -> Slot {
        let child = self.field.take_slot();
        self.field.split_into(parent, octant, child, self.meaning);
        if octant == 7 {
            self.field.give_back(parent);
        }
        child
    }

    fn receive_shares(
        &self,
        ranks: &dyn Ranks,
        old: &Mesh,
        new: &Mesh,
        origins: &[Origin],
    ) -> Vec<Request> {
        let shape = self.field.shape();
        let share = shape.n_vars * shape.interior_cells() / 8;
        let mut receives = Vec::new();
        for (i, origin) in origins.iter().enumerate() {
            let Origin::Joined(first) = *origin else {
                continue;
            };
            if new.owners()[i] as usize != ranks.rank() {
                continue;
            }
            for child in first..first + 8 {
                let from = old.owners()[child] as usize;
                if from != ranks.rank() {
                    receives.push(ranks.start_receive(from, TAG_JOIN, vec![0.0; share]));
                }
            }
        }
        receives
    }

    /// Sends blocks from `mesh`'s owners to new `owners`. Only blocks that change owner travel.
    pub fn migrate(&mut self, ranks: &dyn Ranks, mesh: &Mesh, owners: &[u32]) -> Moved {
        let rank = ranks.rank() as u32;
        let shape = self.field.shape();
        let len = shape.n_vars * shape.interior_cells();
        let mut moved = Moved::default();
        let changes: Vec<(usize, u32, u32)> = mesh
            .owners()
            .iter()
            .zip(owners)
            .enumerate()
            .filter(|(_, (from, to))| from != to)
            .map(|(i, (&from, &to))| (i, from, to))
            .collect();
        // One message holds many small blocks: thousands of messages would cost more than they carry.
        let per_message = (MESSAGE_LEN / len).max(1);
        let with = |rank_of: fn(&(usize, u32, u32)) -> (u32, u32)| {
            let mut by_rank: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            for change in &changes {
                let (mine, other) = rank_of(change);
                if mine == rank {
                    by_rank.entry(other).or_default().push(change.0);
                }
            }
            by_rank
        };
        let mut receives = Vec::new();
        for (from, leaves) in with(|&(_, from, to)| (to, from)) {
            for part in leaves.chunks(per_message) {
                let buffer = vec![0.0; len * part.len()];
                let request = ranks.start_receive(from as usize, TAG_MOVE, buffer);
                receives.push((part.to_vec(), request));
            }
        }
        let mut sends = Vec::new();
        for (to, leaves) in with(|&(_, from, to)| (from, to)) {
            for part in leaves.chunks(per_message) {
                let mut cells = Vec::with_capacity(len * part.len());
                for &i in part {
                    self.field.read_interior(self.slots[i], &mut cells);
                    self.field.give_back(self.slots[i]);
                    self.slots[i] = ELSEWHERE;
                }
                moved.n_blocks += part.len() as u64;
                moved.n_bytes += 8 * cells.len() as u64;
                sends.push(ranks.start_send(to as usize, TAG_MOVE, cells));
            }
        }
        for (leaves, request) in receives {
            let cells = ranks.finish(request);
            let mut rest = cells.as_slice();
            for i in leaves {
                let slot = self.field.take_slot();
                rest = self.field.write_interior(slot, rest);
                self.slots[i] = slot;
            }
        }
        sends.into_iter().for_each(|send| drop(ranks.finish(send)));
        moved
    }

    /// The leaves of `rank` in the order of their slots.
    pub fn in_memory(&self, mesh: &Mesh, rank: usize) -> Vec<usize> {
        let mut leaves: Vec<u32> = Vec::new();
        for i in mesh.own(rank) {
            let slot = self.slots[i] as usize;
            if slot >= leaves.len() {
                leaves.resize(slot + 1, u32::MAX);
            }
            leaves[slot] = i as u32;
        }
        let used = leaves.into_iter().filter(|&i| i != u32::MAX);
        used.map(|i| i as usize).collect()
    }

    /// Whether exactly the leaves of `rank` have slots, each its own.
    pub fn is_valid(&self, mesh: &Mesh, rank: usize) -> Result<(), String> {
        let mut used: Vec<Slot> = mesh.own(rank).map(|i| self.slots[i]).collect();
        let n_own = used.len();
        let n_slots = self.slots.iter().filter(|&&s| s != ELSEWHERE).count();
        used.sort_unstable();
        used.dedup();
        if used.len() != n_own || used.last() == Some(&ELSEWHERE) {
            return Err(format!("rank {rank}: leaves share slots or have none"));
        }
        if n_slots != n_own || self.field.n_blocks() != n_own {
            let n_blocks = self.field.n_blocks();
            return Err(format!(
                "rank {rank}: {n_own} leaves, {n_slots} slots, {n_blocks} blocks"
            ));
        }
        Ok(())
    }
}
