//! What Open MPI's `coll/tuned` chooses since version 4.1, by ranks and bytes, as values: its source has them as one
//! decision function for each collective (`coll_tuned_decision_fixed.c`), made of measurements on several sites'
//! machines (`ompi-collectives-tuning`). 5.0 has changed some of them since.
//!
//! They are those for operations that commute. Elements are taken for eight bytes where the library's algorithm needs
//! so many of them: it silently runs another one where there are fewer.

use colltune_core::algorithm::pattern::Pattern;

/// Up to fewer bytes than these: an algorithm.
type Sizes = &'static [(u64, &'static str)];
/// On fewer ranks than these.
type Rules = &'static [(usize, Sizes)];

const ELEMENT_BYTES: u64 = 8;

/// The library's algorithm, if this collective is in the tables.
pub fn algorithm(pattern: Pattern, bytes: u64, n_ranks: usize) -> Option<&'static str> {
    let rules = match pattern {
        Pattern::Allreduce => ALLREDUCE,
        Pattern::Bcast => BCAST,
        Pattern::Allgather => ALLGATHER,
        Pattern::Alltoall => ALLTOALL,
        Pattern::Barrier => BARRIER,
        Pattern::Reduce => REDUCE,
        Pattern::Gather => GATHER,
        Pattern::Scatter => SCATTER,
        Pattern::Scan | Pattern::Exscan => return Some("native:linear"),
        Pattern::ReduceScatter => return None,
    };
    let (_, sizes) = rules.iter().find(|(ranks, _)| n_ranks < *ranks)?;
    let (_, chosen) = sizes.iter().find(|(below, _)| bytes < *below)?;
    Some(that_runs(pattern, chosen, bytes, n_ranks))
}

