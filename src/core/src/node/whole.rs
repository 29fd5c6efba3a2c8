//! Whole collectives over the nodes: the stages of all ranks, the acts inside the nodes and the schedules between them,
//! run with symbolic contents and held against what the collective promises.
//!
//! A unit's content is the ordered list of the contributions that are combined in it. What a rank of a node does in a
//! piece is a model of what the shim does there; which units it touches, in which order, and which stages there are is
//! what the shim runs itself.

use std::collections::VecDeque;

use super::act::{Act, Kind, acts};
use super::blocks::{Blocks, Ends};
use super::collected::moves_blocks;
use super::layout::{Cut, slice};
use super::map::NodeMap;
use super::stage::{
    Across, Among, At, Buffer, Call, Inside, Stage, overlapping, spare_units, stages,
};
use crate::algorithm::plan::Plan;
use crate::algorithm::program::Program;
use crate::algorithm::registry::Scheduled;
use crate::algorithm::symbolic::{Delivery, Geometry, Memory, run as run_programs};
use crate::catalogue::{self, Crossing, OnNodes, Own};
use crate::collective::Collective;
use crate::library::{Library, Product};

/// Who contributed which unit of its input, in the order in which they are combined.
type Content = Vec<(usize, u64)>;
type Found<T> = Result<T, String>;

/// What is checked: a call, and the nodes of the communicator's ranks.
struct Case<'a> {
    nodes_of_ranks: &'a [u32],
    collective: Collective,
    own: OnNodes,
    block: u64,
    unit_bytes: u64,
    root: usize,
    in_place: bool,
    overlaps: bool,
    /// Whether the highest rank that can runs first.
    highest: bool,
}

impl Case<'_> {
    fn n_ranks(&self) -> usize {
        self.nodes_of_ranks.len()
    }

    /// Where the input lies in the output, in a call in place.
    fn within(&self, rank: usize) -> Option<u64> {
        let within = match self.collective {
            Collective::Reduce if rank != self.root => return None,
            Collective::Allgather => rank as u64 * self.block,
            _ => 0,
        };
        self.in_place.then_some(within)
    }

    fn call(&self, rank: usize) -> Call {
        Call {
            collective: self.collective,
            own: self.own,
            bytes: self.block * self.unit_bytes,
            block: self.block,
            root: self.root,
            in_place: self.within(rank) == Some(0),
        }
    }
}

/// One rank's memory, and what it has yet to do.
struct Rank<'a> {
    map: &'a NodeMap,
    left: VecDeque<Stage<'a>>,
    input: Vec<Option<Content>>,
    output: Vec<Option<Content>>,
    spare: Vec<Option<Content>>,
    within: Option<u64>,
}

impl Rank<'_> {
    fn place(&self, at: At, unit: u64) -> (&Vec<Option<Content>>, usize) {
        let unit = at.unit + unit;
        match (at.buffer, self.within) {
            (Buffer::Input, Some(within)) => (&self.output, (within + unit) as usize),
            (Buffer::Input, None) => (&self.input, unit as usize),
            (Buffer::Output, _) => (&self.output, unit as usize),
            (Buffer::Spare, _) => (&self.spare, unit as usize),
        }
    }

    fn read(&self, at: At, unit: u64) -> Found<Option<Content>> {
        let (memory, index) = self.place(at, unit);
        let content = memory.get(index);
        content
            .cloned()
            .ok_or_else(|| format!("unit {unit} behind {at:?} is read, outside of the buffer"))
    }

    /// What is there and defined.
    fn take(&self, at: At, unit: u64) -> Found<Content> {
        let content = self.read(at, unit)?;
        content.ok_or_else(|| format!("unit {unit} behind {at:?} is read before it is written"))
    }

    fn write(&mut self, at: At, unit: u64, content: Option<Content>) -> Found<()> {
        let index = (at.unit + unit) as usize;
        let cell = match (at.buffer, self.within) {
            (Buffer::Input, None) => return Err("the input is written".to_owned()),
            (Buffer::Input, Some(within)) => self.output.get_mut(within as usize + index),
            (Buffer::Output, _) => self.output.get_mut(index),
            (Buffer::Spare, _) => self.spare.get_mut(index),
        };
        let cell = cell.ok_or_else(|| format!("unit {unit} behind {at:?} is outside"))?;
        *cell = content;
        Ok(())
    }
}

