//! The least loaded rank of any range, while loads change: a tournament of the ranks.

use std::ops::Range;

/// Loads of ranks, with the winner of each pairing; ranks can be taken out and put back.
pub(super) struct Tournament {
    /// A complete binary tree in an array: the winner of node `i` is that of `2i` or `2i + 1`, and
    /// the ranks are its leaves.
    nodes: Vec<Entry>,
    leaves: usize,
}

#[derive(Clone, Copy, PartialEq)]
struct Entry {
    load: f64,
    rank: u32,
}

/// Stands at the places of a tree that has more leaves than ranks; loses against any rank.
const NOBODY: Entry = Entry {
    load: f64::INFINITY,
    rank: u32::MAX,
};

impl Tournament {
    /// All ranks start with the given loads; one with an infinite load is out.
    pub fn new(loads: &[f64]) -> Self {
        let leaves = loads.len().next_power_of_two();
        let mut nodes = vec![NOBODY; 2 * leaves];
        for (rank, &load) in (0u32..).zip(loads) {
            nodes[leaves + rank as usize] = Entry { load, rank };
        }
        for node in (1..leaves).rev() {
            nodes[node] = better(nodes[2 * node], nodes[2 * node + 1]);
        }
        Tournament { nodes, leaves }
    }

    pub fn load(&self, rank: u32) -> f64 {
        self.nodes[self.leaves + rank as usize].load
    }

    /// Sets a rank's load; infinity takes it out.
    pub fn set(&mut self, rank: u32, load: f64) {
        let mut node = self.leaves + rank as usize;
        self.nodes[node] = Entry { load, rank };
        while node > 1 {
            node /= 2;
            let winner = better(self.nodes[2 * node], self.nodes[2 * node + 1]);
            if winner == self.nodes[node] {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// The least loaded of all ranks, the lowest of equals.
    pub fn least(&self) -> u32 {
        self.nodes[1].rank
    }

    /// The least loaded rank of each of up to eight parts of nearly equal size, in the order of the
    /// ranks.
    pub fn least_of_parts(&self) -> impl Iterator<Item = u32> {
        let parts = self.leaves.min(8);
        let winners = self.nodes[parts..2 * parts].iter();
        winners
            .map(|entry| entry.rank)
            .filter(|&rank| rank != NOBODY.rank)
    }

    /// The least loaded of some ranks, the lowest of equals; `None` of none.
    pub fn least_of(&self, ranks: Range<u32>) -> Option<u32> {
        let mut from = self.leaves + ranks.start as usize;
        let mut to = self.leaves + ranks.end as usize;
        let mut best = NOBODY;
        while from < to {
            if from % 2 == 1 {
                best = better(best, self.nodes[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                best = better(best, self.nodes[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        (best.rank != NOBODY.rank).then_some(best.rank)
    }
}

fn better(a: Entry, b: Entry) -> Entry {
    match a.load < b.load || (a.load == b.load && a.rank < b.rank) {
        true => a,
        false => b,
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
            let mut tournament = Tournament::new(&loads);
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
                assert!(
                    tournament
                        .least_of_parts()
                        .any(|rank| rank == tournament.least())
                );
            }
        }
    }
}
