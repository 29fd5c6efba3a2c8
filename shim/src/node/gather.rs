//! An allgather in which the leaders of nodes exchange what their nodes have collected.

use std::ffi::{c_int, c_void};

use colltune_core::catalogue::Scheduled;
use colltune_core::collective::Collective;
use colltune_core::node::act::Kind;

use super::phases::{Phases, or_give_up, phase};
use super::pieces::{Blocks, Data};
use super::team::Team;
use crate::abi;
use crate::own::Call;
use crate::p2p::arguments::lists::Listed;
use crate::p2p::arguments::{Arguments, Held, Side};
use crate::p2p::{self, Group};
use crate::tune::Tuner;

impl Phases<'_, '_> {
    /// Every node collects its blocks, the leaders exchange them, and every node gets all.
    pub(super) unsafe fn allgather_by_leaders(&mut self, between: Scheduled) -> Result<(), c_int> {
        let (block, output) = (self.view.block, self.places.output);
        // SAFETY: the caller's promise is passed on; the output has a place for each block.
        unsafe {
            self.gather_here()?;
            if self.team.place == 0 {
                self.gather_across(between)?;
            }
            let data = Data {
                source: output,
                target: output,
                units: block * self.team.node_of.len() as u64,
                blocks: Blocks::One,
            };
            let kind = Kind::Bcast { root: 0 };
            phase(&self.elements, &mut self.segment, kind, data, None)
        }
    }

    /// The blocks of all other nodes, into the output, where the own node's are. The spare room holds all, each
    /// node's together: ranks of a node need not follow one another.
    unsafe fn gather_across(&mut self, between: Scheduled) -> Result<(), c_int> {
        let (block, output, spare) = (self.view.block, self.places.output, self.spare);
        let tuner = self.elements.tuner;
        let call = among_leaders(self.team, tuner, self.call, between, (block, spare));
        let blocks = self.team.nodes.iter().flatten().zip(0..);
        let places =
            blocks.map(|(rank, place)| (*rank, spare.wrapping_add(place * block as usize)));
        let here = |rank: &usize| self.team.node_of[*rank] == self.team.node;
        for (rank, place) in places.clone().filter(|(rank, _)| here(rank)) {
            let own = self.elements.at(output, rank as u64 * block);
            // SAFETY: there is a place for each block on either side.
            unsafe { std::ptr::copy_nonoverlapping(own, place, block as usize) };
        }
        let group = Group {
            rank: self.team.node,
            world_ranks: &self.team.leaders,
        };
        let result = p2p::run_among(tuner, self.p2p, group, &call, &mut ());
        // The arguments were looked at before.
        let result = result.unwrap_or(Err(abi::MPI_ERR_NO_MEM as c_int));
        or_give_up(self.segment.as_deref(), result)?;
        for (rank, place) in places.filter(|(rank, _)| !here(rank)) {
            let to = self.elements.at(output, rank as u64 * block);
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(place, to, block as usize) };
        }
        Ok(())
    }
}

/// What the leaders of nodes do together in an allgather: the blocks of each node, of so many bytes, lie one behind
/// another, and the nodes' one behind another at `all`.
pub fn among_leaders(
    team: &mut Team,
    tuner: &Tuner,
    call: &Call,
    between: Scheduled,
    (block, all): (u64, *mut u8),
) -> p2p::Call {
    let (counts, places) = team.list_blocks(block);
    let byte = tuner.handles.byte;
    let own = Side {
        start: abi::MPI_IN_PLACE as *mut c_void,
        count: 0,
        datatype: byte,
    };
    let listed = Listed {
        start: all.cast(),
        counts,
        places,
        datatype: byte,
    };
    p2p::Call {
        collective: Collective::Allgatherv,
        variant: call.variant,
        own: between,
        bytes: block.saturating_mul(team.node_of.len() as u64) / team.nodes.len() as u64,
        arguments: Arguments::Uneven {
            send: Held::One(own),
            recv: Held::Each(listed),
            root: 0,
        },
    }
}
