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

/// The share of the whole time that is spent in collectives.
pub fn collectives_share(summary: &JobSummary) -> f64 {
    if summary.wall_s > 0.0 {
        (summary.collectives_s.mean / summary.wall_s).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// The share of the whole time that is spent in collectives and is not known to be waiting for late ranks: what is
/// gained if collectives took no time at all.
pub fn beyond_waiting(summary: &JobSummary) -> f64 {
    1.0 - 1.0 / summary.best_possible_gain.max(1.0)
}
