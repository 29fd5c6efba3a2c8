//! What variants really cost on a synthetic machine.
//!
//! Schedules of ours cost what the simulator says of a machine that is like the calibrated one, but not the same. A
//! library's algorithms cost what their shapes carry there, shared memory a copy or two. A separate smooth random
//! field lies over each, so no simulation knows the truth.

use std::collections::HashMap;

use colltune_core::algorithm::simulate::{Known, Link, Machine, estimate_ns};
use colltune_core::catalogue::{Own, Variant};
use colltune_core::variant::Family;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::field::Field;

/// By so much, in logarithms, each family's variants differ from what is known of them, and in the mean.
const SPREAD: f64 = 0.3;
/// By so much a machine's parameters differ from those that were calibrated.
const MISCALIBRATED: f64 = 0.2;
const STEPS_MAX: usize = 1 << 20;

/// The costs of one machine, made from its random numbers.
pub struct Costs {
    machine: Machine,
    fields: HashMap<(usize, String), Field>,
    known: HashMap<(usize, usize, usize, (u32, u32)), Known>,
}

impl Costs {
    pub fn new(base: Machine, variants: &[Vec<Variant>], rng: &mut ChaCha8Rng) -> Costs {
        let machine = miscalibrated(base, rng);
        let mut fields = HashMap::new();
        for variant in variants.iter().flatten() {
            let key = (variant.collective.index(), variant.name.to_string());
            fields.insert(key, Field::new(rng));
        }
        Costs {
            machine,
            fields,
            known: HashMap::new(),
        }
    }

    /// In ns; `None` where nothing is known of the variant from which a cost could be derived.
    pub fn of(&mut self, variant: &Variant, bytes: u64, nodes: u32, ppn: u32) -> Option<f64> {
        let base = match variant.name.family {
            Family::P2p => self.schedule(variant, bytes, nodes, ppn)?,
            Family::Native => self.shape(variant, bytes, nodes, ppn)?,
            Family::Node => self.on_nodes(bytes, nodes, ppn),
            Family::Default | Family::Mockup => return None,
        };
        let key = (variant.collective.index(), variant.name.to_string());
        let off = self
            .fields
            .get(&key)
            .map_or(0.0, |field| field.at(bytes, nodes, ppn));
        Some(base * (SPREAD * off).exp())
    }

    fn schedule(&mut self, variant: &Variant, bytes: u64, nodes: u32, ppn: u32) -> Option<f64> {
        let own = *variant.own.as_ref().and_then(Own::schedule)?;
        let node_of: Vec<u32> = (0..nodes * ppn).map(|rank| rank / ppn).collect();
        let key = (
            own.place(),
            own.values.radix,
            own.values.window,
            (nodes, ppn),
        );
        let known = self.known.entry(key).or_default();
        let machine = &self.machine;
        estimate_ns(
            known,
            own.row(),
            own.values,
            &node_of,
            bytes,
            machine,
            STEPS_MAX,
        )
    }

    fn shape(&self, variant: &Variant, bytes: u64, nodes: u32, ppn: u32) -> Option<f64> {
        let segsize = variant.name.segsize.unwrap_or(0);
        let load = variant.shape?.load(nodes * ppn, bytes, segsize);
        let link = self.slowest(nodes);
        Some(
            load.messages * (link.latency_ns + 2.0 * link.overhead_ns)
                + load.bytes * link.per_byte_ns,
        )
    }

    /// A copy in and out on each node, and as many rounds as nodes have bits between them.
    fn on_nodes(&self, bytes: u64, nodes: u32, ppn: u32) -> f64 {
        let (inside, between) = (self.machine.inside, self.machine.between);
        let copies = 2.0 * (bytes as f64) * self.machine.copy_per_byte_ns;
        let meet = 2.0 * f64::from(ppn).log2().max(1.0) * inside.overhead_ns;
        let rounds = f64::from(nodes).log2().ceil();
        let round =
            between.latency_ns + 2.0 * between.overhead_ns + bytes as f64 * between.per_byte_ns;
        copies * f64::from(ppn).sqrt() + meet + rounds * round
    }

    fn slowest(&self, nodes: u32) -> Link {
        match nodes {
            1 => self.machine.inside,
            _ => self.machine.between,
        }
    }
}

fn miscalibrated(base: Machine, rng: &mut ChaCha8Rng) -> Machine {
    let mut other = |value: f64| {
        let z: f64 = StandardNormal.sample(rng);
        value * (MISCALIBRATED * z).exp()
    };
    let mut link = |link: Link| Link {
        latency_ns: other(link.latency_ns),
        overhead_ns: other(link.overhead_ns),
        gap_ns: other(link.gap_ns),
        per_byte_ns: other(link.per_byte_ns),
        ..link
    };
    Machine {
        inside: link(base.inside),
        between: link(base.between),
        ..base
    }
}
