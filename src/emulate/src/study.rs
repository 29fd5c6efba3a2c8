//! Published figures, emulated: each with the paper's value, ours, what may be between them, and what was assumed.

mod figure;

mod finding;

pub mod art;

pub mod cplx;

pub mod miniamr;

pub mod shamrock;

mod row;

mod size;

mod variation;

pub use figure::{Bar, Figure, Line, Picture};
pub use finding::{Finding, Study, Verdict};
pub use row::{ALL, Row, find};
pub use size::Size;
