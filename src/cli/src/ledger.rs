//! The ledger: what the jobs of a database said of themselves at their end, `incoming/JOB.run`, added up.

use std::ffi::OsStr;
use std::path::Path;

use colltune_core::account::JobSummary;
use serde::Serialize;

use crate::comparison::percent;
use crate::trial::summary::{self, collectives_share};

/// So many jobs are read at the most.
const JOBS_MAX: usize = 20_000;

/// Sums over the jobs, whatever their mode was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ledger {
    pub jobs: usize,
    /// Whole times by nodes.
    pub node_hours: f64,
    /// Of these, the part in blocking collectives, waiting for late ranks included.
    pub in_collectives: f64,
    /// Whether there are more jobs than are read.
    pub is_cut: bool,
}

impl Ledger {
    /// Reads a database's incoming folder. What cannot be read is nobody's job.
    pub fn read(incoming: &Path) -> Ledger {
        let entries = std::fs::read_dir(incoming).into_iter().flatten().flatten();
        let files = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension() == Some(OsStr::new("run")));
        let mut ledger = Ledger::default();
        for summary in files.filter_map(|file| summary::read(&file)) {
            if ledger.jobs == JOBS_MAX {
                ledger.is_cut = true;
                break;
            }
            ledger.add(&summary);
        }
        ledger
    }

    fn add(&mut self, job: &JobSummary) {
        let node_hours = job.wall_s * job.nodes as f64 / 3600.0;
        self.jobs += 1;
        self.node_hours += node_hours;
        self.in_collectives += node_hours * collectives_share(job);
    }

    /// Nothing where no job said anything.
    pub fn sentence(self) -> String {
        let Ledger {
            jobs, node_hours, ..
        } = self;
        if node_hours <= 0.0 {
            return String::new();
        }
        let jobs = match jobs {
            1 => "1 job".to_owned(),
            _ if self.is_cut => format!("{jobs} jobs of more"),
            _ => format!("{jobs} jobs"),
        };
        format!(
            "{jobs} with this database took {} node-hours from start to end, {} of them in collectives\n",
            short(node_hours),
            percent(self.in_collectives / node_hours)
        )
    }
}

/// Three digits that say something.
pub fn short(number: f64) -> String {
    if number >= 1.0 {
        format!("{number:.2}")
    } else {
        let digits = (2 - number.log10().floor() as i32).clamp(0, 9) as usize;
        format!("{number:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = r#"{"schema":1,"job":"a","program":"solver","mode":"explore","library":"openmpi-4.1.4",
        "machine":"hydra","generation":0,"ranks":8,"nodes":4,"started_unix_ms":0,"wall_s":1800.0,
        "collectives_s":{"mean":450.0,"max":500.0},"calls":9,"passed":0,"tuned_share":0.0,"by_collective":[],
        "waiting_share":null,"best_possible_gain":1.0,"refused":[]}"#;

    #[test]
    fn the_ledger_adds_whole_times_by_nodes_and_passes_over_what_is_no_job() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Ledger::read(&folder.path().join("none")).sentence(), "");
        let line = JOB.replace('\n', " ");
        for (name, text) in [
            ("a.run", line.as_str()),
            ("b.run", line.as_str()),
            ("c.run.open", line.as_str()),
            ("d.run", "{"),
            ("e.0.trace", "x"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let ledger = Ledger::read(folder.path());
        assert_eq!(ledger.jobs, 2);
        assert_eq!((ledger.node_hours, ledger.in_collectives), (4.0, 1.0));
        assert_eq!(
            ledger.sentence(),
            "2 jobs with this database took 4.00 node-hours from start to end, 25 % of them in collectives\n"
        );
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            [0.00123, 0.5, 12.3].map(short),
            ["0.00123", "0.500", "12.30"]
        );
    }
}
