//! The ledger: what the jobs of a database said of themselves at their end, added up.

use colltune_core::account::Exit;
use colltune_db::Database;
use colltune_db::runs::{self, Times};
use serde::Serialize;

use crate::comparison::percent;

/// Sums over the jobs, whatever their mode was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ledger {
    pub jobs: usize,
    /// Whole times by nodes.
    pub node_hours: f64,
    /// Of these, the part in blocking collectives, waiting for late ranks included.
    pub in_collectives: f64,
    /// How much more it would have been with the library's own choices, of the jobs that ran what was learned, by what
    /// trainings had measured.
    pub saved: f64,
}

impl Ledger {
    /// Reads a database's runs. Runs that cannot be read, or did not end, are left out.
    pub fn read(db: &Database) -> Ledger {
        let runs = runs::times(db, &mut Vec::new());
        let mut ledger = Ledger::default();
        // Of jobs without the tuner it is unknown where their time went.
        let ended = (runs.iter()).filter(|run| run.exit == Exit::Finalized && run.wall_s > 0.0);
        ended.for_each(|run| ledger.add(run));
        ledger
    }

    fn add(&mut self, job: &Times) {
        let hours_of = |seconds: f64| seconds * job.nodes as f64 / 3600.0;
        self.jobs += 1;
        self.node_hours += hours_of(job.wall_s);
        self.in_collectives += hours_of(job.collectives_s.clamp(0.0, job.wall_s.max(0.0)));
        self.saved += hours_of(job.saved_s);
    }

    /// Nothing where no job said anything.
    pub fn sentence(self) -> String {
        let Ledger {
            jobs,
            node_hours,
            saved,
            ..
        } = self;
        if node_hours <= 0.0 {
            return String::new();
        }
        let jobs = match jobs {
            1 => "1 job".to_owned(),
            _ => format!("{jobs} jobs"),
        };
        let less = match saved {
            0.0 => String::new(),
            saved => {
                let than = if saved > 0.0 { "less" } else { "more" };
                format!(
                    ", {} {than} than with the library's own choices",
                    node_time(saved.abs())
                )
            }
        };
        format!(
            "{jobs} with this database took {} from MPI_Init to MPI_Finalize{less}, {} of them in collectives\n",
            node_time(node_hours),
            percent(self.in_collectives / node_hours)
        )
    }
}

/// Nodes' time in a unit that leaves digits to read.
fn node_time(hours: f64) -> String {
    match hours {
        hours if hours >= 0.1 => format!("{} node-hours", short(hours)),
        hours => format!("{} node-seconds", short(3600.0 * hours)),
    }
}

/// Three digits that say something.
fn short(number: f64) -> String {
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
        let db = Database::create_or_open(folder.path()).unwrap();
        assert_eq!(Ledger::read(&db).sentence(), "");
        let line = JOB.replace('\n', " ");
        for (name, text) in [
            ("a.run", line.as_str()),
            ("b.run", &line.replace(r#""a""#, r#""b""#)),
            (
                "c.run.open",
                &line.replace(r#""a""#, r#""c","exit":"missing""#),
            ),
            ("d.run", "{"),
            ("e.0.trace", "x"),
        ] {
            std::fs::write(db.incoming().join(name), text).unwrap();
        }
        let ledger = Ledger::read(&db);
        assert_eq!(ledger.jobs, 2);
        assert_eq!((ledger.node_hours, ledger.in_collectives), (4.0, 1.0));
        assert_eq!(
            ledger.sentence(),
            "2 jobs with this database took 4.00 node-hours from MPI_Init to MPI_Finalize, 25 % of them in collectives\n"
        );
    }

    #[test]
    fn what_jobs_that_exploit_saved_is_added_by_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let line = JOB.replace('\n', " ");
        let write = |name: &str, mode: &str, gain: &str| {
            let line = line.replace(r#""job":"a""#, &format!(r#""job":"{name}""#));
            let line = line.replace("explore", mode);
            let gain = format!(r#""estimated_gain":{gain},"refused""#);
            let text = line.replace(r#""refused""#, &gain);
            std::fs::write(db.incoming().join(format!("{name}.run")), text).unwrap();
            Ledger::read(&db)
        };
        assert_eq!(write("a", "explore", "null").saved, 0.0);
        // Half an hour on four nodes, a quarter of which the library's own choices would have taken on top.
        let ledger = write("b", "exploit", "1.25");
        assert_eq!((ledger.node_hours, ledger.saved), (4.0, 0.5));
        let said = ledger.sentence();
        assert!(
            said.contains(" 4.00 node-hours from MPI_Init to MPI_Finalize, 0.500 node-hours less than with the library's own choices, 25 %"),
            "{said}"
        );
        // Where what was learned has become slower nothing is hidden.
        let said = write("c", "exploit", "0.5").sentence();
        assert!(
            said.contains("MPI_Finalize, 0.500 node-hours more than with the"),
            "{said}"
        );
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            [0.00123, 0.5, 12.3].map(short),
            ["0.00123", "0.500", "12.30"]
        );
        let times = [0.000000584, 0.02, 0.5, 12.3].map(node_time);
        assert_eq!(times[0], "0.00210 node-seconds");
        assert_eq!(times[1], "72.00 node-seconds");
        assert_eq!(times[2..], ["0.500 node-hours", "12.30 node-hours"]);
    }
}
