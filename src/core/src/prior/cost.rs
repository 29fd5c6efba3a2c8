//! What any variant is expected to cost on a machine that was calibrated, before it ever ran.
//!
//! Schedules of our own are simulated; an algorithm of the library by the schedules that it is like ([`alike`]); a
//! composition by its parts, each as the best algorithm that the library has for it. What runs over shared memory has
//! no expected cost.

use std::collections::HashMap;

use super::alike::{self, Step};
use crate::algorithm::pattern::Pattern;
use crate::algorithm::registry::{self, Row, Values};
use crate::algorithm::simulate::{Known, Machine, estimate_ns};
use crate::catalogue::{self, Own, Variant};
use crate::collective::Collective;
use crate::library::Library;
use crate::variant::Family;

/// Simulations that take more steps are not made.
const STEPS_MAX: usize = 1 << 20;

/// Expected costs on one machine, which share simulations.
pub struct Costs {
    library: Library,
    machine: Machine,
    natives: HashMap<Collective, Vec<Variant>>,
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
            natives: HashMap::new(),
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
            None if variant.name.family == Family::Default => {
                self.best(variant.collective, layout, bytes)
            }
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

    /// The cheapest of the library's algorithms; of a collective for which it has one alone, of ours.
    fn best(&mut self, collective: Collective, layout: Layout, bytes: u64) -> Option<f64> {
        let library = self.library;
        let of = || {
            let all = catalogue::variants(library, collective).into_iter();
            all.filter(|variant| variant.name.family == Family::Native)
                .collect()
        };
        let natives = self.natives.entry(collective).or_insert_with(of).clone();
        let facts = catalogue::Facts::usual(collective, bytes, layout.n_ranks(), layout.nodes);
        let native = natives
            .iter()
            .filter(|variant| variant.applies(&facts))
            .filter_map(|variant| self.of(variant, layout, bytes))
            .min_by(f64::total_cmp);
        native.or_else(|| {
            let rows = registry::rows(Pattern::of(collective)?);
            rows.filter(|row| row.fits(layout.n_ranks() as usize))
                .filter_map(|row| self.simulated(row, row.values()[0], layout, bytes))
                .min_by(f64::total_cmp)
        })
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

    #[test]
    fn the_default_costs_what_the_best_of_the_library_does() {
        let (library, mut costs) = costs();
        let layout = Layout { nodes: 4, ppn: 4 };
        let mut cost = |collective, name: &str, bytes| {
            let variant = catalogue::find(library, collective, name).unwrap();
            costs.of(&variant, layout, bytes)
        };
        for bytes in [8, 4096, 1 << 20] {
            let natives = catalogue::variants(library, Collective::Allreduce);
            let facts = catalogue::Facts::usual(Collective::Allreduce, bytes, 16, 4);
            let natives = natives
                .iter()
                .filter(|variant| variant.name.family == Family::Native && variant.applies(&facts));
            let least = natives
                .filter_map(|variant| cost(Collective::Allreduce, &variant.name.to_string(), bytes))
                .min_by(f64::total_cmp);
            assert_eq!(cost(Collective::Allreduce, "default", bytes), least);
            assert_eq!(cost(Collective::Allreduce, "node:shm+default", bytes), None);
        }
    }
}
