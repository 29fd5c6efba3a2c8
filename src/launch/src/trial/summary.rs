//! Where the time of a job went, as the tuner in its ranks tells at the end.

use std::path::Path;

use colltune_core::account::JobSummary;

/// A job's line is short; a trial writes one.
const BYTES_MAX: u64 = 1 << 20;

/// Reads what the last job wrote; `None` where it wrote nothing, or something of another version.
pub fn read(file: &Path) -> Option<JobSummary> {
    let text = colltune_files::read_text(file, BYTES_MAX).ok()?;
    let summary: JobSummary = serde_json::from_str(text.lines().next_back()?).ok()?;
    (summary.schema == JobSummary::SCHEMA).then_some(summary)
}

/// How long the job took from its launcher's start to its end; from MPI_Init to MPI_Finalize where no more is known.
pub fn whole_s(summary: &JobSummary) -> f64 {
    summary
        .whole_s
        .unwrap_or(summary.wall_s)
        .max(summary.wall_s)
}

/// The share of the whole time that is spent in collectives.
pub fn collectives_share(summary: &JobSummary) -> f64 {
    of_whole(summary, summary.collectives_s.mean)
}

/// The share of the whole time that is spent in collectives and is not known to be waiting for late ranks: what is
/// gained if collectives took no time at all.
pub fn beyond_waiting(summary: &JobSummary) -> f64 {
    let share = 1.0 - 1.0 / summary.best_possible_gain.max(1.0);
    of_whole(summary, share * summary.wall_s)
}

fn of_whole(summary: &JobSummary, seconds: f64) -> f64 {
    match whole_s(summary) {
        whole if whole > 0.0 => (seconds / whole).clamp(0.0, 1.0),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use colltune_core::account::{JobFacts, KINDS, OverRanks};

    use super::*;

    #[test]
    fn shares_are_of_the_time_from_the_launchers_start_to_its_end() {
        let facts = JobFacts {
            ranks: 2,
            wall_ns: 100_000_000,
            ..JobFacts::default()
        };
        let inside = JobSummary {
            collectives_s: OverRanks {
                mean: 0.03,
                max: 0.03,
            },
            best_possible_gain: 1.25,
            ..JobSummary::new(facts, &vec![Default::default(); KINDS])
        };
        let close = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(close(collectives_share(&inside), 0.3) && close(beyond_waiting(&inside), 0.2));
        // Nine tenths of the job are its start and its end, of which no rank knows.
        let whole = JobSummary {
            whole_s: Some(1.0),
            ..inside
        };
        assert!(close(collectives_share(&whole), 0.03) && close(beyond_waiting(&whole), 0.02));
    }
}
