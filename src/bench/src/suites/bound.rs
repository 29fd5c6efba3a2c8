//! What no algorithm over messages can go below in a cell: the bytes that must cross a node's link, or
//! the rounds of messages that the last rank waits for.
//!
//! Both are the usual lower bounds of one message a rank at a time (E. Chan, M. Heimlich, A. Purkayastha,
//! R. van de Geijn: Collective communication: theory, practice, and experience, 2007). The memory of a
//! node can be faster than its messages, and more ranks than cores take their rounds in turn.

use colltune_core::algorithm::simulate::Link;
use colltune_core::calibration::Calibration;
use colltune_core::collective::Collective;

use super::jobs::Cell;
use super::place::Place;

/// A place as its bounds see it.
pub struct Bounds {
    nodes: usize,
    ranks_per_node: usize,
    /// One way of a short message inside a node and between two, in nanoseconds; 0 where there is none.
    inside_ns: f64,
    between_ns: f64,
    /// A node's link in either direction, in bits per nanosecond.
    link_gbit: Option<f64>,
}

impl Bounds {
    pub fn new(place: &Place, measured: &Calibration) -> Bounds {
        let one_way = |link: &Option<Link>| {
            link.as_ref()
                .map_or(0.0, |link| link.latency_ns + 2.0 * link.overhead_ns)
        };
        Bounds {
            nodes: place.nodes,
            ranks_per_node: place.n_ranks / place.nodes,
            inside_ns: one_way(&measured.inside),
            between_ns: one_way(&measured.between),
            link_gbit: place.link_gbit(),
        }
    }

    /// The bound of a cell in nanoseconds: the larger of the two.
    pub fn of(&self, cell: Cell) -> f64 {
        let link = self.link_gbit.unwrap_or(f64::INFINITY);
        (self.link_bytes(cell) * 8.0 / link).max(self.rounds_ns())
    }

    /// Whether bytes count at all.
    pub fn has_links(&self) -> bool {
        self.nodes > 1 && self.link_gbit.is_some()
    }

    fn rounds_ns(&self) -> f64 {
        let rounds = |members: usize| f64::from(members.next_power_of_two().ilog2());
        rounds(self.nodes) * self.between_ns + rounds(self.ranks_per_node) * self.inside_ns
    }

    /// What must cross the busiest link in one direction.
    fn link_bytes(&self, (collective, bytes): Cell) -> f64 {
        let (nodes, own) = (self.nodes as f64, self.ranks_per_node as f64);
        let others = (nodes - 1.0) * own;
        let bytes = bytes as f64;
        match collective {
            _ if self.nodes < 2 => 0.0,
            Collective::Allreduce => 2.0 * bytes * (nodes - 1.0) / nodes,
            Collective::Bcast | Collective::Reduce => bytes,
            Collective::Allgather => bytes * others,
            Collective::Alltoall => bytes * others * own,
            _ => 0.0,
        }
    }

    pub fn describe(&self) -> String {
        let mut said = format!(
            "bound: the larger of the bytes that must cross a node's link and of the rounds of messages; one way of a \
             short message takes {:.1} us inside a node",
            self.inside_ns / 1e3
        );
        if self.nodes > 1 {
            said += &format!(" and {:.1} us between two", self.between_ns / 1e3);
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_bounds_long_messages_and_rounds_short_ones() {
        let cluster = Bounds {
            nodes: 4,
            ranks_per_node: 2,
            inside_ns: 4e3,
            between_ns: 16e3,
            link_gbit: Some(1.0),
        };
        let ms = |collective| cluster.of((collective, 262_144)) / 1e6;
        for (collective, expected) in [
            (Collective::Allreduce, 3.146),
            (Collective::Bcast, 2.097),
            (Collective::Reduce, 2.097),
            (Collective::Allgather, 12.583),
            (Collective::Alltoall, 25.166),
        ] {
            assert!((ms(collective) - expected).abs() < 1e-3, "{collective}");
        }
        assert_eq!(cluster.of((Collective::Allreduce, 8)), 36e3);
        let node = Bounds {
            nodes: 1,
            ranks_per_node: 8,
            link_gbit: None,
            ..cluster
        };
        assert_eq!(node.of((Collective::Alltoall, 1 << 20)), 12e3);
    }
}
