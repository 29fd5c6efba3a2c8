//! What is checked, and a rank's buffers in it.

use std::collections::{HashMap, HashSet};

use crate::algorithm::symbolic::Sum;
use crate::catalogue::OnNodes;
use crate::collective::Collective;
use crate::node::map::NodeMap;
use crate::node::stage::{At, Buffer, Call, spare_units};
use crate::select::mix;

/// Who contributed which unit of its input, and how they are combined.
pub type Content = Sum<(usize, u64)>;
pub type Found<T> = Result<T, String>;

/// Who goes on first of the ranks that can.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Lowest,
    Highest,
    Drawn(u64),
}

impl Order {
    /// The ranks in the order in which they are asked whether they can go on; `draw` counts.
    pub fn ranks(self, n: usize, draw: &mut u64) -> impl Iterator<Item = usize> + use<> {
        *draw += 1;
        let first = match self {
            Order::Drawn(seed) => (mix(seed, *draw) % n as u64) as usize,
            Order::Lowest | Order::Highest => 0,
        };
        (0..n).map(move |turn| match self {
            Order::Highest => n - 1 - turn,
            _ => (first + turn) % n,
        })
    }
}

/// What a leader does too early, to be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// Reads what its node has not combined yet.
    Reads,
    /// Gives its node units that are not final yet.
    Gives,
}

/// What is checked: calls in a row, and the nodes of the communicator's ranks.
pub struct Case<'a> {
    pub nodes_of_ranks: &'a [u32],
    pub collective: Collective,
    pub own: OnNodes,
    pub block: u64,
    pub unit_bytes: u64,
    pub root: usize,
    pub in_place: bool,
    pub overlaps: bool,
    /// Whether the units of every second rank have another form in its memory than in cells.
    pub holed: bool,
    /// Whether operands are to be combined in the fixed order.
    pub fixed_order: bool,
    pub order: Order,
    /// Whether messages are in place as soon as both ends have posted them; else when they are waited for.
    pub eager: bool,
    /// Of all leaders, where stages go on at once.
    pub haste: Option<Haste>,
}

/// Keeps units of one call apart from those of the next.
const CALL: u64 = 1 << 32;

impl Case<'_> {
    pub fn n_ranks(&self) -> usize {
        self.nodes_of_ranks.len()
    }

    /// Where the input lies in the output, in a call in place.
    pub fn within(&self, rank: usize) -> Option<u64> {
        let within = match self.collective {
            Collective::Reduce if rank != self.root => return None,
            Collective::Allgather => rank as u64 * self.block,
            _ => 0,
        };
        self.in_place.then_some(within)
    }

    pub fn call(&self, rank: usize) -> Call {
        Call {
            collective: self.collective,
            own: self.own,
            bytes: self.block * self.unit_bytes,
            block: self.block,
            root: self.root,
            in_place: self.within(rank) == Some(0),
        }
    }

    pub fn is_holed(&self, rank: usize) -> bool {
        self.holed && rank % 2 == 1
    }

    /// What a unit that is promised in any call is in this one.
    pub fn in_call(number: u64, content: &Content) -> Content {
        let in_call =
            content.replaced(&mut |(from, unit)| Found::Ok(Sum::Of((*from, number * CALL + unit))));
        in_call.expect("nothing can go wrong")
    }
}

/// One rank's buffers in a call.
#[derive(Default)]
pub struct Buffers {
    input: Vec<Option<Content>>,
    pub output: Vec<Option<Content>>,
    spare: Vec<Option<Content>>,
    within: Option<u64>,
    /// Whether the output is a bcast's buffer at its root, which may be constant.
    is_constant: bool,
    /// How often units are on their way to other ranks, by place, and those that are awaited.
    sent: HashMap<Location, u32>,
    awaited: HashSet<Location>,
}

/// Where a unit lies: two places may be one.
type Location = (Buffer, u64);

