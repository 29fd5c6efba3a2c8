//! The subcommands, one file each.

pub mod run;

pub mod compare;

pub mod tune;

pub mod train;

mod verdict;

pub mod db;

pub mod status;

pub mod report;

pub mod query;

pub mod trace;

pub mod export;

pub mod publish;

pub mod bench;

pub mod placement;

pub mod emulate;

pub mod telemetry;

mod measuring;

pub mod calibrate;

pub mod simulate;

pub mod variants;

pub mod doctor;

pub mod explain;

pub mod manual;
