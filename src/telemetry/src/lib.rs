//! What telemetry says: waiting and working, critical paths, slow hosts, noise, and who talks to whom.
//!
//! Data flow: [`folder`] (Parquet files) -> [`rows`] -> one analysis -> its result, which prints as text or JSON.
//! The mini-app writes such files with `--telemetry FOLDER`; any program may that uses the same columns. [`messages`] is
//! what `colltune run --messages FOLDER` records of any program.
#![forbid(unsafe_code)]

pub mod error;
pub mod folder;

pub mod rows;

mod drawing;
pub mod statistics;
pub mod text;

pub mod windows;

pub mod summary;

pub mod path;

pub mod health;

pub mod noise;

pub mod matrix;

pub mod messages;

pub mod nodes;

#[cfg(test)]
mod made;

pub use error::FolderError;
pub use folder::Folder;
