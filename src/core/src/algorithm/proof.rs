//! What the test of an algorithm needs: its row proved, what a case of it costs, and claims that several share.

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

/// Its rounds are the least possible, and every rank but the root has one message, of a bcast or reduce the whole one.
pub fn assert_tree_of_least_rounds(row: &Row) {
    for n in (1..=64).filter(|&n| row.fits(n)) {
        let cost = cost(row, Case::new(0, n), 100);
        assert_eq!(cost.rounds, log_ceil(n, 2), "n = {n}");
        assert_eq!(cost.all_messages, n - 1, "n = {n}");
        if matches!(row.pattern, Pattern::Bcast | Pattern::Reduce) {
            assert_eq!(cost.all_elements, 100 * (n as u64 - 1), "n = {n}");
        }
    }
}

/// Each of log_radix(n) levels takes a round less than the radix.
pub fn assert_knomial_rounds(pattern: Pattern) {
    let row = find(pattern, "knomial");
    assert_tree_of_least_rounds(row);
    for (n, radix, i) in [(9, 3, 2), (27, 3, 3), (64, 4, 3), (64, 8, 2)] {
        let cost = cost(row, Case::new(0, n).radix(radix), 100);
        assert_eq!(cost.rounds, (radix - 1) * i, "n = {n}");
    }
}
