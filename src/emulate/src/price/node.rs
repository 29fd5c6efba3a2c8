//! What family `node` costs where it was not measured: in each node a tree of its ranks and copies of the bytes, between
//! them a schedule among one rank of each, or what the library would run there.
//!
//! ```text
//! ways (ceil(log2 ppn) (latency + overhead) + bytes per_byte) + among leaders
//! ```
//! With as many ways as there are, up and down. Lanes share their node's port, so that what they send together takes what
//! a leader alone sends. Stores in shared memory are faster than messages: what a database measured goes first.

use colltune_core::algorithm::pattern::Pattern;
use colltune_core::catalogue::{self, Crossing, OnNodes, Own};
use colltune_core::collective::Collective;
use colltune_core::library::{Library, Product};

use crate::EmulateError;
use crate::machine::Machine;

/// A variant of family `node` whose ranks meet in a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeMemory {
    /// What runs between the nodes. None: it runs on one node.
    pub crossing: Option<Crossing>,
    /// What that is of.
    pub across: Pattern,
    ways: f64,
}

/// Family `node` is the same beside every library.
const ANY: Library = Library {
    product: Product::OpenMpi,
    version: (4, 1, 0),
};

impl NodeMemory {
    /// None where the catalogue has no such variant, or one whose ranks meet otherwise.
    pub fn of(pattern: Pattern, name: &str) -> Option<NodeMemory> {
        let (collective, across, ways) = match pattern {
            Pattern::Allreduce => (Collective::Allreduce, pattern, 2.0),
            // One number is reduced between the nodes.
            Pattern::Barrier => (Collective::Barrier, Pattern::Allreduce, 2.0),
            Pattern::Bcast => (Collective::Bcast, pattern, 1.0),
            Pattern::Reduce => (Collective::Reduce, pattern, 1.0),
            _ => return None,
        };
        let found = catalogue::find(ANY, collective, name)?;
        let Some(Own::Node(on_nodes)) = found.own else {
            return None;
        };
        let crossing = match on_nodes {
            OnNodes::Alone => None,
            OnNodes::Leaders(crossing) | OnNodes::Lanes(crossing) => Some(crossing),
            OnNodes::Reading | OnNodes::Direct(_) => return None,
        };
        Some(NodeMemory {
            crossing,
            across,
            ways,
        })
    }

    /// What it takes inside the nodes, nanoseconds; and between how many of them the rest runs.
    ///
    /// Errors: `Variant` that runs on one node alone, or on several.
    pub fn inside_ns(
        &self,
        machine: &Machine,
        name: &str,
        (bytes, n_ranks): (u64, usize),
    ) -> Result<(f64, usize), EmulateError> {
        let ppn = (machine.shape.ppn as usize).min(n_ranks);
        let n_nodes = n_ranks.div_ceil(ppn);
        let reason = match (self.crossing, n_nodes) {
            (None, 2..) => Some(format!("it runs on one node, and these are {n_nodes}")),
            (Some(_), 1) => Some("it runs between nodes, and this is one".to_owned()),
            _ => None,
        };
        if let Some(reason) = reason {
            return Err(EmulateError::Variant {
                variant: name.to_owned(),
                ranks: n_ranks,
                reason,
            });
        }
        let link = &machine.network.inside;
        let depth = f64::from(usize::BITS - (ppn - 1).leading_zeros());
        let way = depth * (link.latency_ns + link.overhead_ns);
        let copies = match ppn {
            1 => 0.0,
            _ => bytes as f64 * link.per_byte_ns,
        };
        Ok((self.ways * (way + copies), n_nodes))
    }
}