/// The memory that the ranks of a node share: rings of two cells, so that every one is used again.
#[derive(Clone)]
struct Shared {
    first: u64,
    filled: Vec<u64>,
    combined: Vec<u64>,
    done: Vec<u64>,
    /// By place and cell: the ticket and the units of a piece.
    cells: Vec<[(u64, Vec<Option<Content>>); CELLS as usize]>,
}

const CELLS: u64 = 2;

impl Shared {
    fn new(n: usize) -> Shared {
        Shared {
            first: 1,
            filled: vec![0; n],
            combined: vec![0; n],
            done: vec![0; n],
            cells: vec![Default::default(); n],
        }
    }

    fn read(&self, place: usize, ticket: u64, unit: u64) -> Found<Content> {
        let (found, units) = &self.cells[place][(ticket % CELLS) as usize];
        if *found != ticket {
            return Err(format!("piece {ticket} of place {place} is {found}"));
        }
        let content = units.get(unit as usize).cloned().flatten();
        content.ok_or_else(|| format!("unit {unit} of piece {ticket} is read, and nobody gave it"))
    }
}

/// What the ranks of one node do together, each by its place.
struct Together<'t, 'a> {
    ranks: &'t mut [Rank<'a>],
    here: &'t [usize],
    insides: &'t [Inside<'a>],
    shared: &'t mut Shared,
    cut: Cut,
}

impl Together<'_, '_> {
    fn n(&self) -> usize {
        self.here.len()
    }

    fn ticket(&self, piece: u64) -> u64 {
        self.shared.first + piece
    }

