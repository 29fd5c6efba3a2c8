//! Circulant n-block bcast: in every round every rank sends one segment and receives one, over
//! the distances of the circulant graph in turn, and never one that it has.
//!
//! Cost: segments - 1 + ceil(log2 n) rounds of one segment each, which is the least possible, for
//! any n. Which segment comes when is computed by each rank alone, in O(log^2 n).
//! Source: Traeff, arXiv 2312.11236 and 2407.18004.

use crate::algorithm::circulant::halvings;
use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step};

/// The message is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let transfers = Transfers::new(case);
    let chunk = |segment| Part::range(Buffer::Output, segment, 1);
    let steps = transfers.into_iter().flat_map(move |transfer| {
        let send = transfer
            .to
            .map(|(peer, segment)| Step::send(peer, chunk(segment)));
        let receive = transfer
            .from
            .map(|(peer, segment)| Step::receive(peer, chunk(segment)));
        send.into_iter().chain(receive)
    });
    Schedule::new(case.segments, steps)
}

/// What a rank does in one round: the peer and the segment, in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub to: Option<(usize, usize)>,
    pub from: Option<(usize, usize)>,
}

/// The rounds of one rank, in order. Backwards, with the directions exchanged, they are a reduce.
pub struct Transfers {
    case: Case,
    distances: Vec<usize>,
    /// For each distance, the segment that the rank receives over it in the first phase; below
    /// zero, that of an earlier one.
    received: Vec<isize>,
    /// The same for the rank at that distance above.
    sent: Vec<isize>,
}

impl Transfers {
    pub fn new(case: Case) -> Transfers {
        let n = case.n_ranks;
        let distances: Vec<usize> = halvings(n).rev().map(|(_, after)| after).collect();
        let relative = case.relative();
        let of = |relative| first_phase(relative, n, &distances);
        let sent = distances.iter().enumerate();
        Transfers {
            case,
            received: of(relative),
            sent: sent
                .map(|(k, distance)| of((relative + distance) % n)[k])
                .collect(),
            distances,
        }
    }

    /// The rounds' numbers; the first phase is cut so that the last one is whole.
    fn rounds(&self) -> std::ops::Range<usize> {
        let per_phase = self.distances.len();
        if per_phase == 0 {
            return 0..0;
        }
        let last = self.case.segments - 1;
        let skipped = (per_phase - last % per_phase) % per_phase;
        skipped..last + per_phase + skipped
    }

    fn round(&self, round: usize) -> Transfer {
        let (case, per_phase) = (self.case, self.distances.len());
        let (k, phase) = (round % per_phase, round / per_phase);
        let distance = self.distances[k];
        let skipped = self.rounds().start as isize;
        let segment = |first: isize| {
            let at = first + (phase * per_phase) as isize - skipped;
            usize::try_from(at).ok().map(|at| at.min(case.segments - 1))
        };
        let peer_is_root = (case.relative() + distance).is_multiple_of(case.n_ranks);
        let to = segment(self.sent[k]).filter(|_| !peer_is_root);
        let from = segment(self.received[k]).filter(|_| case.relative() != 0);
        Transfer {
            to: to.map(|segment| (case.above(distance), segment)),
            from: from.map(|segment| (case.below(distance), segment)),
        }
    }
}

impl IntoIterator for Transfers {
    type Item = Transfer;
    type IntoIter = Box<dyn DoubleEndedIterator<Item = Transfer>>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.rounds().map(move |round| self.round(round)))
    }
}

/// The segment that relative rank `v` receives over each distance in the first phase.
///
/// The segment that comes first to a rank is the number of the last distance on its greedy path
/// from the root. Over each distance comes what the root has sent along the path, as a sum of
/// distances that are all different, that ends as far above as it may and has not been used; so
/// that any two ranks that meet agree.
fn first_phase(v: usize, n: usize, distances: &[usize]) -> Vec<isize> {
    let q = distances.len();
    let own = greedy_end(v, distances);
    let mut search = Search {
        target: n + v,
        distances: distances.iter().copied().chain([n]).collect(),
        left: (0..=q).map(|e| e != own).collect(),
        limit: 2 * n,
        found: Vec::with_capacity(q),
    };
    search.extend(0, q);
    let relative = |e: usize| {
        if e == q {
            own as isize
        } else {
            e as isize - q as isize
        }
    };
    search.found.into_iter().map(relative).collect()
}

