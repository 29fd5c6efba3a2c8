//! The subcommands, one file each.

pub mod run;
pub mod train;
pub mod status;
pub mod export;

