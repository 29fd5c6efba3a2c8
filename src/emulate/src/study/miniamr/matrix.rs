//! Who sends how many messages to whom.

#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    pub n_ranks: usize,
    /// From, to and how many; each pair once, in order.
    pub cells: Vec<(u32, u32, u64)>,
}

/// Ranks so far apart, at most, are counted together.
pub const DISTANCES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

impl Matrix {
    /// From messages in any order.
    pub fn new(n_ranks: usize, messages: &[(u32, u32, u64)]) -> Matrix {
        let mut cells = messages.to_vec();
        cells.sort_unstable();
        cells.dedup_by(|next, first| {
            let same = (next.0, next.1) == (first.0, first.1);
            if same {
                first.2 += next.2;
            }
            same
        });
        Matrix { n_ranks, cells }
    }

    /// Percent of the messages that go no further than each of [`DISTANCES`].
    pub fn within(&self) -> Vec<f64> {
        let sum = |most: u32| {
            let near = self
                .cells
                .iter()
                .filter(|cell| cell.0.abs_diff(cell.1) <= most);
            near.map(|cell| cell.2).sum::<u64>() as f64
        };
        let all = sum(u32::MAX).max(1.0);
        DISTANCES.map(|most| 100.0 * sum(most) / all).to_vec()
    }

    /// Row by row, with the pairs that have nothing.
    pub fn dense(&self) -> Vec<u64> {
        let mut values = vec![0; self.n_ranks * self.n_ranks];
        for &(from, to, n) in &self.cells {
            values[from as usize * self.n_ranks + to as usize] = n;
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_pair_are_one_cell_and_distances_count_all_nearer_ones() {
        let matrix = Matrix::new(100, &[(0, 1, 2), (9, 5, 1), (0, 1, 3), (99, 0, 4)]);
        assert_eq!(matrix.cells, [(0, 1, 5), (9, 5, 1), (99, 0, 4)]);
        assert_eq!(matrix.within(), [50.0, 50.0, 60.0, 60.0, 60.0, 60.0, 60.0]);
        assert_eq!(matrix.dense()[1], 5);
        assert_eq!(matrix.dense().iter().sum::<u64>(), 10);
    }
}
