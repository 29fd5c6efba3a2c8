//! Synthetic runs through the real record layout, for tests and measurements.
//!
//! Times come from LogGP-like costs of the algorithms, so that the best variant depends on size and layout as it does
//! on real machines. The default is a plausible but not optimal choice.

use std::fs;
use std::path::{Path, PathBuf};

use colltune_core::catalogue::{self, Facts, Variant};
use colltune_core::collective::Collective;
use colltune_core::context::DataKey;
use colltune_core::library::{Library, Product};
use colltune_core::record::{CallClass, Header, Manner, Record};
use colltune_core::select::mix;
use colltune_core::variant::Family;
use colltune_models::evidence::{Evidence, Moments, Shape};

use crate::database::{Database, DbError};
use crate::evidence::{self, Fresh, Store};
use crate::reduce::{Names, Row};

/// Numbers by which files of tests are damaged: the same from run to run.
#[derive(Default)]
pub struct Damage(u64);

impl Damage {
    /// A number below another.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = mix(self.0, 1);
        (self.0 >> 33) as usize % limit
    }

    /// Changes so many bytes of a file.
    pub fn strike(&mut self, bytes: &mut [u8], times: usize) {
        for _ in 0..times {
            let place = self.below(bytes.len());
            bytes[place] = self.below(256) as u8;
        }
    }
}

/// The library that synthetic runs claim to use.
pub const LIBRARY: Library = Library {
    product: Product::OpenMpi,
    version: (4, 1, 4),
};

/// The collectives of synthetic runs: [`time_ns`] knows what they cost.
pub const COLLECTIVES: [Collective; 5] = [
    Collective::Allreduce,
    Collective::Bcast,
    Collective::Allgather,
    Collective::Alltoall,
    Collective::Reduce,
];

/// A synthetic run.
#[derive(Clone, Debug)]
pub struct Run {
    pub job: String,
    pub machine: String,
    pub seed: u64,
    pub nodes: u32,
    pub ppn: u32,
    pub recording_ranks: u32,
    pub collectives: Vec<Collective>,
    /// Message sizes, each as likely as the others.
    pub sizes: Vec<u64>,
    pub calls: u64,
    /// Standard deviation of the logarithm of a call's time.
    pub noise: f64,
    pub transport: String,
    pub context: Vec<(String, String)>,
    /// Changes the record of that number, on every rank.
    pub spoil: Option<fn(u64, &mut Record)>,
    /// A variant's name, and what its traces call it.
    pub rename: Option<(&'static str, &'static str)>,
}

impl Run {
    pub fn new(job: &str, seed: u64) -> Run {
        Run {
            job: job.to_owned(),
            machine: "testing".to_owned(),
            seed,
            nodes: 4,
            ppn: 2,
            recording_ranks: 4,
            collectives: COLLECTIVES.to_vec(),
            sizes: vec![8, 1024, 65_536],
            calls: 1000,
            noise: 0.1,
            transport: String::new(),
            context: Vec::new(),
            spoil: None,
            rename: None,
        }
    }

    fn header(&self, rank: u32) -> Header {
        let node = rank * self.nodes / self.recording_ranks.max(1);
        Header {
            job: self.job.clone(),
            rank,
            world_ranks: self.nodes * self.ppn,
            library: LIBRARY.to_string(),
            machine: self.machine.clone(),
            host: format!("node{node}"),
            clock: u64::from(node),
            generation: 0,
            colltune_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: 1_700_000_000_000 + self.seed,
            capacity: self.calls,
            variants: catalogue::all(LIBRARY)
                .iter()
                .map(|variant| (variant.collective, self.called(variant.name.to_string())))
                .collect(),
            context: self.context.clone(),
            transport: self.transport.clone(),
        }
    }

    fn called(&self, name: String) -> String {
        match self.rename {
            Some((from, to)) if from == name => to.to_owned(),
            _ => name,
        }
    }

