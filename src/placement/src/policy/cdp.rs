//! CDP: contiguous placement with two sizes of interval, and its chunked form.
//!
//! Each rank gets floor(n / ranks) or ceil(n / ranks) blocks, which ones is chosen so that the
//! makespan is least. Published as a dynamic program over (block, rank); here a ceiling is searched,
//! and the blocks at which rank `k` can start below it are a row of bits, 64 of them in one step.
//! Source: Jain et al. 2025, section V-C.
//!
//! Three defects of the published code are not reproduced: where the blocks divide evenly, the two
//! sizes coincide and it silently cuts greedily from the end (here one block more or less is then
//! allowed as well); chunking refuses numbers of ranks that are no multiple of the chunk's (here the
//! chunks differ by one rank); and errors of chunks that run in parallel are lost.

use super::contiguous_optimal;
use crate::problem::Problem;

/// CDP over all ranks at once.
pub fn place(problem: &Problem) -> Vec<u32> {
    let mut owners = vec![0; problem.n_blocks()];
    chunk(problem.costs(), 0, problem.ranks(), &mut owners);
    owners
}

/// CDP in chunks of about `ranks_per_chunk` ranks, which get intervals of about equal cost per rank.
pub fn place_in_chunks(problem: &Problem, ranks_per_chunk: u32) -> Vec<u32> {
    let mut owners = vec![0; problem.n_blocks()];
    let mut chunks = Vec::new();
    let mut rest = &mut owners[..];
    let mut costs = problem.costs();
    for (first_rank, ranks, blocks) in cut(problem, ranks_per_chunk) {
        let (mine, others) = rest.split_at_mut(blocks);
        let (my_costs, other_costs) = costs.split_at(blocks);
        chunks.push((my_costs, first_rank, ranks, mine));
        (rest, costs) = (others, other_costs);
    }
    let each = chunks.len().div_ceil(problem.threads());
    if problem.threads() == 1 || each == chunks.len() {
        chunks
            .into_iter()
            .for_each(|(costs, first, ranks, owners)| chunk(costs, first, ranks, owners));
    } else {
        std::thread::scope(|scope| {
            for share in chunks.chunks_mut(each) {
                scope.spawn(move || {
                    for (costs, first, ranks, owners) in share {
                        chunk(costs, *first, *ranks, owners);
                    }
                });
            }
        });
    }
    owners
}

/// First rank, number of ranks and number of blocks of each chunk.
///
/// A chunk takes blocks until it has its share of the cost that is left, and at least one for each
/// rank where there are as many; the last one takes the rest.
fn cut(problem: &Problem, ranks_per_chunk: u32) -> Vec<(u32, u32, usize)> {
    let (ranks, costs) = (u64::from(problem.ranks()), problem.costs());
    let chunks = ranks.div_ceil(u64::from(ranks_per_chunk));
    let each = usize::from(costs.len() as u64 >= ranks);
    let (mut start, mut left) = (0, problem.total());
    (0..chunks)
        .map(|i| {
            let (first, last) = (i * ranks / chunks, (i + 1) * ranks / chunks);
            // The sum of what is left is rounded; the share must not be missed for that.
            let share = left * ((last - first) as f64 / (ranks - first) as f64) * (1.0 - 1e-12);
            let (least, reserved) = (
                each * (last - first) as usize,
                each * (ranks - last) as usize,
            );
            let (from, mut cost) = (start, 0.0);
            while start < costs.len() - reserved
                && (last == ranks || start == from || start - from < least || cost < share)
            {
                cost += costs[start];
                start += 1;
            }
            left = (left - cost).max(0.0);
            (first as u32, (last - first) as u32, start - from)
        })
        .collect()
}

/// Places one chunk's blocks on the ranks from `first_rank`.
fn chunk(costs: &[f64], first_rank: u32, ranks: u32, owners: &mut [u32]) {
    let Ok(problem) = Problem::new(costs, ranks) else {
        unreachable!("a part of a valid problem is valid");
    };
    let mut start = 0;
    for (rank, size) in (first_rank..).zip(sizes(&problem)) {
        owners[start..start + size].fill(rank);
        start += size;
    }
}

