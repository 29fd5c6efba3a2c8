//! What a tuning database says, as one page: did it help, where does the time go, which variant ran, can it be trusted?
//!
//! Modules stand in the order of the data: what is asked ([`question`]), what the database answers ([`report`], put
//! together by `read` from one module for each part of the page), and the [`page`] that shows it. Nothing is decided
//! here, and nothing in the database is changed. The figures are those of Hunold and Steiner, PMBS 2022.
#![forbid(unsafe_code)]

pub mod question;

mod head;

mod cells;

mod programs;

mod history;

mod unseen;

mod whole_runs;

pub mod levers;

pub mod report;

mod read;

pub mod page;

pub use question::{Question, Shape};
pub use read::{cells_at_rest, read};
pub use report::{Report, ReportError};
