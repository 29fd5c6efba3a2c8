//! Which of our schedules does what a library's algorithm does, and what Open MPI chooses by itself.

use colltune_core::algorithm::pattern::Pattern;

/// A library's algorithm, and ours.
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

pub fn twin(pattern: Pattern, native: &str) -> Option<&'static str> {
    let mut of = TWINS
        .iter()
        .filter(|(of, name, _)| *of == pattern && *name == native);
    of.next().map(|(_, _, ours)| *ours)
}

pub fn twins(pattern: Pattern) -> impl Iterator<Item = &'static str> {
    let of = TWINS.iter().filter(move |(of, ..)| *of == pattern);
    of.map(|(_, native, _)| *native)
}

/// Open MPI's fixed rules up to version 4.0, for a call of `bytes`, as its source has them
/// (`coll_tuned_decision_fixed.c`); what has no schedule of ours takes the nearest one.
pub fn default(pattern: Pattern, bytes: u64, n_ranks: usize) -> &'static str {
    let power_of_two = n_ranks.is_power_of_two();
    match pattern {
        Pattern::Allreduce if bytes < 10_000 => "p2p:recursive_doubling",
        Pattern::Allreduce => "p2p:ring",
        Pattern::Allgather => match bytes.saturating_mul(n_ranks as u64) {
            0..50_000 if power_of_two => "p2p:recursive_doubling",
            0..50_000 => "p2p:bruck:radix=2",
            _ => "p2p:ring",
        },
        Pattern::Bcast => "p2p:binomial_doubling",
        Pattern::Alltoall if bytes < 200 && n_ranks > 12 => "p2p:bruck:radix=2",
        Pattern::Alltoall => "p2p:pairwise",
        Pattern::Barrier => "p2p:dissemination",
        Pattern::Reduce => "p2p:binomial",
        Pattern::Gather => "p2p:binomial",
        Pattern::Scatter => "p2p:binomial",
        Pattern::Scan | Pattern::Exscan => "p2p:linear",
        Pattern::ReduceScatter => "p2p:pairwise",
    }
}
