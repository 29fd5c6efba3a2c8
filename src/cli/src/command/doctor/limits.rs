//! The limits that are in force for a job.

use colltune_core::settings::Settings;
use colltune_core::variant::Size;

use super::findings::Findings;

/// How much memory a rank gives, and how long it waits before something is said or the job is ended.
pub fn tell(report: &mut Findings, settings: &Settings) {
    let Settings {
        memory_per_rank_max,
        mismatch_timeout,
        wait_warning_after,
        ..
    } = settings;
    report.ok(format!(
        "limits: memory_per_rank_max {}, mismatch_timeout {mismatch_timeout:?}, wait_warning_after {wait_warning_after:?}",
        Size(*memory_per_rank_max)
    ));
}
