//! One row of the table of policies, and what a policy is: a row and an argument.

use super::placement::Placement;
use crate::error::PlacementError;
use crate::problem::Problem;
use crate::published::Published;

/// A policy with its argument.
#[derive(Clone)]
pub struct Policy {
    pub(super) row: &'static Row,
    pub(super) argument: Argument,
}

impl Policy {
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// Whether it uses the speeds of ranks.
    pub fn heeds_speeds(&self) -> bool {
        self.row.on_uneven_ranks.is_some() && self.argument != Argument::Auto
    }

    pub fn argument(&self) -> &Argument {
        &self.argument
    }

    /// Whether it looks at that part of a problem. Message times are weighed over the graph.
    pub fn looks_at(&self, part: Need) -> bool {
        let needs = self.row.needs;
        let weighs_messages = needs.contains(&Need::Machine) || self.argument == Argument::Auto;
        needs.contains(&part) || (part == Need::Graph && weighs_messages)
    }
}

/// Those with a function for unequal ranks, for the message of an error: the table lies above.
pub(super) const HEED_SPEEDS: &str = "contiguous, contiguous-optimal, lpt, lpt-swap, cplx";

pub(super) type PolicyFunction = fn(&Problem, &Argument) -> Result<Placement, PlacementError>;

/// What is known of a policy whatever its argument.
pub struct Row {
    /// What stands before the first colon of its name.
    pub name: &'static str,
    pub syntax: Syntax,
    /// What the problem has to have besides costs and ranks.
    pub needs: &'static [Need],
    /// Where it was published; empty for what is this project's own.
    pub source: &'static str,
    /// One line for a list.
    pub help: &'static str,
    /// The same where ranks have unequal speeds; `None` for a policy that cannot use them.
    pub(super) on_uneven_ranks: Option<PolicyFunction>,
    pub(super) run: PolicyFunction,
}

/// A part of a problem that a policy cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Mesh,
    Graph,
    Machine,
}

impl Need {
    pub(super) fn is_met(self, problem: &Problem) -> bool {
        match self {
            Need::Mesh => problem.mesh().is_some(),
            Need::Graph => problem.graph().is_some(),
            Need::Machine => problem.machine().is_some(),
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Need::Mesh => "the blocks' coordinates and levels",
            Need::Graph => "the neighbour graph",
            Need::Machine => "the machine's message times",
        }
    }
}

/// What can follow a policy's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Nothing.
    Plain,
    /// `:N`, a number of at least 1; without it the default.
    Count { default: u32 },
    /// Nothing, or `:max=N` with N of at least 1.
    OptionalMax,
    /// `:X` with X from 0 to 100, or `:auto`.
    PercentOrAuto,
    /// Nothing, or `:roots`.
    OptionalRoots,
    /// Nothing, `:roots` or `:raw`.
    OptionalRootsOrRaw,
    /// `:N`, a number of at least 0; without it the default.
    Level { default: u32 },
    /// The name of a published policy, as [`Published`] reads it.
    Published,
}

/// What followed a policy's name.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    None,
    Count(u32),
    Max(u32),
    Percent(u8),
    Auto,
    Roots,
    Raw,
    Published(Published),
}

impl Argument {
    /// The number of a policy that takes one.
    pub(super) fn count(&self) -> u32 {
        match self {
            Argument::Count(n) => *n,
            other => unreachable!("{other:?} is no number"),
        }
    }
}
