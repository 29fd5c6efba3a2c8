//! Contiguous by count: the baseline that looks at no cost.

use crate::problem::Problem;

/// Rank `r` gets the blocks from `r * n / ranks` rounded up: floor(n / ranks) of them or one more.
pub fn place(problem: &Problem) -> Vec<u32> {
    by_count(problem.n_blocks(), problem.ranks())
}

/// `n` blocks in order on `ranks`, as evenly as can be by number.
pub(super) fn by_count(n: usize, ranks: u32) -> Vec<u32> {
    let owner = |block: usize| (block as u64 * u64::from(ranks) / n as u64) as u32;
    (0..n).map(owner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_differ_by_at_most_one() {
        for n in 0..60 {
            for ranks in 1..20 {
                let owners = by_count(n, ranks);
                assert!(owners.is_sorted());
                for rank in 0..ranks {
                    let count = owners.iter().filter(|&&o| o == rank).count();
                    let floor = n / ranks as usize;
                    assert!((floor..=floor + 1).contains(&count), "{n} on {ranks}");
                }
            }
        }
    }
}
