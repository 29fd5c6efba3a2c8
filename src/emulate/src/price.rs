//! What collectives cost: each call is priced once, by what a tuning database has measured or predicts of it at this
//! shape, and else by the simulator of schedules on the machine's calibration.
//!
//! Algorithms of a library are priced by the schedules of ours that send the same (`native:ring` by `p2p:ring`): where
//! both were measured they differ by a percent. `default` is what the machine's library chooses, where its
//! rules are known ([`Defaults`]). A variant without schedules is as far from the default as where it was measured
//! next to the call; those of family `node` without measurements are priced in closed form ([`node`]).

mod rules;

mod choices;

mod learned;

mod node;

mod schedules;

use std::collections::HashMap;

use colltune_amr::telemetry::Meeting;
use colltune_core::algorithm::pattern::Pattern;
use colltune_core::algorithm::simulate::{self, estimate_ns};
use colltune_core::catalogue::Crossing;
use colltune_core::variant::DEFAULT;

use crate::EmulateError;
use crate::machine::Machine;
use crate::outcome::Priced;
use crate::program::Call;

pub use choices::Choices;
pub use learned::{Known, Learned, LearnedCell};
pub use rules::Defaults;

use node::NodeMemory;
use schedules::Part;

/// Steps that a simulation may take.
const STEPS_MAX: usize = 50_000_000;

/// Prices of one machine's collectives.
pub struct Prices<'m> {
    machine: &'m Machine,
    choices: Choices,
    known: HashMap<(Pattern, u64, usize), (f64, Source)>,
    /// Nanoseconds priced so far, by source.
    spent_ns: Priced,
}

/// Where a price comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Measured,
    Regression,
    Simulated,
}

