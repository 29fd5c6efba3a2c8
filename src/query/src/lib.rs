//! SQL over a tuning database and telemetry, by SQLite, which is part of this crate.
//!
//! Tables are not copied into SQLite: it asks them for rows ([`scan`]), and they read no column and no row group that
//! a query can do without ([`parquet_file`], [`pruning`]). Nothing can be changed by a query.
//!
//! Modules stand in the order of the data: values ([`decoded`], [`pruning`]), tables ([`relation`]) of files
//! ([`parquet_file`], [`row_group`]) and of what other code reads ([`made`]), those of a database and of telemetry, how SQLite goes
//! through them, what it can reckon, what is asked and what is answered.
#![deny(unsafe_code)]

mod decoded;

mod pruning;

mod relation;

mod parquet_file;

mod row_group;

mod made;

mod queried;

mod learned;

mod ledger;

mod database;

mod telemetry;

mod files;

mod holding;

mod plan;

mod scan;

mod functions;

mod views;

mod error;

mod complaint;

mod engine;

mod source;

pub mod schema;

pub mod examples;

pub mod answer;

pub use complaint::{OF_DATABASES, OF_TELEMETRY};
pub use engine::{Engine, Sink};
pub use error::QueryError;
pub use source::open;
