//! The table of policies.

#[cfg(feature = "metis")]
use super::graphlb;
#[cfg(feature = "ilp")]
use super::ilp;
use super::row::{Argument, Need, Row, Syntax};
use super::{cdp, contiguous, contiguous_optimal, cplx, grouplb, hierarchical};
use super::{lpt, lpt_swap, rcb, sfclb, shamrock, weighted_random};

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
    Row {
        name: "rcb",
        syntax: Syntax::Plain,
        needs: &[Need::Mesh],
        source: "Berger & Bokhari, IEEE Trans. Comput. C-36(5), 1987",
        help: "recursive coordinate bisection: space cut in two by work, again and again",
        run: |problem, _| Ok(rcb::place(problem).into()),
    },
    Row {
        name: "sfclb",
        syntax: Syntax::OptionalRoots,
        needs: &[Need::Mesh],
        source: "Wu et al., CLUSTER 2011",
        help: "the Hilbert curve cut greedily by work; roots: unrefined blocks with all refined from them",
        run: |problem, argument| Ok(sfclb::place(problem, argument).into()),
    },
    #[cfg(feature = "metis")]
    Row {
        name: "graphlb",
        syntax: Syntax::OptionalRoots,
        needs: &[Need::Mesh, Need::Graph],
        source: "Wu et al., CLUSTER 2011",
        help: "the neighbour graph cut by METIS, unrefined blocks joined along the curve",
        run: |problem, argument| Ok(graphlb::place(problem, argument)?.into()),
    },
    Row {
        name: "grouplb",
        syntax: Syntax::OptionalRoots,
        needs: &[Need::Mesh, Need::Graph],
        source: "Wu et al., CLUSTER 2011",
        help: "groups of neighbours, packed level by level and near their neighbours",
        run: |problem, argument| Ok(grouplb::place(problem, argument).into()),
    },
    Row {
        name: "none",
        syntax: Syntax::Plain,
        needs: &[Need::Mesh],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "roots in equal numbers along the curve; what is refined stays with its root",
        run: |problem, _| Ok(shamrock::none(problem).into()),
    },
    Row {
        name: "round-robin",
        syntax: Syntax::Plain,
        needs: &[],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "every block to the next rank, in curve order",
        run: |problem, _| Ok(shamrock::round_robin(problem).into()),
    },
    Row {
        name: "weighted-random",
        syntax: Syntax::Level { default: 1 },
        needs: &[Need::Mesh],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "as none, but refined blocks go to ranks by chance (seed N), rather to idle ones",
        run: |problem, argument| Ok(weighted_random::place(problem, argument.count()).into()),
    },
    Row {
        name: "level-threshold",
        syntax: Syntax::Level { default: 1 },
        needs: &[Need::Mesh],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "as none, but blocks refined N times or more are dealt out round robin",
        run: |problem, argument| Ok(shamrock::from_level(problem, argument.count()).into()),
    },
    Row {
        name: "model",
        syntax: Syntax::Plain,
        needs: &[Need::Mesh, Need::Machine],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "each refined block where computing and sending it would be done first",
        run: |problem, _| Ok(shamrock::by_model(problem).into()),
    },
    Row {
        name: "hierarchical",
        syntax: Syntax::Inner,
        needs: &[],
        source: "",
        help: "a policy in two steps: over the nodes, then over the ranks inside each",
        run: |problem, argument| hierarchical::run(problem, argument.inner()),
    },
    #[cfg(feature = "ilp")]
    Row {
        name: "ilp",
        syntax: Syntax::Count { default: 60 },
        needs: &[],
        source: "Huangfu & Hall, Math. Prog. Comp. 10, 2018 (HiGHS)",
        help: "the exact optimum of small cases by integer programming, N seconds at most",
        run: |problem, argument| ilp::place(problem, argument.count()),
    },
];