    fn others(&self, own: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.here.len()).filter(move |place| *place != own)
    }

    fn has_room(&self, own: usize, piece: u64) -> bool {
        let ticket = self.ticket(piece);
        self.others(own)
            .all(|place| self.shared.done[place] + CELLS >= ticket)
    }

    /// Whether the sum comes where the own contribution lies.
    fn sums_in_place(&self, own: usize) -> bool {
        let (inside, rank) = (&self.insides[own], &self.ranks[self.here[own]]);
        let (source, target) = (rank.place(inside.source, 0), rank.place(inside.target, 0));
        std::ptr::eq(source.0, target.0) && source.1 == target.1
    }

    /// Whether it needs the own contribution elsewhere first.
    fn fills_to_fold(&self, own: usize) -> bool {
        let whole = matches!(self.insides[own].kind, Kind::ReduceWhole { .. });
        whole && own + 1 != self.n() && self.sums_in_place(own)
    }

    fn is_ready(&self, own: usize, act: Act) -> bool {
        let all = |flags: &[u64], piece| {
            let ticket = self.ticket(piece);
            self.others(own).all(|place| flags[place] >= ticket)
        };
        match act {
            Act::Fill { piece } => self.has_room(own, piece),
            Act::Take { piece, from } => self.shared.filled[from] >= self.ticket(piece),
            Act::Fold { piece } => {
                let has_room = !self.fills_to_fold(own) || self.has_room(own, piece);
                all(&self.shared.filled, piece) && has_room
            }
            Act::Combine { piece } => all(&self.shared.filled, piece),
            Act::Collect { piece } => all(&self.shared.combined, piece),
            Act::Done { .. } => true,
        }
    }

    fn perform(&mut self, own: usize, act: Act) -> Found<()> {
        match act {
            Act::Fill { piece } => {
                self.fill(own, piece)?;
                self.shared.filled[own] = self.ticket(piece);
            }
            Act::Take { piece, from } => self.take(own, piece, from)?,
            Act::Fold { piece } => self.fold(own, piece)?,
            Act::Combine { piece } => {
                self.combine(own, piece)?;
                self.shared.combined[own] = self.ticket(piece);
            }
            Act::Collect { piece } => {
                let (first, units) = self.cut.piece(piece);
                for place in 0..self.n() {
                    let (start, len) = slice(units, place, self.n());
                    for unit in start..start + len {
                        let content = self.shared.read(place, self.ticket(piece), unit)?;
                        self.write(own, first + unit, content)?;
                    }
                }
            }
            Act::Done { piece } => self.shared.done[own] = self.ticket(piece),
        }
        Ok(())
    }

    fn write(&mut self, own: usize, unit: u64, content: Content) -> Found<()> {
        let target = self.insides[own].target;
        self.ranks[self.here[own]].write(target, unit, Some(content))
    }

    fn fill(&mut self, own: usize, piece: u64) -> Found<()> {
        let inside = self.insides[own];
        let base = match inside.blocks {
            Blocks::Gathered(_) => inside.target,
            _ => inside.source,
        };
        let ticket = self.ticket(piece);
        let mut cell = Vec::new();
        for to in 0..inside.blocks.copies() {
            if to == own && matches!(inside.blocks, Blocks::Exchanged(_)) {
                continue;
            }
            let ends = Ends { from: own, to, own };
            let extent = self.cut.piece(piece);
            for stretch in inside.blocks.stretches(inside.units, extent, ends) {
                for unit in 0..stretch.units {
                    let content = self.ranks[self.here[own]].take(base, stretch.unit + unit)?;
                    let at = (stretch.in_cell + unit) as usize;
                    cell.resize(cell.len().max(at + 1), None);
                    cell[at] = Some(content);
                }
            }
        }
        self.shared.cells[own][(ticket % CELLS) as usize] = (ticket, cell);
        Ok(())
    }

    fn take(&mut self, own: usize, piece: u64, from: usize) -> Found<()> {
        let inside = self.insides[own];
        let (to, ticket) = (own, self.ticket(piece));
        let extent = self.cut.piece(piece);
        for stretch in inside
            .blocks
            .stretches(inside.units, extent, Ends { from, to, own })
        {
            for unit in 0..stretch.units {
                let content = self.shared.read(from, ticket, stretch.in_cell + unit)?;
                self.write(own, stretch.unit + unit, content)?;
            }
        }
        Ok(())
    }

    fn fold(&mut self, own: usize, piece: u64) -> Found<()> {
        let (inside, n) = (self.insides[own], self.n());
        let (to, from, ticket) = (own, own, self.ticket(piece));
        let extent = self.cut.piece(piece);
        let mut stretches = inside
            .blocks
            .stretches(inside.units, extent, Ends { from, to, own });
        let Some(stretch) = stretches.next() else {
            return Ok(());
        };
        let in_place = self.sums_in_place(own);
        if self.fills_to_fold(own) {
            self.fill(own, piece)?;
        }
        for unit in 0..stretch.units {
            let mut sum = Content::new();
            for place in 0..n {
                let given = match place == own && (!in_place || own + 1 == n) {
                    true => self.ranks[self.here[own]].take(inside.source, stretch.unit + unit)?,
                    false => self.shared.read(place, ticket, stretch.in_cell + unit)?,
                };
                sum.extend(given);
            }
            self.write(own, stretch.unit + unit, sum)?;
        }
        Ok(())
    }

    fn combine(&mut self, own: usize, piece: u64) -> Found<()> {
        let (_, units) = self.cut.piece(piece);
        let (start, len) = slice(units, own, self.n());
        let ticket = self.ticket(piece);
        for unit in start..start + len {
            let given = (0..self.n()).map(|place| self.shared.read(place, ticket, unit));
            let sum = given.collect::<Found<Vec<_>>>()?.concat();
            self.shared.cells[own][(ticket % CELLS) as usize].1[unit as usize] = Some(sum);
        }
        Ok(())
    }

    fn run(&mut self, highest: bool) -> Found<()> {
        let n = self.n();
        let mut left: Vec<VecDeque<Act>> = (0..n)
            .map(|place| {
                let mut all = VecDeque::new();
                let note = |act| {
                    all.push_back(act);
                    Ok::<(), std::convert::Infallible>(())
                };
                let Ok(()) = acts(self.insides[place].kind, place, n, self.cut.pieces, note);
                all
            })
            .collect();
        while left.iter().any(|acts| !acts.is_empty()) {
            let can = |place: &usize| {
                let act = left[*place].front();
                act.is_some_and(|act| self.is_ready(*place, *act))
            };
            let next = match highest {
                true => (0..n).rev().find(can),
                false => (0..n).find(can),
            };
            let place = next.ok_or("all ranks of a node wait")?;
            let act = left[place].pop_front().expect("one that can run");
            self.perform(place, act)?;
        }
        self.shared.first += self.cut.pieces;
        Ok(())
    }
}

