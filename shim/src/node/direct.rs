//! Blocks that go straight to the ranks of other nodes that want them, and on through their memory.

use std::ffi::c_int;

use colltune_core::catalogue::{Carriers, OnNodes};
use colltune_core::node::act::Kind;
use colltune_core::node::between::receiver;
use colltune_core::node::blocks::Blocks;

use super::phases::{Phases, or_give_up, phase};
use super::pieces::PhaseData;
use super::transfers::Transfers;
use crate::abi;

impl<'a, 'b> Phases<'a, 'b> {
    /// The messages of this call, none yet; `total` is the length of all ranks' blocks.
    fn transfers<'t>(&mut self, total: u64) -> Result<Transfers<'t>, c_int>
    where
        'a: 't,
        'b: 't,
    {
        let Some((endpoint, requests, before)) = self.between.take() else {
            return Err(abi::MPI_ERR_NO_MEM as c_int);
        };
        let lengths = (self.view.block, total);
        Ok(Transfers::new(endpoint, lengths, (requests, before)))
    }

    /// Blocks of the own node are given to all there; those of the others come to their carriers,
    /// who give them on as they come.
    pub(super) unsafe fn allgather_direct(&mut self, carriers: Carriers) -> Result<(), c_int> {
        let (block, output) = (self.view.block, self.places.output);
        let total = block * self.team.map.node_of.len() as u64;
        let transfers = self.transfers(total);
        let mut transfers = or_give_up(self.segment.as_deref(), transfers)?;
        // SAFETY: the output has a place for each block, and is the call's until its end.
        unsafe {
            self.post_receives(&mut transfers, carriers);
            if carriers == Carriers::Each {
                // What is sent need not have been given to the node before.
                let rank = self.team.map.here()[self.team.map.place];
                let own = self.elements.at(output, rank as u64 * block);
                std::ptr::copy(self.places.input, own, block as usize);
                self.post_sends(&mut transfers, carriers);
            }
            let mut result = self.in_stages(OnNodes::Alone);
            if carriers == Carriers::Leader {
                self.post_sends(&mut transfers, carriers);
            }
            let streams = self.team.streams(carriers);
            let data = PhaseData {
                source: output,
                target: output,
                units: block,
                blocks: Blocks::Gathered(streams),
            };
            let givers = match carriers {
                Carriers::Leader => 1,
                Carriers::Each => self.team.n_here(),
            };
            let kind = Kind::Exchange { givers };
            let arriving = Some(&mut transfers);
            let given = phase(&self.elements, &mut self.segment, kind, data, arriving);
            result = result.and(given);
            result.and(or_give_up(self.segment.as_deref(), transfers.finish()))
        }
    }

    /// Receives, in the order in which this rank gives them to its node, the blocks of other nodes.
    unsafe fn post_receives(&self, transfers: &mut Transfers, carriers: Carriers) {
        let (team, output) = (&self.team, self.places.output);
        let blocks = &team.streams(carriers)[team.map.place];
        for of_node in blocks.chunk_by(|a, b| team.map.node_of[*a] == team.map.node_of[*b]) {
            // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them, so
            // the output has room for all blocks; it is left alone until `finish`.
            unsafe {
                match carriers {
                    Carriers::Leader => {
                        let from = team.reach.leaders[team.map.node_of[of_node[0]]];
                        transfers.receive(output, of_node, from);
                    }
                    Carriers::Each => {
                        for block in of_node.chunks(1) {
                            let from = team.reach.world_ranks[block[0]];
                            transfers.receive(output, block, from);
                        }
                    }
                }
            }
        }
    }

    /// Sends what this rank carries to every other node, the one below first.
    unsafe fn post_sends(&self, transfers: &mut Transfers, carriers: Carriers) {
        let (team, output) = (&self.team, self.places.output);
        let (n_nodes, place) = (team.map.nodes.len(), team.map.place);
        let blocks = match carriers {
            Carriers::Leader if place > 0 => return,
            Carriers::Leader => team.map.here(),
            Carriers::Each => &team.map.here()[place..=place],
        };
        for step in 1..n_nodes {
            let to = &team.map.nodes[(team.map.node + n_nodes - step) % n_nodes];
            let to = team.reach.world_ranks[to[receiver(carriers, place, to.len())]];
            // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them, so
            // the output holds this node's blocks; they are not written until `finish`.
            unsafe { transfers.send(output, blocks, to) };
        }
    }

    /// Blocks for other nodes go to their ranks, those for the own node through its memory.
    pub(super) unsafe fn alltoall_direct(&mut self) -> Result<(), c_int> {
        let (block, output) = (self.view.block, self.places.output);
        let total = block * self.team.map.node_of.len() as u64;
        let transfers = self.transfers(total);
        let mut transfers = or_give_up(self.segment.as_deref(), transfers)?;
        // SAFETY: both buffers have a place for each block, and are the call's until its end; the spare
        // room is as long as they are.
        unsafe {
            if self.view.is_in_place() {
                std::ptr::copy_nonoverlapping(self.places.input, self.spare, total as usize);
                self.places.input = self.spare;
            }
            let input = self.places.input;
            let (team, n_nodes) = (&self.team, self.team.map.nodes.len());
            for step in 1..n_nodes {
                for rank in team.map.nodes[(team.map.node + step) % n_nodes].chunks(1) {
                    transfers.receive(output, rank, team.reach.world_ranks[rank[0]]);
                }
            }
            for step in 1..n_nodes {
                let node = &team.map.nodes[(team.map.node + n_nodes - step) % n_nodes];
                // Not all ranks of the node begin with the same one.
                for turn in 0..node.len() {
                    let at = (turn + team.map.place) % node.len();
                    let rank = &node[at..=at];
                    transfers.send(input, rank, team.reach.world_ranks[rank[0]]);
                }
            }
            let result = self.in_stages(OnNodes::Alone);
            result.and(or_give_up(self.segment.as_deref(), transfers.finish()))
        }
    }
}
