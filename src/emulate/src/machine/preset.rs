//! Machines of published studies: what the papers say of them, and assumptions for the rest.

use colltune_core::algorithm::simulate::{self, Cores, Link};

use super::model::{App, Machine, Shape};
use crate::EmulateError;
use crate::price::{Defaults, Learned};

/// A named machine. Latencies are one way.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    pub name: &'static str,
    latency_ns: f64,
    gap_ns: f64,
    gigabytes_per_s: f64,
    ppn: u32,
    why: &'static str,
}

pub const PRESETS: [Preset; 4] = [
    Preset {
        name: "qdr-psm",
        latency_ns: 1600.0,
        gap_ns: 250.0,
        gigabytes_per_s: 3.2,
        ppn: 16,
        why: "40 Gbit/s of QLogic with 16 ranks a node, as Jain et al. 2025 say; latency and gap are usual for it",
    },
    Preset {
        name: "abe",
        latency_ns: 5000.0,
        gap_ns: 1000.0,
        gigabytes_per_s: 0.9,
        ppn: 1,
        why: "InfiniBand of 2007 with one process of eight threads a node, as Wu et al. 2011 ran; their paper has no numbers",
    },
    Preset {
        name: "hera",
        latency_ns: 2500.0,
        gap_ns: 500.0,
        gigabytes_per_s: 1.4,
        ppn: 16,
        why: "InfiniBand DDR with 16 cores a node, as Beckingsale et al. 2013 say; latency and rate are usual for it",
    },
    Preset {
        name: "gemini",
        latency_ns: 1500.0,
        gap_ns: 300.0,
        gigabytes_per_s: 3.0,
        ppn: 16,
        why: "Cray Gemini with 16 ranks a node, as Vaughan & Barrett 2015 ran; latency and rate are usual for it",
    },
];

/// A preset by its name.
///
/// Errors: `UnknownMachine` with the names that there are.
pub fn preset(name: &str) -> Result<Machine, EmulateError> {
    let found = PRESETS.iter().find(|preset| preset.name == name);
    found
        .map(Preset::machine)
        .ok_or_else(|| EmulateError::UnknownMachine {
            name: name.to_owned(),
            known: PRESETS.map(|preset| preset.name).join(", "),
        })
}

impl Preset {
    pub fn machine(&self) -> Machine {
        let inside = simulate::Machine::TYPICAL.inside;
        let between = Link {
            latency_ns: self.latency_ns,
            overhead_ns: 400.0,
            gap_ns: self.gap_ns,
            per_byte_ns: 1.0 / self.gigabytes_per_s,
            rendezvous_bytes: 16384.0,
            burst_bytes: 0.0,
        };
        Machine {
            name: self.name.to_owned(),
            network: simulate::Machine {
                inside: Link {
                    latency_ns: 500.0,
                    per_byte_ns: 0.25,
                    ..inside
                },
                between,
                reduce_per_byte_ns: 0.5,
                copy_per_byte_ns: 0.25,
                cores: Cores::ENOUGH,
            },
            shape: Shape {
                nodes: 1,
                ppn: self.ppn,
                cores_per_node: f64::from(self.ppn),
                switch_ns: 0.0,
            },
            app: Some(App {
                pack_message_ns: 900.0,
                pack_byte_ns: 0.25,
                unpack_message_ns: 700.0,
                unpack_byte_ns: 0.25,
                copy_byte_ns: 0.12,
            }),
            scale: 1.0,
            source: format!("assumed: {}", self.why),
            congestion: 1.0,
            learned: Learned::default(),
            // All are older than 4.1.
            defaults: Defaults::OpenMpi40,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_says_what_it_assumes() {
        for named in PRESETS {
            let machine = preset(named.name).unwrap();
            assert!(machine.source.starts_with("assumed: "), "{}", named.name);
            assert_eq!(machine.check(), Ok(()));
        }
        let error = preset("cray").unwrap_err().to_string();
        assert!(
            error.contains("\"cray\"") && error.contains("qdr-psm"),
            "{error}"
        );
    }
}
