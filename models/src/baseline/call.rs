//! From the records of several ranks to the time of one call.
//!
//! A call has taken as long as its slowest recording rank: first ranks leave a pipeline while the
//! last still work, and no clock is shared across nodes. A rank that arrives early waits, and that
//! is in its time; it meets all variants alike. (On one node the shim has replaced the
//! durations by the time from the last arrival to the last departure.)

use colltune_core::collective::Collective;

/// One record, with names replaced by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Place of the run in the sorted list of runs.
    pub job: u32,
    pub comm: u64,
    pub call: u64,
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
    rows.sort_unstable_by_key(|row| (row.key(), row.duration_ns));
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
            let time_ns = records[records.len() - 1].duration_ns.max(1) as f64;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(duration_ns: u64) -> Row {
        Row {
            job: 0,
            comm: 1,
            call: 2,
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
    fn a_call_takes_as_long_as_its_slowest_rank_in_whatever_order_the_records_come() {
        let orders = [
            vec![row(50), row(1050), row(7)],
            vec![row(1050), row(7), row(50)],
        ];
        for rows in orders {
            let calls = calls(rows);
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].time_ns, 1050.0);
        }
    }

    #[test]
    fn records_that_disagree_are_different_calls_and_extremes_do_not_overflow() {
        let other = Row {
            bytes: 16,
            ..row(5)
        };
        assert_eq!(calls(vec![row(5), other]).len(), 2);
        let extremes = calls(vec![row(u64::MAX), row(0)]);
        assert_eq!((extremes.len(), extremes[0].time_ns), (1, u64::MAX as f64));
        assert_eq!(
            calls(vec![row(0)])[0].time_ns,
            1.0,
            "logarithms need a time"
        );
    }
}
