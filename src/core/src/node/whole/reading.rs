//! Collectives on one node whose ranks read each other's buffers: their steps, run with symbolic contents.

use std::collections::VecDeque;

use super::across::Origin;
use super::memory::{Buffers, Case, Content, Found, Order};
use super::run::CALLS;
use super::{COLLECTIVES, ONE_NODE, compare};
use crate::algorithm::schedule;
use crate::algorithm::symbolic::Sum;
use crate::catalogue::OnNodes;
use crate::collective::Collective;
use crate::node::between::by_reading;
use crate::node::map::NodeMap;
use crate::node::single_copy::{Lent, Part, ReadStep, SingleCopy};
use crate::node::stage::{At, Buffer, OUTPUT};

/// What is changed of the steps that a rank takes in a call.
type Change<'a> = &'a dyn Fn(usize, u64, &mut VecDeque<ReadStep>);

/// One rank, and what it has yet to do in its call.
struct Rank {
    left: VecDeque<ReadStep>,
    buffers: Buffers,
    room: [Vec<Option<Content>>; 2],
    /// Calls for which it has lent its buffers, and for which it is done with those of others.
    lent: u64,
    returned: u64,
    /// Agreements to which it has come, whether it waits in the last, and what it brought there.
    met: usize,
    waits: bool,
    brought: Vec<bool>,
    is_readable: bool,
    has_failed: bool,
    /// Whether the ranks have agreed in this call that all can read.
    agreed: bool,
    /// What came out of the calls that are over; `None` where it stopped.
    results: Vec<Option<Origin>>,
}

/// The ranks of a node, and which of them cannot read.
struct Node<'a> {
    case: &'a Case<'a>,
    maps: Vec<NodeMap>,
    ranks: Vec<Rank>,
    blind: Option<usize>,
    change: Change<'a>,
}

/// Runs a case; for each rank what comes out of each call.
fn run(case: &Case, blind: Option<usize>, change: Change) -> Found<Vec<Vec<Option<Origin>>>> {
    let n = case.n_ranks();
    let rank = |_| Rank {
        left: VecDeque::new(),
        buffers: Buffers::default(),
        room: Default::default(),
        lent: 0,
        returned: 0,
        met: 0,
        waits: false,
        brought: Vec::new(),
        is_readable: true,
        has_failed: false,
        agreed: false,
        results: Vec::new(),
    };
    let mut node = Node {
        case,
        maps: (0..n)
            .map(|rank| NodeMap::new(case.nodes_of_ranks, rank).expect("a rank of it"))
            .collect(),
        ranks: (0..n).map(rank).collect(),
        blind,
        change,
    };
    for rank in 0..n {
        node.begin(rank, 0);
    }
    let mut draw = 0;
    while node.any_steps(&mut draw)? {}
    let results: Vec<_> = node.ranks.into_iter().map(|rank| rank.results).collect();
    match results.iter().all(|calls| calls.len() as u64 == CALLS) {
        false => Err("a rank waits for ever".to_owned()),
        true => Ok(results),
    }
}

