//! What the test of an algorithm needs, in one line: its row proved, and what a case of it costs.

pub use super::pattern::Pattern;
pub use super::schedule::Case;
pub use super::symbolic::claims::{cost, log_ceil};

use super::registry::{self, Row};
use super::symbolic::claims::prove;

/// The row of that name.
pub fn find(pattern: Pattern, name: &str) -> &'static Row {
    registry::find(pattern, name).unwrap()
}

/// The row of that name, after its proof.
pub fn proved(pattern: Pattern, name: &str) -> &'static Row {
    let row = find(pattern, name);
    prove(row);
    row
}
