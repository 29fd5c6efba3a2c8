//! What carries a collective from node to node.

use crate::algorithm::registry::{BlockOrder, Scheduled};
use crate::collective::Collective;

/// A schedule that carries a message from node to node.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    /// The variant that it is where it runs alone.
    pub variant: &'static str,
    /// The sizes at which it is worth a try: from so many bytes up to fewer than so many.
    pub sizes: (u64, u64),
}

const KIB: u64 = 1 << 10;

const fn row(variant: &'static str, sizes: (u64, u64)) -> Between {
    Between { variant, sizes }
}

const LONG: u64 = u64::MAX;

const ALLREDUCE: &[Between] = &[
    row("p2p:reduce_bcast:radix=8", (0, 8 * KIB)),
    row("p2p:recursive_doubling", (0, 32 * KIB)),
    row("p2p:rabenseifner", (8 * KIB, 128 * KIB)),
    row("p2p:ring", (32 * KIB, 256 * KIB)),
    row("p2p:segmented_ring:segsize=16KiB", (128 * KIB, LONG)),
];
const BCAST: &[Between] = &[
    row("p2p:knomial:radix=8", (0, 8 * KIB)),
    row("p2p:binomial", (0, 32 * KIB)),
    row("p2p:chain:segsize=4KiB", (8 * KIB, 64 * KIB)),
    row("p2p:scatter_allgather", (16 * KIB, 256 * KIB)),
    row("p2p:chain:segsize=16KiB", (64 * KIB, LONG)),
];
const REDUCE: &[Between] = &[
    row("p2p:knomial:radix=8", (0, 8 * KIB)),
    row("p2p:binomial", (0, 64 * KIB)),
    row("p2p:chain:segsize=16KiB", (32 * KIB, LONG)),
    row("p2p:rabenseifner", (64 * KIB, LONG)),
];
const BARRIER: &[Between] = &[
    row("p2p:reduce_bcast:radix=8", (0, LONG)),
    row("p2p:recursive_doubling", (0, LONG)),
];
/// By the bytes of one rank's block, as for alltoall. Longer ones go straight to every other node.
const ALLGATHER: &[Between] = &[
    row("p2p:gather_bcast:radix=8", (0, 512)),
    row("p2p:bruck:radix=2", (64, 8 * KIB)),
];
const ALLTOALL: &[Between] = &[
    row("p2p:gather_scatter:radix=8", (0, KIB)),
    row("p2p:bruck:radix=2", (64, 8 * KIB)),
    row("p2p:scattered:window=4", (2 * KIB, 16 * KIB)),
];
const LANES_ALLREDUCE: &[Between] = &[row("p2p:segmented_ring:segsize=16KiB", (64 * KIB, LONG))];
const LANES_CHAIN: &[Between] = &[row("p2p:chain:segsize=16KiB", (64 * KIB, LONG))];

/// The schedules that leaders of nodes are tried with. At each size there are few, because each takes
/// samples from the others: fewest rounds and fewest messages for short ones, least bytes for long ones.
pub fn leaders(collective: Collective) -> &'static [Between] {
    match collective {
        Collective::Allreduce => ALLREDUCE,
        Collective::Bcast => BCAST,
        Collective::Reduce => REDUCE,
        Collective::Barrier => BARRIER,
        Collective::Allgather => ALLGATHER,
        Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => ALLTOALL,
        _ => &[],
    }
}

/// The schedules that lanes are tried with. On four nodes of two ranks that share 1 Gbit/s an allreduce
/// of 256 KiB takes them 3.4 ms, leaders 3.8 and the link alone 3.1.
pub fn lanes(collective: Collective) -> &'static [Between] {
    match collective {
        Collective::Allreduce => LANES_ALLREDUCE,
        Collective::Bcast | Collective::Reduce => LANES_CHAIN,
        _ => &[],
    }
}

/// Which ranks of a node carry blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriers {
    /// One, for all.
    Leader,
    /// Each its own.
    Each,
}

/// Who carries the blocks of a collective that moves them.
pub fn direct(collective: Collective) -> &'static [Carriers] {
    match collective {
        Collective::Allgather => &[Carriers::Leader, Carriers::Each],
        Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => &[Carriers::Each],
        _ => &[],
    }
}

/// What ranks of different nodes run with each other, where they meet in one collective. Those of a barrier
/// reduce one number: no rank has the result before all have come.
pub fn meeting(collective: Collective) -> Option<Collective> {
    match collective {
        Collective::Barrier => Some(Collective::Allreduce),
        other => (!leaders(other).is_empty()).then_some(other),
    }
}

/// The order in which a node's pieces are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// From the first to the last.
    Forth,
    /// From this one back to the first, and from the last back to it.
    Back { from: u64 },
}

impl Turn {
    /// The piece that is taken as number `index` of `pieces`. Its own inverse: of a piece it gives the
    /// number as which that is taken.
    #[inline]
    pub fn piece(self, index: u64, pieces: u64) -> u64 {
        match self {
            Turn::Forth => index,
            Turn::Back { from } => (from + pieces - index) % pieces,
        }
    }
}