impl Buffers {
    /// As the program hands them over in the call of a number.
    pub fn new(case: &Case, map: &NodeMap, number: u64) -> Buffers {
        let n = case.n_ranks() as u64;
        let (sent, received) = match case.collective {
            Collective::Allgather => (1, n),
            Collective::Alltoall => (n, n),
            _ => (1, 1),
        };
        let rank = map.here()[map.place];
        let spare = spare_units(&case.call(rank), map) as usize;
        let mut made = Buffers {
            input: vec![None; (sent * case.block) as usize],
            output: vec![None; (received * case.block) as usize],
            spare: vec![None; spare],
            within: case.within(rank),
            is_constant: case.collective == Collective::Bcast && rank == case.root,
            ..Buffers::default()
        };
        let bcast = case.collective == Collective::Bcast;
        for unit in 0..sent * case.block {
            let content = Some(Case::in_call(number, &Sum::Of((rank, unit))));
            match (bcast, made.within) {
                (true, _) if rank != case.root => {}
                (true, _) => made.output[unit as usize] = content,
                (false, Some(within)) => made.output[(within + unit) as usize] = content,
                (false, None) => made.input[unit as usize] = content,
            }
        }
        made
    }

    fn location(&self, at: At, unit: u64) -> Location {
        match (at.buffer, self.within) {
            (Buffer::Input, Some(within)) => (Buffer::Output, within + at.unit + unit),
            (buffer, _) => (buffer, at.unit + unit),
        }
    }

    pub fn is_same(&self, a: At, b: At) -> bool {
        self.location(a, 0) == self.location(b, 0)
    }

    /// Units begin their way to another rank: they must not change until they are released.
    pub fn send(&mut self, at: At, units: u64) {
        for unit in 0..units {
            *self.sent.entry(self.location(at, unit)).or_default() += 1;
        }
    }

    pub fn release(&mut self, at: At, units: u64) {
        for unit in 0..units {
            let location = self.location(at, unit);
            let left = self.sent.get_mut(&location).expect("it was sent");
            *left -= 1;
            if *left == 0 {
                self.sent.remove(&location);
            }
        }
    }

    /// Units are awaited: no rank touches their places until they are in place.
    pub fn awaits(&mut self, at: At, units: u64) {
        let all = (0..units).map(|unit| self.location(at, unit));
        let all: Vec<_> = all.collect();
        self.awaited.extend(all);
    }

    pub fn no_longer_awaits(&mut self, at: At, units: u64) {
        for unit in 0..units {
            self.awaited.remove(&self.location(at, unit));
        }
    }

    pub fn arrive(&mut self, at: At, contents: &[Content]) -> Found<()> {
        self.no_longer_awaits(at, contents.len() as u64);
        for (unit, content) in (0..).zip(contents) {
            self.write(at, unit, Some(content.clone()))?;
        }
        Ok(())
    }

    pub fn read(&self, at: At, unit: u64) -> Found<Option<Content>> {
        if self.awaited.contains(&self.location(at, unit)) {
            return Err(format!(
                "unit {unit} behind {at:?} is read while it is awaited"
            ));
        }
        let index = (at.unit + unit) as usize;
        let content = match (at.buffer, self.within) {
            (Buffer::Input, Some(within)) => self.output.get(within as usize + index),
            (Buffer::Input, None) => self.input.get(index),
            (Buffer::Output, _) => self.output.get(index),
            (Buffer::Spare, _) => self.spare.get(index),
        };
        content
            .cloned()
            .ok_or_else(|| format!("unit {unit} behind {at:?} is read, outside of the buffer"))
    }

    /// What is there and defined.
    pub fn take(&self, at: At, unit: u64) -> Found<Content> {
        let content = self.read(at, unit)?;
        content.ok_or_else(|| format!("unit {unit} behind {at:?} is read before it is written"))
    }

    pub fn write(&mut self, at: At, unit: u64, content: Option<Content>) -> Found<()> {
        let location = self.location(at, unit);
        if self.sent.contains_key(&location) || self.awaited.contains(&location) {
            return Err(format!(
                "unit {unit} behind {at:?} is written while it is under way"
            ));
        }
        let index = (at.unit + unit) as usize;
        let cell = match (at.buffer, self.within) {
            (Buffer::Input, None) => return Err("the input is written".to_owned()),
            (Buffer::Input, Some(within)) => self.output.get_mut(within as usize + index),
            (Buffer::Output, _) if self.is_constant => {
                return Err("the root's buffer is written".to_owned());
            }
            (Buffer::Output, _) => self.output.get_mut(index),
            (Buffer::Spare, _) => self.spare.get_mut(index),
        };
        let cell = cell.ok_or_else(|| format!("unit {unit} behind {at:?} is outside"))?;
        *cell = content;
        Ok(())
    }
}