/// How many blocks each rank gets.
fn sizes(problem: &Problem) -> Vec<usize> {
    let (n, ranks) = (problem.n_blocks(), problem.ranks() as usize);
    let by_count = |rank: usize| (rank * n).div_ceil(ranks);
    let mut best: Vec<usize> = (0..ranks).map(|r| by_count(r + 1) - by_count(r)).collect();
    if n == 0 {
        return best;
    }
    let starts = Starts::new(problem);
    let (low, mut high) = (
        contiguous_optimal::optimum(problem, u32::MAX),
        starts.makespan(&best),
    );
    // The makespan is the load of some interval: those between the bounds are searched by halves, after
    // the lowest, which is often attained. Here loads are differences of long sums, which are rounded.
    let loads = starts.loads(low * (1.0 - 1e-8), high);
    let (mut from, mut to) = (0, loads.len());
    let mut probe = 0;
    while from < to {
        match starts.below(loads[probe]) {
            Some(found) => {
                high = starts.makespan(&found);
                best = found;
                to = loads.partition_point(|&load| load < high).min(probe);
            }
            None => from = probe + 1,
        }
        probe = from + (to.saturating_sub(from)) / 2;
    }
    best
}

/// Where ranks can start: rank `k` within some distance of an equal share, as a row of bits.
struct Starts {
    before: Vec<f64>,
    ranks: usize,
    smallest: usize,
    largest: usize,
    /// Words in a row, the last for what is shifted in.
    words: usize,
}

impl Starts {
    fn new(problem: &Problem) -> Self {
        let (n, ranks) = (problem.n_blocks(), problem.ranks() as usize);
        let mut before = vec![0.0];
        before.extend(problem.costs().iter().scan(0.0, |sum, cost| {
            *sum += cost;
            Some(*sum)
        }));
        let (floor, even) = (n / ranks, n.is_multiple_of(ranks));
        // With more than some 4,000 ranks a drift of over 256 to 1,024 blocks from equal shares is
        // not considered, so that the time grows with the ranks alone; nor is more than can occur.
        let drift = match even {
            true => n,
            false => n % ranks,
        };
        let words = ((1 << 17) / ranks).clamp(8, 64).min(2 * (drift / 64 + 2));
        Starts {
            before,
            ranks,
            smallest: floor - usize::from(even),
            largest: floor + 1,
            words,
        }
    }

    fn n(&self) -> usize {
        self.before.len() - 1
    }

    /// The block of the first bit of rank `k`'s row.
    fn base(&self, rank: usize) -> usize {
        (rank * self.n() / self.ranks).saturating_sub(32 * self.words)
    }

    fn makespan(&self, sizes: &[usize]) -> f64 {
        let mut start = 0;
        let load = |&size: &usize| {
            start += size;
            self.before[start] - self.before[start - size]
        };
        sizes.iter().map(load).fold(0.0, f64::max)
    }

    /// The loads that intervals can have from `low` to below `high`, ascending.
    fn loads(&self, low: f64, high: f64) -> Vec<f64> {
        let mut loads = Vec::new();
        for size in self.smallest..=self.largest {
            for start in 0..(self.n() + 1).saturating_sub(size) {
                let load = self.before[start + size] - self.before[start];
                if low <= load && load < high {
                    loads.push(load);
                }
            }
        }
        loads.sort_unstable_by(f64::total_cmp);
        loads.dedup();
        loads
    }

    /// Sizes with no load above `ceiling`, if there are.
    fn below(&self, ceiling: f64) -> Option<Vec<usize>> {
        let fits: Vec<Vec<u64>> = (self.smallest..=self.largest)
            .map(|size| self.fitting(size, ceiling))
            .collect();
        let mut rows = vec![0u64; (self.ranks + 1) * self.words];
        rows[0] = 1;
        for rank in 0..self.ranks {
            let (done, next) = rows.split_at_mut((rank + 1) * self.words);
            let row = &done[rank * self.words..];
            let (base, next_base) = (self.base(rank), self.base(rank + 1));
            let mut any = 0;
            for (word, reached) in next[..self.words].iter_mut().enumerate() {
                let mut bits = 0;
                for (fits, size) in fits.iter().zip(self.smallest..) {
                    let from = (next_base + 64 * word) as isize - size as isize;
                    bits |= window(row, from - base as isize) & window(fits, from);
                }
                *reached = bits;
                any |= bits;
            }
            if any == 0 {
                return None;
            }
        }
        self.trace_back(&rows, &fits)
    }

