//! Time lines of jobs, as files that Perfetto (ui.perfetto.dev) and the Firefox profiler (profiler.firefox.com) open.
//!
//! [`events`] is the format; above it, the collectives that the shim recorded ([`calls`], whose clocks [`alignment`]
//! compares) and the phases of the mini-app ([`phases`]). A process is a host, a thread is a rank. Nothing is shown that
//! was not measured: calls that were not sampled leave gaps.
#![forbid(unsafe_code)]

pub mod events;

mod alignment;
pub mod calls;

pub mod phases;

use std::path::PathBuf;

use thiserror::Error;

/// What a time line holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    pub events: u64,
    /// Ranks with a track.
    pub ranks: u64,
    /// What a reader of the picture has to know.
    pub notes: Vec<String>,
}

/// Why there is no time line; the messages read after "failed to".
#[derive(Debug, Error)]
pub enum TimelineError {
    #[error(transparent)]
    Db(#[from] colltune_db::DbError),
    #[error("find a job {asked}: the database has raw records of {found}")]
    Job { asked: String, found: String },
    #[error(
        "draw a time line of {path}: there is no telemetry with windows; record some with `colltune-amr --telemetry FOLDER`",
        path = path.display()
    )]
    Nothing { path: PathBuf },
    #[error("read {path}: {problem}", path = path.display())]
    Telemetry { path: PathBuf, problem: String },
    #[error("write the time line: {0}")]
    Write(#[from] std::io::Error),
}