/// The orders in which the leader of node `node` of `nodes` wants what its node combines, and in which the
/// result comes to it, of a message of `pieces` pieces. Another order is right as well, but late.
pub fn turns(between: &Scheduled, node: usize, nodes: usize, pieces: u64) -> (Turn, Turn) {
    if between.row().blocks == BlockOrder::Any || pieces == 0 {
        return (Turn::Forth, Turn::Forth);
    }
    // The block behind its own comes first.
    let last_of = |block: usize| Turn::Back {
        from: (pieces * (block as u64 + 1)).div_ceil(nodes as u64) - 1,
    };
    (last_of(node), last_of((node + 1) % nodes))
}

/// Whether a collective runs over the memory of a node at all.
pub fn on_one_node(collective: Collective) -> bool {
    use Collective::{
        Allgather, Allreduce, Alltoall, Alltoallv, Alltoallw, Barrier, Bcast, Reduce,
    };
    matches!(
        collective,
        Allreduce | Bcast | Reduce | Allgather | Alltoall | Alltoallv | Alltoallw | Barrier
    )
}

/// Whether the ranks of a node can run a collective by reading each other's buffers where they lie.
pub fn by_reading(collective: Collective) -> bool {
    use Collective::{Allgather, Allreduce, Alltoall, Alltoallv, Alltoallw, Bcast};
    matches!(
        collective,
        Allgather | Allreduce | Alltoall | Alltoallv | Alltoallw | Bcast
    )
}

/// From so many bytes on that is worth a try: below, the kernel's part takes longer than a second copy.
pub const READING_LEAST: u64 = 8 * KIB;

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
pub(super) fn streams(nodes: &[Vec<usize>], own: usize, carriers: Carriers) -> Vec<Vec<usize>> {
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
const MESSAGES_MOST: u64 = 256;

/// The longest message that carries blocks of a call whose blocks are `total` bytes together.
pub fn message_bytes(total: u64) -> u64 {
    MESSAGE.max(total.div_ceil(MESSAGES_MOST))
}

/// A message: where its units lie in the buffer, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub at: u64,
    pub units: u64,
}

/// The messages that carry these blocks of `block` units, in order: each has a stretch of blocks that lie together, or
/// `longest` units of it. Both ends find the same ones.
pub fn messages(blocks: &[usize], block: u64, longest: u64) -> impl Iterator<Item = Extent> {
    let stretches = blocks.chunk_by(|a, b| a + 1 == *b);
    stretches.flat_map(move |stretch| {
        let (start, all) = (stretch[0] as u64 * block, stretch.len() as u64 * block);
        (0..all.div_ceil(longest)).map(move |index| {
            let sent = index * longest;
            Extent {
                at: start + sent,
                units: longest.min(all - sent),
            }
        })
    })
}

/// More messages than this never carry `blocks` of the call's `all` blocks, whatever their length.
pub fn messages_most(blocks: usize, all: usize) -> usize {
    blocks + MESSAGES_MOST as usize * blocks / all.max(1) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_carry_blocks_in_order_and_are_no_more_than_was_said() {
        let lists: [&[usize]; 5] = [&[3], &[0, 1, 2], &[4, 5, 9, 10, 2], &[7, 6, 5], &[]];
        for blocks in lists {
            for block in [1, 5, 1000, 40_000, 1_000_000] {
                let all = 11;
                let longest = message_bytes(block * all);
                let (mut carried, mut n_messages) = (Vec::new(), 0);
                for message in messages(blocks, block, longest) {
                    assert!(message.units > 0 && message.units <= longest);
                    carried.extend(message.at..message.at + message.units);
                    n_messages += 1;
                }
                let of = |rank: &usize| *rank as u64 * block..(*rank as u64 + 1) * block;
                assert!(carried.into_iter().eq(blocks.iter().flat_map(of)));
                assert!(n_messages <= messages_most(blocks.len(), all as usize));
            }
        }
    }

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
    fn a_turn_takes_every_piece_once_and_begins_with_its_own() {
        for pieces in 1..12 {
            for from in 0..pieces {
                for turn in [Turn::Forth, Turn::Back { from }] {
                    let mut taken: Vec<_> = (0..pieces).map(|i| turn.piece(i, pieces)).collect();
                    let first = if turn == Turn::Forth { 0 } else { from };
                    assert_eq!(taken[0], first);
                    for (number, piece) in (0..).zip(&taken) {
                        assert_eq!(turn.piece(*piece, pieces), number, "its own inverse");
                    }
                    taken.sort_unstable();
                    assert!(taken.into_iter().eq(0..pieces));
                }
            }
        }
    }

    #[test]
    fn leaders_are_tried_with_one_to_three_schedules_at_every_size() {
        use Collective::{Allreduce, Bcast, Reduce};
        for collective in [Allreduce, Bcast, Reduce] {
            for bytes in (0..32).map(|bits| 1u64 << bits) {
                let of_size = |row: &&Between| (row.sizes.0..row.sizes.1).contains(&bytes);
                let tried = leaders(collective).iter().filter(of_size).count();
                assert!((1..=3).contains(&tried), "{collective} of {bytes}");
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
