//! Messages, bytes, size classes and waiting, by rank and function.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{CallsOf, MessageRecording, OneRank};
use crate::drawing::bytes;
use crate::text::{percent, table, time};

/// Ranks in the table for a terminal.
const MOST_RANKS: usize = 32;

/// What ranks sent, and how long they were in calls that may wait. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    pub messages: u64,
    pub bytes: u64,
    pub partners: usize,
    /// From MPI_Init to MPI_Finalize.
    pub elapsed: u64,
    pub waited: u64,
    pub longest: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.partners = self.partners.max(other.partners);
        self.elapsed = self.elapsed.saturating_add(other.elapsed);
        self.waited = self.waited.saturating_add(other.waited);
        self.longest = self.longest.max(other.longest);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SumsOfRank {
    pub rank: u32,
    #[serde(flatten)]
    pub sums: Sums,
}

/// Messages of `bytes_min` bytes and more, up to the next class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    pub bytes_min: u64,
    pub messages: u64,
    pub bytes: u64,
}

/// What a recording says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageSummary {
    /// Of all ranks; of partners the most that one has.
    pub total: Sums,
    pub ranks: Vec<SumsOfRank>,
    pub calls: Vec<CallsOf>,
    pub sizes: Vec<SizeClass>,
    pub warnings: Vec<String>,
}

fn of_rank(one: &OneRank) -> Sums {
    let mut sums = Sums {
        elapsed: one.elapsed,
        ..Sums::default()
    };
    let mut partners: Vec<Option<u32>> = Vec::new();
    for class in &one.sent {
        sums.messages = sums.messages.saturating_add(class.messages);
        sums.bytes = sums.bytes.saturating_add(class.bytes);
        partners.push(class.to);
    }
    partners.sort_unstable();
    partners.dedup();
    sums.partners = partners.len();
    for calls in &one.calls {
        sums.waited = sums.waited.saturating_add(calls.time.unwrap_or(0));
        sums.longest = sums.longest.max(calls.longest.unwrap_or(0));
    }
    sums
}

impl MessageRecording {
    /// Sums up what all ranks recorded.
    pub fn summary(&self) -> MessageSummary {
        let (mut total, mut ranks) = (Sums::default(), Vec::new());
        let mut calls: BTreeMap<&str, CallsOf> = BTreeMap::new();
        let mut sizes: BTreeMap<u64, SizeClass> = BTreeMap::new();
        for (rank, one) in &self.ranks {
            let sums = of_rank(one);
            total.add(&sums);
            ranks.push(SumsOfRank { rank: *rank, sums });
            for of in &one.calls {
                let all = calls.entry(&of.function).or_default();
                all.function.clone_from(&of.function);
                all.calls = all.calls.saturating_add(of.calls);
                let time = of
                    .time
                    .map(|time| time.saturating_add(all.time.unwrap_or(0)));
                (all.time, all.longest) = (time.or(all.time), all.longest.max(of.longest));
            }
            for class in &one.sent {
                let all = sizes.entry(class.bytes_min).or_insert(SizeClass {
                    bytes_min: class.bytes_min,
                    messages: 0,
                    bytes: 0,
                });
                all.messages = all.messages.saturating_add(class.messages);
                all.bytes = all.bytes.saturating_add(class.bytes);
            }
        }
        let mut calls: Vec<CallsOf> = calls.into_values().collect();
        calls.sort_by_key(|calls| std::cmp::Reverse((calls.time, calls.calls)));
        MessageSummary {
            total,
            ranks,
            calls,
            sizes: sizes.into_values().collect(),
            warnings: self.warnings.clone(),
        }
    }
}

impl MessageSummary {
    pub fn text(&self) -> String {
        let n_ranks = self.ranks.len();
        let elapsed = time(self.total.elapsed as f64 / n_ranks.max(1) as f64);
        let mut text = format!("{n_ranks} ranks, {elapsed} from MPI_Init to MPI_Finalize\n\n");
        let cells = |name: String, sums: &Sums| {
            vec![
                name,
                sums.messages.to_string(),
                bytes(sums.bytes as f64),
                bytes(sums.bytes as f64 / sums.messages.max(1) as f64),
                sums.partners.to_string(),
                percent(sums.waited as f64 / sums.elapsed.max(1) as f64),
                time(sums.longest as f64),
            ]
        };
        let mut rows = vec![cells("all".into(), &self.total)];
        let shown = self.ranks.iter().take(MOST_RANKS);
        rows.extend(shown.map(|of| cells(of.rank.to_string(), &of.sums)));
        let header = [
            "rank",
            "messages",
            "bytes",
            "a message",
            "partners",
            "in calls that may wait",
            "longest call",
        ];
        text += &table(&header, &rows);
        if n_ranks > MOST_RANKS {
            text += &format!("... {} more in --json\n", n_ranks - MOST_RANKS);
        }
        let rows = self.calls.iter().map(|of| {
            let ns = |ns: Option<f64>| ns.map_or("-".to_owned(), time);
            let mean = of.time.map(|time| time as f64 / of.calls.max(1) as f64);
            let (whole, longest) = (
                of.time.map(|time| time as f64),
                of.longest.map(|time| time as f64),
            );
            vec![
                of.function.clone(),
                of.calls.to_string(),
                ns(whole),
                ns(mean),
                ns(longest),
            ]
        });
        text += "\n";
        text += &table(
            &[
                "function",
                "calls",
                "time of all ranks",
                "a call",
                "longest",
            ],
            &rows.collect::<Vec<_>>(),
        );
        let rows = self.sizes.iter().map(|class| {
            let share = class.bytes as f64 / self.total.bytes.max(1) as f64;
            let from = bytes(class.bytes_min as f64);
            vec![
                from,
                class.messages.to_string(),
                bytes(class.bytes as f64),
                percent(share),
            ]
        });
        text += "\n";
        text + &table(
            &["from", "messages", "bytes", "share of the bytes"],
            &rows.collect::<Vec<_>>(),
        )
    }
}
