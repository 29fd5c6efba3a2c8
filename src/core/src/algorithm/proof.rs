//! What the test of an algorithm needs: its row proved, what a case of it costs, and claims that several share.

pub use super::pattern::Pattern;
pub use super::schedule::Case;
pub use super::symbolic::claims::{cost, ended, log_ceil};

use super::fixed_order::tests::{in_order, prefix, tree};
use super::registry::{self, FixedOrder, Row};
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

/// Every result is combined in the order that is promised, as an operation is that does not commute.
fn prove_fixed_order(row: &Row) {
    let mut results = 0;
    for (n_ranks, segments) in (1..=33).flat_map(|n| [(n, 1), (n, 3)]) {
        let roots = if row.pattern.has_root() { n_ranks } else { 1 };
        let mut radixes = row.values();
        radixes.dedup_by_key(|values| values.radix);
        let case = |root: usize| {
            radixes.iter().map(move |values| Case {
                root,
                radix: values.radix,
                ..Case::new(0, n_ranks).segments(segments)
            })
        };
        for case in (0..roots).flat_map(case) {
            let world = ended(row, case, 6 * n_ranks as u64);
            for rank in 0..n_ranks {
                let all = || tree(n_ranks, |from| from as u8);
                let wanted = match row.pattern {
                    Pattern::Allreduce | Pattern::ReduceScatter => all(),
                    Pattern::Reduce if rank == case.root => all(),
                    Pattern::Scan => prefix(rank + 1, |from| from as u8),
                    Pattern::Exscan if rank > 0 => prefix(rank, |from| from as u8),
                    _ => continue,
                };
                for content in world.output(rank).iter().flatten() {
                    results += 1;
                    let found = in_order(&content.sum);
                    assert_eq!(found, wanted, "{} on rank {rank} of {case:?}", row.name);
                }
            }
        }
    }
    assert!(results > 100, "{} has {results} results", row.name);
}

#[test]
fn rows_that_keep_the_fixed_order_do() {
    let rows = registry::ROWS
        .iter()
        .filter(|row| row.fixed_order != FixedOrder::Broken);
    let proved = rows.map(prove_fixed_order).count();
    assert_eq!(proved, 9);
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