/// The number of the distance that ends the greedy path to `v`; for the root, how many there are.
fn greedy_end(v: usize, distances: &[usize]) -> usize {
    let mut left = v;
    let mut end = distances.len();
    for (k, &distance) in distances.iter().enumerate().rev() {
        if left > 0 && distance <= left {
            left -= distance;
            end = k;
        }
    }
    end
}

struct Search {
    /// The rank, one turn round the graph above the root.
    target: usize,
    /// With the number of ranks as the last.
    distances: Vec<usize>,
    /// Distances that no path has ended with yet.
    left: Vec<bool>,
    /// Paths must end below this.
    limit: usize,
    /// For each distance over which something comes: the last distance of its path.
    found: Vec<usize>,
}

impl Search {
    /// Extends the path that has come to `at` by distances up to number `most`.
    fn extend(&mut self, at: usize, most: usize) {
        let q = self.left.len() - 1;
        for e in (0..=most).rev() {
            if self.found.len() == q {
                return;
            }
            let next = at + self.distances[e];
            let before = self.target - self.distances[self.found.len()];
            if !self.left[e] || next > before || next >= self.limit {
                continue;
            }
            if next <= self.target - self.distances[self.found.len() + 1] {
                self.extend(next, e);
            }
            let k = self.found.len();
            if k == q || at > self.target - self.distances[k + 1] {
                return;
            }
            self.limit = next;
            self.found.push(e);
            self.left[e] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Transfers;
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_the_message() {
        let row = proved(Pattern::Bcast, "circulant");
        for n in 2..=64 {
            let cost = cost(row, Case::new(0, n).segments(10), 100);
            assert_eq!(
                cost.all_elements,
                100 * (n as u64 - 1),
                "nothing comes twice"
            );
        }
    }

    #[test]
    fn in_step_the_rounds_are_the_least_possible() {
        for n in 2..=64 {
            for segments in [1, 2, 3, 10] {
                let case = |rank| Case::new(rank, n).segments(segments);
                let ranks: Vec<Transfers> = (0..n).map(|rank| Transfers::new(case(rank))).collect();
                assert_eq!(
                    ranks[0].rounds().len(),
                    segments - 1 + log_ceil(n, 2),
                    "n = {n}"
                );
                let mut has = vec![vec![false; segments]; n];
                has[0] = vec![true; segments];
                for round in ranks[0].rounds() {
                    let before = has.clone();
                    for (rank, transfers) in ranks.iter().enumerate() {
                        let Some((peer, segment)) = transfers.round(round).to else {
                            continue;
                        };
                        assert!(before[rank][segment], "n = {n}: sent before it has come");
                        assert_eq!(ranks[peer].round(round).from, Some((rank, segment)));
                        has[peer][segment] = true;
                    }
                }
                assert!(
                    has.iter().flatten().all(|&has| has),
                    "n = {n}, {segments} segments"
                );
            }
        }
    }

    #[test]
    fn the_segments_of_the_first_phase_are_different_for_thousands_of_ranks() {
        for n in [1000, 4097, 32768] {
            for v in (1..n).step_by(97) {
                let case = Case::new(v, n).segments(1);
                let transfers = Transfers::new(case);
                let mut received = transfers.received.clone();
                received.sort_unstable();
                received.dedup();
                assert_eq!(received.len(), log_ceil(n, 2), "n = {n}, v = {v}");
                assert_eq!(received.iter().filter(|&&segment| segment >= 0).count(), 1);
            }
        }
    }
}
