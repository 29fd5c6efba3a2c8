//! Call logs, and what the ranks of a job must agree on.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// One line of a call log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoggedCall {
    pub comm: Option<u64>,
    pub index: u64,
    pub collective: String,
    pub bytes: u64,
    pub nodes: u64,
    pub ppn: u64,
    pub cell: Option<u64>,
    pub variant: String,
    pub sampled: bool,
}

/// The logs of a job by rank.
pub fn read_log(folder: &Path, n_ranks: u32) -> Vec<Vec<LoggedCall>> {
    (0..n_ranks)
        .map(|rank| read_rank(&folder.join(format!("rank-{rank}.jsonl"))))
        .collect()
}

fn read_rank(file: &Path) -> Vec<LoggedCall> {
    let text = std::fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("failed to read {}: {error}", file.display()));
    text.lines()
        .map(|line| {
            read_line(line)
                .unwrap_or_else(|| panic!("{}: no line of a call log: {line}", file.display()))
        })
        .collect()
}

fn read_line(line: &str) -> Option<LoggedCall> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| value.get(name)?.as_u64();
    let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
    Some(LoggedCall {
        comm: number("comm"),
        index: number("index")?,
        collective: text("collective")?,
        bytes: number("bytes")?,
        nodes: number("nodes")?,
        ppn: number("ppn")?,
        cell: number("cell"),
        variant: text("variant")?,
        sampled: value.get("sampled")?.as_bool()?,
    })
}

/// Every communicator's calls are the same sequence on all ranks that log it: same collective,
/// size, cell, variant and sampling, call by call. Returns the number of communicators.
#[track_caller]
pub fn assert_ranks_agree(log: &[Vec<LoggedCall>]) -> usize {
    let mut sequences: BTreeMap<u64, Vec<(usize, Vec<&LoggedCall>)>> = BTreeMap::new();
    for (rank, calls) in log.iter().enumerate() {
        let mut own: BTreeMap<u64, Vec<&LoggedCall>> = BTreeMap::new();
        for call in calls {
            if let Some(comm) = call.comm {
                own.entry(comm).or_default().push(call);
            }
        }
        for (comm, calls) in own {
            sequences.entry(comm).or_default().push((rank, calls));
        }
    }
    for (comm, ranks) in &sequences {
        let (first_rank, first) = &ranks[0];
        for (rank, other) in &ranks[1..] {
            let differs = first.iter().zip(other).position(|(a, b)| a != b);
            if let Some(at) = differs {
                panic!(
                    "comm {comm}: rank {first_rank} ran {:?}, rank {rank} ran {:?}",
                    first[at], other[at]
                );
            }
            assert_eq!(
                first.len(),
                other.len(),
                "comm {comm}: ranks {first_rank} and {rank} logged different numbers of calls"
            );
        }
    }
    sequences.len()
}