impl Node<'_> {
    fn begin(&mut self, number: usize, call: u64) {
        let rank = &mut self.ranks[number];
        rank.buffers = Buffers::new(self.case, &self.maps[number], call);
        rank.room = Default::default();
        let mut left = VecDeque::new();
        let steps = SingleCopy {
            collective: self.case.collective,
            place: number,
            n_here: self.case.n_ranks(),
            root: self.case.root,
            units: self.case.block,
            unit_bytes: self.case.unit_bytes,
            in_place: self.case.in_place,
        };
        let Ok(()) = steps.steps(&mut |step| {
            left.push_back(step);
            Ok::<(), std::convert::Infallible>(())
        });
        (self.change)(number, call, &mut left);
        rank.left = left;
        rank.has_failed = false;
        rank.agreed = false;
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

    /// Whether what the rank in a place has lent for a call can be used; an error where it is too late.
    fn lends(&self, of: usize, to: usize, call: u64) -> Found<bool> {
        if self.ranks[to].returned > call {
            return Err(format!("rank {to} reads what it has returned"));
        }
        match self.ranks[of].results.len() as u64 > call {
            true => Err(format!("rank {of} has ended the call in which {to} reads")),
            false => Ok(self.ranks[of].lent > call),
        }
    }

    /// Lets a rank take a step, unless it waits or has come to its end; whether it did.
    fn steps(&mut self, number: usize) -> Found<bool> {
        let call = self.ranks[number].results.len() as u64;
        if call == CALLS {
            return Ok(false);
        }
        let Some(&step) = self.ranks[number].left.front() else {
            self.ends(number, true);
            return Ok(true);
        };

        match step {
            ReadStep::Lend { readable } => {
                let rank = &mut self.ranks[number];
                rank.lent = call + 1;
                rank.is_readable = readable;
                rank.has_failed = !readable;
            }
            ReadStep::Probe { of } => {
                if !self.lends(of, number, call)? {
                    return Ok(false);
                }
                self.ranks[number].has_failed |= self.cannot_read(number, of);
            }
            ReadStep::Read {
                of,
                from,
                into,
                units,
            } => {
                if !self.lends(of, number, call)? {
                    return Ok(false);
                }
                if self.cannot_read(number, of) {
                    let rank = &mut self.ranks[number];
                    rank.has_failed = true;
                    if rank.agreed {
                        return Err("reading fails when it is too late".to_owned());
                    }
                } else {
                    for unit in 0..units {
                        let content = self.ranks[of].buffers.take(lent(from), unit)?;
                        self.ranks[number].write(into, unit, content)?;
                    }
                }
            }
            ReadStep::Copy { from, into, units } => self.ranks[number].copies(from, into, units)?,
            ReadStep::Combine { from, into, units } => {
                let rank = &mut self.ranks[number];
                for unit in 0..units {
                    let (lower, higher) = (rank.read(from, unit)?, rank.read(into, unit)?);
                    let sum = Sum::both(lower, higher, schedule::Order::SourceFirst);
                    rank.write(into, unit, sum)?;
                }
            }
            ReadStep::Return => self.ranks[number].returned = call + 1,
            ReadStep::Agree => return self.agrees(number),
        }
        self.ranks[number].left.pop_front();
        Ok(true)
    }

    fn cannot_read(&self, number: usize, of: usize) -> bool {
        self.blind == Some(number) || !self.ranks[of].is_readable
    }

    fn agrees(&mut self, number: usize) -> Found<bool> {
        let rank = &mut self.ranks[number];
        if !rank.waits {
            rank.waits = true;
            rank.met += 1;
            let failed = rank.has_failed;
            rank.brought.push(failed);
            return Ok(true);
        }
        let met = rank.met;
        if self.ranks.iter().any(|other| other.met < met) {
            return Ok(false);
        }
        let stops = self.ranks.iter().any(|other| other.brought[met - 1]);
        let rank = &mut self.ranks[number];
        rank.waits = false;
        rank.agreed = true;
        rank.left.pop_front();
        if stops {
            self.is_untouched(number)?;
            self.ends(number, false);
        }
        Ok(true)
    }

    /// An error where a rank's input is not as it was when its call began.
    fn is_untouched(&self, number: usize) -> Found<()> {
        let (case, rank) = (self.case, &self.ranks[number]);
        let begun = Buffers::new(case, &self.maps[number], rank.results.len() as u64);
        let (from, blocks) = match case.collective {
            Collective::Bcast if number != case.root => return Ok(()),
            Collective::Bcast => (OUTPUT, 1),
            Collective::Alltoall => (Buffer::Input.at(0), case.n_ranks() as u64),
            _ => (Buffer::Input.at(0), 1),
        };
        for unit in 0..blocks * case.block {
            if rank.buffers.take(from, unit)? != begun.take(from, unit)? {
                return Err(format!("rank {number} has lost unit {unit} of its input"));
            }
        }
        Ok(())
    }

    /// Ends a call of a rank.
    fn ends(&mut self, number: usize, by_reading: bool) {
        let rank = &mut self.ranks[number];
        let buffers = std::mem::take(&mut rank.buffers);
        rank.results.push(by_reading.then_some(buffers.output));
        let ended = rank.results.len() as u64;
        if ended < CALLS {
            self.begin(number, ended);
        }
    }
}

fn lent(units: Lent) -> At {
    match units {
        Lent::Source(unit) => Buffer::Input.at(unit),
        Lent::Target(unit) => OUTPUT.behind(unit),
    }
}

impl Rank {
    fn read(&self, part: Part, unit: u64) -> Found<Content> {
        let room = |room: &Vec<Option<Content>>| {
            let content = room.get(unit as usize).cloned().flatten();
            content.ok_or_else(|| format!("unit {unit} of room is read before it is written"))
        };
        match part {
            Part::Lent(units) => self.buffers.take(lent(units), unit),
            Part::Sum => room(&self.room[0]),
            Part::Operand => room(&self.room[1]),
        }
    }

    fn write(&mut self, part: Part, unit: u64, content: Content) -> Found<()> {
        let room = match part {
            Part::Lent(units) => return self.buffers.write(lent(units), unit, Some(content)),
            Part::Sum => &mut self.room[0],
            Part::Operand => &mut self.room[1],
        };
        let at = unit as usize;
        room.resize(room.len().max(at + 1), None);
        room[at] = Some(content);
        Ok(())
    }

