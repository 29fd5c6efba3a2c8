//! The shape of an algorithm: what its busiest rank, or its longest path, has to carry.
//!
//! Nothing is measured here. That a message goes through one port as often as there are ranks is known
//! before it is tried, and is all that is asked: what costs many times as much as something that can stand
//! for it, on every machine between a fast node and a slow network, is not worth a try.

/// Costs of one message and of one byte in nanoseconds: a fast node's memory and a slow network. What is
/// beyond another on both is so on every machine between them.
pub const MACHINES: [(f64, f64); 2] = [(1e3, 0.05), (20e3, 8.0)];
/// What a library's algorithm may cost by its shape, in times of what another one does that could run instead,
/// and still be drawn, whatever was learned: where something was learned of fewer ranks, it says nothing of more.
pub const ABSURD: f64 = 32.0;

/// Messages one after another and bytes of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    pub messages: f64,
    pub bytes: f64,
}

impl Load {
    /// Whether it is more than `factor` times the other on every machine.
    pub fn is_beyond(self, other: Load, factor: f64) -> bool {
        let cost =
            |load: Load, (message, byte): (f64, f64)| load.messages * message + load.bytes * byte;
        let worse = |machine| cost(self, machine) > factor * cost(other, machine);
        MACHINES.into_iter().all(worse)
    }
}

/// How a number grows with the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    Once,
    Twice,
    /// The logarithm to the base 2, rounded up.
    Log,
    TwiceLog,
    /// Of all ranks but one.
    Ranks,
    TwiceRanks,
    HalfRanks,
    /// Four chains share the ranks.
    QuarterRanks,
    RanksAndLog,
    /// Half of the ranks' blocks in each of the logarithm's rounds.
    HalfRanksEachRound,
}

impl Growth {
    fn of(self, n_ranks: u32) -> f64 {
        let n = f64::from(n_ranks.max(2));
        let (others, log) = (n - 1.0, n.log2().ceil());
        match self {
            Growth::Once => 1.0,
            Growth::Twice => 2.0,
            Growth::Log => log,
            Growth::TwiceLog => 2.0 * log,
            Growth::Ranks => others,
            Growth::TwiceRanks => 2.0 * others,
            Growth::HalfRanks => n / 2.0,
            Growth::QuarterRanks => (others / 4.0).max(1.0),
            Growth::RanksAndLog => others + log,
            Growth::HalfRanksEachRound => n / 2.0 * log,
        }
    }
}

/// How an algorithm spreads a call's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many messages one after another, and so many times the call's bytes in them.
    Rounds(Growth, Growth),
    /// The message goes down or up a tree so deep, in which a rank has so many children. Its segments follow
    /// one another, as do the children's.
    Tree { depth: Growth, children: u8 },
}

impl Shape {
    /// What a call carries. Units: `bytes` as the collective counts its size; `segsize` in bytes, 0 for one piece.
    pub fn load(self, n_ranks: u32, bytes: u64, segsize: u64) -> Load {
        let whole = bytes as f64;
        match self {
            Shape::Rounds(messages, blocks) => Load {
                messages: messages.of(n_ranks),
                bytes: blocks.of(n_ranks) * whole,
            },
            Shape::Tree { depth, children } => {
                let segments = match segsize {
                    0 => 1.0,
                    _ => bytes.div_ceil(segsize).max(1) as f64,
                };
                let (on_the_way, children) = (depth.of(n_ranks) - 1.0, f64::from(children));
                Load {
                    messages: children * (segments + on_the_way),
                    bytes: children * (whole + on_the_way * whole / segments),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_broadcast_sends_everything_through_one_port() {
        let linear = Shape::Rounds(Growth::Ranks, Growth::Ranks);
        let load = linear.load(4096, 16 << 20, 0);
        assert_eq!(load.messages, 4095.0);
        assert_eq!(load.bytes, 4095.0 * (16 << 20) as f64);
    }

    #[test]
    fn segments_make_a_chain_carry_its_message_about_once() {
        let chain = Shape::Tree {
            depth: Growth::Ranks,
            children: 1,
        };
        let whole = chain.load(101, 1 << 20, 0);
        assert_eq!((whole.messages, whole.bytes), (100.0, 100.0 * 1_048_576.0));
        let cut = chain.load(101, 1 << 20, 4096);
        assert_eq!(cut.messages, 256.0 + 99.0);
        assert_eq!(cut.bytes, 1_048_576.0 + 99.0 * 4096.0);
    }

    #[test]
    fn what_is_beyond_is_so_on_a_fast_node_and_on_a_slow_network() {
        let load = |messages, bytes| Load { messages, bytes };
        // Few bytes in many messages and many bytes in few: each is the better one somewhere.
        let (short, long) = (load(100.0, 1e3), load(2.0, 1e7));
        assert!(!short.is_beyond(long, 10.0) && !long.is_beyond(short, 10.0));
        assert!(load(100.0, 1e7).is_beyond(load(2.0, 1e5), 10.0));
        assert!(
            !load(10.0, 1e6).is_beyond(load(1.0, 1e5), 10.0),
            "ten times is not beyond it"
        );
    }

    #[test]
    fn it_is_total() {
        for n_ranks in [0, 1, 2, u32::MAX] {
            for bytes in [0, 1, u64::MAX] {
                for segsize in [0, 1, u64::MAX] {
                    let tree = Shape::Tree {
                        depth: Growth::Ranks,
                        children: 2,
                    };
                    let load = tree.load(n_ranks, bytes, segsize);
                    assert!(load.messages.is_finite() && load.bytes.is_finite());
                }
            }
        }
    }
}
