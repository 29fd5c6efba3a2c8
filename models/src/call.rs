//! From the records of several ranks to the time of one call.
//!
//! A rank that arrives early waits, so its own duration says little. Within one clock domain the
//! time of a call is from the first arrival to the last departure among the recording ranks.
//! Clocks of different domains cannot be compared. In a collective where every rank needs data of
//! every other, the domains' median speaks for the call; one with a root is finished when its
//! slowest domain is, and the root's own domain may be done long before.

use colltune_core::collective::Collective;

/// One record, with names replaced by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Place of the run in the sorted list of runs.
    pub job: u32,
    pub comm: u64,
    pub call: u64,
    /// Ranks of one run with the same number here have comparable `start_ns`.
    pub clock: u64,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub bytes: u64,
    pub nodes: u32,
    pub ppn: u32,
    pub n_ranks: u32,
    /// Place in the catalogue of the collective.
    pub variant: u16,
    pub collective: Collective,
}

/// One call, as all its recording ranks saw it together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    pub collective: Collective,
    pub variant: u16,
    pub job: u32,
    pub bytes: u64,
    pub nodes: u32,
    pub ppn: u32,
    pub n_ranks: u32,
    pub time_ns: f64,
}

/// The identity of a call; records that disagree on what was called do not belong together.
type Key = (u32, u64, u64, Collective, u64, u16, u32, u32, u32);

impl Row {
    fn key(&self) -> Key {
        let layout = (self.nodes, self.ppn, self.n_ranks);
        (
            self.job,
            self.comm,
            self.call,
            self.collective,
            self.bytes,
            self.variant,
            layout.0,
            layout.1,
            layout.2,
        )
    }
}

/// Combines records into calls, in an order that depends on nothing but the records.
pub fn calls(mut rows: Vec<Row>) -> Vec<Call> {
    rows.sort_unstable_by_key(|row| (row.key(), row.clock, row.start_ns, row.duration_ns));
    rows.chunk_by(|a, b| a.key() == b.key())
        .map(|records| {
            let Row {
                collective,
                variant,
                job,
                bytes,
                nodes,
                ppn,
                n_ranks,
                ..
            } = records[0];
            let time_ns = time_of_call(collective, records).max(1.0);
            Call {
                collective,
                variant,
                job,
                bytes,
                nodes,
                ppn,
                n_ranks,
                time_ns,
            }
        })
        .collect()
}

fn time_of_call(collective: Collective, records: &[Row]) -> f64 {
    let mut domains: Vec<u64> = records
        .chunk_by(|a, b| a.clock == b.clock)
        .map(|domain| {
            let first = domain.iter().map(|row| row.start_ns).min().unwrap_or(0);
            let last = domain
                .iter()
                .map(|row| row.start_ns.saturating_add(row.duration_ns))
                .max()
                .unwrap_or(0);
            last - first
        })
        .collect();
    domains.sort_unstable();
    let n = domains.len();
    // Where no rank waits for all others, the slowest node has seen the most of the call.
    let one_way =
        collective.has_root() || matches!(collective, Collective::Scan | Collective::Exscan);
    if one_way {
        domains[n - 1] as f64
    } else {
        (domains[(n - 1) / 2] as f64 + domains[n / 2] as f64) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(clock: u64, start_ns: u64, duration_ns: u64) -> Row {
        Row {
            job: 0,
            comm: 1,
            call: 2,
            clock,
            start_ns,
            duration_ns,
            bytes: 8,
            nodes: 2,
            ppn: 2,
            n_ranks: 4,
            variant: 0,
            collective: Collective::Allreduce,
        }
    }

    #[test]
    fn a_call_takes_from_the_first_arrival_to_the_last_departure_of_a_domain() {
        let times = |rows: Vec<Row>| {
            calls(rows)
                .iter()
                .map(|call| call.time_ns)
                .collect::<Vec<_>>()
        };
        assert_eq!(times(vec![row(1, 100, 50)]), [50.0]);
        assert_eq!(times(vec![row(1, 100, 1000), row(1, 1000, 150)]), [1050.0]);
        // Another domain's clock is far away; the middle of both domains counts.
        assert_eq!(
            times(vec![row(1, 100, 1000), row(2, 1 << 40, 500)]),
            [750.0]
        );
        let rooted = [row(1, 100, 1000), row(2, 1 << 40, 500)];
        assert_eq!(
            times(
                rooted
                    .map(|row| Row {
                        collective: Collective::Bcast,
                        ..row
                    })
                    .to_vec()
            ),
            [1000.0]
        );
    }

    #[test]
    fn records_that_disagree_are_different_calls_and_extremes_do_not_overflow() {
        let other = Row {
            bytes: 16,
            ..row(1, 0, 5)
        };
        assert_eq!(calls(vec![row(1, 0, 5), other]).len(), 2);
        assert_eq!(
            calls(vec![row(1, u64::MAX, u64::MAX), row(1, 0, 0)]).len(),
            1
        );
    }
}