    fn copies(&mut self, from: Part, into: Part, units: u64) -> Found<()> {
        if let (Part::Lent(from), Part::Lent(into)) = (from, into)
            && self.buffers.is_same(lent(from), lent(into))
        {
            return Ok(());
        }
        for unit in 0..units {
            let content = self.read(from, unit)?;
            self.write(into, unit, content)?;
        }
        Ok(())
    }
}

/// Hands over the cases of a collective.
fn each(collective: Collective, visit: &mut dyn FnMut(&Case)) {
    for nodes_of_ranks in ONE_NODE {
        let n = nodes_of_ranks.len();
        let roots = if collective == Collective::Bcast {
            n
        } else {
            1
        };
        // Fewer units than ranks, a few, and slices of several parts.
        for (block, unit_bytes) in [(1, 8), (13, 8), (64, 12 << 10)] {
            for root in 0..roots {
                for in_place in [false, true] {
                    if in_place && collective == Collective::Bcast {
                        continue;
                    }
                    for order in [Order::Lowest, Order::Highest, Order::Drawn(block)] {
                        visit(&Case {
                            nodes_of_ranks,
                            collective,
                            own: OnNodes::Reading,
                            block,
                            unit_bytes,
                            root,
                            in_place,
                            overlaps: false,
                            holed: false,
                            fixed_order: false,
                            order,
                            eager: false,
                            haste: None,
                        });
                    }
                }
            }
        }
    }
}

fn collectives() -> impl Iterator<Item = Collective> {
    COLLECTIVES.into_iter().filter(|one| by_reading(*one))
}

fn check(case: &Case, change: Change) -> Found<()> {
    let found = run(case, None, change)?;
    let all: Option<Vec<_>> = found
        .into_iter()
        .map(|calls| calls.into_iter().collect())
        .collect();
    match all {
        Some(found) => compare(case, &found),
        // In place others' blocks would be overwritten.
        None if case.in_place && case.collective == Collective::Alltoall => Ok(()),
        None => Err("a call is stopped".to_owned()),
    }
}

#[test]
fn ranks_that_read_each_others_buffers_do_what_their_collective_promises() {
    for collective in collectives() {
        let mut cases = 0;
        each(collective, &mut |case| {
            cases += 1;
            let found = check(case, &|_, _, _| {});
            found.unwrap_or_else(|wrong| {
                panic!(
                    "{collective}: {wrong}: {} ranks, {} units of {} bytes, root {}, in place {}, {:?}",
                    case.n_ranks(),
                    case.block,
                    case.unit_bytes,
                    case.root,
                    case.in_place,
                    case.order,
                )
            });
        });
        assert!(cases > 30, "{collective}: {cases} cases");
    }
}

#[test]
fn where_one_rank_cannot_read_all_stop_and_their_inputs_are_as_they_were() {
    for collective in collectives() {
        each(collective, &mut |case| {
            for blind in 0..case.n_ranks() {
                if collective == Collective::Bcast && blind == case.root {
                    continue;
                }
                let found = run(case, Some(blind), &|_, _, _| {});
                let found = found.unwrap_or_else(|wrong| panic!("{collective}: {wrong}"));
                assert!(
                    found.iter().flatten().all(Option::is_none),
                    "{collective}, {blind} cannot read"
                );
            }
        });
    }
}

/// In one of three orders, for one of the ranks: an early rank does not notice that it does not wait.
#[test]
fn a_step_that_one_rank_leaves_out_is_found_out() {
    for collective in collectives() {
        let case = |order| Case {
            nodes_of_ranks: &[0, 0, 0],
            collective,
            own: OnNodes::Reading,
            block: 7,
            unit_bytes: 8,
            root: 1,
            in_place: false,
            overlaps: false,
            holed: false,
            fixed_order: false,
            order,
            eager: false,
            haste: None,
        };
        let orders = (0..8).map(Order::Drawn);
        let orders: Vec<Order> = orders.chain([Order::Lowest, Order::Highest]).collect();
        for rank in 0..3 {
            for skipped in 0.. {
                let seen = std::cell::Cell::new(None);
                let is_found = orders.iter().any(|order| {
                    let change = |of: usize, call: u64, steps: &mut VecDeque<ReadStep>| {
                        if of == rank && call == 0 {
                            seen.set(steps.remove(skipped));
                        }
                    };
                    check(&case(*order), &change).is_err()
                });
                let Some(step) = seen.get() else { break };
                // Only ranks that know that a root has come read its buffers, and looking costs nothing.
                let is_idle = matches!(step, ReadStep::Return | ReadStep::Probe { .. })
                    || matches!(step, ReadStep::Lend { .. })
                        && collective == Collective::Bcast
                        && rank != 1;
                assert!(
                    is_found || is_idle,
                    "{collective}: rank {rank} without {step:?}, its step {skipped}"
                );
            }
        }
    }
}
