//! What collectives cost: each call is priced once, by what was measured of it at this shape, and else by the simulator
//! of schedules on the machine's calibration.
//!
//! Algorithms of a library are priced by the schedule of ours that does the same (`native:ring` by `p2p:ring`): where
//! both were measured they differ by a percent. `default` is what the machine's library chooses, where its
//! rules are known ([`Defaults`]).

mod rules;

mod choices;

mod measured;

use std::collections::HashMap;

use colltune_amr::telemetry::Meeting;
use colltune_core::algorithm::pattern::Pattern;
use colltune_core::algorithm::registry::{Row, Values};
use colltune_core::algorithm::simulate::{Known, ends_ns, estimate_ns};

use crate::EmulateError;
use crate::machine::Machine;
use crate::outcome::Priced;
use crate::program::Call;

pub use choices::Choices;
pub use measured::{Measured, MeasuredCell};
pub use rules::Defaults;

use choices::find;

/// Steps that a simulation may take.
const STEPS_MAX: usize = 50_000_000;

/// Prices of one machine's collectives.
pub struct Prices<'m> {
    machine: &'m Machine,
    choices: Choices,
    known: HashMap<(Pattern, u64, usize), (f64, Source)>,
    /// Nanoseconds priced so far, by source.
    pub measured_ns: f64,
    pub simulated_ns: f64,
}

/// Where a price comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Measured,
    Simulated,
}

impl<'m> Prices<'m> {
    pub fn new(machine: &'m Machine, choices: Choices) -> Prices<'m> {
        Prices {
            machine,
            choices,
            known: HashMap::new(),
            measured_ns: 0.0,
            simulated_ns: 0.0,
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
        let all = self.measured_ns + self.simulated_ns;
        let measured = if all > 0.0 {
            self.measured_ns / all
        } else {
            0.0
        };
        Priced {
            measured,
            simulated: 1.0 - measured,
            ..Priced::default()
        }
    }

    fn ns(&mut self, pattern: Pattern, bytes: u64, n_ranks: usize) -> Result<f64, EmulateError> {
        if n_ranks < 2 {
            return Ok(0.0);
        }
        let (time, source) = match self.known.get(&(pattern, bytes, n_ranks)) {
            Some(&known) => known,
            None => {
                let found = self.price(pattern, bytes, n_ranks)?;
                self.known.insert((pattern, bytes, n_ranks), found);
                found
            }
        };
        match source {
            Source::Measured => self.measured_ns += time,
            Source::Simulated => self.simulated_ns += time,
        }
        Ok(time)
    }

    fn price(
        &self,
        pattern: Pattern,
        bytes: u64,
        n_ranks: usize,
    ) -> Result<(f64, Source), EmulateError> {
        let (machine, chosen) = (self.machine, self.choices.of(pattern));
        let shape = (n_ranks as u32, machine.shape.ppn);
        if let Some(time) = machine.measured.ns(pattern, chosen, bytes, shape) {
            return Ok((time, Source::Measured));
        }
        let (row, values, name) = self.row(pattern, bytes, n_ranks)?;
        let node_of = self.machine.node_of(n_ranks);
        let network = &self.machine.network;
        let mut simulated = Known::default();
        let time = estimate_ns(
            &mut simulated,
            row,
            values,
            &node_of,
            bytes,
            network,
            STEPS_MAX,
        );
        let time = time.ok_or_else(|| EmulateError::Variant {
            variant: name,
            ranks: n_ranks,
            reason: format!("simulating it takes more than {STEPS_MAX} steps"),
        })?;
        Ok((time, Source::Simulated))
    }

    fn row(
        &self,
        pattern: Pattern,
        bytes: u64,
        n_ranks: usize,
    ) -> Result<(&'static Row, Values, String), EmulateError> {
        let chosen = self.choices.of(pattern);
        let name = match chosen {
            "default" => rules::default(self.machine.defaults, pattern, bytes, n_ranks).to_owned(),
            _ => chosen.to_owned(),
        };
        let (row, values) = find(pattern, &name)?;
        match row.fits(n_ranks) {
            true => Ok((row, values, name)),
            false => Err(EmulateError::Variant {
                variant: name,
                ranks: n_ranks,
                reason: "it does not run on so many ranks".to_owned(),
            }),
        }
    }

    /// Where each rank ends an allreduce that begins at `starts`.
    ///
    /// Errors: as [`Prices::call_ns`].
    pub fn allreduce_ends(&self, bytes: u64, starts: &[f64]) -> Result<Vec<f64>, EmulateError> {
        if starts.len() < 2 {
            return Ok(starts.to_vec());
        }
        let (row, values, _) = self.row(Pattern::Allreduce, bytes, starts.len())?;
        let node_of = self.machine.node_of(starts.len());
        let network = &self.machine.network;
        Ok(ends_ns(row, values, &node_of, bytes, network, starts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_and_every_twin_is_a_schedule_that_there_is() {
        for pattern in Pattern::ALL {
            for defaults in [Defaults::OpenMpi40, Defaults::OpenMpi41] {
                // Just below and at each power of two, where rules change.
                for bytes in (0..24).flat_map(|power| [(1 << power) - 1, 1 << power]) {
                    for n in [
                        2, 3, 4, 7, 8, 9, 17, 48, 99, 100, 200, 300, 513, 1024, 2048, 5000,
                    ] {
                        let name = rules::default(defaults, pattern, bytes, n);
                        let (row, _) = find(pattern, name).unwrap();
                        assert!(row.fits(n), "{} {name} {n}", pattern.name());
                    }
                }
            }
            for twin in rules::twins(pattern) {
                find(pattern, twin).unwrap();
            }
        }
    }

    #[test]
    fn what_was_measured_at_this_shape_is_the_price_and_what_has_no_schedule_has_no_other() {
        let mut machine = crate::machine::preset("hera").unwrap();
        let allreduce = |n_ranks| Call::of_all(Meeting::Allreduce, 8, n_ranks);
        let mut choices = Choices::default();
        choices.set_measured(Pattern::Allreduce, "native:nonoverlapping");
        let error = Prices::new(&machine, choices.clone()).call_ns(&allreduce(32));
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("native:nonoverlapping")
        );
        machine.measured = Measured(vec![MeasuredCell {
            collective: "allreduce".to_owned(),
            variant: "native:nonoverlapping".to_owned(),
            bytes: 8..=8,
            nodes: 2..=2,
            ppn: 16..=16,
            time_ns: 12_345.0,
        }]);
        let mut prices = Prices::new(&machine, choices);
        assert_eq!(prices.priced().simulated, 1.0);
        assert_eq!(prices.call_ns(&allreduce(32)).unwrap(), 12_345.0);
        assert_eq!(prices.priced().measured, 1.0);
        let barrier = Call::of_all(Meeting::Barrier, 0, 32);
        let simulated = prices.call_ns(&barrier).unwrap();
        let share = 12_345.0 / (12_345.0 + simulated);
        assert!((prices.priced().measured - share).abs() < 1e-12);
        assert!(prices.call_ns(&allreduce(64)).is_err(), "another shape");
    }
}