/// For each unit of a member's result which units of whose contribution it is; `None` where it is no result.
type Origin = Vec<Option<Content>>;

/// What the members of a collective get, by what it promises.
fn promised(collective: Collective, n: usize, root: usize, units: u64) -> Vec<Origin> {
    let blocks = match collective {
        Collective::Allgather | Collective::Alltoall => n as u64,
        _ => 1,
    };
    let origin = |member: usize, unit: u64| -> Option<Content> {
        match collective {
            Collective::Allreduce => Some((0..n).map(|from| (from, unit)).collect()),
            Collective::Reduce => (member == root).then(|| (0..n).map(|f| (f, unit)).collect()),
            Collective::Bcast => Some(vec![(root, unit)]),
            Collective::Allgather => Some(vec![((unit / units) as usize, unit % units)]),
            _ => {
                let own = member as u64 * units + unit % units;
                Some(vec![((unit / units) as usize, own)])
            }
        }
    };
    (0..n)
        .map(|member| {
            (0..blocks * units)
                .map(|unit| origin(member, unit))
                .collect()
        })
        .collect()
}

/// What they get of a schedule.
fn scheduled(
    schedule: Scheduled,
    (n, root): (usize, usize),
    (units, unit_bytes): (u64, u64),
) -> Found<Vec<Origin>> {
    let row = schedule.row();
    let n_blocks = row.pattern.blocks(n);
    let programs: Vec<Program> = (0..n)
        .map(|rank| {
            let case = row.case(rank, n, root, schedule.values, units * unit_bytes);
            Program::new(&Plan::new((row.schedule)(case)), n_blocks)
        })
        .collect();
    let blocks = vec![units; n_blocks];
    let geometry = Geometry {
        pattern: row.pattern,
        n_ranks: n,
        root,
        parts_per_block: programs[0].parts_per_block as usize,
        blocks: &blocks,
        memory: Memory::Separate,
    };
    let world = run_programs(&programs, geometry, Delivery::Alternating)
        .map_err(|fault| format!("{}: {fault:?}", row.name))?;
    let starts: Vec<u64> = (0..geometry.total_chunks())
        .scan(0, |start, chunk| {
            let this = *start;
            *start += geometry.len(chunk);
            Some(this)
        })
        .collect();
    let own_block = row.pattern == crate::algorithm::pattern::Pattern::Allgather;
    let of_member = |member: usize| {
        let output = world.output(member);
        let mut origin = Origin::new();
        for (chunk, content) in output.iter().enumerate() {
            for unit in 0..geometry.len(chunk) {
                let from = content.as_ref().map(|content| {
                    let at = |from: usize| match own_block {
                        true => starts[content.chunk] - from as u64 * units,
                        false => starts[content.chunk],
                    };
                    let from = content.from.iter().map(|from| usize::from(*from));
                    from.map(|from| (from, at(from) + unit)).collect()
                });
                origin.push(from);
            }
        }
        origin
    };
    Ok((0..n).map(of_member).collect())
}