    fn trace_back(&self, rows: &[u64], fits: &[Vec<u64>]) -> Option<Vec<usize>> {
        let reachable = |rank: usize, start: usize| {
            let row = &rows[rank * self.words..(rank + 1) * self.words];
            start >= self.base(rank) && bit(row, start - self.base(rank))
        };
        let mut end = self.n();
        if !reachable(self.ranks, end) {
            return None;
        }
        let mut sizes = vec![0; self.ranks];
        for rank in (0..self.ranks).rev() {
            let size = (self.smallest..=self.largest).find(|&size| {
                size <= end
                    && bit(&fits[size - self.smallest], end - size)
                    && reachable(rank, end - size)
            });
            sizes[rank] = size.expect("a reachable start was reached from one");
            end -= sizes[rank];
        }
        Some(sizes)
    }

    /// The blocks from which `size` blocks cost at most `ceiling`.
    fn fitting(&self, size: usize, ceiling: f64) -> Vec<u64> {
        let mut bits = vec![0; self.n() / 64 + 1];
        for start in 0..(self.n() + 1).saturating_sub(size) {
            let load = self.before[start + size] - self.before[start];
            bits[start / 64] |= u64::from(load <= ceiling) << (start % 64);
        }
        bits
    }
}

fn bit(bits: &[u64], index: usize) -> bool {
    bits.get(index / 64)
        .is_some_and(|word| word >> (index % 64) & 1 == 1)
}

/// 64 bits from `from` on, which may lie outside; there they are 0.
fn window(bits: &[u64], from: isize) -> u64 {
    let word = |index: isize| match usize::try_from(index) {
        Ok(index) => bits.get(index).copied().unwrap_or(0),
        Err(_) => 0,
    };
    let (index, shift) = (from.div_euclid(64), from.rem_euclid(64) as u32);
    match shift {
        0 => word(index),
        _ => word(index) >> shift | word(index + 1) << (64 - shift),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::makespan;
    use crate::generate::{Distribution, Random, costs};

    /// The published dynamic program over two sizes.
    fn by_definition(costs: &[f64], ranks: usize) -> f64 {
        let n = costs.len();
        let (floor, ceil) = (n / ranks, n.div_ceil(ranks));
        let mut best = vec![f64::INFINITY; n + 1];
        best[0] = 0.0;
        for _ in 0..ranks {
            let mut next = vec![f64::INFINITY; n + 1];
            for (start, &so_far) in best.iter().enumerate() {
                for end in [start + floor, start + ceil] {
                    if end <= n && so_far.is_finite() {
                        let load: f64 = costs[start..end].iter().sum();
                        next[end] = f64::min(next[end], so_far.max(load));
                    }
                }
            }
            best = next;
        }
        best[n]
    }

    #[test]
    fn it_is_the_published_program_where_blocks_do_not_divide_evenly() {
        let mut random = Random::new(6);
        for case in 0..2_000 {
            let (n, ranks) = (1 + random.below(300), 1 + random.below(60));
            let draw = match case % 2 {
                0 => costs(Distribution::Exponential, case, n),
                _ => (0..n).map(|_| random.below(1000) as f64).collect(),
            };
            let problem = Problem::new(&draw, ranks as u32).unwrap();
            let found = makespan(&problem, &place(&problem));
            let published = by_definition(&draw, ranks);
            match n.is_multiple_of(ranks) {
                true => assert!(found <= published, "case {case}"),
                false => assert_eq!(found, published, "case {case}: {n} on {ranks}"),
            }
        }
    }

    #[test]
    fn chunks_need_no_multiple_and_the_threads_do_not_matter() {
        for (ranks, n) in [(1000, 1500), (513, 5000), (1537, 100), (5, 7)] {
            let draw = costs(Distribution::Gaussian, 1, n);
            let problem = Problem::new(&draw, ranks).unwrap();
            let owners = place_in_chunks(&problem, 512);
            assert!(owners.is_sorted() && problem.check_owners(&owners).is_ok());
            assert_eq!(owners, place_in_chunks(&problem.with_threads(4), 512));
            if ranks <= 512 {
                assert_eq!(owners, place(&problem));
            }
        }
    }
}