impl<'m> Prices<'m> {
    pub fn new(machine: &'m Machine, choices: Choices) -> Prices<'m> {
        Prices {
            machine,
            choices,
            known: HashMap::new(),
            spent_ns: Priced::default(),
        }
    }

    /// What a call of the program takes when all its ranks come together.
    ///
    /// Errors: `Variant` that does not run on so many ranks.
    pub fn call_ns(&mut self, call: &Call) -> Result<f64, EmulateError> {
        Ok(match call.meeting {
            Meeting::Allreduce | Meeting::Agree => {
                self.ns(Pattern::Allreduce, call.bytes, call.n_ranks)?
            }
            // Lengths first, then what is as long as the longest.
            Meeting::Allgather => {
                self.ns(Pattern::Allgather, 4, call.n_ranks)?
                    + self.ns(Pattern::Allgather, call.bytes.max(1), call.n_ranks)?
            }
            Meeting::Scan => self.ns(Pattern::Scan, call.bytes, call.n_ranks)?,
            Meeting::Alltoall => {
                let block = call.bytes / (call.n_ranks as u64).max(1);
                self.ns(Pattern::Alltoall, block.max(1), call.n_ranks)?
            }
            Meeting::Broadcast => self.ns(Pattern::Bcast, call.bytes, call.n_ranks)?,
            Meeting::Barrier => self.ns(Pattern::Barrier, 0, call.n_ranks)?,
        })
    }

    /// Shares of the priced time by source; all simulated where nothing was priced.
    pub fn priced(&self) -> Priced {
        let spent = self.spent_ns;
        let all = spent.measured + spent.regression + spent.simulated;
        if all <= 0.0 {
            return Priced {
                simulated: 1.0,
                ..Priced::default()
            };
        }
        Priced {
            measured: spent.measured / all,
            regression: spent.regression / all,
            simulated: spent.simulated / all,
        }
    }

    fn ns(&mut self, pattern: Pattern, bytes: u64, n_ranks: usize) -> Result<f64, EmulateError> {
        if n_ranks < 2 {
            return Ok(0.0);
        }
        let (time, source) = match self.known.get(&(pattern, bytes, n_ranks)) {
            Some(&known) => known,
            None => {
                let found = self.price(pattern, self.choices.of(pattern), bytes, n_ranks)?;
                self.known.insert((pattern, bytes, n_ranks), found);
                found
            }
        };
        match source {
            Source::Measured => self.spent_ns.measured += time,
            Source::Regression => self.spent_ns.regression += time,
            Source::Simulated => self.spent_ns.simulated += time,
        }
        Ok(time)
    }

    fn price(
        &self,
        pattern: Pattern,
        chosen: &str,
        bytes: u64,
        n_ranks: usize,
    ) -> Result<(f64, Source), EmulateError> {
        let learned = &self.machine.learned;
        let known = learned.of(pattern, chosen, bytes, self.shape(n_ranks));
        Ok(match known {
            Some(Known::Measured(time)) => (time, Source::Measured),
            Some(Known::Predicted(time)) => (time, Source::Regression),
            Some(Known::Gain(gain)) => {
                let default = self.simulated_ns(pattern, DEFAULT, bytes, n_ranks)?;
                (default / gain, Source::Regression)
            }
            None => match self.simulated_ns(pattern, chosen, bytes, n_ranks) {
                Ok(time) => (time, Source::Simulated),
                Err(error @ EmulateError::UnknownVariant { .. }) => {
                    let scaled = self.by_default_ns(pattern, chosen, bytes, n_ranks);
                    match (scaled, NodeMemory::of(pattern, chosen)) {
                        (Ok(Some(time)), _) => (time, Source::Regression),
                        (_, Some(node)) => {
                            let time = self.node_ns(node, chosen, bytes, n_ranks)?;
                            (time, Source::Simulated)
                        }
                        (scaled, None) => return Err(scaled.err().unwrap_or(error)),
                    }
                }
                Err(error) => return Err(error),
            },
        })
    }

    /// What has no schedules here: as far from the default as where it was measured next to this.
    fn by_default_ns(
        &self,
        pattern: Pattern,
        chosen: &str,
        bytes: u64,
        n_ranks: usize,
    ) -> Result<Option<f64>, EmulateError> {
        let learned = &self.machine.learned;
        if chosen == DEFAULT || !learned.has_measured(pattern, chosen) {
            return Ok(None);
        }
        let nearest = learned.nearest(pattern, chosen, bytes, self.shape(n_ranks));
        let (ranks_there, bytes_there, time_ns) = nearest.ok_or_else(|| EmulateError::Variant {
            variant: chosen.to_owned(),
            ranks: n_ranks,
            reason: "the tuning database knows its times with other numbers of ranks on a node only, and there is no \
                     schedule to simulate"
                .to_owned(),
        })?;
        let default = |bytes, n_ranks| self.price(pattern, DEFAULT, bytes, n_ranks);
        let here = default(bytes, n_ranks)?.0;
        let there = default(bytes_there, ranks_there)?.0;
        Ok(Some(time_ns * here / there))
    }

    /// What a variant of family `node` takes that was not measured.
    fn node_ns(
        &self,
        node: NodeMemory,
        name: &str,
        bytes: u64,
        n_ranks: usize,
    ) -> Result<f64, EmulateError> {
        let (inside, n_nodes) = node.inside_ns(self.machine, name, (bytes, n_ranks))?;
        let bytes = match node.across {
            // A barrier's number.
            Pattern::Allreduce => bytes.max(8),
            _ => bytes,
        };
        let parts = match node.crossing {
            None => return Ok(inside),
            Some(Crossing::Library) => self.parts(node.across, DEFAULT, bytes, n_nodes)?,
            Some(Crossing::Schedule(own)) => schedules::one(own, name, n_nodes)?,
        };
        let leaders: Vec<u32> = (0..n_nodes as u32).collect();
        Ok(inside + self.sum_ns(&parts, name, bytes, &leaders)?)
    }

    fn shape(&self, n_ranks: usize) -> (u32, u32) {
        (n_ranks as u32, self.machine.shape.ppn)
    }

    fn simulated_ns(
        &self,
        pattern: Pattern,
        chosen: &str,
        bytes: u64,
        n_ranks: usize,
    ) -> Result<f64, EmulateError> {
        let parts = self.parts(pattern, chosen, bytes, n_ranks)?;
        self.sum_ns(&parts, chosen, bytes, &self.machine.node_of(n_ranks))
    }

    /// What schedules take, one after another.
    fn sum_ns(
        &self,
        parts: &[Part],
        chosen: &str,
        bytes: u64,
        node_of: &[u32],
    ) -> Result<f64, EmulateError> {
        let (network, n_ranks) = (&self.machine.network, node_of.len());
        let mut sum = 0.0;
        for part in parts {
            let time = estimate_ns(
                &mut simulate::Known::default(),
                &part.row,
                part.values,
                node_of,
                part.bytes(bytes, n_ranks),
                network,
                STEPS_MAX,
            );
            sum += time.ok_or_else(|| EmulateError::Variant {
                variant: chosen.to_owned(),
                ranks: n_ranks,
                reason: format!("simulating it takes more than {STEPS_MAX} steps"),
            })?;
        }
        Ok(sum)
    }

    fn parts(
        &self,
        pattern: Pattern,
        chosen: &str,
        bytes: u64,
        n_ranks: usize,
    ) -> Result<Vec<Part>, EmulateError> {
        let defaults = self.machine.defaults;
        let name = match chosen {
            DEFAULT => rules::default(defaults, pattern, bytes, n_ranks),
            _ => chosen,
        };
        schedules::parts(defaults.product(), pattern, name, n_ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_has_schedules() {
        for pattern in Pattern::ALL {
            for defaults in [Defaults::OpenMpi40, Defaults::OpenMpi41, Defaults::Mpich] {
                // Just below and at each power of two, where rules change.
                for bytes in (0..24).flat_map(|power| [(1 << power) - 1, 1 << power]) {
                    for n in [
                        2, 3, 4, 7, 8, 9, 17, 48, 99, 100, 200, 300, 513, 1024, 2048, 5000,
                    ] {
                        let name = rules::default(defaults, pattern, bytes, n);
                        let parts = schedules::parts(defaults.product(), pattern, name, n);
                        assert!(!parts.unwrap().is_empty(), "{} {name} {n}", pattern.name());
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_known_of_this_shape_is_the_price_and_what_has_no_schedule_has_no_other() {
        let mut machine = crate::machine::preset("hera").unwrap();
        let allreduce = |n_ranks| Call::of_all(Meeting::Allreduce, 8, n_ranks);
        let cell = |known| LearnedCell {
            collective: "allreduce".to_owned(),
            variant: "native:smp".to_owned(),
            bytes: 8..=8,
            nodes: 2..=2,
            ppn: 16..=16,
            known,
        };
        let choose = |learned: &Learned| Choices::from_text("allreduce=native:smp", learned);
        let error = choose(&machine.learned).unwrap_err().to_string();
        assert!(error.contains("native:smp"), "{error}");
        let known = Learned(vec![cell(Known::Measured(12_345.0))]);
        let choices = choose(&known).unwrap();
        let default = Prices::new(&machine, Choices::default()).call_ns(&allreduce(32));
        for (known, time) in [
            (Known::Predicted(678.0), 678.0),
            (Known::Gain(2.0), default.unwrap() / 2.0),
        ] {
            machine.learned = Learned(vec![cell(known)]);
            let mut prices = Prices::new(&machine, choices.clone());
            assert_eq!(prices.call_ns(&allreduce(32)).unwrap(), time);
            assert_eq!(prices.priced().regression, 1.0);
        }
        machine.learned = known;
        let error = Prices::new(&machine, choices.clone()).call_ns(&allreduce(8));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("on a node only"), "{error}");
        let mut prices = Prices::new(&machine, choices);
        assert_eq!(prices.priced().simulated, 1.0);
        assert_eq!(prices.call_ns(&allreduce(32)).unwrap(), 12_345.0);
        assert_eq!(prices.priced().measured, 1.0);
        let barrier = Call::of_all(Meeting::Barrier, 0, 32);
        let simulated = prices.call_ns(&barrier).unwrap();
        let share = 12_345.0 / (12_345.0 + simulated);
        assert!((prices.priced().measured - share).abs() < 1e-12);
        // At another size, or on other nodes, it is as far from the default.
        let default = |bytes, n_ranks| {
            let call = Call::of_all(Meeting::Allreduce, bytes, n_ranks);
            Prices::new(&machine, Choices::default())
                .call_ns(&call)
                .unwrap()
        };
        for (bytes, n_ranks) in [(4096, 32), (8, 64)] {
            let ratio = default(bytes, n_ranks) / default(8, 32);
            let found = prices.call_ns(&Call::of_all(Meeting::Allreduce, bytes, n_ranks));
            assert!((found.unwrap() / (12_345.0 * ratio) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn node_memory_that_nobody_measured_costs_its_tree_its_copies_and_its_leaders() {
        let mut machine = crate::machine::preset("hera").unwrap();
        let price = |machine: &Machine, text: &str, bytes, n_ranks| {
            let choices = Choices::from_text(&format!("allreduce={text}"), &machine.learned)?;
            let call = Call::of_all(Meeting::Allreduce, bytes, n_ranks);
            Prices::new(machine, choices).call_ns(&call)
        };
        let inside = machine.network.inside;
        let (step, ppn) = (
            inside.latency_ns + inside.overhead_ns,
            machine.shape.ppn as usize,
        );
        assert_eq!(ppn, 16);
        let alone = |bytes: u64| 2.0 * (4.0 * step + bytes as f64 * inside.per_byte_ns);
        assert_eq!(price(&machine, "node:shm", 1024, 16).unwrap(), alone(1024));
        machine.shape.ppn = 1;
        let leaders = |name: &str| price(&machine, name, 1024, 8).unwrap();
        let (ring, default) = (leaders("p2p:ring"), leaders("default"));
        machine.shape.ppn = 16;
        for (name, between) in [
            ("node:shm+ring", ring),
            ("node:lanes+ring", ring),
            ("node:shm+default", default),
        ] {
            let found = price(&machine, name, 1024, 8 * 16).unwrap();
            assert!((found - alone(1024) - between).abs() < 1e-6, "{name}");
        }
        for (name, n_ranks, words) in [
            ("node:shm", 32, "one node"),
            ("node:shm+ring", 16, "between nodes"),
            ("node:shm+rings", 32, "node:shm+rings"),
            ("node:lane+ring", 32, "node:lane+ring"),
        ] {
            let error = price(&machine, name, 8, n_ranks).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
        // Nodes meet in a barrier by reducing a number.
        let barrier = |name: &str| {
            let choices =
                Choices::from_text(&format!("barrier=node:shm+{name}"), &machine.learned)?;
            Prices::new(&machine, choices).call_ns(&Call::of_all(Meeting::Barrier, 0, 32))
        };
        assert!(barrier("recursive_doubling").unwrap() > 0.0);
        let error = barrier("dissemination").unwrap_err().to_string();
        assert!(
            error.contains("node:shm+dissemination") && error.contains("node:shm,"),
            "{error}"
        );
        let rooted = Choices::from_text("alltoall=node:shm", &machine.learned);
        assert!(rooted.is_err(), "its ranks do not meet in a tree");
    }
}
