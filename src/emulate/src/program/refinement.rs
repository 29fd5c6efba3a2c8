//! A refinement as operations: from what happens to the mesh to what ranks do for it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use colltune_amr::blocks::MESSAGE_LEN;
use colltune_amr::compat::Compat;
use colltune_amr::leaf::FACES;
use colltune_amr::mesh::{Mesh, Neighbour};
use colltune_amr::ranks::{Op, Ranks as _};
use colltune_amr::refine::{Mark, Origin};
use colltune_amr::run::Event;
use colltune_amr::settings::{Settings, Work as Kernel};
use colltune_amr::telemetry::{Freight, Meeting};

use super::epoch::Sweeps;
use super::{Call, Calls, Exchange, Message, Operation, Phase};
use crate::cost::{Memory, PhaseCosts};
use crate::traffic::groups;

/// What a refinement needs to know of the run.
pub struct Refinement<'a> {
    pub settings: &'a Settings,
    pub n_ranks: usize,
    pub phases: PhaseCosts,
    /// The machine's computing times over those of the costs.
    pub scale: f64,
    /// What the policy took when it was last asked, if there is a clock.
    pub took_s: Rc<Cell<Option<f64>>>,
    /// Under `--compat`: miniAMR's calls, and where they are noted.
    pub compat: Option<(&'a Compat<'a>, &'a Calls)>,
}

