//! Folding any number of ranks onto a power of the radix, in rank order.
//!
//! The ranks are dealt out to the cores in ranges; the last rank of each range leads it. Leaders
//! first combine their ranges, with their own contribution last, then work among themselves, then
//! hand the result back. Operand order is kept, and every combination has its source first.

use super::schedule::{Order, Part, Step};

/// The ranks as seen by the algorithm that works among leaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    pub n_ranks: usize,
    /// Leaders: the largest power of the radix that is not above the ranks.
    pub n_cores: usize,
    /// Its exponent.
    pub rounds: u32,
}

impl Fold {
    pub fn new(n_ranks: usize, radix: usize) -> Fold {
        let rounds = n_ranks.ilog(radix);
        Fold {
            n_ranks,
            n_cores: radix.pow(rounds),
            rounds,
        }
    }

    /// The first rank of the range of `core`.
    pub fn first(&self, core: usize) -> usize {
        let (least, longer) = (self.n_ranks / self.n_cores, self.n_ranks % self.n_cores);
        core * least + core.min(longer)
    }

    /// The rank that leads the range of `core`.
    pub fn leader(&self, core: usize) -> usize {
        self.first(core + 1) - 1
    }

    /// The core in whose range `rank` is.
    pub fn core(&self, rank: usize) -> usize {
        let (least, longer) = (self.n_ranks / self.n_cores, self.n_ranks % self.n_cores);
        let in_longer = longer * (least + 1);
        if rank < in_longer {
            rank / (least + 1)
        } else {
            longer + (rank - in_longer) / least
        }
    }

    pub fn leads(&self, rank: usize) -> bool {
        self.leader(self.core(rank)) == rank
    }

    /// The ranks that `rank` leads, from its neighbour downwards; none unless it leads.
    pub fn led_by(&self, rank: usize) -> std::iter::Rev<std::ops::Range<usize>> {
        let core = self.core(rank);
        let first = if self.leads(rank) {
            self.first(core)
        } else {
            rank
        };
        (first..rank).rev()
    }

    /// The rounds among leaders that `rank` takes part in: none unless it leads.
    pub fn rounds_of(&self, rank: usize) -> u32 {
        if self.leads(rank) { self.rounds } else { 0 }
    }

    /// A leader combines its range into `held`, which begins as `mine`, receiving into `received`; the others send.
    pub fn combine(
        self,
        rank: usize,
        mine: Part,
        held: Part,
        received: Part,
    ) -> impl Iterator<Item = Step> {
        let own = self.leads(rank).then(|| Step::copy(mine, held));
        let led = self.led_by(rank).flat_map(move |other| {
            [
                Step::receive(other, received),
                Step::reduce(received, held, Order::SourceFirst),
            ]
        });
        let hand_in = (!self.leads(rank)).then(|| Step::send(self.leader(self.core(rank)), mine));
        own.into_iter().chain(led).chain(hand_in)
    }

    /// A leader hands `result` to its range; the others receive it.
    pub fn hand_back(self, rank: usize, result: Part) -> impl Iterator<Item = Step> {
        let led = self
            .led_by(rank)
            .map(move |other| Step::send(other, result));
        let take = (!self.leads(rank)).then(|| Step::receive(self.leader(self.core(rank)), result));
        led.chain(take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_led_by_exactly_one_leader_above_it() {
        for n in 1..200 {
            for radix in 2..9 {
                let fold = Fold::new(n, radix);
                assert!(fold.n_cores <= n);
                assert!(fold.n_cores * radix > n);
                let mut led = vec![0; n];
                for core in 0..fold.n_cores {
                    let leader = fold.leader(core);
                    assert_eq!(fold.core(leader), core);
                    led[leader] += 1;
                    fold.led_by(leader).for_each(|rank| led[rank] += 1);
                }
                assert!(
                    led.iter().all(|&times| times == 1),
                    "n = {n}, radix = {radix}"
                );
            }
        }
    }
}
