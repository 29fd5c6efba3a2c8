//! The limits that are in force for a job.

use colltune_core::settings::Settings;
use colltune_core::variant::Size;

use super::findings::Findings;

/// How much memory a rank gives, and how long it waits before something is said or the job is ended.
pub fn tell(report: &mut Findings, settings: &Settings) {
    let Settings {
        memory_per_rank_max,
        alone_after,
        wait_word_after,
        ..
    } = settings;
    report.ok(format!(
        "limits: memory_per_rank_max {}, alone_after {alone_after:?}, wait_word_after {wait_word_after:?}",
        Size(*memory_per_rank_max)
    ));
}
