//! The subcommands, one file each.

mod tables;

mod lever;

mod trials;

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

pub mod calibrate;

pub mod variants;

pub mod doctor;

pub mod explain;
