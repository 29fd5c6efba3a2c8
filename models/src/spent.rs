//! Where a program's time goes, of which records are a sample.
//!
//! Frequent short calls are sampled thinly: of the recorded time they have far less than of the program's. What a job
//! accounts for holds every call, by collective and range of sizes ([`colltune_core::account`]), so the recorded time of
//! each is stretched to that.

use std::collections::BTreeMap;

use colltune_core::account::kind;
use colltune_core::collective::Collective;

use crate::evidence::Evidence;

/// What programs spent in each kind of call, in times of what was recorded of it. It is less where several communicators
/// make calls side by side: evidence counts each, an account the mean over all ranks of the job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    times: BTreeMap<usize, f64>,
    /// Of all of them together, for kinds that these runs have not recorded.
    usual: Option<f64>,
}

impl Spent {
    /// From what runs account for, each a collective, bytes within a range of sizes and seconds, and from what the same
    /// runs recorded.
    pub fn new<'e>(
        accounted: impl IntoIterator<Item = (Collective, u64, f64)>,
        recorded: impl IntoIterator<Item = &'e Evidence>,
    ) -> Spent {
        let mut sums = BTreeMap::<usize, (f64, f64)>::new();
        for (collective, bytes, seconds) in accounted {
            sums.entry(kind(collective, bytes)).or_default().0 += seconds * 1e9;
        }
        for row in recorded {
            let (_, recorded) = sums.entry(kind_of(row)).or_default();
            *recorded += row.spent_ns();
        }
        sums.retain(|_, (_, recorded)| *recorded > 0.0);
        let known = sums.values().filter(|(accounted, _)| *accounted > 0.0);
        let all = known.fold((0.0, 0.0), |all, of| (all.0 + of.0, all.1 + of.1));
        let more = |(accounted, recorded): (f64, f64)| match accounted > 0.0 {
            true => accounted / recorded,
            false => 1.0,
        };
        Spent {
            usual: (all.1 > 0.0).then(|| more(all)),
            times: sums
                .into_iter()
                .map(|(kind, of)| (kind, more(of)))
                .collect(),
        }
    }

    /// The time of the calls that these rows stand for, those that were not recorded included; in ns.
    pub fn ns<'e>(&self, rows: impl IntoIterator<Item = &'e Evidence>) -> f64 {
        let more = |row: &Evidence| {
            self.times
                .get(&kind_of(row))
                .copied()
                .or(self.usual)
                .unwrap_or(1.0)
        };
        rows.into_iter().map(|row| row.spent_ns() * more(row)).sum()
    }
}

fn kind_of(row: &Evidence) -> usize {
    kind(row.shape.collective, row.shape.message_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Moments, Shape};

    fn row(message_bytes: u64, calls: u64) -> Evidence {
        let shape = Shape {
            collective: Collective::Allreduce,
            message_bytes,
            nodes: 1,
            ppn: 8,
            n_ranks: 8,
        };
        Evidence {
            calls,
            level_ns: 1e4,
            time: Moments {
                n: calls,
                mean: 1.0,
                m2: 0.0,
            },
            ..Evidence::nothing(0, shape, 0)
        }
    }

    #[test]
    fn what_was_sampled_thinly_counts_by_the_calls_that_there_were() {
        let rows = [row(8, 1000), row(12, 1000), row(1 << 20, 100)];
        let (unaccounted, unrecorded) = (row(1024, 10), row(1 << 14, 10));
        // 10 s of a million calls; of calls that all were recorded half, on two communicators side by side; and of
        // calls that were not recorded.
        let accounted = [
            (Collective::Allreduce, 4, 10.0),
            (Collective::Allreduce, 1 << 20, 0.5e-3),
            (Collective::Bcast, 8, 5.0),
        ];
        let spent = Spent::new(accounted, rows.iter().chain([&unaccounted]));
        let [short, other, long] = rows.each_ref().map(|row| spent.ns([row]));
        assert!(
            (short / 5e9 - 1.0).abs() < 1e-9 && short == other,
            "{short}"
        );
        assert!((long / 0.5e6 - 1.0).abs() < 1e-9, "{long}");
        assert_eq!(spent.ns([&unaccounted]), 1e5);
        let usual = 10.0005e9 / 2.1e7;
        assert!((spent.ns([&unrecorded]) / (usual * 1e5) - 1.0).abs() < 1e-9);
        assert_eq!(
            Spent::default().ns(&rows),
            2.1e7,
            "without an account what was recorded"
        );
    }
}
