//! How many collectives a program calls each time it goes round its loop.
//!
//! A solver has two dot products an iteration: before one of them ranks compute, the other follows at once. Side by
//! side in one sample they look like noise of many times what variants differ by. A call's number on its communicator
//! modulo the calls of an iteration says which of them it is. It is known before any variant is drawn, so comparing
//! calls of one place alone prefers none.

use std::collections::BTreeMap;

use super::Call;

/// Calls of one place in a window, about, and the least calls of a window.
const PLACE: usize = 32;
pub const WINDOW: usize = 64;
/// The longest loop that is looked for, and the fewest calls of each place in sum.
const LONGEST: u64 = 32;
const CALLS_OF_PLACE: usize = 16;
/// So many calls tell the length.
const CALLS_ENOUGH: usize = 4096;
/// By so much a loop has to be likelier than none, in logarithms.
const MARGIN: f64 = 10.0;
/// The shortest length that explains this share of what the best one does is taken.
const MOST: f64 = 0.9;

/// Calls in a window of which the places are distinguished: the longer the loop the more.
pub fn window(length: u64) -> usize {
    WINDOW.max(PLACE * length as usize)
}

/// The number of collectives in the loop of a communicator's calls, which are in order; 1 where none shows.
///
/// Places have means of their own in each window, so a loop that is interrupted goes on where it likes. The lengths are
/// compared by Schwarz' criterion (Annals of Statistics 6, 1978) on ranks, which stalls do not move.
pub fn length(calls: &[Call]) -> u64 {
    let calls = &calls[..calls.len().min(CALLS_ENOUGH)];
    let longest = LONGEST.min((calls.len() / CALLS_OF_PLACE) as u64);
    if longest < 2 {
        return 1;
    }
    let all: Vec<usize> = (0..calls.len()).collect();
    let behind: Vec<usize> = all
        .iter()
        .copied()
        .filter(|&place| calls[place].shift_ns.is_some())
        .collect();
    let measures = [
        ranks(&all, |place| calls[place].time_ns),
        ranks(&behind, |place| calls[place].shift_ns.unwrap_or(0.0)),
    ];
    let cost = |length: u64| -> f64 {
        let of = |ranks: &Vec<(usize, f64)>| misfit(calls, ranks, length);
        measures.iter().map(of).sum()
    };
    let costs: Vec<f64> = (1..=longest).map(cost).collect();
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let gain = costs[0] - least;
    if gain < MARGIN {
        return 1;
    }
    // A multiple of the length tells as much, and by chance a little more.
    let shortest = costs.iter().position(|cost| costs[0] - cost >= MOST * gain);
    shortest.map_or(1, |place| place as u64 + 1)
}

/// Places of calls with their ranks by a quantity, from 0 to 1.
fn ranks(places: &[usize], of: impl Fn(usize) -> f64) -> Vec<(usize, f64)> {
    let mut order = places.to_vec();
    order.sort_by(|&a, &b| of(a).total_cmp(&of(b)));
    let n = order.len() as f64;
    let rank = |(rank, place): (usize, usize)| (place, rank as f64 / n);
    order.into_iter().enumerate().map(rank).collect()
}

/// Schwarz' criterion: half the number of values times the logarithm of their variance within places, and half the
/// logarithm of their number for each mean.
fn misfit(calls: &[Call], values: &[(usize, f64)], length: u64) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mut sums: BTreeMap<(usize, u64), (f64, f64, f64)> = BTreeMap::new();
    for &(place, value) in values {
        let sum = sums
            .entry((place / window(length), calls[place].index % length))
            .or_default();
        *sum = (sum.0 + 1.0, sum.1 + value, sum.2 + value * value);
    }
    let squares: f64 = sums
        .values()
        .map(|(n, sum, squares)| (squares - sum * sum / n).max(0.0))
        .sum();
    0.5 * n * (squares / n).max(1e-9).ln() + 0.5 * sums.len() as f64 * n.ln()
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::evidence::Shape;

    /// Every third call is sampled, of a loop of so many whose first takes and is followed by another time.
    fn calls(n: usize, length: u64, first: f64, seed: u64) -> Vec<Call> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut index = 0;
        let mut one = || {
            index += 3 + u64::from(random.random::<f64>() < 0.2);
            let times = if index % length == 0 { first } else { 1.0 };
            let noise = (0.5 * (random.random::<f64>() - 0.5)).exp();
            let stall = if random.random::<f64>() < 0.01 {
                100.0
            } else {
                1.0
            };
            Call {
                run: 0,
                comm: 1,
                index,
                shape: Shape {
                    collective: colltune_core::collective::Collective::Allreduce,
                    message_bytes: 8,
                    nodes: 1,
                    ppn: 8,
                    n_ranks: 8,
                },
                variant: random.random_range(0..10),
                probability: 0.0,
                class: 0,
                start_ns: 0,
                time_ns: 1e4 * times * noise * stall,
                shift_ns: Some(5e4 * times * noise),
                after_ns: None,
                work_ns: 1e4,
            }
        };
        (0..n).map(|_| one()).collect()
    }

    #[test]
    fn the_length_of_a_loop_is_found_and_none_where_there_is_none() {
        for seed in 0..20 {
            for length in [2, 3, 7] {
                assert_eq!(super::length(&calls(400, length, 3.0, seed)), length);
            }
            assert_eq!(super::length(&calls(400, 1, 1.0, seed)), 1, "seed {seed}");
            assert_eq!(super::length(&calls(3000, 1, 1.0, seed)), 1, "seed {seed}");
        }
    }

    #[test]
    fn a_loop_that_is_interrupted_is_found_and_few_calls_have_none() {
        let mut interrupted = calls(600, 2, 3.0, 1);
        for call in &mut interrupted[300..] {
            call.index += 1;
        }
        assert_eq!(length(&interrupted), 2);
        assert_eq!(length(&calls(20, 2, 3.0, 1)), 1);
        assert_eq!(length(&[]), 1);
    }
}
