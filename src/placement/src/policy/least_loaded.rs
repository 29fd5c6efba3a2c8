//! The least loaded rank of any range, while loads change: a tournament of the ranks.

use std::ops::Range;

/// Loads of ranks, with the winner of each pairing; ranks can be taken out and put back.
pub(super) struct Tournament {
    loads: Vec<f64>,
    /// A complete binary tree in an array: the winner of node `i` is that of `2i` or `2i + 1`.
    winners: Vec<u32>,
    leaves: usize,
}

/// Stands at the places of a tree that has more leaves than ranks.
const NOBODY: u32 = u32::MAX;

impl Tournament {
    /// All ranks start with the given loads; an infinite one is out.
    pub fn new(loads: Vec<f64>) -> Self {
        let leaves = loads.len().next_power_of_two();
        let mut tournament = Tournament {
            winners: vec![NOBODY; 2 * leaves],
            loads,
            leaves,
        };
        for rank in 0..tournament.loads.len() {
            tournament.winners[leaves + rank] = rank as u32;
        }
        for node in (1..leaves).rev() {
            tournament.winners[node] = tournament.play(node);
        }
        tournament
    }

    pub fn load(&self, rank: u32) -> f64 {
        self.loads[rank as usize]
    }

    /// Sets a rank's load; infinity takes it out.
    pub fn set(&mut self, rank: u32, load: f64) {
        self.loads[rank as usize] = load;
        let mut node = (self.leaves + rank as usize) / 2;
        while node > 0 {
            self.winners[node] = self.play(node);
            node /= 2;
        }
    }

    /// The least loaded of all ranks, the lowest of equals.
    pub fn least(&self) -> u32 {
        self.winners[1]
    }

    /// The least loaded of some ranks, the lowest of equals; `None` of none.
    pub fn least_of(&self, ranks: Range<u32>) -> Option<u32> {
        let (mut from, mut to) = (
            self.leaves + ranks.start as usize,
            self.leaves + ranks.end as usize,
        );
        let mut best = NOBODY;
        while from < to {
            if from % 2 == 1 {
                best = self.better(best, self.winners[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                best = self.better(best, self.winners[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        (best != NOBODY).then_some(best)
    }

    fn play(&self, node: usize) -> u32 {
        self.better(self.winners[2 * node], self.winners[2 * node + 1])
    }

    fn better(&self, a: u32, b: u32) -> u32 {
        match (a, b) {
            (NOBODY, other) | (other, NOBODY) => other,
            _ => {
                let (of_a, of_b) = (self.loads[a as usize], self.loads[b as usize]);
                match of_a < of_b || (of_a == of_b && a < b) {
                    true => a,
                    false => b,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    #[test]
    fn the_least_of_every_range_is_what_a_scan_finds() {
        let mut random = Random::new(5);
        for ranks in 1..40 {
            let mut loads: Vec<f64> = (0..ranks).map(|_| random.below(6) as f64).collect();
            let mut tournament = Tournament::new(loads.clone());
            for _ in 0..50 {
                let rank = random.below(ranks);
                loads[rank] = match random.below(5) {
                    0 => f64::INFINITY,
                    _ => random.below(6) as f64,
                };
                tournament.set(rank as u32, loads[rank]);
                let scan = |range: Range<usize>| {
                    range.min_by(|&a, &b| loads[a].total_cmp(&loads[b]).then(a.cmp(&b)))
                };
                assert_eq!(Some(tournament.least() as usize), scan(0..ranks));
                let (a, b) = (random.below(ranks + 1), random.below(ranks + 1));
                let range = a.min(b)..a.max(b);
                let found = tournament.least_of(range.start as u32..range.end as u32);
                assert_eq!(found.map(|r| r as usize), scan(range));
                assert_eq!(tournament.load(rank as u32), loads[rank]);
            }
        }
    }
}
