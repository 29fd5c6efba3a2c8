//! The tuning database: traces in, columnar data set, numbered generations.
//!
//! ```text
//! DB/colltune.toml       what the site decided; written with comments when the database is made
//! DB/train.lock          who trains, while somebody does
//! DB/incoming/           traces, JOB.RANK.trace (JOB.RANK.trace.open while the job runs)
//!                        and what jobs say of themselves at their end, JOB.run, which nothing here reads yet
//! DB/quarantine/         refused traces, each with NAME.reason
//! DB/LIBRARY/data/       *.parquet, immutable; each lists in its footer the traces that it holds
//! DB/LIBRARY/generations/NNNNNN/  probabilities.json, cells.json, meta.json, models/
//! DB/LIBRARY/CURRENT     the number of the generation in force
//! ```
//! Modules stand in the order of the data: where things are ([`database`], [`write`]), who may
//! change them ([`lock`]), traces in ([`trace`], [`quarantine`], [`ingest`]), the data set
//! ([`partition`]), what is learned from it ([`generation`], [`train`]) and what is only counted ([`passed`]).
#![forbid(unsafe_code)]

pub mod check_word;
pub mod database;
mod error;
pub mod lock;
pub mod machine;
pub mod write;

pub mod ingest;
pub mod partition;
pub mod quarantine;
pub mod trace;

pub mod generation;
pub mod passed;
pub mod train;

pub mod test_support;

pub use database::{Database, DbError};
pub use generation::{Generation, Meta};
pub use passed::Passed;
pub use train::{TrainOptions, TrainReport, train};
