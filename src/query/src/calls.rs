//! The table `calls`: records of one call, put together.
//!
//! A call is as long as its slowest recording rank: first ranks leave a pipeline while the last still work. Beside that
//! stands what the learner goes by: the mean over all ranks where they agreed on it, else over those that recorded.

use crate::table::{BOOLEAN, Holds, INTEGER, Opened, Query, REAL, TEXT, Table};

const COLUMNS: &[(&str, Holds, &str)] = &[
    ("library", TEXT, "library"),
    ("machine", TEXT, "machine"),
    ("told", TEXT, "told"),
    ("transport", TEXT, "transport"),
    ("job", TEXT, "job"),
    ("comm", INTEGER, "comm"),
    ("call", INTEGER, "call"),
    ("collective", TEXT, "collective"),
    ("variant", TEXT, "variant"),
    ("message_bytes", INTEGER, "message_bytes"),
    ("nodes", INTEGER, "nodes"),
    ("ppn", INTEGER, "ppn"),
    ("n_ranks", INTEGER, "n_ranks"),
    ("generation", INTEGER, "min(generation)"),
    ("drawn", BOOLEAN, "max(drawn)"),
    ("records", INTEGER, "count(*)"),
    ("time_ns", INTEGER, "max(max(duration_ns), 1)"),
    (
        "mean_time_ns",
        REAL,
        "max(coalesce(avg(mean_time_ns), avg(duration_ns)), 1.0)",
    ),
    (
        "mean_shift_ns",
        REAL,
        "coalesce(avg(mean_shift_ns), avg(shift_ns))",
    ),
    ("work_ns", REAL, WORK),
];

const WORK: &str = "
max(coalesce(avg(work_ns),
    CASE WHEN nodes > 1 OR min(clock) <> max(clock) THEN min(duration_ns)
    ELSE min(max(max(start_ns + duration_ns) - max(start_ns), 0), max(min(duration_ns), 1)) END), 1)";

/// A job has one library, machine, transport and settings, and its communicators have one layout each. The fewer columns
/// SQLite sorts by, the faster it is, with a whole number in front.
const FROM: &str = "
FROM records
WHERE manner = 'blocking' OR manner IS NULL
GROUP BY call, comm, message_bytes, job, variant, collective";

pub fn table() -> Table {
    let about = "one row per recorded blocking call: as its slowest recording rank saw it, and in the mean over the ranks";
    Table::new("calls", about, |_| {
        let mut table = Opened::new(COLUMNS.iter().map(|(name, holds, _)| (*name, *holds)));
        table.query = Some(Query {
            columns: COLUMNS,
            from: FROM,
        });
        table
    })
}