/// Runs the stages of all ranks. `change` may change what a rank does.
fn run(case: &Case, change: &dyn Fn(usize, &mut VecDeque<Stage>)) -> Found<Vec<Origin>> {
    let n = case.n_ranks();
    let maps: Vec<NodeMap> = (0..n)
        .map(|rank| NodeMap::new(case.nodes_of_ranks, rank).expect("a rank of it"))
        .collect();
    let (sent, received) = match case.collective {
        Collective::Allgather => (1, n as u64),
        Collective::Alltoall => (n as u64, n as u64),
        _ => (1, 1),
    };
    let mut ranks: Vec<Rank> = (0..n)
        .map(|rank| {
            let call = case.call(rank);
            let mut left = VecDeque::new();
            let mut note = |stage| {
                left.push_back(stage);
                Ok::<(), std::convert::Infallible>(())
            };
            if case.overlaps {
                let parts = overlapping(&call, &maps[rank]);
                let stages = [
                    parts.combining.map(Stage::Inside),
                    parts.across.map(Stage::Across),
                    parts.giving.map(Stage::Inside),
                ];
                left.extend(stages.into_iter().flatten());
            } else {
                let Ok(()) = stages(&call, &maps[rank], &mut note);
            }
            change(rank, &mut left);
            let spare = spare_units(&call, &maps[rank]) as usize;
            let mut made = Rank {
                map: &maps[rank],
                left,
                input: vec![None; (sent * case.block) as usize],
                output: vec![None; (received * case.block) as usize],
                spare: vec![None; spare],
                within: case.within(rank),
            };
            let bcast = case.collective == Collective::Bcast;
            for unit in 0..sent * case.block {
                let content = Some(vec![(rank, unit)]);
                match (bcast, made.within) {
                    (true, _) if rank != case.root => {}
                    (true, _) => made.output[unit as usize] = content,
                    (false, Some(within)) => made.output[(within + unit) as usize] = content,
                    (false, None) => made.input[unit as usize] = content,
                }
            }
            made
        })
        .collect();
    let mut shared: Vec<Shared> = maps[0]
        .nodes
        .iter()
        .map(|ranks| Shared::new(ranks.len()))
        .collect();
    loop {
        let copied = copies(&mut ranks)?;
        let inside = insides(case, &mut ranks, &mut shared)?;
        let across = acrosses(case, &mut ranks)?;
        if !(copied || inside || across) {
            break;
        }
    }
    match ranks.iter().position(|rank| !rank.left.is_empty()) {
        Some(rank) => Err(format!("rank {rank} waits for ever")),
        None => Ok(ranks.into_iter().map(|rank| rank.output).collect()),
    }
}

fn copies(ranks: &mut [Rank]) -> Found<bool> {
    let mut any = false;
    for rank in ranks {
        while let Some(&Stage::Copy { from, to, units }) = rank.left.front() {
            let contents: Found<Vec<_>> = (0..units).map(|unit| rank.read(from, unit)).collect();
            for (unit, content) in (0..).zip(contents?) {
                if rank.read(to, unit)? != content {
                    rank.write(to, unit, content)?;
                }
            }
            rank.left.pop_front();
            any = true;
        }
    }
    Ok(any)
}

