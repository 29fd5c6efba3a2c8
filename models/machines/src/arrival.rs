//! When ranks come to a call and leave it: what turns a variant's cost into what its ranks see.
//!
//! Ranks come late by the pattern; no rank leaves before the last one came. A variant's ranks leave one after
//! another, and each goes on when its neighbours have left, as behind a halo exchange. So a variant's cost, the mean
//! over ranks from the last arrival to going on, lies partly in the call and partly in what follows, and the slowest
//! rank's time is neither.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Exp1};

/// How late ranks come, in times of what the default costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// All within a fiftieth.
    Balanced,
    /// One and the same rank after all others.
    OneLate(f64),
    /// Each by a random time with this mean.
    Random(f64),
}

const JITTER: f64 = 0.02;

impl Arrival {
    /// How late each rank comes. Units: those of `scale_ns`.
    pub fn lateness(self, scale_ns: f64, rng: &mut ChaCha8Rng, late: &mut [f64]) {
        match self {
            Arrival::Balanced => fill(late, |_| rng.random_range(0.0..JITTER) * scale_ns),
            Arrival::OneLate(times) => fill(late, |rank| {
                let jitter = rng.random_range(0.0..JITTER);
                scale_ns * if rank == 1 { times + jitter } else { jitter }
            }),
            Arrival::Random(times) => fill(late, |_| {
                let exponential: f64 = Exp1.sample(rng);
                exponential * times * scale_ns
            }),
        }
    }

    /// Mean over ranks of the time until the last one comes.
    pub fn waiting_ns(self, scale_ns: f64, n_ranks: usize) -> f64 {
        let n = n_ranks as f64;
        let of_jitter = JITTER * ((n / (n + 1.0)) - 0.5);
        scale_ns
            * match self {
                Arrival::Balanced => of_jitter,
                Arrival::OneLate(times) => times * (n - 1.0) / n,
                Arrival::Random(times) => {
                    let harmonic: f64 = (1..=n_ranks).map(|k| 1.0 / k as f64).sum();
                    times * (harmonic - 1.0)
                }
            }
    }
}

fn fill(late: &mut [f64], mut of: impl FnMut(usize) -> f64) {
    for (rank, late) in late.iter_mut().enumerate() {
        *late = of(rank);
    }
}

/// How ranks leave a variant: the r-th at a share of its cost behind the last arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaving {
    /// The mean over ranks of when they go on is 1.
    shares: Vec<f64>,
}

impl Leaving {
    /// Spread out by `skew` to both sides, in random order.
    pub fn new(n_ranks: usize, skew: f64, rng: &mut ChaCha8Rng) -> Leaving {
        let last = (n_ranks.max(2) - 1) as f64;
        let mut shares: Vec<f64> = (0..n_ranks)
            .map(|place| 1.0 + skew * (2.0 * place as f64 / last - 1.0))
            .collect();
        shares.shuffle(rng);
        let on = (0..n_ranks)
            .map(|rank| going_on(&shares, rank))
            .sum::<f64>()
            / n_ranks as f64;
        shares.iter_mut().for_each(|share| *share /= on);
        Leaving { shares }
    }

    /// Mean share of a variant's cost that lies inside the call.
    pub fn inside(&self) -> f64 {
        self.shares.iter().sum::<f64>() / self.shares.len() as f64
    }

    /// When each rank leaves a call that costs so much, and what they see of it together. Units: nanoseconds behind
    /// a punctual rank's arrival.
    pub fn seen(&self, cost_ns: f64, late: &[f64], leaves: &mut [f64]) -> Seen {
        let last = late.iter().copied().fold(0.0, f64::max);
        let n = self.shares.len() as f64;
        let over = last + self.shares.iter().copied().fold(0.0, f64::max) * cost_ns;
        let mut seen = Seen::default();
        for (rank, (share, late)) in self.shares.iter().zip(late).enumerate() {
            leaves[rank] = last + share * cost_ns;
            let goes_on = last + going_on(&self.shares, rank) * cost_ns;
            seen.time_ns += (leaves[rank] - late) / n;
            seen.shift_ns += (goes_on - leaves[rank]) / n;
            seen.pushed_ns += (over - goes_on) / n;
            seen.slowest_ns = seen.slowest_ns.max(leaves[rank] - late);
            seen.work_ns = seen.work_ns.max(share * cost_ns);
        }
        seen
    }
}

/// When a rank and both its neighbours have left.
fn going_on(shares: &[f64], rank: usize) -> f64 {
    let n = shares.len();
    let near = [rank + n - 1, rank, rank + 1].map(|place| shares[place % n]);
    near.into_iter().fold(0.0, f64::max)
}

/// What the ranks of a call see.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Mean over ranks of the time inside the call.
    pub time_ns: f64,
    /// Mean over ranks of the time that they wait for their neighbours behind it.
    pub shift_ns: f64,
    /// Mean over ranks of the time that they wait in the next collective, where that waits for whoever leaves last.
    pub pushed_ns: f64,
    pub slowest_ns: f64,
    /// From the last arrival to the last departure.
    pub work_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn time_and_shift_together_are_the_cost_and_waiting() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for arrival in [
            Arrival::Balanced,
            Arrival::OneLate(5.0),
            Arrival::Random(20.0),
        ] {
            let leaving = Leaving::new(8, 0.6, &mut rng);
            let (mut sum, mut late) = (0.0, [0.0; 8]);
            for _ in 0..20_000 {
                arrival.lateness(1000.0, &mut rng, &mut late);
                let seen = leaving.seen(1000.0, &late, &mut [0.0; 8]);
                sum += seen.time_ns + seen.shift_ns;
            }
            let expected = 1000.0 + arrival.waiting_ns(1000.0, 8);
            assert!(
                (sum / 20_000.0 / expected - 1.0).abs() < 0.01,
                "{arrival:?}"
            );
        }
    }

    #[test]
    fn the_slowest_rank_puts_variants_into_the_wrong_order() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let (even, uneven) = (
            Leaving::new(8, 0.0, &mut rng),
            Leaving::new(8, 0.6, &mut rng),
        );
        let of = |leaving: &Leaving, cost| leaving.seen(cost, &[0.0; 8], &mut [0.0; 8]);
        let (dearer, cheaper) = (of(&even, 1000.0), of(&uneven, 900.0));
        assert!(dearer.slowest_ns < cheaper.slowest_ns);
        assert!(dearer.time_ns + dearer.shift_ns > cheaper.time_ns + cheaper.shift_ns);
    }
}
