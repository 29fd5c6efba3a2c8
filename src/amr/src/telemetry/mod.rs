//! Telemetry: where the time of each step went on each rank, what was sent, who waited for whom, and on request what
//! each block cost.
//!
//! Rows are Parquet, one file per group of ranks and table, read by any engine:
//!
//! ```sql
//! SELECT step, max(time_ns) / avg(time_ns) FROM 'telemetry/phases.*.parquet' WHERE phase = 'compute' GROUP BY step;
//! SELECT kind, sum(bytes) FROM 'telemetry/messages.*.parquet' GROUP BY kind;
//! ```
//! The first rank of a group gathers the rows of its group as bytes ([`Rows::encode`]) every so many steps and writes
//! them as one row group; nothing is kept for the whole run.

pub mod rows;

pub mod clock;
pub mod recorder;

pub mod traffic;

pub mod about;
pub mod cadence;
pub mod host;

pub mod writer;

pub use clock::Clock;
pub use recorder::{Recorder, Rounds};
pub use rows::{Class, Freight, Kind, Meeting, Phase, Rows, Table};
pub use traffic::{Counting, Traffic};
pub use writer::{RunNames, TelemetryError, Writer};