/// What the library runs instead, without a word, where an algorithm cannot.
fn that_runs(pattern: Pattern, chosen: &'static str, bytes: u64, n_ranks: usize) -> &'static str {
    let n_elements = bytes / ELEMENT_BYTES;
    let power = 1u64 << n_ranks.max(1).ilog2();
    match (pattern, chosen) {
        (Pattern::Allreduce, "native:rabenseifner") if n_elements < power => "native:basic_linear",
        (Pattern::Allreduce, "native:ring" | "native:segmented_ring") => {
            match n_elements < n_ranks as u64 {
                true => "native:recursive_doubling",
                // Without a size of segments it is one.
                false => "native:ring",
            }
        }
        (Pattern::Reduce, "native:rabenseifner") if n_elements < power => "native:linear",
        (Pattern::Allgather, "native:recursive_doubling") if !n_ranks.is_power_of_two() => {
            "native:bruck"
        }
        (Pattern::Allgather, "native:neighbor") if n_ranks % 2 == 1 => "native:ring",
        _ => chosen,
    }
}

#[rustfmt::skip]
const ALLREDUCE: Rules = &[
    (4, &[
        (8, "native:ring"), (4 << 10, "native:recursive_doubling"), (8 << 10, "native:ring"),
        (16 << 10, "native:recursive_doubling"), (64 << 10, "native:ring"), (256 << 10, "native:segmented_ring"),
        (u64::MAX, "native:rabenseifner"),
    ]),
    (8, &[(16, "native:ring"), (8 << 10, "native:recursive_doubling"), (u64::MAX, "native:rabenseifner")]),
    (16, &[(8 << 10, "native:recursive_doubling"), (u64::MAX, "native:rabenseifner")]),
    (32, &[(64, "native:segmented_ring"), (4 << 10, "native:recursive_doubling"), (u64::MAX, "native:rabenseifner")]),
    (64, &[(128, "native:segmented_ring"), (u64::MAX, "native:rabenseifner")]),
    (128, &[(256 << 10, "native:recursive_doubling"), (u64::MAX, "native:rabenseifner")]),
    (256, &[
        (128 << 10, "native:nonoverlapping"), (256 << 10, "native:recursive_doubling"),
        (u64::MAX, "native:rabenseifner"),
    ]),
    (512, &[(4 << 10, "native:nonoverlapping"), (u64::MAX, "native:rabenseifner")]),
    (2048, &[
        (2 << 10, "native:nonoverlapping"), (16 << 10, "native:recursive_doubling"),
        (u64::MAX, "native:rabenseifner"),
    ]),
    (4096, &[
        (2 << 10, "native:nonoverlapping"), (4 << 10, "native:segmented_ring"),
        (16 << 10, "native:recursive_doubling"), (u64::MAX, "native:rabenseifner"),
    ]),
    (usize::MAX, &[
        (2 << 10, "native:nonoverlapping"), (16 << 10, "native:segmented_ring"),
        (32 << 10, "native:recursive_doubling"), (u64::MAX, "native:rabenseifner"),
    ]),
];

#[rustfmt::skip]
const BCAST: Rules = &[
    (4, &[
        (32, "native:pipeline"), (256, "native:binary_tree"), (512, "native:pipeline"), (1 << 10, "native:knomial"),
        (32 << 10, "native:basic_linear"), (128 << 10, "native:binary_tree"), (256 << 10, "native:chain"),
        (512 << 10, "native:basic_linear"), (1 << 20, "native:binomial"), (u64::MAX, "native:binary_tree"),
    ]),
    (8, &[
        (64, "native:binary_tree"), (128, "native:binomial"), (2 << 10, "native:binary_tree"),
        (8 << 10, "native:binomial"), (1 << 20, "native:basic_linear"), (u64::MAX, "native:chain"),
    ]),
    (16, &[
        (8, "native:knomial"), (64, "native:binary_tree"), (4 << 10, "native:knomial"),
        (16 << 10, "native:binary_tree"), (32 << 10, "native:binomial"), (u64::MAX, "native:basic_linear"),
    ]),
    (32, &[(4 << 10, "native:knomial"), (1 << 20, "native:binomial"), (u64::MAX, "native:scatter_allgather")]),
    (64, &[(2 << 10, "native:binomial"), (u64::MAX, "native:knomial")]),
    (128, &[(u64::MAX, "native:knomial")]),
    (256, &[
        (2, "native:binomial"), (16 << 10, "native:binary_tree"), (32 << 10, "native:basic_linear"),
        (64 << 10, "native:binary_tree"), (u64::MAX, "native:knomial"),
    ]),
    (1024, &[(16 << 10, "native:knomial"), (32 << 10, "native:split_binary_tree"), (u64::MAX, "native:knomial")]),
    (2048, &[(512 << 10, "native:knomial"), (u64::MAX, "native:scatter_allgather")]),
    (4096, &[(256 << 10, "native:knomial"), (u64::MAX, "native:scatter_allgather")]),
    (usize::MAX, &[
        (8 << 10, "native:knomial"), (16 << 10, "native:binary_tree"), (256 << 10, "native:knomial"),
        (u64::MAX, "native:scatter_allgather"),
    ]),
];

#[rustfmt::skip]
const ALLGATHER: Rules = &[
    (3, &[(u64::MAX, "native:two_proc")]),
    (32, &[(u64::MAX, "native:recursive_doubling")]),
    (64, &[(1 << 10, "native:recursive_doubling"), (64 << 10, "native:neighbor"), (u64::MAX, "native:ring")]),
    (128, &[(512, "native:recursive_doubling"), (64 << 10, "native:neighbor"), (u64::MAX, "native:ring")]),
    (256, &[
        (512, "native:recursive_doubling"), (128 << 10, "native:neighbor"), (512 << 10, "native:ring"),
        (1 << 20, "native:neighbor"), (u64::MAX, "native:ring"),
    ]),
    (512, &[
        (32, "native:recursive_doubling"), (128, "native:bruck"), (1 << 10, "native:recursive_doubling"),
        (128 << 10, "native:neighbor"), (512 << 10, "native:ring"), (1 << 20, "native:neighbor"),
        (u64::MAX, "native:ring"),
    ]),
    (1024, &[
        (64, "native:recursive_doubling"), (256, "native:bruck"), (2 << 10, "native:recursive_doubling"),
        (u64::MAX, "native:neighbor"),
    ]),
    (2048, &[
        (4, "native:recursive_doubling"), (8, "native:bruck"), (16, "native:recursive_doubling"),
        (32, "native:bruck"), (256, "native:recursive_doubling"), (512, "native:bruck"),
        (4 << 10, "native:recursive_doubling"), (u64::MAX, "native:neighbor"),
    ]),
    (4096, &[
        (32, "native:bruck"), (128, "native:recursive_doubling"), (512, "native:bruck"),
        (4 << 10, "native:recursive_doubling"), (u64::MAX, "native:neighbor"),
    ]),
    (usize::MAX, &[
        (2, "native:recursive_doubling"), (8, "native:bruck"), (16, "native:recursive_doubling"),
        (512, "native:bruck"), (4 << 10, "native:recursive_doubling"), (u64::MAX, "native:neighbor"),
    ]),
];

#[rustfmt::skip]
const ALLTOALL: Rules = &[
    (3, &[
        (2, "native:pairwise"), (4, "native:two_proc"), (16, "native:pairwise"), (64, "native:two_proc"),
        (256, "native:pairwise"), (4 << 10, "native:two_proc"), (32 << 10, "native:pairwise"),
        (256 << 10, "native:linear_sync"), (1 << 20, "native:two_proc"), (u64::MAX, "native:pairwise"),
    ]),
    (8, &[
        (8 << 10, "native:linear_sync"), (16 << 10, "native:linear"), (64 << 10, "native:linear_sync"),
        (512 << 10, "native:linear"), (1 << 20, "native:pairwise"), (u64::MAX, "native:linear"),
    ]),
    (16, &[(256 << 10, "native:linear_sync"), (u64::MAX, "native:linear")]),
    (32, &[
        (4, "native:linear_sync"), (512, "native:modified_bruck"), (8 << 10, "native:linear_sync"),
        (32 << 10, "native:linear"), (256 << 10, "native:linear_sync"), (512 << 10, "native:linear"),
        (u64::MAX, "native:linear_sync"),
    ]),
    (64, &[(512, "native:modified_bruck"), (512 << 10, "native:linear"), (u64::MAX, "native:linear_sync")]),
    (128, &[
        (1 << 10, "native:modified_bruck"), (2 << 10, "native:linear"), (4 << 10, "native:linear_sync"),
        (256 << 10, "native:linear"), (u64::MAX, "native:pairwise"),
    ]),
    (256, &[
        (1 << 10, "native:modified_bruck"), (2 << 10, "native:linear_sync"), (256 << 10, "native:linear"),
        (u64::MAX, "native:pairwise"),
    ]),
    (512, &[
        (1 << 10, "native:modified_bruck"), (8 << 10, "native:linear_sync"), (32 << 10, "native:linear"),
        (u64::MAX, "native:pairwise"),
    ]),
    (1024, &[
        (512, "native:modified_bruck"), (8 << 10, "native:linear_sync"), (16 << 10, "native:linear"),
        (128 << 10, "native:linear_sync"), (256 << 10, "native:linear"), (u64::MAX, "native:pairwise"),
    ]),
    (2048, &[
        (512, "native:modified_bruck"), (1 << 10, "native:linear_sync"), (2 << 10, "native:linear"),
        (16 << 10, "native:linear_sync"), (256 << 10, "native:linear"), (u64::MAX, "native:linear_sync"),
    ]),
    (4096, &[
        (1 << 10, "native:modified_bruck"), (4 << 10, "native:linear_sync"), (8 << 10, "native:linear"),
        (128 << 10, "native:linear_sync"), (u64::MAX, "native:linear"),
    ]),
    (usize::MAX, &[
        (2 << 10, "native:modified_bruck"), (8 << 10, "native:linear_sync"), (16 << 10, "native:linear"),
        (32 << 10, "native:linear_sync"), (64 << 10, "native:linear"), (u64::MAX, "native:linear_sync"),
    ]),
];

#[rustfmt::skip]
const BARRIER: Rules = &[
    (4, &[(u64::MAX, "native:recursive_doubling")]),
    (8, &[(u64::MAX, "native:linear")]),
    (64, &[(u64::MAX, "native:recursive_doubling")]),
    (256, &[(u64::MAX, "native:bruck")]),
    (512, &[(u64::MAX, "native:tree")]),
    (1024, &[(u64::MAX, "native:bruck")]),
    (4096, &[(u64::MAX, "native:tree")]),
    (usize::MAX, &[(u64::MAX, "native:bruck")]),
];

#[rustfmt::skip]
const REDUCE: Rules = &[
    (4, &[
        (8, "native:rabenseifner"), (16, "native:binary"), (32, "native:pipeline"), (256 << 10, "native:linear"),
        (512 << 10, "native:pipeline"), (1 << 20, "native:chain"), (u64::MAX, "native:pipeline"),
    ]),
    (8, &[
        (4 << 10, "native:binary"), (64 << 10, "native:chain"), (256 << 10, "native:binomial"),
        (512 << 10, "native:linear"), (1 << 20, "native:binomial"), (u64::MAX, "native:linear"),
    ]),
    (16, &[(8 << 10, "native:binary"), (u64::MAX, "native:binomial")]),
    (32, &[(4 << 10, "native:binary"), (u64::MAX, "native:binomial")]),
    (256, &[(u64::MAX, "native:binomial")]),
    (512, &[(8 << 10, "native:binomial"), (16 << 10, "native:in-order_binary"), (u64::MAX, "native:binomial")]),
    (2048, &[(u64::MAX, "native:binomial")]),
    (4096, &[
        (512, "native:binomial"), (1 << 10, "native:in-order_binary"), (8 << 10, "native:binomial"),
        (16 << 10, "native:in-order_binary"), (u64::MAX, "native:binomial"),
    ]),
    (usize::MAX, &[
        (16, "native:binomial"), (32, "native:in-order_binary"), (1 << 10, "native:binomial"),
        (2 << 10, "native:in-order_binary"), (8 << 10, "native:binomial"), (16 << 10, "native:in-order_binary"),
        (u64::MAX, "native:binomial"),
    ]),
];

#[rustfmt::skip]
const GATHER: Rules = &[
    (4, &[
        (2, "native:linear_sync"), (4, "native:basic_linear"), (32 << 10, "native:binomial"),
        (64 << 10, "native:basic_linear"), (128 << 10, "native:binomial"), (u64::MAX, "native:linear_sync"),
    ]),
    (8, &[
        (1 << 10, "native:binomial"), (8 << 10, "native:basic_linear"), (32 << 10, "native:binomial"),
        (256 << 10, "native:basic_linear"), (u64::MAX, "native:linear_sync"),
    ]),
    (256, &[(u64::MAX, "native:binomial")]),
    (512, &[(2 << 10, "native:binomial"), (8 << 10, "native:basic_linear"), (u64::MAX, "native:binomial")]),
    (usize::MAX, &[(u64::MAX, "native:binomial")]),
];

#[rustfmt::skip]
const SCATTER: Rules = &[
    (4, &[
        (2, "native:linear_nb"), (128 << 10, "native:basic_linear"), (256 << 10, "native:linear_nb"),
        (u64::MAX, "native:basic_linear"),
    ]),
    (8, &[
        (2 << 10, "native:binomial"), (4 << 10, "native:basic_linear"), (8 << 10, "native:binomial"),
        (32 << 10, "native:basic_linear"), (1 << 20, "native:linear_nb"), (u64::MAX, "native:basic_linear"),
    ]),
    (16, &[(16 << 10, "native:binomial"), (1 << 20, "native:linear_nb"), (u64::MAX, "native:basic_linear")]),
    (32, &[(16 << 10, "native:binomial"), (32 << 10, "native:basic_linear"), (u64::MAX, "native:linear_nb")]),
    (64, &[
        (512, "native:binomial"), (8 << 10, "native:linear_nb"), (16 << 10, "native:binomial"),
        (u64::MAX, "native:linear_nb"),
    ]),
    (usize::MAX, &[(512, "native:binomial"), (u64::MAX, "native:linear_nb")]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_rise_and_nothing_lies_beyond_the_last() {
        for rules in [
            ALLREDUCE, BCAST, ALLGATHER, ALLTOALL, BARRIER, REDUCE, GATHER, SCATTER,
        ] {
            assert!(rules.is_sorted_by(|a, b| a.0 < b.0));
            assert_eq!(rules.last().unwrap().0, usize::MAX);
            for (_, sizes) in rules {
                assert!(sizes.is_sorted_by(|a, b| a.0 < b.0));
                assert_eq!(sizes.last().unwrap().0, u64::MAX);
            }
        }
    }
}
