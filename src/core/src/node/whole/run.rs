//! Running the stages of all ranks, step by step.

use std::collections::VecDeque;

use super::across::{Origin, cross};
use super::leading::Leading;
use super::memory::{Buffers, Case, Found};
use super::messages::{Network, Posted};
use super::node::{Running, Shared};
use crate::catalogue::Crossing;
use crate::node::between::{message_bytes, messages, turns};
use crate::node::kind::Kind;
use crate::node::map::NodeMap;
use crate::node::phase::Phase;
use crate::node::stage::{At, Inside, OUTPUT, Stage, overlapping, stages};

/// Calls in a row: a rank begins the next when it is through, while others are in the one before.
pub const CALLS: u64 = 2;

/// One rank: its buffers, and what it has yet to do.
pub struct Rank<'a> {
    pub map: &'a NodeMap,
    pub left: VecDeque<Stage<'a>>,
    pub buffers: Buffers,
    inside: Option<Running<'a>>,
    /// Where it leads its node in a call whose stages go on at once.
    leading: Option<Leading<'a>>,
    /// The first ticket of this rank's next phase in its node's memory.
    ticket: u64,
    phases: usize,
    posted: Posted,
    /// What came out of the calls that are over.
    results: Vec<Origin>,
}

/// All simulated ranks of one communicator.
pub struct World<'c, 'a> {
    pub case: &'c Case<'c>,
    pub ranks: Vec<Rank<'a>>,
    nodes: Vec<Shared>,
    network: Network,
    change: &'c dyn Fn(usize, &mut VecDeque<Stage>),
}

/// Runs the stages of all ranks; for each rank what comes out of each call. `change` may change what a rank does.
pub fn run(case: &Case, change: &dyn Fn(usize, &mut VecDeque<Stage>)) -> Found<Vec<Vec<Origin>>> {
    let n = case.n_ranks();
    let maps: Vec<NodeMap> = (0..n)
        .map(|rank| NodeMap::new(case.nodes_of_ranks, rank).expect("a rank of it"))
        .collect();
    let ranks = maps.iter().map(|map| Rank {
        map,
        left: VecDeque::new(),
        buffers: Buffers::default(),
        inside: None,
        leading: None,
        ticket: 1,
        phases: 0,
        posted: Posted::default(),
        results: Vec::new(),
    });
    let nodes = maps[0].nodes.iter().map(|ranks| Shared::new(ranks.len()));
    let mut world = World {
        case,
        ranks: ranks.collect(),
        nodes: nodes.collect(),
        network: Network::default(),
        change,
    };
    for rank in 0..n {
        world.begin(rank, 0)?;
    }
    let mut draw = 0;
    while world.any_steps(&mut draw)? {}
    match world
        .ranks
        .iter()
        .position(|rank| (rank.results.len() as u64) < CALLS)
    {
        Some(rank) => Err(format!("rank {rank} waits for ever")),
        None => Ok(world.ranks.into_iter().map(|rank| rank.results).collect()),
    }
}

