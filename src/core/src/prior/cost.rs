//! What any variant is expected to cost on a machine that was calibrated, before it ever ran.
//!
//! Schedules of our own are simulated; an algorithm of the library by the schedules that it is like ([`alike`]).
//! What runs over shared memory has no expected cost.

use std::collections::HashMap;

use super::alike::{self, Step};
use crate::algorithm::pattern::Pattern;
use crate::algorithm::registry::{Row, Values};
use crate::algorithm::simulate::{Known, Machine, estimate_ns};
use crate::catalogue::{Own, Variant};
use crate::library::Library;

/// Simulations that take more steps are not made.
const STEPS_MAX: usize = 1 << 20;

/// Expected costs on one machine, which share simulations.
pub struct Costs {
    library: Library,
    machine: Machine,
    known: HashMap<Simulated, Known>,
}

/// Simulations that differ in the message alone.
type Simulated = (Pattern, usize, usize, usize, Layout);

/// Ranks as nodes and ranks of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub nodes: u32,
    pub ppn: u32,
}

impl Layout {
    pub fn n_ranks(self) -> u32 {
        self.nodes.saturating_mul(self.ppn)
    }
}

impl Costs {
    pub fn new(library: Library, machine: Machine) -> Costs {
        Costs {
            library,
            machine,
            known: HashMap::new(),
        }
    }

    /// In ns, of the call that takes until its last rank is done; `None` where nothing is known, and where the
    /// variant does not run.
    ///
    /// Units: `bytes` as the collective counts its size.
    pub fn of(&mut self, variant: &Variant, layout: Layout, bytes: u64) -> Option<f64> {
        if !variant.possible(layout.n_ranks(), layout.nodes, u64::MAX) {
            return None;
        }
        match variant.own {
            Some(Own::Schedule(own)) => self.simulated(own.row(), own.values, layout, bytes),
            Some(Own::Node(_)) => None,
            None => {
                let name = &variant.name.algorithm;
                let steps = alike::alike(self.library.product, variant.collective, name)?;
                let segsize = variant.name.segsize.unwrap_or(0);
                self.in_turn(steps, segsize, layout, bytes)
            }
        }
    }

    fn in_turn(&mut self, steps: &[Step], segsize: u64, layout: Layout, bytes: u64) -> Option<f64> {
        let one = |step: &Step| {
            let (row, values) = step.scheduled(segsize, layout.n_ranks())?;
            self.simulated(&row, values, layout, step.bytes.of(bytes, layout.n_ranks()))
        };
        steps.iter().map(one).sum()
    }

    fn simulated(&mut self, row: &Row, values: Values, layout: Layout, bytes: u64) -> Option<f64> {
        let node_of: Vec<u32> = (0..layout.n_ranks())
            .map(|rank| rank / layout.ppn)
            .collect();
        let schedule = row.schedule as usize;
        let alike = (row.pattern, schedule, values.radix, values.window, layout);
        let known = self.known.entry(alike).or_default();
        estimate_ns(
            known,
            row,
            values,
            &node_of,
            bytes,
            &self.machine,
            STEPS_MAX,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::collective::Collective;

    fn costs() -> (Library, Costs) {
        let library = "openmpi-4.1.4".parse().unwrap();
        (library, Costs::new(library, Machine::TYPICAL))
    }

    #[test]
    fn a_linear_broadcast_of_16_mib_over_4096_ranks_is_known_before_it_runs() {
        let (library, mut costs) = costs();
        let layout = Layout {
            nodes: 128,
            ppn: 32,
        };
        let mut cost = |name: &str| {
            let variant = catalogue::find(library, Collective::Bcast, name).unwrap();
            costs.of(&variant, layout, 16 << 20).unwrap()
        };
        let linear = cost("native:basic_linear");
        // Through the root's port to 4,064 ranks, and to 31 beside it.
        let bytes = 4064.0 * f64::from(16 << 20);
        let through_port = bytes * Machine::TYPICAL.between.per_byte_ns;
        assert!((linear / through_port - 1.0).abs() < 0.05, "{linear}");
        let pipelined = cost("native:pipeline:segsize=128KiB");
        assert!(linear > 50.0 * pipelined, "{pipelined}");
        assert!(linear > 10.0 * cost("native:binomial"));
    }
}
