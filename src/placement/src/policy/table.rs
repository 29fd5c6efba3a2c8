//! The table of policies.

#[cfg(feature = "metis")]
use super::graphlb;
#[cfg(feature = "ilp")]
use super::ilp;
use super::row::{Argument, Need, Row, Syntax};
use super::{baseline, contiguous, contiguous_optimal, cplx, grouplb};
use super::{lpt, lpt_swap, rcb, sfclb, shamrock, uneven, weighted_random};

/// Every policy there is.
pub static TABLE: &[Row] = &[
    Row {
        name: "contiguous",
        syntax: Syntax::Plain,
        needs: &[],
        source: "the default of block-structured AMR frameworks",
        help: "equal numbers of blocks, in curve order",
        on_uneven_ranks: Some(|problem, _| Ok(uneven::contiguous(problem).into())),
        run: |problem, _| Ok(contiguous::place(problem).into()),
    },
    Row {
        name: "z-order",
        syntax: Syntax::Plain,
        needs: &[Need::Mesh],
        source: "Burstedde, Wilcox & Ghattas, SIAM J. Sci. Comput. 33(3), 2011",
        help: "equal numbers of blocks along the Z-order (Morton) curve",
        on_uneven_ranks: None,
        run: |problem, _| Ok(baseline::z_order(problem).into()),
    },
    Row {
        name: "contiguous-optimal",
        syntax: Syntax::OptionalMax,
        needs: &[],
        source: "Pinar & Aykanat, JPDC 64(8), 2004",
        help: "the least makespan of all contiguous placements, with at most N blocks on a rank",
        on_uneven_ranks: Some(contiguous_optimal::run_on_uneven_ranks),
        run: contiguous_optimal::run,
    },
    Row {
        name: "lpt",
        syntax: Syntax::Plain,
        needs: &[],
        source: "Graham, SIAM J. Appl. Math. 17(2), 1969",
        help: "largest block first, each on the least loaded rank",
        on_uneven_ranks: Some(|problem, _| Ok(uneven::lpt(problem).into())),
        run: |problem, _| Ok(lpt::place(problem).into()),
    },
    Row {
        name: "lpt-swap",
        syntax: Syntax::Plain,
        needs: &[],
        source: "LPT, then pairwise exchange",
        help: "LPT, then exchanges between ranks until a bound is met or nothing improves",
        on_uneven_ranks: Some(|problem, _| Ok(uneven::lpt_swap(problem))),
        run: |problem, _| Ok(lpt_swap::place(problem)),
    },
    Row {
        name: "cplx",
        syntax: Syntax::PercentOrAuto,
        needs: &[],
        source: "Jain et al. 2025, section V-D",
        help: "contiguous, with LPT among the X % of ranks of most extreme load; auto weighs messages",
        on_uneven_ranks: Some(|problem, argument| match argument {
            Argument::Percent(percent) => Ok(uneven::cplx(problem, *percent).into()),
            _ => unreachable!("auto does not heed speeds"),
        }),
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
        on_uneven_ranks: None,
        run: |problem, _| Ok(rcb::place(problem).into()),
    },
    Row {
        name: "sfclb",
        syntax: Syntax::OptionalRoots,
        needs: &[Need::Mesh],
        source: "Wu et al., CLUSTER 2011",
        help: "the Hilbert curve cut greedily by work; roots: unrefined blocks with all refined from them",
        on_uneven_ranks: None,
        run: |problem, argument| Ok(sfclb::place(problem, argument).into()),
    },
    Row {
        name: "published",
        syntax: Syntax::Published,
        needs: &[Need::Mesh],
        source: "Jain et al. 2025, section V, and its code",
        help: "a policy of the CPLX study as its code behaves, defects included: a yardstick, along Z-order",
        on_uneven_ranks: None,
        run: |problem, argument| match argument {
            Argument::Published(policy) => Ok(baseline::published(problem, *policy)?.into()),
            _ => unreachable!("the syntax gives a published policy"),
        },
    },
    #[cfg(feature = "metis")]
    Row {
        name: "graphlb",
        syntax: Syntax::OptionalRootsOrRaw,
        needs: &[Need::Mesh, Need::Graph],
        source: "Wu et al., CLUSTER 2011",
        help: "the neighbour graph cut by METIS, unrefined blocks joined along the curve; raw: METIS alone",
        on_uneven_ranks: None,
        run: |problem, argument| Ok(graphlb::place(problem, argument)?.into()),
    },
    Row {
        name: "grouplb",
        syntax: Syntax::OptionalRoots,
        needs: &[Need::Mesh, Need::Graph],
        source: "Wu et al., CLUSTER 2011",
        help: "groups of neighbours, packed level by level and near their neighbours",
        on_uneven_ranks: None,
        run: |problem, argument| Ok(grouplb::place(problem, argument).into()),
    },
    Row {
        name: "none",
        syntax: Syntax::Plain,
        needs: &[Need::Mesh],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "roots in equal numbers along the curve; what is refined stays with its root",
        on_uneven_ranks: None,
        run: |problem, _| Ok(shamrock::none(problem).into()),
    },
    Row {
        name: "round-robin",
        syntax: Syntax::Plain,
        needs: &[],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "every block to the next rank, in curve order",
        on_uneven_ranks: None,
        run: |problem, _| Ok(shamrock::round_robin(problem).into()),
    },
    Row {
        name: "weighted-random",
        syntax: Syntax::Level { default: 1 },
        needs: &[Need::Mesh],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "as none, but refined blocks go to ranks by chance (seed N), rather to idle ones",
        on_uneven_ranks: None,
        run: |problem, argument| Ok(weighted_random::place(problem, argument.count()).into()),
    },
    Row {
        name: "level-threshold",
        syntax: Syntax::Level { default: 1 },
        needs: &[Need::Mesh],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "as none, but blocks refined N times or more are dealt out round robin",
        on_uneven_ranks: None,
        run: |problem, argument| Ok(shamrock::from_level(problem, argument.count()).into()),
    },
    Row {
        name: "model",
        syntax: Syntax::Plain,
        needs: &[Need::Mesh, Need::Machine],
        source: "Beckingsale et al., LNCS 7587, 2013",
        help: "each refined block where computing and sending it would be done first",
        on_uneven_ranks: None,
        run: |problem, _| Ok(shamrock::by_model(problem).into()),
    },
    #[cfg(feature = "ilp")]
    Row {
        name: "ilp",
        syntax: Syntax::Count { default: 60 },
        needs: &[],
        source: "Huangfu & Hall, Math. Prog. Comp. 10, 2018 (HiGHS)",
        help: "the exact optimum of small cases by integer programming, N seconds at most",
        on_uneven_ranks: None,
        run: |problem, argument| ilp::place(problem, argument.count()),
    },
];