impl<'a> World<'_, 'a> {
    fn begin(&mut self, number: usize, call: u64) -> Found<()> {
        let rank = &mut self.ranks[number];
        rank.buffers = Buffers::new(self.case, rank.map, call);
        let call = self.case.call(number);
        if self.case.overlaps {
            let parts = overlapping(&call, rank.map);
            if let Some(across) = parts.across {
                let combining = self.phase(number, parts.combining)?;
                let giving = self.phase(number, parts.giving)?;
                let phases = (combining, giving);
                let rank = &mut self.ranks[number];
                rank.leading = Some(Leading::new(self.case, rank.map, across, phases));
                return Ok(());
            }
            let stages = [parts.combining, parts.giving].into_iter().flatten();
            rank.left.extend(stages.map(Stage::Inside));
        } else {
            let Ok(()) = stages(&call, rank.map, &mut |stage| {
                rank.left.push_back(stage);
                Ok::<(), std::convert::Infallible>(())
            });
        }
        (self.change)(number, &mut self.ranks[number].left);
        Ok(())
    }

    /// What a rank's next stage on its node is to it, with the next tickets; `None` where it is alone there.
    fn phase(&mut self, number: usize, inside: Option<Inside<'a>>) -> Found<Option<Running<'a>>> {
        let (case, rank) = (self.case, &mut self.ranks[number]);
        let (place, n_here) = (rank.map.place, rank.map.n_here());
        let Some(inside) = inside.filter(|_| n_here > 1) else {
            return Ok(None);
        };
        let who = (place, n_here);
        let mut phase = match inside.fits_a_line(case.unit_bytes) && !case.overlaps {
            true => Phase::in_one_piece(&inside, who),
            false => Phase::new(&inside, who, case.unit_bytes),
        };
        phase.holed = case.is_holed(number);
        phase.fixed_order = case.fixed_order.then(|| rank.map.lowest_place());
        if let (true, Some(Crossing::Schedule(between))) = (case.overlaps, case.own.crossing()) {
            let (map, pieces) = (rank.map, phase.cut.pieces);
            let (combined, comes) = turns(&between, map.node, map.nodes.len(), pieces);
            phase.turn = match inside.kind {
                Kind::Bcast { .. } => comes,
                _ => combined,
            };
        }
        if !self.nodes[rank.map.node].agrees(rank.phases, &phase) {
            return Err(format!("rank {number} does what others of its node do not"));
        }
        rank.phases += 1;
        let running = Running::new(inside, phase, rank.ticket);
        rank.ticket = running.next_ticket();
        Ok(Some(running))
    }

    /// Lets the first rank that can take a step; false where none can.
    fn any_steps(&mut self, draw: &mut u64) -> Found<bool> {
        for rank in self.case.order.ranks(self.ranks.len(), draw) {
            if self.steps(rank)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets a rank take a step, unless it waits or has come to its end; whether it did.
    fn steps(&mut self, number: usize) -> Found<bool> {
        let (case, rank) = (self.case, &mut self.ranks[number]);
        let (buffers, posted, network) = (&mut rank.buffers, &mut rank.posted, &mut self.network);
        if case.eager {
            network.deliver(posted, buffers)?;
        }
        let node = &mut self.nodes[rank.map.node];
        if let Some(leading) = &mut rank.leading {
            return match leading.step(node, buffers, network)? {
                Some(went_on) => Ok(went_on),
                None => {
                    rank.leading = None;
                    self.ends(number)
                }
            };
        }
        if let Some(inside) = &mut rank.inside {
            if inside.next().is_some() {
                return inside.step(node, buffers, |buffers, units| {
                    network.arrive(posted, buffers, units)
                });
            }
            rank.inside = None;
            rank.left.pop_front();
            return Ok(true);
        }
        let Some(&stage) = rank.left.front() else {
            return self.ends(number);
        };
        match stage {
            Stage::Inside(inside) => {
                // A rank that is alone on its node has no phase.
                if let Some(running) = self.phase(number, Some(inside))? {
                    self.ranks[number].inside = Some(running);
                    return Ok(true);
                }
            }
            Stage::Copy { from, to, units } => {
                let contents: Found<Vec<_>> =
                    (0..units).map(|unit| buffers.read(from, unit)).collect();
                if !buffers.is_same(from, to) {
                    for (unit, content) in (0..).zip(contents?) {
                        buffers.write(to, unit, content)?;
                    }
                }
            }
            Stage::Across(across) => return cross(self, number, across),
            Stage::Receive { blocks, from } => {
                for extent in extents(case, blocks, OUTPUT) {
                    network.receive(posted, buffers, (from, number), extent)?;
                }
            }
            Stage::Send { from, blocks, to } => {
                for extent in extents(case, blocks, from) {
                    network.send(posted, buffers, (number, to), extent)?;
                }
            }
            Stage::Finish => {
                if !network.finish(posted, buffers)? {
                    return Ok(false);
                }
            }
        }
        self.ranks[number].left.pop_front();
        Ok(true)
    }

    /// Ends a call; false behind the last one.
    fn ends(&mut self, number: usize) -> Found<bool> {
        let rank = &mut self.ranks[number];
        let ended = rank.results.len() as u64;
        if ended == CALLS {
            return Ok(false);
        }
        let output = std::mem::take(&mut rank.buffers).output;
        rank.results.push(output);
        if ended + 1 < CALLS {
            self.begin(number, ended + 1)?;
        }
        Ok(true)
    }
}

/// Where the messages lie that carry blocks.
fn extents(case: &Case, blocks: &[usize], base: At) -> impl Iterator<Item = (At, u64)> {
    let total = case.block * case.unit_bytes * case.n_ranks() as u64;
    let longest = (message_bytes(total) / case.unit_bytes).max(1);
    let all = messages(blocks, case.block, longest);
    all.map(move |extent| (base.behind(extent.at), extent.units))
}
