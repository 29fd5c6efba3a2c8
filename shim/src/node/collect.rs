//! Collectives that move blocks, in which the leaders of nodes exchange what their nodes have collected.
//!
//! Between leaders all blocks are as long as those of the node with the most ranks: so any allgather or alltoall
//! runs there, and short messages, for which this is, are little longer for it.

use std::ffi::c_int;

use colltune_core::catalogue::{Crossing, OnNodes};
use colltune_core::collective::Collective;
use colltune_core::node::act::Kind;

use super::phases::{Phases, or_give_up, phase};
use super::pieces::{Blocks, PhaseData};
use super::team::Team;
use crate::arguments::View;
use crate::p2p;

/// A leader holds what all ranks of its node have for all others: with wide nodes far more than a rank has memory.
const ROOM_MOST: u64 = 128 << 20;

/// How the blocks of one call lie on a leader, in bytes; each is `block` long. The ranks of a node need not follow
/// one another, so blocks change places on their way.
#[derive(Clone, Copy)]
pub struct CollectedLayout {
    collective: Collective,
    block: u64,
    /// Ranks of the communicator, of this node, and of the node with the most.
    n_ranks: u64,
    n_here: u64,
    widest: u64,
    n_nodes: u64,
    leads: bool,
}

impl CollectedLayout {
    /// Of a call in which blocks go over leaders.
    pub fn of(team: &Team, own: OnNodes, view: &View) -> Option<CollectedLayout> {
        let collects = matches!(own, OnNodes::Leaders(_)) && moves_blocks(view.collective);
        collects.then(|| CollectedLayout::new(team, view))
    }

    fn new(team: &Team, view: &View) -> CollectedLayout {
        CollectedLayout {
            collective: view.collective,
            block: view.block,
            n_ranks: team.node_of.len() as u64,
            n_here: team.n_here() as u64,
            widest: team.nodes.iter().map(Vec::len).max().unwrap_or(1) as u64,
            n_nodes: team.nodes.len() as u64,
            leads: team.place == 0,
        }
    }

    /// What a leader has for another, or for all others.
    pub fn between(&self) -> u64 {
        match self.collective {
            Collective::Allgather => self.block.saturating_mul(self.widest),
            _ => self
                .block
                .saturating_mul(self.widest)
                .saturating_mul(self.widest),
        }
    }

    /// The whole messages of all ranks here.
    fn collected(&self) -> u64 {
        let message = self.block.saturating_mul(self.n_ranks);
        message.saturating_mul(self.n_here)
    }

    /// The room that this rank needs: of an alltoall for what its node has collected, what it sends and what it
    /// receives.
    pub fn room(&self) -> u64 {
        let across = self.between().saturating_mul(self.n_nodes);
        match (self.leads, self.collective) {
            (false, _) => 0,
            (true, Collective::Allgather) => across,
            (true, _) => self.collected().saturating_add(across.saturating_mul(2)),
        }
    }

    /// Whether this rank may take that much room, and as much again: so much longer are the longest messages of a
    /// class. The library can count what goes between leaders, then.
    pub fn is_modest(&self) -> bool {
        self.room() <= ROOM_MOST
    }
}

/// Whether a collective moves a block of each rank to all others.
pub fn moves_blocks(collective: Collective) -> bool {
    matches!(collective, Collective::Allgather | Collective::Alltoall)
}

impl Phases<'_, '_> {
    /// Every node collects its blocks, the leaders exchange them, and every node gets all.
    pub(super) unsafe fn allgather_by_leaders(&mut self, crossing: Crossing) -> Result<(), c_int> {
        let layout = CollectedLayout::new(self.team, self.view);
        let (block, output) = (self.view.block as usize, self.places.output);
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them; the
        // output has a place for each block, and the spare room holds as many of each node as the widest has.
        unsafe {
            self.gather_here()?;
            if layout.leads {
                let (all, own) = (self.spare, self.team.node);
                let place_of = |node: usize, place: usize| {
                    let before = layout.between() as usize * node;
                    all.wrapping_add(before + place * block)
                };
                for (place, rank) in self.team.here.iter().enumerate() {
                    let from = output.wrapping_add(rank * block);
                    std::ptr::copy_nonoverlapping(from, place_of(own, place), block);
                }
                self.leaders_exchange(crossing, &layout, (None, all))?;
                for (node, ranks) in self.team.nodes.iter().enumerate() {
                    for (place, rank) in ranks.iter().enumerate().filter(|_| node != own) {
                        let to = output.wrapping_add(rank * block);
                        std::ptr::copy_nonoverlapping(place_of(node, place), to, block);
                    }
                }
            }
            let data = PhaseData {
                source: output,
                target: output,
                units: self.view.block * layout.n_ranks,
                blocks: Blocks::One,
            };
            let kind = Kind::Bcast { root: 0 };
            phase(&self.elements, &mut self.segment, kind, data, None)
        }
    }

