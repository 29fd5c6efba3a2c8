//! What a run tells at its end.

use std::collections::BTreeMap;

use crate::checksum::Checksums;

/// Seconds of one rank by phase, or their mean over the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Times {
    pub total: f64,
    pub calc: f64,
    pub comm: f64,
    pub reduce: f64,
    pub refine: f64,
    pub place: f64,
    pub migrate: f64,
    pub startup: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct BlocksPerStep {
    pub min: u64,
    pub avg: f64,
    pub max: u64,
}

/// The shock of a Sedov blast; the error is relative to the exact radius.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Shock {
    pub time: f64,
    pub radius: f64,
    pub exact: f64,
    pub error: f64,
}

/// With `--problem wave`: the mean over the domain of the density's error.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct WaveError {
    pub time: f64,
    pub l1: f64,
}

/// With `--bandwidth`: bytes that all ranks together read and write in a second of plain copying, and
/// the share of it that the run's updates would need with one read and one write each.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Memory {
    pub bytes_per_s: f64,
    pub share: f64,
}

/// By lever and arm: the steps that it ran.
pub type LeverSteps = BTreeMap<String, BTreeMap<String, u64>>;

/// The summary that `--json` writes.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Summary {
    pub ranks: usize,
    pub steps: u64,
    pub time_s: Times,
    pub blocks_per_step: BlocksPerStep,
    pub splits: u64,
    pub joins: u64,
    /// Of a gas: blocks in which a jump was found that should have been on finer cells already.
    pub refined_late: u64,
    /// Of a gas: steps that were done again, shorter, to keep density and pressure positive.
    pub steps_redone: u64,
    pub cell_updates: u64,
    pub updates_per_s: f64,
    pub checksums: Vec<f64>,
    pub checksum_drift_max: f64,
    pub mesh_hash: String,
    pub rss_max_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shock: Option<Shock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<WaveError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Where a tuner may choose.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levers: LeverSteps,
}

impl Times {
    pub fn to_array(self) -> [f64; 8] {
        [
            self.total,
            self.calc,
            self.comm,
            self.reduce,
            self.refine,
            self.place,
            self.migrate,
            self.startup,
        ]
    }

    pub fn from_array(t: [f64; 8]) -> Times {
        Times {
            total: t[0],
            calc: t[1],
            comm: t[2],
            reduce: t[3],
            refine: t[4],
            place: t[5],
            migrate: t[6],
            startup: t[7],
        }
    }
}

impl Summary {
    pub fn take_sums(&mut self, sums: &Checksums) {
        self.checksums = sums.last.clone();
        self.checksum_drift_max = sums.drift_max;
    }

    /// The lines that end a run, the last one in the shape of miniAMR's.
    pub fn text(&self, blocks_max: i64) -> String {
        let t = &self.time_s;
        let blocks = &self.blocks_per_step;
        let shock = self.shock.map_or_else(String::new, |shock| {
            format!(
                "Shock: radius {:.5} at time {:.5}, exact {:.5}: {:+.2} %\n",
                shock.radius,
                shock.time,
                shock.exact,
                100.0 * shock.error
            )
        });
        let wave = self.wave.map_or_else(String::new, |wave| {
            format!(
                "Wave: mean error of the density {:.3e} at time {:.5}\n",
                wave.l1, wave.time
            )
        });
        let redone = match self.steps_redone {
            0 => String::new(),
            n => format!("Gas: near vacuum in {n} steps, which were shortened\n"),
        };
        let memory = self.memory.map_or_else(String::new, |memory| {
            format!(
                "Memory: {:.2e} bytes a second; the updates take {:.1} % of that at 16 bytes each\n",
                memory.bytes_per_s,
                100.0 * memory.share
            )
        });
        let levers = self.levers.iter().map(|(lever, arms)| {
            let arms = arms.iter().map(|(arm, n)| format!("{arm} {n} steps"));
            format!("Lever {lever}: {}\n", arms.collect::<Vec<_>>().join(", "))
        });
        let levers: String = levers.collect();
        format!(
            "{shock}{wave}{redone}{memory}{levers}Blocks: per step {} / {:.1} / {} (min / avg / max), {} splits, {} joins\n\
             Updates: {} cells, {:.3e} a second\n\
             Checksums: largest drift {:.3e}; mesh {}\n\
             Time: startup {:.3} place {:.3} migrate {:.3}; largest memory of a rank {:.1} MB\n\
             Summary: ranks {} ts {} time {:.6} calc {:.6} comm {:.6} red {:.6} refine {:.6} \
             blocks/ts {:.6} max_blocks {}",
            blocks.min,
            blocks.avg,
            blocks.max,
            self.splits,
            self.joins,
            self.cell_updates,
            self.updates_per_s,
            self.checksum_drift_max,
            self.mesh_hash,
            t.startup,
            t.place,
            t.migrate,
            self.rss_max_bytes as f64 / 1e6,
            self.ranks,
            self.steps,
            t.total,
            t.calc,
            t.comm,
            t.reduce,
            t.refine,
            blocks.avg,
            blocks_max
        )
    }
}

/// The most memory this process has had, in bytes; 0 where the system does not say.
pub fn rss_max_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
