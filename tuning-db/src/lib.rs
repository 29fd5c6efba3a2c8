//! The tuning database: traces in, columnar data set, numbered generations.
//!
//! ```text
//! DB/colltune.toml       what the site decided; written with comments when the database is made
//! DB/owners.toml         whose traces are believed, and what they may claim
//! DB/dropped.json        runs that a person has dropped
//! DB/train.lock          who trains, while somebody does
//! DB/incoming/           traces, JOB.RANK.trace (JOB.RANK.trace.open while the job runs)
//!                        and what jobs say of themselves, JOB.run, JOB.run.open while they run
//! DB/runs/               *.parquet, immutable: the ledger, what every job of whatever mode said of itself
//! DB/levers.json         what was learned of levers that programs ask about
//! DB/hosts.parquet       what `colltune doctor --nodes` measured of hosts lately
//! DB/quarantine/         refused traces, each with NAME.reason
//! DB/KEY/data/           *.parquet, immutable: raw records, for as long as the site keeps them (`keep_raw`); each lists
//!                        in its footer the traces that it holds
//! DB/KEY/evidence/       *.parquet, immutable: what each run says of each variant, of old runs ever fewer; each lists in
//!                        its footer the runs that it speaks of, with the records behind them
//! DB/KEY/generations/NNNNNN/  probabilities.json, cells.json, meta.json
//! DB/KEY/verdicts.json   what whole programs said of the choices, and what that vetoes
//! DB/KEY/CURRENT         the number of the generation in force
//! DB/LIBRARY/            calibration.toml, what `colltune calibrate` measured, and what the simulator finds from that:
//!                        prior.json and ratios.json; prior.parts.json while that is not finished
//! DB/tune/               HASH.json and HASH.lock of each line that `colltune tune` tunes
//! DB/tables/KEY/         tables for jobs without colltune, written by `colltune tune`
//! ```
//! LIBRARY is as in `openmpi-4.1.4`; KEY is the same, and behind an `@` its transport where a user set one, behind
//! another one a hash of the user's settings of its algorithms: `openmpi-4.1.4@default@told-1f2e3d4c`.
//!
//! Modules stand in the order of the data: where things are ([`database`], [`folder`], [`write`]), who may change
//! them ([`share`], [`lock`]), traces in ([`trace`], [`quarantine`], [`ingest`]), and whose they were ([`runs`],
//! [`owners`], [`dropped`]). Then the raw data ([`partition`]), whose records [`coverage`] counts, and whose
//! [`calls`] can be looked at, or all of a [`job`]. Then what it says (`gather`, `reduce`, [`evidence`]), what whole
//! programs said of the choices ([`verdicts`]), what is learned ([`generation`], [`train`]), and what is only counted
//! ([`passed`]). Then the ledger on programs' own [`levers`], and versions for all users' jobs ([`site`]).
#![forbid(unsafe_code)]

mod calibration;
pub mod check_word;
pub mod database;
mod error;
pub mod folder;
pub mod lock;
pub mod machine;
pub mod share;
mod unfinished;
pub mod users;
pub mod write;

pub mod coverage;
pub mod hosts;
pub mod ingest;
pub mod partition;
pub mod quarantine;
mod table;
pub mod trace;

pub mod dropped;
pub mod owners;

mod claim;
pub mod runs;

pub mod calls;
pub mod job;

pub mod evidence;
mod gather;
pub mod levers;
mod reduce;

pub mod generation;
pub mod manage;
pub mod passed;
pub mod site;
pub mod train;
pub mod verdicts;

pub mod test_support;

pub use calibration::line_word;
pub use colltune_core::context::DataKey;
pub use database::{Database, DbError, in_shell};
pub use generation::{Generation, Meta};
pub use passed::Passed;
pub use train::{LibraryReport, TrainOptions, TrainReport, train};
pub use verdicts::{CellChoice, ProgramVerdict, Verdicts};
