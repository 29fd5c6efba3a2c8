//! The times of a cell's samples: what this rank saw of each, tells the others in a review, and hears of all.

use std::collections::TryReserveError;

use crate::record::CallTimes;

use super::agreed::Membership;

/// A review comes after that many samples at the latest.
pub(super) const FRESH_MAX: usize = 64;

/// When a sampled call began and ended on this rank, on its node's clock, and where its record lies, if there is
/// one: that is this rank's affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub start_ns: u64,
    pub end_ns: u64,
    pub record: Option<usize>,
}

/// A sample since the last review.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    pub arm: Option<usize>,
    /// Its number among the cell's calls.
    pub call: u64,
    /// Flags of its class.
    pub class: u8,
    pub timing: Timing,
    /// By [`GapPart`]; [`UNKNOWN`] until it is over.
    pub behind_ns: [u64; 2],
}

/// What is timed behind a sample: from its end to this rank's next call of a collective, and the time in that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapPart {
    Shift,
    After,
}

pub(super) const UNKNOWN: u64 = u64::MAX;
/// Beyond these a call, or what comes behind it, counts as that long: sums over 2^23 ranks stay within a word.
pub(super) const SPAN_NS_MAX: u64 = 1 << 40;

impl Fresh {
    fn time_ns(&self) -> u64 {
        let Timing {
            start_ns, end_ns, ..
        } = self.timing;
        end_ns.saturating_sub(start_ns).min(SPAN_NS_MAX)
    }

    /// What this rank tells of it: words of which the largest is wanted, and words that are added up.
    pub(super) fn words(&self) -> ([u64; LARGEST], [u64; SUMS]) {
        let (time_ns, [shift_ns, after_ns]) = (self.time_ns(), self.behind_ns);
        let Timing {
            start_ns, end_ns, ..
        } = self.timing;
        let class = u64::from(self.class);
        let largest = [
            start_ns, end_ns, !time_ns, time_ns, shift_ns, after_ns, class,
        ];
        let behind_ns = self.behind_ns.map(|ns| ns.min(SPAN_NS_MAX));
        (largest, [time_ns, behind_ns[0], behind_ns[1]])
    }
}

/// What this rank tells the others in a review, as many words on every rank: of some the largest of all is wanted,
/// of the others the sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    pub largest: Vec<u64>,
    pub sums: Vec<u64>,
}

/// Words of a sample in a review.
pub(super) const LARGEST: usize = 7;
pub(super) const SUMS: usize = 3;
/// Words of the review itself, of which the largest is wanted.
pub(super) const OF_REVIEW: usize = 5;
/// The place among them of an arm that is known to be hopeless.
#[cfg(test)]
pub(super) const TOLD: usize = 4;
/// That of whether the job was switched off.
#[cfg(test)]
pub(super) const OFF: usize = 2;

impl Words {
    /// What those of any review take.
    pub const BYTES: usize = size_of::<u64>() * (OF_REVIEW + (LARGEST + SUMS) * FRESH_MAX);

    /// Room for those of any review.
    pub(super) fn reserve(&mut self) -> Result<(), TryReserveError> {
        self.largest.clear();
        self.sums.clear();
        self.largest.try_reserve(OF_REVIEW + LARGEST * FRESH_MAX)?;
        self.sums.try_reserve(SUMS * FRESH_MAX)
    }
}

/// The class of a sample by the words of all ranks: one of them may have called with other arguments than the others,
/// and go on with them.
pub(super) fn class(largest: &[u64]) -> u8 {
    largest[LARGEST - 1] as u8
}

/// What the words of all ranks say of one sample.
pub(super) fn agreed(largest: &[u64], sums: &[u64], members: &Membership) -> CallTimes {
    let [
        start_ns,
        end_ns,
        not_shortest_ns,
        slowest_ns,
        longest_shift_ns,
        longest_after_ns,
        _,
    ] = largest
    else {
        unreachable!("there are so many words of a sample")
    };
    let n_ranks = u64::from(members.layout.n_ranks.max(1));
    let mean = |longest: &u64, sum: u64| (*longest != UNKNOWN).then_some(sum / n_ranks);
    CallTimes {
        time_ns: sums[0] / n_ranks,
        shift_ns: mean(longest_shift_ns, sums[1]),
        after_ns: mean(longest_after_ns, sums[2]),
        slowest_ns: *slowest_ns,
        work_ns: match members.layout.nodes {
            // Ranks of one node read one clock.
            1 => end_ns.saturating_sub(*start_ns),
            _ => !not_shortest_ns,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two ranks agree on that start and end a call at these times, have these shifts, and spend as long again in
    /// the next call.
    fn told(nodes: u32, [one, other]: [(u64, u64, u64); 2]) -> CallTimes {
        let members = Membership::of((0..2).map(|rank| rank % nodes));
        let words = |(start_ns, end_ns, shift_ns): (u64, u64, u64)| {
            let timing = Timing {
                start_ns,
                end_ns,
                record: None,
            };
            let arm = None;
            Fresh {
                arm,
                call: 0,
                class: 0,
                timing,
                behind_ns: [shift_ns; 2],
            }
            .words()
        };
        let (one, other) = (words(one), words(other));
        let largest: [u64; LARGEST] = std::array::from_fn(|at| one.0[at].max(other.0[at]));
        let sums: [u64; SUMS] = std::array::from_fn(|at| one.1[at] + other.1[at]);
        agreed(&largest, &sums, &members)
    }

    #[test]
    fn ranks_agree_on_means_and_on_what_was_no_waiting() {
        let late = [(100, 900, 50), (700, 1000, 10)];
        let times = CallTimes {
            time_ns: 550,
            shift_ns: Some(30),
            after_ns: Some(30),
            slowest_ns: 800,
            work_ns: 300,
        };
        assert_eq!(
            told(1, late),
            times,
            "from 700, when the last one came, to 1000"
        );
        let shortest = CallTimes {
            work_ns: 250,
            ..times
        };
        let clocks_apart = [(5_000, 5_850, 50), (700, 950, 10)];
        assert_eq!(
            told(2, clocks_apart),
            CallTimes {
                slowest_ns: 850,
                ..shortest
            }
        );
        let one_does_not_know = [(100, 900, UNKNOWN), (700, 1000, 10)];
        let unknown = CallTimes {
            shift_ns: None,
            after_ns: None,
            ..times
        };
        assert_eq!(told(1, one_does_not_know), unknown);
        let (year, most): (u64, u64) = (365 * 86_400_000_000_000, SPAN_NS_MAX);
        let long = told(1, [(0, year, most), (0, year, most)]);
        let most = (most, Some(most), Some(most));
        assert_eq!((long.time_ns, long.shift_ns, long.after_ns), most);
    }
}
