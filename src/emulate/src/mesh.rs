//! The mesh through a run: recorded, made by the program's own rules or by where an exact shock is, or drawn once.

mod front;
mod random;
mod recorded;
mod shock;

pub mod shell;

pub use random::random_leaves;
pub use recorded::{RecordedStep, Recording, VERSION, settings};
pub use shock::Shock;
