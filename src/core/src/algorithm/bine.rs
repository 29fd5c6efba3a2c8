//! Bine numbering: binomial trees whose edges are shorter than the usual ones, because ranks are
//! numbered by the negabinary digits of their distance from the root.
//!
//! With n = 2^q ranks, an exchange of order `k` is over the distance `|1 - (-2)^(k+1)| / 3`, by
//! even ranks upwards and by odd ranks downwards if that is positive, else the other way.
//!
//! Source: De Sensi et al., Bine trees, SC 2025, arXiv 2508.17311; the distances also in De Sensi
//! et al., Swing, NSDI 2024, arXiv 2401.09356.

use super::schedule::{Buffer, Case, Part, Parts};
use super::tree;

/// Digits of a negative power of two.
const ODD_DIGITS: usize = 0xaaaa_aaaa_aaaa_aaaa_u64 as usize;

/// The number in a binomial tree of the rank with this relative number, of n = 2^q.
///
/// A path from the root goes up and down in turn, so the distances of its exchanges cancel but
/// for the negabinary digits between them: neighbouring digits that differ are the exchanges.
pub fn number(relative: usize, n: usize) -> usize {
    let digits = (relative.wrapping_add(ODD_DIGITS) ^ ODD_DIGITS) & (n - 1);
    digits ^ (digits >> 1)
}

/// The relative number of the rank with that number in the tree.
pub fn relative(number: usize, n: usize) -> usize {
    let digits = (0..n.ilog2()).fold(0, |digits, k| digits ^ (number >> k));
    (digits ^ ODD_DIGITS).wrapping_sub(ODD_DIGITS) & (n - 1)
}

/// With whom `rank` exchanges in the exchange of order `k`.
pub fn peer(rank: usize, k: u32, n: usize) -> usize {
    let distance = (1 - (-2_isize).pow(k + 1)) / 3;
    let signed = if rank.is_multiple_of(2) {
        distance
    } else {
        -distance
    };
    rank.wrapping_add_signed(signed) & (n - 1)
}

/// The blocks for which `rank` is responsible after the exchange of order `k`, when the orders
/// ascend: its own and those of the ranks that it has yet to meet, directly or through others.
pub fn blocks(rank: usize, k: u32, n: usize) -> Vec<usize> {
    let mut blocks = Vec::with_capacity(n >> (k + 1));
    collect(rank, k, n, &mut blocks);
    blocks.sort_unstable();
    blocks
}

fn collect(rank: usize, k: u32, n: usize, blocks: &mut Vec<usize>) {
    blocks.push(rank);
    for later in k + 1..n.ilog2() {
        collect(peer(rank, later, n), later, n, blocks);
    }
}

/// Those blocks, as parts of a buffer with a chunk per rank.
pub fn parts(buffer: Buffer, case: Case, rank: usize, k: u32) -> Parts {
    runs(buffer, &blocks(rank, k, case.n_ranks))
}

/// The blocks of a subtree of the tree at the case's root, by the number of its own root.
pub fn subtree(buffer: Buffer, case: Case, number: usize) -> Parts {
    let n = case.n_ranks;
    let numbers = number..number + tree::knomial_span(number, n, 2);
    let rank_at = |number| case.absolute(relative(number, n));
    let mut blocks: Vec<usize> = numbers.map(rank_at).collect();
    blocks.sort_unstable();
    runs(buffer, &blocks)
}

/// Ascending blocks, as parts of a buffer with a chunk per rank.
fn runs(buffer: Buffer, blocks: &[usize]) -> Parts {
    let adjacent = blocks.chunk_by(|a, b| a + 1 == *b);
    Parts::Many(
        adjacent
            .map(|run| Part::range(buffer, run[0], run.len()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_ranks_and_exchanges_flip_one_digit() {
        for q in 0..11 {
            let n = 1 << q;
            for v in 0..n {
                let mu = number(v, n);
                assert!(mu < n);
                assert_eq!(relative(mu, n), v);
                // The exchanges of the tree: the one of order k with all digits below it zero.
                for k in 0..q {
                    assert_eq!(peer(peer(v, k, n), k, n), v);
                    if mu.is_multiple_of(1 << (k + 1)) {
                        assert_eq!(number(peer(v, k, n), n), mu + (1 << k));
                    }
                }
            }
        }
    }

    #[test]
    fn an_exchange_splits_the_blocks_between_its_two_ranks() {
        for q in 1..8 {
            let n = 1 << q;
            for rank in 0..n {
                assert_eq!(blocks(rank, q - 1, n), [rank]);
                for k in 1..q {
                    let mut both = blocks(rank, k, n);
                    both.extend(blocks(peer(rank, k, n), k, n));
                    both.sort_unstable();
                    assert_eq!(both, blocks(rank, k - 1, n));
                }
            }
        }
    }
}
