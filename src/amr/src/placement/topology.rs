//! Which ranks share a node, and what messages between them cost, as policies get them.

use colltune_placement::{Link, Machine};

/// The ranks of a job, node by node.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Ranks, those of a node one after the other.
    pub ranks: Vec<u32>,
    /// As many of them at a time, from the first on, are on one node.
    pub ranks_per_node: u32,
    /// Seconds of messages, where they are known.
    pub links: Option<Machine>,
}

impl Topology {
    /// Ranks by the numbers of their nodes.
    ///
    /// Where nodes have unequal numbers of ranks, their largest common divisor stands for all: ranks that are said to
    /// share a node do.
    pub fn new(nodes: &[u64], links: Option<Machine>) -> Topology {
        let mut ranks: Vec<u32> = (0..nodes.len() as u32).collect();
        ranks.sort_by_key(|&rank| nodes[rank as usize]);
        let counts = ranks.chunk_by(|&a, &b| nodes[a as usize] == nodes[b as usize]);
        let common = counts.fold(0, |common, node| divisor(common, node.len() as u32));
        Topology {
            ranks,
            ranks_per_node: common.max(1),
            links,
        }
    }

    /// The place of each rank in [`Topology::ranks`].
    pub fn places(&self) -> Vec<u32> {
        let mut places = vec![0; self.ranks.len()];
        for (place, &rank) in (0..).zip(&self.ranks) {
            places[rank as usize] = place;
        }
        places
    }

    /// Ranks as their places in [`Topology::ranks`].
    pub fn to_places(&self, ranks: &[u32]) -> Vec<u32> {
        let places = self.places();
        ranks.iter().map(|&rank| places[rank as usize]).collect()
    }

    /// Seconds in which the rank that gives and takes most has done so, where blocks of so many bytes go from their
    /// present owners to others; 0 where links are not known.
    pub fn migration_s(&self, before: &[u32], after: &[u32], block_bytes: u64) -> f64 {
        let Some(links) = self.links else { return 0.0 };
        let places = self.places();
        let node = |rank: u32| places[rank as usize] / self.ranks_per_node;
        let mut busy = vec![0.0f64; self.ranks.len()];
        for (&from, &to) in before.iter().zip(after).filter(|(from, to)| from != to) {
            let Link { latency, per_byte } = match node(from) == node(to) {
                true => links.same_node,
                false => links.remote,
            };
            for rank in [from, to] {
                busy[rank as usize] += latency + per_byte * block_bytes as f64;
            }
        }
        busy.into_iter().fold(0.0, f64::max)
    }
}

/// The largest common divisor; that of 0 and a number is the number.
fn divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => divisor(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_stand_node_by_node_and_none_is_said_to_share_a_node_that_does_not() {
        let dealt = Topology::new(&[5, 2, 5, 2, 5, 2], None);
        assert_eq!(
            (&dealt.ranks[..], dealt.ranks_per_node),
            (&[1, 3, 5, 0, 2, 4][..], 3)
        );
        assert_eq!(dealt.places(), [3, 0, 4, 1, 5, 2]);
        let uneven = Topology::new(&[0, 0, 0, 0, 1, 1], None);
        assert_eq!(uneven.ranks_per_node, 2);
        assert_eq!(Topology::new(&[0, 0, 1], None).ranks_per_node, 1);
        assert_eq!(Topology::new(&[0, 0, 0], None).ranks_per_node, 3);
    }

    #[test]
    fn migration_takes_as_long_as_its_busiest_rank() {
        let link = |latency| Link {
            latency,
            per_byte: 0.5,
        };
        let links = Machine {
            same_node: link(1.0),
            remote: link(10.0),
        };
        let topology = Topology::new(&[0, 0, 1, 1], Some(links));
        let before = [0, 0, 1, 2];
        assert_eq!(topology.migration_s(&before, &before, 8), 0.0);
        // Rank 0 gives one block to its neighbour and one to the other node.
        assert_eq!(topology.migration_s(&before, &[1, 2, 1, 2], 8), 5.0 + 14.0);
        let unknown = Topology {
            links: None,
            ..topology
        };
        assert_eq!(unknown.migration_s(&before, &[1, 2, 1, 2], 8), 0.0);
    }
}
