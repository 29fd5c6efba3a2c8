//! The table of policies.

use super::name::{Argument, Syntax};
use super::{Placement, cdp, contiguous, contiguous_optimal, cplx, lpt, lpt_swap};
use crate::error::PlacementError;
use crate::problem::Problem;

/// One policy.
pub struct Row {
    /// What stands before the first colon of its name.
    pub name: &'static str,
    pub syntax: Syntax,
    /// What the problem has to have besides costs and ranks.
    pub needs: &'static [Need],
    /// Where it was published.
    pub source: &'static str,
    /// One line for a list.
    pub help: &'static str,
    pub(super) run: fn(&Problem, &Argument) -> Result<Placement, PlacementError>,
}

/// A part of a problem that a policy cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Mesh,
    Graph,
    Owners,
    Machine,
}

impl Need {
    pub(super) fn is_met(self, problem: &Problem) -> bool {
        match self {
            Need::Mesh => problem.mesh().is_some(),
            Need::Graph => problem.graph().is_some(),
            Need::Owners => problem.owners().is_some(),
            Need::Machine => problem.machine().is_some(),
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Need::Mesh => "the blocks' coordinates and levels",
            Need::Graph => "the neighbour graph",
            Need::Owners => "the present owners",
            Need::Machine => "the machine's message times",
        }
    }
}

/// Every policy there is.
pub static TABLE: &[Row] = &[
    Row {
        name: "contiguous",
        syntax: Syntax::Plain,
        needs: &[],
        source: "the default of block-structured AMR frameworks",
        help: "equal numbers of blocks, in curve order",
        run: |problem, _| Ok(contiguous::place(problem).into()),
    },
    Row {
        name: "contiguous-optimal",
        syntax: Syntax::OptionalMax,
        needs: &[],
        source: "Pinar & Aykanat, JPDC 64(8), 2004",
        help: "the least makespan of all contiguous placements, with at most N blocks on a rank",
        run: contiguous_optimal::run,
    },
    Row {
        name: "cdp",
        syntax: Syntax::Plain,
        needs: &[],
        source: "Jain et al. 2025, section V-C",
        help: "the least makespan of contiguous placements with two sizes of interval",
        run: |problem, _| Ok(cdp::place(problem).into()),
    },
    Row {
        name: "cdpc",
        syntax: Syntax::Count { default: 512 },
        needs: &[],
        source: "Jain et al. 2025, section V-C",
        help: "cdp in chunks of N ranks",
        run: |problem, argument| match argument {
            Argument::Count(ranks) => Ok(cdp::place_in_chunks(problem, *ranks).into()),
            _ => unreachable!("the syntax gives a count"),
        },
    },
    Row {
        name: "lpt",
        syntax: Syntax::Plain,
        needs: &[],
        source: "Graham, SIAM J. Appl. Math. 17(2), 1969",
        help: "largest block first, each on the least loaded rank",
        run: |problem, _| Ok(lpt::place(problem).into()),
    },
    Row {
        name: "lpt-swap",
        syntax: Syntax::Plain,
        needs: &[],
        source: "LPT, then pairwise exchange",
        help: "LPT, then exchanges between ranks until a bound is met or nothing improves",
        run: |problem, _| Ok(lpt_swap::place(problem)),
    },
    Row {
        name: "cplx",
        syntax: Syntax::PercentOrAuto,
        needs: &[],
        source: "Jain et al. 2025, section V-D",
        help: "contiguous, with LPT among the X % of ranks of most extreme load; auto weighs messages",
        run: |problem, argument| match argument {
            Argument::Percent(percent) => Ok(cplx::place(problem, *percent).into()),
            _ => Ok(cplx::place_auto(problem)?.into()),
        },
    },
];
