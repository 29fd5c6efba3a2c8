//! A step of Phoebus on blocks of 16^3 cells with four layers of ghosts and five variables: two stages, each an
//! exchange with up to 26 neighbours, its half of the computing, and fluxes from finer to coarser faces. Then the
//! flags of the next refinement are gathered and the length of the next step agreed on.
//!
//! Source: Jain et al. 2025, sections II-B and VI, and the decks of their artifact (amr-tools).

use std::sync::Arc;

use colltune_amr::telemetry::{Freight, Meeting};

use super::{Call, Exchange, Message, Operation, Phase};
use crate::mesh::shell::{Blocks, Contact};
use crate::traffic::Locality;

const CELLS: u64 = 16;
const LAYERS: u64 = 4;
const VALUE_BYTES: u64 = 5 * 8;

/// What a block gives a neighbour at a face, an edge and a corner.
pub const GHOST_BYTES: [u64; 3] = [
    CELLS * CELLS * LAYERS * VALUE_BYTES,
    CELLS * LAYERS * LAYERS * VALUE_BYTES,
    LAYERS * LAYERS * LAYERS * VALUE_BYTES,
];
/// The fluxes of a finer block's face, four of them summed to one.
const FLUX_BYTES: u64 = CELLS * CELLS / 4 * VALUE_BYTES;
/// A block that moves.
const BLOCK_BYTES: u64 = CELLS * CELLS * CELLS * VALUE_BYTES;

/// Who is beside whom, for one mesh.
#[derive(Clone, Debug)]
pub struct Neighbourhood {
    contacts: Vec<Contact>,
}

/// The exchanges of one placement.
#[derive(Clone, Debug)]
pub struct Exchanges {
    ghosts: Arc<Exchange>,
    fluxes: Arc<Exchange>,
    blocks_max: u64,
}

impl Neighbourhood {
    pub fn new(blocks: &Blocks) -> Neighbourhood {
        Neighbourhood {
            contacts: blocks.contacts(),
        }
    }

    /// Shape: an owner below `n_ranks` for each leaf.
    pub fn exchanges(&self, owners: &[u32], n_ranks: usize) -> Exchanges {
        let fluxes = |contact: &Contact| match (contact.axes, contact.to_coarser) {
            (1, true) => FLUX_BYTES,
            _ => 0,
        };
        let ghosts = |contact: &Contact| GHOST_BYTES[usize::from(contact.axes) - 1];
        let mut n_blocks = vec![0u64; n_ranks];
        for &owner in owners {
            n_blocks[owner as usize] += 1;
        }
        Exchanges {
            ghosts: Arc::new(self.exchange(Freight::Ghost, owners, n_ranks, ghosts)),
            fluxes: Arc::new(self.exchange(Freight::Flux, owners, n_ranks, fluxes)),
            blocks_max: n_blocks.into_iter().max().unwrap_or(0),
        }
    }

    /// One message for each contact between ranks, as the framework sends them; the others are copied.
    fn exchange(
        &self,
        freight: Freight,
        owners: &[u32],
        n_ranks: usize,
        bytes: impl Fn(&Contact) -> u64,
    ) -> Exchange {
        let mut messages = Vec::with_capacity(self.contacts.len());
        let (mut links, mut copied) = (vec![0; n_ranks], vec![0; n_ranks]);
        for contact in &self.contacts {
            let [from, to] = [contact.from, contact.to].map(|leaf| owners[leaf as usize]);
            let bytes = bytes(contact);
            if bytes == 0 {
                continue;
            }
            if from == to {
                links[to as usize] += 1;
                copied[to as usize] += bytes;
            } else {
                messages.push(Message { from, to, bytes });
            }
        }
        Exchange {
            links,
            copied_bytes: copied,
            ..Exchange::new(freight, n_ranks, messages)
        }
    }
}

impl Exchanges {
    /// A step in which each rank computes for so long.
    pub fn step(&self, compute_ns: &[f64]) -> Vec<Operation> {
        let half: Arc<Vec<f64>> = Arc::new(compute_ns.iter().map(|time| time / 2.0).collect());
        let stage = || {
            [
                Operation::Exchange(Arc::clone(&self.ghosts)),
                Operation::Work {
                    phase: Phase::Compute,
                    time_ns: Arc::clone(&half),
                },
                Operation::Exchange(Arc::clone(&self.fluxes)),
            ]
        };
        let call =
            |meeting, bytes| Operation::Collective(Call::of_all(meeting, bytes, compute_ns.len()));
        let flags = call(Meeting::Allgather, self.blocks_max);
        let length = call(Meeting::Allreduce, 8);
        stage()
            .into_iter()
            .chain(stage())
            .chain([flags, length])
            .collect()
    }

    /// Where the ghosts of one exchange go, with so many ranks on a node.
    pub fn locality(&self, ppn: u32) -> Locality {
        let mut to = Locality {
            same_rank: self.ghosts.links.iter().sum(),
            same_rank_bytes: self.ghosts.copied_bytes.iter().sum(),
            ..Locality::default()
        };
        for message in &self.ghosts.messages {
            to.send(message.from / ppn == message.to / ppn, message.bytes);
        }
        to
    }
}

/// The blocks that move from one placement to the next, each by itself; none where nothing moves.
pub fn migration(n_ranks: usize, moves: impl Iterator<Item = (u32, u32)>) -> Option<Arc<Exchange>> {
    let message = |(from, to)| Message {
        from,
        to,
        bytes: BLOCK_BYTES,
    };
    let messages: Vec<Message> = moves.filter(|(from, to)| from != to).map(message).collect();
    (!messages.is_empty()).then(|| {
        Arc::new(Exchange {
            moved_blocks: messages.len() as u64,
            ..Exchange::new(Freight::Block, n_ranks, messages)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::shell::Shell;

    #[test]
    fn a_block_gives_what_its_ghosts_need_and_fluxes_go_to_coarser_faces_alone() {
        assert_eq!(GHOST_BYTES, [40_960, 10_240, 2_560]);
        let shell = Shell {
            roots: [8; 3],
            half: [1.0; 3],
            inwards: 1.0,
            outwards: 3.0,
        };
        let blocks = shell.blocks(50.0);
        let owners: Vec<u32> = (0..512).collect();
        let alone = Neighbourhood::new(&blocks).exchanges(&owners, 512);
        let found = alone.locality(16);
        // One block a rank: nothing is copied, and a node of 16 ranks is a box of 4 x 2 x 2 blocks of the Z-order. Along
        // its axes 4 + 2 * 3 and 2 + 2 * 1 ordered pairs are equal or adjacent.
        assert_eq!(found.same_rank, 0);
        assert_eq!(found.same_node, 32 * (10 * 4 * 4 - 16));
        assert_eq!(found.same_node + found.remote, 26 * 512);
        assert!(alone.fluxes.messages.is_empty(), "no block is finer");
        let refined = shell.blocks(0.3);
        let owners = vec![0; refined.octants.len()];
        let whole = Neighbourhood::new(&refined).exchanges(&owners, 1);
        assert_eq!(whole.locality(16).remote + whole.locality(16).same_node, 0);
        let faces = whole.fluxes.links[0];
        assert!(faces > 0 && faces.is_multiple_of(4), "{faces}");
    }
}