fn insides(case: &Case, ranks: &mut [Rank], shared: &mut [Shared]) -> Found<bool> {
    let mut any = false;
    for (node, shared) in shared.iter_mut().enumerate() {
        let here = &ranks[0].map.nodes[node];
        let next = here.iter().map(|rank| match ranks[*rank].left.front() {
            Some(Stage::Inside(inside)) => Some(*inside),
            _ => None,
        });
        let Some(insides) = next.collect::<Option<Vec<_>>>() else {
            continue;
        };
        let cut = insides[0].blocks.cut(insides[0].units, case.unit_bytes);
        let alike = |inside: &Inside| {
            let own = inside.blocks.cut(inside.units, case.unit_bytes);
            inside.kind == insides[0].kind && own == cut
        };
        if !insides.iter().all(alike) {
            return Err(format!("the ranks of node {node} do different things"));
        }
        // A rank that is alone on its node has nobody to do anything with.
        if here.len() > 1 {
            let mut together = Together {
                here,
                ranks,
                insides: &insides,
                shared,
                cut,
            };
            together.run(case.highest)?;
        }
        for rank in here {
            ranks[*rank].left.pop_front();
        }
        any = true;
    }
    Ok(any)
}

fn acrosses(case: &Case, ranks: &mut [Rank]) -> Found<bool> {
    let mut any = false;
    for rank in 0..ranks.len() {
        let Some(Stage::Across(mine)) = ranks[rank].left.front().copied() else {
            continue;
        };
        let map = ranks[rank].map;
        let root = map.node_of[case.root];
        let members: Vec<usize> = match mine.among {
            Among::Lane => map.lane(map.place).collect(),
            Among::Leaders => {
                let mut leaders: Vec<usize> = map.nodes.iter().map(|ranks| ranks[0]).collect();
                leaders[root] = case.root;
                leaders
            }
        };
        if !members.contains(&rank) {
            return Err(format!("rank {rank} is none of {members:?}"));
        }
        let parts = members
            .iter()
            .map(|member| match ranks[*member].left.front() {
                Some(Stage::Across(part)) if part.among == mine.among => Some(*part),
                _ => None,
            });
        let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
            continue;
        };
        if parts.iter().any(|part| part.units != mine.units) {
            return Err(format!("messages of different length among {members:?}"));
        }
        cross(case, ranks, (&members, &parts), root)?;
        any = true;
    }
    Ok(any)
}

/// Runs a collective among some ranks.
fn cross(
    case: &Case,
    ranks: &mut [Rank],
    (members, parts): (&[usize], &[Across]),
    root: usize,
) -> Found<()> {
    let (n, units) = (members.len(), parts[0].units);
    let origins = match case.own.crossing() {
        Some(Crossing::Schedule(schedule)) => {
            scheduled(schedule, (n, root), (units, case.unit_bytes))?
        }
        _ => promised(case.collective, n, root, units),
    };
    let given = |member: usize| {
        let part = parts[member];
        part.given.unwrap_or(match case.collective {
            Collective::Allgather => At {
                unit: part.result.unit + member as u64 * units,
                ..part.result
            },
            _ => part.result,
        })
    };
    let mut results = Vec::new();
    for origin in &origins {
        let result = origin.iter().map(|unit| {
            let Some(unit) = unit else { return Ok(None) };
            let all = unit.iter().map(|(member, unit)| {
                // A leader's message may have holes, where other nodes have more ranks.
                match case.collective {
                    Collective::Allgather | Collective::Alltoall => {
                        ranks[members[*member]].read(given(*member), *unit)
                    }
                    _ => ranks[members[*member]]
                        .take(given(*member), *unit)
                        .map(Some),
                }
            });
            let all = all.collect::<Found<Option<Vec<_>>>>()?;
            Ok(all.map(|contents| contents.concat()))
        });
        results.push(result.collect::<Found<Vec<_>>>()?);
    }
    for (member, result) in results.into_iter().enumerate() {
        let rank = &mut ranks[members[member]];
        for (unit, content) in (0..).zip(result) {
            // What a rank gets nothing of it leaves alone.
            if case.collective == Collective::Reduce && member != root {
                continue;
            }
            rank.write(parts[member].result, unit, content)?;
        }
        rank.left.pop_front();
    }
    Ok(())
}