impl Refinement<'_> {
    /// Adds what ranks do when this happens.
    pub fn follow(&self, event: Event, out: &mut Vec<Operation>) {
        if let Some((compat, calls)) = self.compat {
            self.follow_compat(compat, calls, &event);
            out.extend(calls.take().into_iter().map(Operation::Collective));
        }
        match event {
            Event::Marked { mesh, marks, .. } => self.marked(mesh, marks, out),
            Event::Adapted { old, new, origins } => self.adapted(old, new, origins, out),
            Event::Placed { mesh, .. } => out.push(Operation::Alike {
                phase: Phase::Place,
                time_ns: self.place_ns(mesh),
            }),
            Event::Migrated { mesh, owners } => self.migrated(mesh, owners, out),
            Event::Refined { mesh, .. } => {
                out.push(Operation::Alike {
                    phase: Phase::Refine,
                    time_ns: self.phases.refine_ns + self.phases.refine_leaf_ns * mesh.len() as f64,
                });
                if self.settings.options.validate {
                    out.push(self.call(Meeting::Agree, 4));
                }
            }
            Event::Levels(_) | Event::Loads(_) | Event::Moved => {}
        }
    }

    fn place_ns(&self, mesh: &Mesh) -> f64 {
        match self.took_s.get() {
            Some(seconds) => 1e9 * self.scale * seconds,
            None => self.phases.place_leaf_ns * mesh.len() as f64,
        }
    }

    fn follow_compat(&self, compat: &Compat, calls: &Calls, event: &Event) {
        match event {
            Event::Levels(mesh) => compat.levels(&of_one_rank(mesh)),
            Event::Loads(mesh) => compat.loads(mesh),
            Event::Moved => compat.moved(),
            Event::Marked { mesh, marks, wants } => {
                compat.pass(mesh, wants);
                compat.gather_families(mesh, marks);
            }
            Event::Placed {
                mesh,
                owners,
                limited,
            } => compat.balance(
                self.settings,
                &self.settings.placement,
                mesh,
                owners,
                *limited,
            ),
            Event::Refined { mesh, .. } => {
                let sweeps = Sweeps::new((self.settings, &Memory::default()), mesh, self.n_ranks);
                compat.groups_and_partners(mesh, &sweeps.n_partners(0));
                // What the first rank decides there by its own count, the program decides by all ranks' together.
                let (own, all) = n_groups(mesh);
                if all > self.n_ranks && own <= self.n_ranks {
                    calls.allreduce_i32(&mut [0], Op::Max);
                }
            }
            Event::Adapted { .. } | Event::Migrated { .. } => {}
        }
    }

    fn call(&self, meeting: Meeting, bytes: u64) -> Operation {
        Operation::Collective(Call::of_all(meeting, bytes, self.n_ranks))
    }

    /// What ranks tell each other before marks: bytes of each own block.
    pub fn told(&self, mesh: &Mesh, bytes_per_block: u64) -> Operation {
        let counts = mesh.per_rank(self.n_ranks);
        let bytes: Vec<u64> = counts.iter().map(|&n| bytes_per_block * n as u64).collect();
        Operation::Collective(Call {
            bytes: bytes.iter().copied().max().unwrap_or(0),
            by_rank: Some(Arc::new(bytes)),
            ..Call::of_all(Meeting::Allgather, 0, self.n_ranks)
        })
    }

    /// Where cells decide, their blocks are asked: a gas with fresh ghosts.
    pub fn asked(&self, mesh: &Mesh, sweeps: &Sweeps, out: &mut Vec<Operation>) {
        let settings = self.settings;
        if settings.work == Kernel::Euler {
            for n_vars in groups(settings) {
                let ghosts = sweeps.ghosts(n_vars).iter();
                out.extend(ghosts.map(|e| Operation::Exchange(Arc::clone(e))));
            }
            out.push(self.told(mesh, 1));
        }
    }

    fn marked(&self, mesh: &Mesh, marks: &[Mark], out: &mut Vec<Operation>) {
        out.push(Operation::Alike {
            phase: Phase::Refine,
            time_ns: self.phases.refine_leaf_ns * mesh.len() as f64,
        });
        let splits = marks.contains(&Mark::Split);
        if splits && self.compat.is_none() {
            out.push(self.call(Meeting::Agree, 4));
        }
    }

    fn adapted(&self, old: &Mesh, new: &Mesh, origins: &[Origin], out: &mut Vec<Operation>) {
        let shape = self.settings.shape;
        let values = shape.n_vars * shape.interior_cells();
        let (mut messages, mut changed) = (Vec::new(), vec![0.0; self.n_ranks]);
        for (i, origin) in origins.iter().enumerate() {
            let to = new.owners()[i];
            match *origin {
                Origin::Kept(_) => continue,
                Origin::Part(..) => {}
                Origin::Joined(first) => {
                    let children = old.owners()[first..first + 8].iter();
                    let away = children.filter(|&&from| from != to);
                    messages.extend(away.map(|&from| Message {
                        from,
                        to,
                        bytes: values as u64,
                    }));
                }
            }
            changed[to as usize] += values as f64 * self.phases.refine_value_ns;
        }
        out.push(Operation::Work {
            phase: Phase::Refine,
            time_ns: Arc::new(changed),
        });
        self.blocks(messages, 0, out);
    }

    /// Blocks that go, several small ones in a message.
    fn migrated(&self, mesh: &Mesh, owners: &[u32], out: &mut Vec<Operation>) {
        let shape = self.settings.shape;
        let values = shape.n_vars * shape.interior_cells();
        let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for (&from, &to) in mesh.owners().iter().zip(owners) {
            if from != to {
                *pairs.entry((from, to)).or_default() += 1;
            }
        }
        let n_moved = pairs.values().sum::<usize>() as u64;
        let most = (MESSAGE_LEN / values).max(1);
        let mut messages = Vec::new();
        for ((from, to), n_blocks) in pairs {
            for first in (0..n_blocks).step_by(most) {
                let n = most.min(n_blocks - first);
                let bytes = 8 * (n * values) as u64;
                messages.push(Message { from, to, bytes });
            }
        }
        self.blocks(messages, n_moved, out);
    }

    fn blocks(&self, messages: Vec<Message>, moved_blocks: u64, out: &mut Vec<Operation>) {
        if !messages.is_empty() {
            let exchange = Exchange {
                moved_blocks,
                ..Exchange::new(Freight::Block, self.n_ranks, messages)
            };
            out.push(Operation::Exchange(Arc::new(exchange)));
        }
    }
}

/// What this rank counts is then what all ranks count, as the program checks where it checks.
fn of_one_rank(mesh: &Mesh) -> Mesh {
    let mut mesh = mesh.clone();
    mesh.place_on(vec![0; mesh.len()]);
    mesh
}

/// Sets of leaves that faces connect and one rank owns: the first rank's, and all.
fn n_groups(mesh: &Mesh) -> (usize, usize) {
    let owners = mesh.owners();
    let mut seen = vec![false; mesh.len()];
    let (mut of_first, mut of_all, mut open) = (0, 0, Vec::new());
    for start in 0..mesh.len() {
        if seen[start] {
            continue;
        }
        of_all += 1;
        of_first += usize::from(owners[start] == 0);
        seen[start] = true;
        open.push(start);
        while let Some(i) = open.pop() {
            for face in 0..FACES {
                let mut visit = |j: usize| {
                    if owners[j] == owners[i] && !std::mem::replace(&mut seen[j], true) {
                        open.push(j);
                    }
                };
                match mesh.neighbour(i, face) {
                    Neighbour::Boundary => {}
                    Neighbour::Same(j) | Neighbour::Coarser(j) => visit(j),
                    Neighbour::Finer(quad) => quad.into_iter().for_each(visit),
                }
            }
        }
    }
    (of_first, of_all)
}