    /// The bytes of each recording rank's trace, by rank.
    pub fn traces(&self) -> Vec<(u32, Vec<u8>)> {
        let all = catalogue::all(LIBRARY);
        let slow_run = 1.0 + uniform(self.seed, 1 << 40);
        let mut traces: Vec<(u32, Vec<u8>)> = (0..self.recording_ranks)
            .map(|rank| (rank, self.header(rank).to_bytes()))
            .collect();
        let mut now_ns = 0;
        for call in 0..self.calls {
            let word = |salt: u64| mix(self.seed ^ (salt << 32), call);
            let collective = self.collectives[(word(1) % self.collectives.len() as u64) as usize];
            let bytes = self.sizes[(word(2) % self.sizes.len() as u64) as usize];
            let facts = Facts::usual(collective, bytes, self.nodes * self.ppn, self.nodes);
            let possible: Vec<usize> = (0..all.len())
                .filter(|&place| {
                    all[place].collective == collective && is_drawn(&all[place], &facts)
                })
                .collect();
            let variant = possible[(word(3) % possible.len() as u64) as usize];
            let outlier = if word(4) % 20 == 0 { 4.0 } else { 1.0 };
            let factor = slow_run * outlier * (self.noise * normal(self.seed, call)).exp();
            let time_ns = (time_ns(&all[variant], bytes, self.nodes, self.ppn) * factor) as u64;
            for (rank, trace) in &mut traces {
                // Ranks arrive within a microsecond and leave together.
                let late = mix(call, u64::from(*rank)) % 1000;
                let mut record = Record {
                    comm: 7,
                    call,
                    message_bytes: bytes,
                    start_ns: now_ns + late,
                    duration_ns: time_ns.saturating_sub(late).max(1),
                    nodes: self.nodes,
                    ppn: self.ppn,
                    n_ranks: self.nodes * self.ppn,
                    variant: variant as u16,
                    collective,
                    drawn: true,
                    probability: None,
                    manner: Manner::Blocking,
                    shift_ns: None,
                    after_ns: None,
                    agreed: None,
                    class: CallClass::default(),
                };
                if let Some(spoil) = self.spoil {
                    spoil(call, &mut record);
                }
                trace.extend(record.to_bytes());
            }
            now_ns += time_ns + 10_000;
        }
        traces
    }

    /// Puts the traces of a finished run into a database; returns their paths.
    pub fn write(&self, incoming: &Path) -> std::io::Result<Vec<PathBuf>> {
        let paths = self.traces().into_iter().map(|(rank, bytes)| {
            let path = incoming.join(format!("{}.{rank}.trace", self.job));
            fs::write(&path, bytes).map(|()| path)
        });
        paths.collect()
    }
}

/// Of the runs of a made history, nodes and ranks on each.
const LAYOUTS: [(u32, u32); 5] = [(1, 8), (2, 8), (4, 2), (4, 8), (8, 8)];

/// Puts the evidence of many settled runs into a database, as their trainings would have left it; returns how many rows
/// that was before old runs were thinned.
///
/// Each run has met `cells` cells with `variants` variants of each, and recorded `records` records. They are of 8 users on
/// 5 layouts, drawn by their numbers.
pub fn write_history(
    db: &Database,
    runs: u64,
    cells: u64,
    variants: u16,
    records: u64,
) -> Result<u64, DbError> {
    let key = DataKey::from(LIBRARY);
    let names = Names::new(LIBRARY);
    let mut store = Store::open(db, &key, &mut Vec::new())?;
    let layout = |run: u64| LAYOUTS[(mix(run, 5) % LAYOUTS.len() as u64) as usize];
    let rows = |run: u64| -> Vec<Row> {
        let (nodes, ppn) = layout(run);
        let calls = records / (cells * u64::from(variants));
        let of_cell = |cell: u64| {
            let collective = COLLECTIVES[(cell % COLLECTIVES.len() as u64) as usize];
            let shape = Shape {
                collective,
                message_bytes: 8 << (cell / COLLECTIVES.len() as u64 % 18),
                nodes,
                ppn,
                n_ranks: nodes * ppn,
            };
            (0..variants).map(move |variant| {
                let noise = normal(run, cell * 64 + u64::from(variant));
                let time = Moments {
                    n: calls,
                    mean: (1.0 + 0.05 * f64::from(variant)) * (0.05 * noise).exp(),
                    m2: 0.01 * calls as f64,
                };
                Row {
                    manner: Manner::Blocking,
                    evidence: Evidence {
                        calls,
                        level_ns: 1e4 * (1.0 + cell as f64),
                        time,
                        shift: Moments { mean: 0.0, ..time },
                        total: time,
                        work: 0.5,
                        ..Evidence::nothing(0, shape, variant)
                    },
                    seconds: 1e-5 * calls as f64,
                }
            })
        };
        (0..cells).flat_map(of_cell).collect()
    };
    for first in (0..runs).step_by(1000) {
        let fresh = (first..runs.min(first + 1000)).map(|number| {
            let (nodes, ppn) = layout(number);
            let run = evidence::Run {
                job: format!("history-{number:08}"),
                held: format!("0@0-{records}"),
                started_unix_ms: 1_600_000_000_000 + number,
                records,
                calls: records,
                content: number,
                owner: Some(1000 + (mix(number, 8) % 8) as u32),
                ranks: nodes * ppn,
                nodes,
                ppn,
                ..evidence::Run::default()
            };
            let rows = rows(number);
            Fresh { run, rows }
        });
        store.publish(db, &key, &names, fresh.collect())?;
        store.compact(db, &key, &mut Vec::new())?;
    }
    Ok(runs * cells * u64::from(variants))
}

