//! Which rank gets which leaf: the policies that cut space or a curve, and the library's.

pub mod curve;
pub mod library;
pub mod rcb;
pub mod topology;

use crate::mesh::Mesh;

/// What a policy may look at: facts that every rank shares. Its answer is a function of them alone, so that every rank
/// finds the same.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub mesh: &'a Mesh,
    /// One for each leaf, positive and finite; equal costs balance numbers of leaves.
    pub costs: &'a [f64],
    pub n_ranks: usize,
}

/// Cuts `costs`, in their order, into consecutive parts: where each part ends.
///
/// With equal costs each part but the last has ceil(n / parts) entries, as miniAMR counts; otherwise
/// a part ends where its running sum is nearest to its share.
pub fn cut(costs: &[f64], n_parts: usize) -> Vec<usize> {
    let n = costs.len();
    if costs.windows(2).all(|pair| pair[0] == pair[1]) {
        let part = n.div_ceil(n_parts);
        return (1..=n_parts).map(|j| (j * part).min(n)).collect();
    }
    let total: f64 = costs.iter().sum();
    let mut ends = Vec::with_capacity(n_parts);
    let (mut at, mut sum) = (0, 0.0);
    for part in 1..n_parts {
        let share = total * part as f64 / n_parts as f64;
        while at < n && sum + costs[at] / 2.0 <= share {
            sum += costs[at];
            at += 1;
        }
        ends.push(at);
    }
    ends.push(n);
    ends
}

/// The prime factors of `n`, largest first.
pub fn factors(mut n: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    let mut divisor = 2;
    while n > 1 {
        while n.is_multiple_of(divisor) {
            factors.push(divisor);
            n /= divisor;
        }
        divisor += 1;
    }
    factors.reverse();
    factors
}

/// Highest over mean cost of the ranks; 1 is perfect.
pub fn imbalance(costs: &[f64], owners: &[u32], n_ranks: usize) -> f64 {
    let mut loads = vec![0.0f64; n_ranks];
    for (cost, &owner) in costs.iter().zip(owners) {
        loads[owner as usize] += cost;
    }
    let mean = loads.iter().sum::<f64>() / n_ranks as f64;
    loads.iter().fold(0.0f64, |a, &b| a.max(b)) / mean.max(f64::MIN_POSITIVE)
}
