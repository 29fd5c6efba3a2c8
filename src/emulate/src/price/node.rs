//! What family `node` costs where nobody measured it: in each node a tree of its ranks and copies of the bytes, between
//! them a schedule among one rank of each, or what the library would run there.
//!
//! ```text
//! phases (ceil(log2 ppn) (latency + overhead) + bytes per_byte) + among leaders
//! ```
//! With as many phases as there are ways, up and down. Lanes share their node's port, so that what they send together takes
//! what a leader alone sends. Stores in shared memory are faster than messages: what a database measured goes first.

use colltune_core::algorithm::pattern::Pattern;
use colltune_core::variant::DEFAULT;

use super::schedules;
use crate::EmulateError;
use crate::machine::Machine;

/// A variant of family `node`.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// What runs between the nodes: the name of a variant. None: it runs on one node.
    pub between: Option<String>,
    phases: f64,
}

impl Variant {
    /// None where the name is of another family or of none that has such phases.
    pub fn of(pattern: Pattern, name: &str) -> Option<Variant> {
        let phases = match pattern {
            Pattern::Allreduce | Pattern::Barrier => 2.0,
            Pattern::Bcast | Pattern::Reduce => 1.0,
            _ => return None,
        };
        let (inside, between) = match name.strip_prefix("node:")?.split_once('+') {
            Some((inside, between)) => (inside, Some(between)),
            None => (name.strip_prefix("node:")?, None),
        };
        let between = between.map(|between| match between {
            DEFAULT => DEFAULT.to_owned(),
            ours => format!("p2p:{ours}"),
        });
        let is_known = match (inside, &between) {
            ("shm", None) => true,
            ("shm" | "lanes", Some(between)) if between == DEFAULT => true,
            ("shm" | "lanes", Some(between)) => schedules::check(pattern, between).is_ok(),
            _ => false,
        };
        is_known.then_some(Variant { between, phases })
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
        let reason = match (&self.between, n_nodes) {
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
        Ok((self.phases * (way + copies), n_nodes))
    }
}