/// Runs a case, and says what is wrong in the end.
fn check(case: &Case, change: &dyn Fn(usize, &mut VecDeque<Stage>)) -> Found<()> {
    let found = run(case, change)?;
    let wanted = promised(case.collective, case.n_ranks(), case.root, case.block);
    for (rank, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        for (unit, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let Some(wanted) = wanted else { continue };
            let mut found = found.clone().unwrap_or_default();
            // On one node operands keep their order; between nodes they need not.
            if !matches!(case.own, OnNodes::Alone) {
                found.sort_unstable();
            }
            if found != *wanted {
                return Err(format!("rank {rank} has {found:?} in unit {unit}"));
            }
        }
    }
    Ok(())
}

/// The variants of family `node` that run in stages, of any library.
fn variants(collective: Collective) -> Vec<(String, OnNodes)> {
    let library = Library {
        product: Product::OpenMpi,
        version: (4, 1, 4),
    };
    let all = catalogue::variants(library, collective).into_iter();
    let own = all.filter_map(|variant| match variant.own {
        Some(Own::Node(own)) => Some((variant.name.to_string(), own)),
        _ => None,
    });
    own.filter(|(_, own)| {
        matches!(
            own,
            OnNodes::Alone | OnNodes::Leaders(_) | OnNodes::Lanes(_)
        )
    })
    .collect()
}

const COLLECTIVES: [Collective; 5] = [
    Collective::Allreduce,
    Collective::Bcast,
    Collective::Reduce,
    Collective::Allgather,
    Collective::Alltoall,
];

/// Nodes of one size and of several, of one rank, and ranks that go round the nodes.
const ONE_NODE: [&[u32]; 4] = [&[0, 0], &[0, 0, 0], &[0; 5], &[0; 8]];
const NODES: [&[u32]; 6] = [
    &[0, 0, 1, 1],
    &[0, 1, 2, 0, 1, 2, 0, 1],
    &[7, 3, 3, 3, 7, 5],
    &[0, 0, 0, 0, 1],
    &[2, 1, 0, 1, 2, 2, 0, 0, 1, 3],
    &[0, 0, 0, 1, 1, 1, 1],
];

/// Those that run on several nodes, on so many.
fn hierarchical(collective: Collective, n_nodes: usize) -> Vec<(String, OnNodes)> {
    let fits = |own: &OnNodes| match own.crossing() {
        Some(Crossing::Schedule(schedule)) => schedule.row().fits(n_nodes),
        Some(Crossing::Library) => true,
        None => false,
    };
    let all = variants(collective).into_iter();
    all.filter(|(_, own)| fits(own)).collect()
}

/// Hands over the cases of a variant.
fn each(collective: Collective, own: OnNodes, visit: &mut dyn FnMut(&Case)) {
    let rooted = matches!(collective, Collective::Bcast | Collective::Reduce);
    let layouts: &[&[u32]] = match own {
        OnNodes::Alone => &ONE_NODE,
        _ => &NODES,
    };
    let crossing = own.crossing().and_then(|crossing| match crossing {
        Crossing::Schedule(schedule) => Some(schedule),
        Crossing::Library => None,
    });
    let overlapping = crossing.is_some() && !moves_blocks(collective);
    let overlapping = overlapping && matches!(own, OnNodes::Leaders(_));
    for nodes_of_ranks in layouts {
        let map = NodeMap::new(nodes_of_ranks, 0).expect("a rank of it");
        let n_nodes = map.nodes.len();
        if crossing.is_some_and(|schedule| !schedule.row().fits(n_nodes)) {
            continue;
        }
        let roots = if rooted { nodes_of_ranks.len() } else { 1 };
        // One unit, fewer than lanes, a few, and messages of several pieces.
        for (block, unit_bytes) in [(1, 8), (3, 8), (13, 8), (11, 6 << 10), (9, 12 << 10)] {
            for root in 0..roots {
                for bits in 0..8 {
                    let [in_place, overlaps, highest] = [1, 2, 4].map(|bit| bits & bit > 0);
                    let is_bcast = collective == Collective::Bcast;
                    if in_place && is_bcast || overlaps && !overlapping {
                        continue;
                    }
                    visit(&Case {
                        nodes_of_ranks,
                        collective,
                        own,
                        block,
                        unit_bytes,
                        root,
                        in_place,
                        overlaps,
                        highest,
                    });
                }
            }
        }
    }
}

