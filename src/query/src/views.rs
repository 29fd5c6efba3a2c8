//! Tables that are queries over others.

use std::sync::Arc;

use crate::relation::Named;

/// A call is as long as its slowest recording rank: first ranks leave a pipeline while the last still work. Beside that
/// stands what the learner goes by: the mean over all ranks where they agreed on it, else over those that recorded.
const CALLS: &str = "
CREATE VIEW calls AS
SELECT library, machine, told, transport, job, comm, call, collective, variant, message_bytes, nodes, ppn, n_ranks,
       min(generation) AS generation, max(drawn) AS drawn, count(*) AS records,
       max(max(duration_ns), 1) AS time_ns,
       max(coalesce(avg(mean_time_ns), avg(duration_ns)), 1.0) AS mean_time_ns,
       coalesce(avg(mean_shift_ns), avg(shift_ns)) AS mean_shift_ns,
       max(coalesce(avg(work_ns),
           CASE WHEN nodes > 1 OR min(clock) <> max(clock) THEN min(duration_ns)
           ELSE min(max(max(start_ns + duration_ns) - max(start_ns), 0), max(min(duration_ns), 1)) END), 1) AS work_ns
FROM records
WHERE manner = 'blocking' OR manner IS NULL
GROUP BY library, machine, told, transport, job, comm, call, collective, message_bytes, variant, nodes, ppn, n_ranks;";

/// What a row of the view is.
pub const CALLS_ABOUT: &str = "one row per recorded blocking call: as its slowest recording rank saw it, and in the mean over the ranks";

/// The statements that make the views over these tables.
pub fn of(tables: &[Arc<Named>]) -> impl Iterator<Item = &'static str> {
    let has_records = tables.iter().any(|table| table.name == "records");
    has_records.then_some(CALLS).into_iter()
}
