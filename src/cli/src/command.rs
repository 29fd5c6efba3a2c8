//! The subcommands, one file each, and what they write ([`output`]).

mod output;

pub mod run;

pub mod compare;

pub mod tune;

pub mod train;

pub mod status;

pub mod report;

pub mod query;

pub mod trace;

pub mod export;

pub mod bench;

pub mod placement;

pub mod telemetry;

pub mod calibrate;

pub mod simulate;

pub mod variants;

pub mod doctor;

pub mod explain;
