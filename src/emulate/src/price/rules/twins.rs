//! Schedules of ours that do what a library's algorithms do.

use colltune_core::algorithm::pattern::Pattern;

/// A library's algorithm, and ours: what it sends when is the same.
const TWINS: [(Pattern, &str, &str); 12] = [
    (
        Pattern::Allreduce,
        "native:recursive_doubling",
        "p2p:recursive_doubling",
    ),
    (Pattern::Allreduce, "native:ring", "p2p:ring"),
    (
        Pattern::Allreduce,
        "native:rabenseifner",
        "p2p:rabenseifner",
    ),
    (Pattern::Bcast, "native:binomial", "p2p:binomial_doubling"),
    (
        Pattern::Bcast,
        "native:scatter_allgather_ring",
        "p2p:scatter_allgather_ring",
    ),
    (Pattern::Allgather, "native:ring", "p2p:ring"),
    (
        Pattern::Allgather,
        "native:recursive_doubling",
        "p2p:recursive_doubling",
    ),
    (Pattern::Allgather, "native:bruck", "p2p:bruck:radix=2"),
    (Pattern::Alltoall, "native:pairwise", "p2p:pairwise"),
    (
        Pattern::Alltoall,
        "native:modified_bruck",
        "p2p:bruck:radix=2",
    ),
    (Pattern::Reduce, "native:binomial", "p2p:binomial"),
    (Pattern::Barrier, "native:bruck", "p2p:dissemination"),
];

/// Where nothing does the same: what comes nearest. Flat trees are trees of eight, which are flat up to eight
/// ranks; what the library sends as a whole goes in segments from 256 KiB on.
const NEAREST: [(Pattern, &str, &str); 31] = [
    (
        Pattern::Allreduce,
        "native:basic_linear",
        "p2p:reduce_bcast:radix=8",
    ),
    (
        Pattern::Allreduce,
        "native:nonoverlapping",
        "p2p:reduce_bcast:radix=2",
    ),
    (Pattern::Bcast, "native:basic_linear", "p2p:knomial:radix=8"),
    (Pattern::Bcast, "native:chain", "p2p:chain:segsize=256KiB"),
    (
        Pattern::Bcast,
        "native:pipeline",
        "p2p:chain:segsize=256KiB",
    ),
    (
        Pattern::Bcast,
        "native:split_binary_tree",
        "p2p:binary_tree:segsize=256KiB",
    ),
    (
        Pattern::Bcast,
        "native:binary_tree",
        "p2p:binary_tree:segsize=256KiB",
    ),
    (Pattern::Bcast, "native:knomial", "p2p:knomial:radix=4"),
    (
        Pattern::Bcast,
        "native:scatter_allgather",
        "p2p:scatter_allgather",
    ),
    (
        Pattern::Allgather,
        "native:neighbor",
        "p2p:neighbour_exchange",
    ),
    (
        Pattern::Allgather,
        "native:two_proc",
        "p2p:recursive_doubling",
    ),
    (
        Pattern::Alltoall,
        "native:linear",
        "p2p:scattered:window=64",
    ),
    (
        Pattern::Alltoall,
        "native:linear_sync",
        "p2p:scattered:window=64",
    ),
    (Pattern::Alltoall, "native:two_proc", "p2p:pairwise"),
    (Pattern::Barrier, "native:linear", "p2p:tree:radix=8"),
    (
        Pattern::Barrier,
        "native:recursive_doubling",
        "p2p:dissemination:radix=2",
    ),
    (Pattern::Barrier, "native:tree", "p2p:tree:radix=4"),
    (Pattern::Reduce, "native:linear", "p2p:knomial:radix=8"),
    (Pattern::Reduce, "native:chain", "p2p:chain:segsize=256KiB"),
    (
        Pattern::Reduce,
        "native:pipeline",
        "p2p:chain:segsize=256KiB",
    ),
    (Pattern::Reduce, "native:binary", "p2p:in_order"),
    (Pattern::Reduce, "native:in-order_binary", "p2p:in_order"),
    (Pattern::Reduce, "native:rabenseifner", "p2p:rabenseifner"),
    (
        Pattern::Gather,
        "native:basic_linear",
        "p2p:linear:window=64",
    ),
    (Pattern::Gather, "native:binomial", "p2p:binomial"),
    (Pattern::Gather, "native:linear_sync", "p2p:linear:window=4"),
    (
        Pattern::Scatter,
        "native:basic_linear",
        "p2p:linear:window=64",
    ),
    (Pattern::Scatter, "native:binomial", "p2p:binomial"),
    (Pattern::Scatter, "native:linear_nb", "p2p:linear:window=64"),
    (Pattern::Scan, "native:linear", "p2p:linear"),
    (Pattern::Exscan, "native:linear", "p2p:linear"),
];

fn of(
    table: &'static [(Pattern, &'static str, &'static str)],
    pattern: Pattern,
    native: &str,
) -> Option<&'static str> {
    let mut found = table
        .iter()
        .filter(|(of, name, _)| *of == pattern && *name == native);
    found.next().map(|(_, _, ours)| *ours)
}

pub fn twin(pattern: Pattern, native: &str) -> Option<&'static str> {
    of(&TWINS, pattern, native)
}

pub fn twins(pattern: Pattern) -> impl Iterator<Item = &'static str> {
    let of = TWINS.iter().filter(move |(of, ..)| *of == pattern);
    of.map(|(_, native, _)| *native)
}

/// The twin, or what comes nearest. Panics for an algorithm that no rule names: a test asks for all.
pub(super) fn nearest(pattern: Pattern, native: &str) -> &'static str {
    twin(pattern, native)
        .or_else(|| of(&NEAREST, pattern, native))
        .unwrap_or_else(|| panic!("no schedule for {native} of {}", pattern.name()))
}