#[test]
fn every_variant_over_the_nodes_does_what_its_collective_promises() {
    for collective in COLLECTIVES {
        let all = variants(collective);
        assert!(all.len() > 1, "{collective} has {} variants", all.len());
        for (name, own) in all {
            let mut cases = 0;
            each(collective, own, &mut |case| {
                cases += 1;
                let found = check(case, &|_, _| {});
                found.unwrap_or_else(|wrong| {
                    panic!(
                        "{collective} by {name}: {wrong}: nodes {:?}, {} units of {} bytes, root {}, in place {}, \
                         overlapping {}, highest first {}",
                        case.nodes_of_ranks,
                        case.block,
                        case.unit_bytes,
                        case.root,
                        case.in_place,
                        case.overlaps,
                        case.highest,
                    )
                });
            });
            assert!(cases > 10, "{collective} by {name}: {cases} cases");
        }
    }
}

/// Whether a stage does nothing, so that nobody misses it.
fn is_idle(rank: usize, nodes_of_ranks: &[u32], stage: &Stage, collective: Collective) -> bool {
    let here = nodes_of_ranks
        .iter()
        .filter(|node| **node == nodes_of_ranks[rank]);
    match stage {
        Stage::Inside(_) => here.count() == 1,
        // A leader's blocks of ranks that are not there, and its own, which it does not need.
        Stage::Copy { .. } => moves_blocks(collective),
        Stage::Across(_) => false,
    }
}

#[test]
fn a_stage_that_one_rank_leaves_out_is_found_out() {
    let nodes_of_ranks: &[u32] = &[0, 0, 0, 1, 1, 2];
    for collective in COLLECTIVES {
        for (name, own) in hierarchical(collective, 3) {
            let case = Case {
                nodes_of_ranks,
                collective,
                own,
                block: 5,
                unit_bytes: 8,
                root: 4,
                in_place: false,
                overlaps: false,
                highest: false,
            };
            for rank in 0..nodes_of_ranks.len() {
                for skipped in 0.. {
                    let (seen, idle) = (std::cell::Cell::new(false), std::cell::Cell::new(true));
                    let result = check(&case, &|of, stages| {
                        if of == rank && skipped < stages.len() {
                            let stage = stages.remove(skipped).expect("it is there");
                            seen.set(true);
                            idle.set(is_idle(rank, nodes_of_ranks, &stage, collective));
                        }
                    });
                    if !seen.get() {
                        break;
                    }
                    assert!(
                        idle.get() || result.is_err(),
                        "{collective} by {name}: rank {rank} without its stage {skipped}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_result_in_another_place_is_found_out() {
    let nodes_of_ranks: &[u32] = &[0, 0, 1, 1, 1];
    for collective in COLLECTIVES {
        for (name, own) in hierarchical(collective, 2) {
            let case = Case {
                nodes_of_ranks,
                collective,
                own,
                block: 6,
                unit_bytes: 8,
                root: 0,
                in_place: false,
                overlaps: false,
                highest: true,
            };
            let result = check(&case, &|_, stages| {
                for stage in stages {
                    if let Stage::Across(across) = stage {
                        across.result.unit += 1;
                    }
                }
            });
            assert!(result.is_err(), "{collective} by {name}");
        }
    }
}