/// Whether synthetic runs draw a variant in such calls. The catalogue's other families would only leave fewer
/// samples for these.
pub fn is_drawn(variant: &Variant, facts: &Facts) -> bool {
    let families = [Family::Default, Family::Native, Family::P2p];
    families.contains(&variant.name.family) && variant.applies(facts)
}

/// What a variant costs: LogGP-like terms for start-ups, bytes on the wire and bytes combined.
///
/// Units: bytes in, nanoseconds out.
pub fn time_ns(variant: &Variant, bytes: u64, nodes: u32, ppn: u32) -> f64 {
    let n = f64::from(nodes * ppn);
    let log = n.log2().ceil().max(1.0);
    let m = bytes as f64;
    // One network link per node is shared by its ranks; inside a node memory is faster.
    let (start_up, per_byte) = if nodes > 1 {
        (12_000.0, 1.0 + 0.4 * f64::from(ppn - 1))
    } else {
        (900.0, 0.12 + 0.02 * f64::from(ppn))
    };
    let combine = 0.2;
    let name = variant.name.algorithm.as_str();
    let pieces = variant
        .name
        .segsize
        .map_or(1.0, |segment| (m / segment as f64).ceil().max(1.0));
    let (steps, sent, combined) = match (variant.collective, name) {
        (Collective::Alltoall, "linear") => (0.55 * n, m * n * 1.5, 0.0),
        (Collective::Alltoall, "modified_bruck") => (log, m * n / 2.0 * log, 0.0),
        (Collective::Alltoall, "") => (0.8 * n, m * n * 1.1, 0.0),
        (Collective::Alltoall, _) => (0.9 * n, m * n, 0.0),
        (Collective::Allgather, "bruck" | "recursive_doubling") => (log, 1.3 * m * n, 0.0),
        (Collective::Allgather, "linear") => (n, m * n * 3.0, 0.0),
        (Collective::Allgather, "neighbor") => (n / 2.0, m * n * 1.02, 0.0),
        (Collective::Allgather, "") => {
            if m < 4096.0 {
                (log + 1.0, 1.4 * m * n, 0.0)
            } else {
                (n, m * n, 0.0)
            }
        }
        (Collective::Allgather, _) => (n, m * n, 0.0),
        (_, "ring" | "segmented_ring") => (2.0 * n * (1.0 + 0.1 * (pieces - 1.0)), 2.0 * m, m),
        (_, "rabenseifner") => (2.0 * log, 2.3 * m, m),
        (_, "recursive_doubling") => (log, m * log, m * log),
        (_, "scatter_allgather") => (2.0 * log, 2.4 * m, 0.0),
        (_, "scatter_allgather_ring") => (log + n, 2.0 * m, 0.0),
        (_, "basic_linear" | "linear") => (n, m * n, m),
        (_, "pipeline" | "chain") => ((n + pieces - 1.0) * 0.7, m * (n + pieces - 1.0) / pieces, m),
        (_, "") => {
            if m < 2048.0 {
                (log * 1.2, m * log * 1.2, m * log)
            } else {
                (log * 1.6, m * log * 1.1, m * log)
            }
        }
        (_, _) => (
            log + 0.3 * (pieces - 1.0),
            m * (log + pieces - 1.0) / pieces * 1.2,
            m * log,
        ),
    };
    steps * start_up + sent * per_byte + combined * combine
}

fn uniform(seed: u64, index: u64) -> f64 {
    (mix(seed, index) >> 11) as f64 / (1u64 << 53) as f64 + 1e-12
}

fn normal(seed: u64, index: u64) -> f64 {
    let (a, b) = (uniform(seed ^ 0xa, index), uniform(seed ^ 0xb, index));
    (-2.0 * a.ln()).max(0.0).sqrt() * (std::f64::consts::TAU * b).cos()
}
