//! Telemetry: where the time of each step went on each rank, what was sent, and on request what each block cost.
//!
//! Rows are Parquet, one file per group of ranks and kind of row, read by any engine:
//!
//! ```sql
//! SELECT step, max(time_ns) / avg(time_ns) FROM 'telemetry/phases.*.parquet' WHERE phase = 'compute' GROUP BY step;
//! SELECT kind, sum(bytes) FROM 'telemetry/messages.*.parquet' GROUP BY kind;
//! ```
//! The first rank of a group gathers the rows of its group as bytes ([`Rows::encode`]) every so many steps and writes
//! them as one row group; nothing is kept for the whole run.

pub mod traffic;

pub mod rows;

pub mod writer;

pub use traffic::{Counting, Traffic};

pub use rows::{BlockRow, Kind, MessageRow, Phase, PhaseRow, Rows};
pub use writer::{Detail, TelemetryError, Writer};
