//! Which of our schedules one rank of each node runs with those of the other nodes.

use crate::algorithm::pattern::Pattern;
use crate::collective::Collective;

/// A row of the registry, by its name and the segment size in bytes; 0 is "in one piece".
pub type Between = (&'static str, u64);

const KIB: u64 = 1 << 10;

/// The schedules between nodes that a collective is tried with; none where it runs on one node only.
pub fn between(collective: Collective) -> &'static [Between] {
    match collective {
        Collective::Allreduce => &[("recursive_doubling", 0), ("ring", 0), ("rabenseifner", 0)],
        Collective::Bcast => &[
            ("binomial", 0),
            ("chain", 16 * KIB),
            ("scatter_allgather_ring", 0),
        ],
        Collective::Reduce => &[("binomial", 0), ("chain", 16 * KIB), ("rabenseifner", 0)],
        Collective::Barrier => &[("recursive_doubling", 0)],
        _ => &[],
    }
}

/// What the leaders do together. Those of a barrier reduce one number: nobody has the result before
/// everybody has come.
pub fn pattern(collective: Collective) -> Option<Pattern> {
    match collective {
        Collective::Barrier => Some(Pattern::Allreduce),
        other => Pattern::of(other),
    }
}

/// Whether a collective runs over the memory of a node at all.
pub fn on_one_node(collective: Collective) -> bool {
    use Collective::{Allgather, Allreduce, Alltoall, Barrier, Bcast, Reduce};
    matches!(
        collective,
        Allreduce | Bcast | Reduce | Allgather | Alltoall | Barrier
    )
}
