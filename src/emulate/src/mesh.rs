//! The mesh through a run: recorded, made by the program's own rules, or by where an exact shock is.

mod recorded;

pub mod shell;

pub use recorded::{RecordedStep, Recording, VERSION, settings};
