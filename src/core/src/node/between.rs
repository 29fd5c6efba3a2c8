//! What carries a collective from node to node.

use crate::algorithm::pattern::Pattern;
use crate::catalogue::Carriers;
use crate::collective::Collective;

/// A row of the registry, by its name and the segment size in bytes; 0 is "in one piece".
pub type Between = (&'static str, u64);

const KIB: u64 = 1 << 10;

/// The schedules that leaders of nodes are tried with.
pub fn leaders(collective: Collective) -> &'static [Between] {
    match collective {
        Collective::Allreduce => &[
            ("recursive_doubling", 0),
            ("ring", 0),
            ("segmented_ring", 16 * KIB),
            ("rabenseifner", 0),
        ],
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

/// The schedules that lanes are tried with.
pub fn lanes(collective: Collective) -> &'static [Between] {
    match collective {
        Collective::Allreduce => &[("ring", 0), ("segmented_ring", 16 * KIB)],
        Collective::Bcast | Collective::Reduce => &[("chain", 16 * KIB)],
        _ => &[],
    }
}

/// Who carries the blocks of a collective that moves them.
pub fn direct(collective: Collective) -> &'static [Carriers] {
    match collective {
        Collective::Allgather => &[Carriers::Leader, Carriers::Each],
        Collective::Alltoall => &[Carriers::Each],
        _ => &[],
    }
}

/// What leaders do together. Those of a barrier reduce one number: nobody has the result before
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

/// The most lanes that a node has: more of them gain nothing.
pub const LANES_MOST: usize = 8;

/// The share of a message that each of the lanes carries: its first unit, and how many.
pub fn share(units: u64, lane: usize, lanes: usize) -> (u64, u64) {
    super::layout::slice(units, lane, lanes)
}

/// The longest share.
pub fn longest_share(units: u64, lanes: usize) -> u64 {
    units.div_ceil(lanes.max(1) as u64)
}

/// The place on a node that holds `n_ranks` of the rank that gets the block of the rank in place
/// `place` of another node.
pub fn receiver(carriers: Carriers, place: usize, n_ranks: usize) -> usize {
    match carriers {
        Carriers::Leader => 0,
        Carriers::Each => place % n_ranks,
    }
}

/// For each place of node `own` the blocks that it gets from the other nodes, in the order in which
/// they come: ranks of the communicator. `nodes[b]` lists those of node `b`.
pub fn streams(nodes: &[Vec<usize>], own: usize, carriers: Carriers) -> Vec<Vec<usize>> {
    let n_here = nodes[own].len();
    let mut streams = vec![Vec::new(); n_here];
    for step in 1..nodes.len() {
        let from = &nodes[(own + step) % nodes.len()];
        for (place, &rank) in from.iter().enumerate() {
            streams[receiver(carriers, place, n_here)].push(rank);
        }
    }
    streams
}

/// Messages are no longer, so that they need not ask the receiver first.
const MESSAGE: u64 = 32 * KIB;
/// Messages that a rank posts at once, at most, beside one for each stretch of blocks.
pub const MESSAGES_MOST: u64 = 256;

/// The longest message that carries blocks of a call whose blocks are `total` bytes together.
pub fn message_bytes(total: u64) -> u64 {
    MESSAGE.max(total.div_ceil(MESSAGES_MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_another_node_comes_to_one_rank_of_a_node_once() {
        let layouts = [vec![1, 3, 2], vec![4, 1], vec![2, 2, 2], vec![5, 1, 1, 3]];
        for sizes in layouts {
            let mut next = 0;
            let mut node = |len: usize| {
                let ranks: Vec<usize> = (next..next + len).collect();
                next += len;
                ranks
            };
            let nodes: Vec<Vec<usize>> = sizes.iter().map(|len| node(*len)).collect();
            for own in 0..nodes.len() {
                for carriers in [Carriers::Leader, Carriers::Each] {
                    let mut all = streams(&nodes, own, carriers).concat();
                    all.sort_unstable();
                    let wanted: Vec<_> = (0..next).filter(|r| !nodes[own].contains(r)).collect();
                    assert_eq!(all, wanted, "{sizes:?} {own} {carriers:?}");
                }
            }
        }
    }

    #[test]
    fn lanes_share_the_message_and_none_has_more_than_the_longest() {
        for units in 0..30 {
            for lanes in 1..LANES_MOST {
                let shares: Vec<_> = (0..lanes).map(|lane| share(units, lane, lanes)).collect();
                assert_eq!(shares.iter().map(|share| share.1).sum::<u64>(), units);
                let longest = shares.iter().map(|share| share.1).max();
                assert_eq!(longest, Some(longest_share(units, lanes)));
            }
        }
    }
}
