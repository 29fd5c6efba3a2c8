//! Reduce: the root ends with the combination of all contributions.

pub mod binomial_in_order;
pub mod chain;
pub mod doubling;
pub mod in_order;
pub mod knomial;
pub mod rabenseifner;

use super::schedule::{Buffer, Case, Order, Part, Schedule, Step, Temporary};
use super::tree::Node;

/// A node of a tree whose children stand above or below it in the operand order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides {
    parent: Option<usize>,
    /// The nearest first.
    above: Vec<usize>,
    /// The nearest first.
    below: Vec<usize>,
}

impl From<Node> for Sides {
    /// All children above, as in a k-nomial tree; the smallest subtree, which is ready first,
    /// first.
    fn from(node: Node) -> Sides {
        Sides {
            parent: node.parent,
            above: node.children.into_iter().rev().collect(),
            below: Vec::new(),
        }
    }
}

impl Sides {
    /// The node in absolute ranks.
    pub fn absolute(self, case: Case) -> Sides {
        let all = |ranks: Vec<usize>| ranks.into_iter().map(|v| case.absolute(v)).collect();
        Sides {
            parent: self.parent.map(|parent| case.absolute(parent)),
            above: all(self.above),
            below: all(self.below),
        }
    }
}

/// One segment on its way from the children to the parent, combined in `held`.
///
/// The nearest child above is received where the result is built and the own contribution combined with it there, so that
/// nothing is copied; each other child has a temporary, from number 1 upwards.
fn segment_up(segment: usize, sides: &Sides, held: Buffer) -> Vec<Step> {
    let chunk = |buffer| Part::range(buffer, segment, 1);
    let (input, held) = (chunk(Buffer::Input), chunk(held));
    let mut steps = Vec::new();
    let is_leaf = sides.above.is_empty() && sides.below.is_empty();
    match (sides.above.first(), sides.parent) {
        (Some(&nearest), _) => {
            steps.push(Step::receive(nearest, held));
            steps.push(Step::reduce(input, held, Order::SourceFirst));
        }
        (None, Some(parent)) if is_leaf => {
            steps.push(Step::send(parent, input));
            return steps;
        }
        (None, _) => steps.push(Step::copy(input, held)),
    }
    let others_above = sides
        .above
        .iter()
        .skip(1)
        .map(|&child| (child, Order::SourceLast));
    let below = sides.below.iter().map(|&child| (child, Order::SourceFirst));
    for (index, (child, order)) in others_above.chain(below).enumerate() {
        let received = chunk(Buffer::Temporary(index as u8 + 1));
        steps.push(Step::receive(child, received));
        steps.push(Step::reduce(received, held, order));
    }
    steps.extend(sides.parent.map(|parent| Step::send(parent, held)));
    steps
}

/// Segments of the result that may be on their way to the parent.
const HELD_PLACES: usize = 4;
/// Segments of one child that may be on their way or waiting.
const CHILD_PLACES: usize = 2;

/// Adds the temporaries of a reduce: number 0 to build the result in, where the rank has no
/// output, and one for each of `children`.
pub fn with_temporaries(schedule: Schedule, children: usize) -> Schedule {
    let places = |most: usize| Temporary::ring(most.min(schedule.parts_per_block));
    let (held, child) = (places(HELD_PLACES), places(CHILD_PLACES));
    (0..children).fold(schedule.temporary(held), |schedule, _| {
        schedule.temporary(child)
    })
}

/// Where a rank builds the result.
fn held(case: Case) -> Buffer {
    if case.rank == case.root {
        Buffer::Output
    } else {
        Buffer::Temporary(0)
    }
}

/// A reduce along one tree.
fn along(case: Case, sides: Sides) -> Schedule {
    let (held, children) = (
        held(case),
        sides.above.len().saturating_sub(1) + sides.below.len(),
    );
    let steps = (0..case.segments).flat_map(move |segment| segment_up(segment, &sides, held));
    with_temporaries(Schedule::new(case.segments, steps), children)
}
