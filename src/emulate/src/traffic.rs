//! Who gives how many ghost values to whom: the program's own exchange plan, for all ranks at once.

use colltune_amr::exchange::Bundling;
use colltune_amr::exchange::face::{Crossing, Source};
use colltune_amr::exchange::plan::for_each_source;
use colltune_amr::leaf::FACES;
use colltune_amr::mesh::Mesh;
use colltune_amr::settings::{Settings, Work as Kernel};
use colltune_amr::telemetry::Kind;

/// Kinds of ghosts, in the order of [`Flow::values`].
const GHOSTS: [Kind; 3] = [Kind::GhostSame, Kind::GhostToFiner, Kind::GhostToCoarser];

/// One message of a sweep, for each variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub from: u32,
    pub to: u32,
    /// Values for neighbours of the same level, finer and coarser ones.
    pub values: [u64; 3],
}

impl Flow {
    pub fn n_values(&self) -> u64 {
        self.values.iter().sum()
    }

    /// Values that the sender reads to make these.
    pub fn n_read(&self, reads: u64) -> u64 {
        self.values[0] + self.values[1] + reads * self.values[2]
    }

    /// What telemetry calls the message.
    pub fn kind(&self) -> Kind {
        let mut kinds = GHOSTS.iter().zip(self.values).filter(|(_, n)| *n > 0);
        match (kinds.next(), kinds.next()) {
            (Some((&kind, _)), None) => kind,
            _ => Kind::GhostMixed,
        }
    }

    /// Values by kind.
    pub fn by_kind(&self) -> impl Iterator<Item = (Kind, u64)> {
        GHOSTS.into_iter().zip(self.values).filter(|(_, n)| *n > 0)
    }
}

/// What is exchanged before anything is waited for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// By sender, then by receiver.
    pub flows: Vec<Flow>,
    /// By rank: faces, or quarters of them, that it fills from its own blocks, and their values per variable.
    pub links: Vec<u64>,
    pub copied: Vec<u64>,
}

/// Numbers of variables that are exchanged together; a gas sends all of them.
pub fn groups(settings: &Settings) -> Vec<u64> {
    match settings.work {
        Kernel::Euler => vec![settings.shape.n_vars as u64],
        _ => settings
            .groups()
            .iter()
            .map(|group| group.len() as u64)
            .collect(),
    }
}

/// The sweep over `axes`; `len` says how many values fill a face from a source, none where nothing travels.
///
/// Cost: one pass over the leaves and their faces, and a sort of what crosses ranks.
pub fn sweep(
    mesh: &Mesh,
    n_ranks: usize,
    axes: &[usize],
    bundling: Bundling,
    len: impl Fn(usize, Source) -> usize,
) -> Sweep {
    let mut sweep = Sweep {
        flows: Vec::new(),
        links: vec![0; n_ranks],
        copied: vec![0; n_ranks],
    };
    let owners = mesh.owners();
    for (i, &to) in owners.iter().enumerate() {
        for face in (0..FACES).filter(|face| axes.contains(&(face / 2))) {
            let neighbour = mesh.neighbour(i, face);
            for_each_source(mesh, i, face, neighbour, |j, source| {
                let (from, n) = (owners[j], len(face, source) as u64);
                if from == to {
                    sweep.links[to as usize] += 1;
                    sweep.copied[to as usize] += n;
                } else if n > 0 {
                    let mut values = [0; 3];
                    values[place(source)] = n;
                    sweep.flows.push(Flow { from, to, values });
                }
            });
        }
    }
    sweep.flows.sort_by_key(|flow| (flow.from, flow.to));
    if bundling == Bundling::ByRank {
        sweep.flows.dedup_by(|next, first| {
            let same = (next.from, next.to) == (first.from, first.to);
            if same {
                let pairs = first.values.iter_mut().zip(next.values);
                pairs.for_each(|(sum, n)| *sum += n);
            }
            same
        });
    }
    sweep
}

fn place(source: Source) -> usize {
    match source {
        Source::Same => 0,
        Source::Coarser(_) => 1,
        Source::Finer(_) => 2,
    }
}

/// How many values of a finer block make one for a coarser neighbour on another rank.
pub fn reads(settings: &Settings) -> u64 {
    match (settings.work, settings.crossing()) {
        // The mean of eight cells.
        (Kernel::Euler, _) => 8,
        (_, Crossing::SummedBySender) => 4,
        (_, Crossing::SummedByReceiver) => 1,
    }
}

/// By leaf: how many of its faces, counted by quarters, have finer neighbours whose cells its rank sums: those on the same
/// rank, and all where receivers do.
pub fn finer_faces(settings: &Settings, mesh: &Mesh) -> Vec<f64> {
    use colltune_amr::mesh::Neighbour::Finer;
    let by_receiver = settings.crossing() == Crossing::SummedByReceiver;
    let owners = mesh.owners();
    let of = |i: usize| {
        let own = (0..FACES).map(|face| match mesh.neighbour(i, face) {
            Finer(quad) => {
                let summed = quad
                    .iter()
                    .filter(|&&j| by_receiver || owners[j] == owners[i]);
                summed.count()
            }
            _ => 0,
        });
        own.sum::<usize>() as f64 / 4.0
    };
    (0..mesh.len()).map(of).collect()
}

/// Where messages go: on one node, or to another, with their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Locality {
    pub same_rank: u64,
    pub same_node: u64,
    pub remote: u64,
    pub same_rank_bytes: u64,
    pub same_node_bytes: u64,
    pub remote_bytes: u64,
}

impl Locality {
    /// Counts a message between two ranks.
    pub fn send(&mut self, on_one_node: bool, bytes: u64) {
        match on_one_node {
            true => {
                self.same_node += 1;
                self.same_node_bytes += bytes;
            }
            false => {
                self.remote += 1;
                self.remote_bytes += bytes;
            }
        }
    }

    pub fn add(&mut self, other: &Locality) {
        self.same_rank += other.same_rank;
        self.same_node += other.same_node;
        self.remote += other.remote;
        self.same_rank_bytes += other.same_rank_bytes;
        self.same_node_bytes += other.same_node_bytes;
        self.remote_bytes += other.remote_bytes;
    }
}