    /// The leader of every node collects the messages of its ranks, the leaders exchange what is in them for each
    /// other's ranks, and every rank gets its own of it.
    pub(super) unsafe fn alltoall_by_leaders(&mut self, crossing: Crossing) -> Result<(), c_int> {
        let layout = CollectedLayout::new(self.team, self.view);
        let message = self.view.block * layout.n_ranks;
        let (input, output, collected) = (self.places.input, self.places.output, self.spare);
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies; either
        // buffer has a place for each block, and the spare room of a leader holds what the layout says.
        unsafe {
            let data = PhaseData {
                source: input,
                target: collected,
                units: message,
                blocks: Blocks::Collected,
            };
            let kind = Kind::Gather {
                root: 0,
                lanes: self.team.n_here(),
            };
            phase(&self.elements, &mut self.segment, kind, data, None)?;
            if layout.leads {
                std::ptr::copy_nonoverlapping(input, collected, message as usize);
                self.exchange_collected(crossing, &layout)?;
                std::ptr::copy_nonoverlapping(collected, output, message as usize);
            }
            let data = PhaseData {
                source: collected,
                target: output,
                units: message,
                blocks: Blocks::Exchanged(&self.team.places),
            };
            let kind = Kind::Exchange { givers: 1 };
            phase(&self.elements, &mut self.segment, kind, data, None)
        }
    }

    /// What is collected for each rank takes the place of what was collected of it.
    ///
    /// # Safety
    /// The spare room holds what the layout says.
    unsafe fn exchange_collected(
        &mut self,
        crossing: Crossing,
        layout: &CollectedLayout,
    ) -> Result<(), c_int> {
        let collected = self.spare;
        let sent = collected.wrapping_add(layout.collected() as usize);
        let received = sent.wrapping_add((layout.between() * layout.n_nodes) as usize);
        let (n_ranks, widest) = (layout.n_ranks as usize, layout.widest as usize);
        let block = layout.block as usize;
        // By the node at the other end, the place of the sender and that of the receiver.
        let across =
            |node: usize, from: usize, to: usize| ((node * widest + from) * widest + to) * block;
        // By the place of the rank here, and the rank at the other end.
        let here =
            |place: usize, rank: usize| collected.wrapping_add((place * n_ranks + rank) * block);
        for own in 0..self.team.n_here() {
            for (node, ranks) in self.team.nodes.iter().enumerate() {
                for (place, rank) in ranks.iter().enumerate() {
                    let to = sent.wrapping_add(across(node, own, place));
                    // SAFETY: the caller promises spare room as the layout says; the block lies in this node's part,
                    // and `to` in the part that is sent.
                    unsafe { std::ptr::copy_nonoverlapping(here(own, *rank), to, block) };
                }
            }
        }
        // SAFETY: the spare room holds all nodes' blocks as the layout says, as the caller promises.
        unsafe { self.leaders_exchange(crossing, layout, (Some(sent), received))? };
        for own in 0..self.team.n_here() {
            for (node, ranks) in self.team.nodes.iter().enumerate() {
                for (place, rank) in ranks.iter().enumerate() {
                    let from = received.wrapping_add(across(node, place, own));
                    // SAFETY: both places lie in the spare room as the layout says, which holds the block in two
                    // places that do not overlap.
                    unsafe { std::ptr::copy_nonoverlapping(from, here(own, *rank), block) };
                }
            }
        }
        Ok(())
    }

    /// Blocks come out of the first place, or lie in the second already. After an error the node knows that its
    /// leader cannot go on.
    ///
    /// # Safety
    /// The blocks of all nodes lie there, or have room.
    unsafe fn leaders_exchange(
        &mut self,
        crossing: Crossing,
        layout: &CollectedLayout,
        data: (Option<*mut u8>, *mut u8),
    ) -> Result<(), c_int> {
        let world = self.elements.world;
        let part = (self.team).part(self.view, layout.between(), data);
        let result = match crossing {
            Crossing::Schedule(between) => {
                let leaders = &self.team.leaders;
                p2p::run_among(world, self.schedules, leaders, between, &part, &mut ())
            }
            // SAFETY: the caller promises that the blocks of all nodes lie there, or have room.
            Crossing::Library => unsafe { self.bridges.run(world, &part) },
        };
        or_give_up(self.segment.as_deref(), result)
    }
}
