//! Slow links: messages between nodes that take longer than others of their size.
//!
//! A message counts where its receiver waited for it and for no other later, from its posting to its end. What it is
//! expected to take grows with the bytes of its round, along a line through the messages of the faster half of the
//! pairs of nodes. What remains of a pair is then divided between the giving node, the taking node and the pair
//! itself, so that a slow link is named and not all who talk over it.
//!
//! Source: the slope is Theil's and Sen's, the median of those between two messages (Sen 1968); the parting is Tukey's
//! median polish (Exploratory Data Analysis, 1977).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::rows::Round;
use crate::statistics::{mad, median};
use crate::text::table;
use crate::windows::Run;

/// Messages that a pair needs to be judged by.
const MESSAGES_MIN: usize = 12;
/// Nodes that are compared: with fewer it is unknown whose link it is.
const NODES_MIN: usize = 3;
/// Slow is what takes so many times as long as the others, and is so many deviations away. Where ranks share cores, turns
/// alone made messages of a healthy pair of nodes take 2.3 times as long.
const FACTOR: f64 = 3.0;
const DEVIATIONS: f64 = 6.0;
/// Pairs never agree better than this, as a logarithm.
const SPREAD_MIN: f64 = 0.05;
/// A link that is slower by less than this share of the slowest one's logarithm suffers from that.
const CONSEQUENCE: f64 = 0.5;
/// Messages whose slopes are looked at.
const SLOPES_OF: usize = 400;
const SWEEPS: usize = 8;
/// A wait that is shorter is no wait.
const PROMPT_NS: i64 = 2_000;

/// What is slow about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// What this node gives to all others.
    From,
    /// What it takes from all others.
    Into,
    /// What one node gives to one other.
    Between,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowLink {
    pub way: Way,
    pub host: String,
    /// The other end, of [`Way::Between`].
    pub to: Option<String>,
    /// How many times as long messages take as others of their size.
    pub factor: f64,
}

/// What one node's messages to another took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfPair {
    pub from: String,
    pub to: String,
    pub messages: usize,
    /// The median of their times, in nanoseconds, and of those in units of what is expected.
    pub transit: f64,
    pub factor: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Links {
    /// What a message is expected to take: nanoseconds, and nanoseconds for each byte of its round.
    pub latency: f64,
    pub per_byte: f64,
    /// The slowest first.
    pub pairs: Vec<OfPair>,
    pub slow: Vec<SlowLink>,
}

/// A message between two nodes that was waited for.
#[derive(Clone, Copy, Debug)]
struct Message {
    pair: (u32, u32),
    bytes: f64,
    transit: f64,
}

/// Compares the links of a run; `None` without rounds, or where too few nodes talk to each other.
pub fn links(run: &Run) -> Option<Links> {
    let hosts: BTreeMap<u32, &str> = run
        .places
        .iter()
        .map(|place| (place.node, &*place.host))
        .collect();
    let messages = messages(run);
    let mut by_pair: BTreeMap<(u32, u32), Vec<Message>> = BTreeMap::new();
    for message in messages {
        by_pair.entry(message.pair).or_default().push(message);
    }
    by_pair.retain(|_, messages| messages.len() >= MESSAGES_MIN);
    let nodes: BTreeSet<u32> = by_pair.keys().flat_map(|&(from, to)| [from, to]).collect();
    if nodes.len() < NODES_MIN {
        return None;
    }
    let line = expected(&by_pair);
    let factors: BTreeMap<(u32, u32), f64> = by_pair
        .iter()
        .map(|(&pair, messages)| (pair, line.factor(messages)))
        .collect();
    let host = |node: u32| hosts.get(&node).map_or("unknown", |host| host).to_owned();
    let mut pairs: Vec<OfPair> = by_pair
        .iter()
        .map(|(&(from, to), messages)| OfPair {
            from: host(from),
            to: host(to),
            messages: messages.len(),
            transit: median(&messages.iter().map(|m| m.transit).collect::<Vec<_>>()),
            factor: factors[&(from, to)],
        })
        .collect();
    pairs.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    Some(Links {
        latency: line.latency,
        per_byte: line.per_byte,
        pairs,
        slow: Parted::of(&factors).slow(host),
    })
}

fn messages(run: &Run) -> Vec<Message> {
    let node_of = run.node_of();
    let tolerance = PROMPT_NS.max(run.uncertainty());
    let mut found = Vec::new();
    for rounds in run.rounds.values() {
        let by_round: BTreeMap<(u32, u32), &Round> = rounds
            .iter()
            .map(|round| ((round.rank, round.round), round))
            .collect();
        let of_round = |round: &Round| {
            let from = round.last_from?;
            let given = by_round.get(&(from, round.round))?;
            let pair = (*node_of.get(&from)?, *node_of.get(&round.rank)?);
            let waited = round.last > round.served + tolerance;
            (pair.0 != pair.1 && waited && round.last > given.posted).then(|| Message {
                pair,
                bytes: round.bytes as f64,
                // Before it is posted it cannot be under way; before this rank looked, no rank waited.
                transit: (round.last - given.posted) as f64,
            })
        };
        found.extend(rounds.iter().filter_map(of_round));
    }
    found
}

#[derive(Clone, Copy, Debug)]
struct Line {
    latency: f64,
    per_byte: f64,
}

impl Line {
    fn through(messages: &[Message]) -> Line {
        let every = messages.len().div_ceil(SLOPES_OF).max(1);
        let some: Vec<&Message> = messages.iter().step_by(every).collect();
        let mut slopes = Vec::new();
        for (nth, one) in some.iter().enumerate() {
            let later = some[nth + 1..].iter().filter(|m| m.bytes != one.bytes);
            slopes.extend(later.map(|m| (m.transit - one.transit) / (m.bytes - one.bytes)));
        }
        let per_byte = match slopes.is_empty() {
            true => 0.0,
            false => median(&slopes).max(0.0),
        };
        let above: Vec<f64> = messages
            .iter()
            .map(|m| m.transit - per_byte * m.bytes)
            .collect();
        let latency = median(&above).max(0.0);
        Line { latency, per_byte }
    }

    fn factor(self, messages: &[Message]) -> f64 {
        let of = |m: &Message| m.transit / (self.latency + self.per_byte * m.bytes).max(1.0);
        median(&messages.iter().map(of).collect::<Vec<_>>())
    }
}

/// What is expected: slow pairs, which may be half of them, have no part in it.
fn expected(by_pair: &BTreeMap<(u32, u32), Vec<Message>>) -> Line {
    let all: Vec<Message> = by_pair.values().flatten().copied().collect();
    let first = Line::through(&all);
    let factors: Vec<f64> = by_pair.values().map(|of| first.factor(of)).collect();
    let middle = median(&factors);
    let faster = by_pair.values().zip(&factors);
    let faster = faster.filter(|(_, factor)| **factor <= middle);
    let faster: Vec<Message> = faster.flat_map(|(of, _)| of).copied().collect();
    Line::through(&faster)
}

/// Logarithms of factors as sums: of all pairs, of who gives, of who takes, and what is left.
struct Parted {
    from: BTreeMap<u32, f64>,
    into: BTreeMap<u32, f64>,
    rest: BTreeMap<(u32, u32), f64>,
}

impl Parted {
    fn of(factors: &BTreeMap<(u32, u32), f64>) -> Parted {
        let logs: Vec<f64> = factors
            .values()
            .map(|factor| factor.max(1e-9).ln())
            .collect();
        let middle = median(&logs);
        let mut rest: BTreeMap<(u32, u32), f64> = factors
            .keys()
            .zip(&logs)
            .map(|(&pair, log)| (pair, log - middle))
            .collect();
        let ends = |end: fn((u32, u32)) -> u32| rest.keys().map(move |&pair| (end(pair), 0.0));
        let mut from: BTreeMap<u32, f64> = ends(|pair| pair.0).collect();
        let mut into: BTreeMap<u32, f64> = ends(|pair| pair.1).collect();
        for _ in 0..SWEEPS {
            polish(&mut rest, &mut from, |pair| pair.0);
            polish(&mut rest, &mut into, |pair| pair.1);
        }
        Parted { from, into, rest }
    }

    fn slow(&self, host: impl Fn(u32) -> String) -> Vec<SlowLink> {
        let usual =
            |values: &BTreeMap<u32, f64>| median(&values.values().copied().collect::<Vec<_>>());
        let spread = mad(&self.rest.values().copied().collect::<Vec<_>>()).max(SPREAD_MIN);
        let is_slow = |log: f64| log > FACTOR.ln() && log > DEVIATIONS * spread;
        let mut slow = Vec::new();
        for (way, values) in [(Way::From, &self.from), (Way::Into, &self.into)] {
            let usual = usual(values);
            let found = values.iter().map(|(&node, log)| (node, log - usual));
            slow.extend(
                found
                    .filter(|(_, log)| is_slow(*log))
                    .map(|(node, log)| SlowLink {
                        way,
                        host: host(node),
                        to: None,
                        factor: log.exp(),
                    }),
            );
        }
        let pairs = self.rest.iter().filter(|(_, log)| is_slow(**log));
        slow.extend(pairs.map(|(&(from, to), log)| SlowLink {
            way: Way::Between,
            host: host(from),
            to: Some(host(to)),
            factor: log.exp(),
        }));
        // Who waits for a very slow link serves others late: that is its consequence, not another link.
        let worst = slow.iter().map(|link| link.factor).fold(1.0, f64::max);
        slow.retain(|link| link.factor.ln() >= CONSEQUENCE * worst.ln());
        slow
    }
}

/// Takes the median of each end's pairs from them and gives it to the end.
fn polish(
    rest: &mut BTreeMap<(u32, u32), f64>,
    ends: &mut BTreeMap<u32, f64>,
    end: fn((u32, u32)) -> u32,
) {
    for (&node, sum) in ends.iter_mut() {
        let own = |rest: &BTreeMap<(u32, u32), f64>| {
            let of_node = rest.iter().filter(|(pair, _)| end(**pair) == node);
            median(&of_node.map(|(_, log)| *log).collect::<Vec<_>>())
        };
        let middle = own(rest);
        *sum += middle;
        let of_node = rest.iter_mut().filter(|(pair, _)| end(**pair) == node);
        of_node.for_each(|(_, log)| *log -= middle);
    }
}

impl Links {
    pub fn text(&self) -> String {
        let mut text = format!(
            "Messages between nodes take {:.1} us and {:.2} us a KiB of their round.\n",
            self.latency / 1e3,
            self.per_byte * 1024.0 / 1e3
        );
        for link in &self.slow {
            text += &format!("{}\n", link.text());
        }
        let rows = self.pairs.iter().take(10).map(|pair| {
            vec![
                format!("{} -> {}", pair.from, pair.to),
                pair.messages.to_string(),
                crate::text::time(pair.transit),
                format!("{:.2}", pair.factor),
            ]
        });
        text += &table(
            &["link", "messages", "median", "times as long"],
            &rows.collect::<Vec<_>>(),
        );
        text
    }
}

impl SlowLink {
    pub fn text(&self) -> String {
        let whose = match (self.way, &self.to) {
            (Way::Between, Some(to)) => format!("from {} to {to}", self.host),
            (Way::Into, _) => format!("to {}", self.host),
            _ => format!("from {}", self.host),
        };
        format!(
            "link slow: messages {whose} need {:.2} times as long as others of their size",
            self.factor
        )
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;
    use crate::rows::{Place, Window};

    /// Four nodes with a rank each; in every window each rank waits for a message of another one.
    fn run(seed: u64, slowness: impl Fn(u32, u32) -> f64) -> Run {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut windows, mut rounds) = (Vec::new(), Vec::new());
        for step in 1..=240u64 {
            let begin = 10_000_000 * step as i64;
            for rank in 0..4u32 {
                windows.push(Window {
                    step,
                    rank,
                    begin,
                    arrive: begin + 5_000_000,
                    leave: begin + 5_010_000,
                    rounds: 1,
                    ..Window::default()
                });
                let from = (rank + 1 + (step % 3) as u32) % 4;
                let bytes = 1024 << random.random_range(0..6);
                let noise = 1.0 + 0.2 * random.random::<f64>();
                let transit = (30_000.0 + 8.0 * bytes as f64) * noise * slowness(from, rank);
                rounds.push(Round {
                    step,
                    rank,
                    begin,
                    posted: begin + 1_000,
                    served: begin + 2_000,
                    last: begin + 1_000 + transit as i64,
                    last_from: Some(from),
                    done: begin + 4_000_000,
                    messages: 1,
                    bytes,
                    ..Round::default()
                });
            }
        }
        let place = |rank| Place {
            rank,
            node: rank,
            host: format!("host{rank}").into(),
            ..Place::default()
        };
        Run::of(windows, rounds, (0..4).map(place).collect())
    }

    fn slow(run: &Run) -> Vec<SlowLink> {
        links(run).expect("links").slow
    }

    #[test]
    fn a_node_whose_messages_take_long_is_named_and_neither_are_those_who_take_them() {
        for seed in 0..10 {
            assert_eq!(slow(&run(seed, |_, _| 1.0)), [], "{seed}");
            for factor in [4.0, 8.0] {
                let found = slow(&run(seed, |from, _| if from == 2 { factor } else { 1.0 }));
                let [link] = &found[..] else {
                    panic!("{seed}: {found:?}")
                };
                assert_eq!((link.way, link.host.as_str()), (Way::From, "host2"));
                assert!((link.factor / factor - 1.0).abs() < 0.15, "{link:?}");
            }
        }
    }

    #[test]
    fn a_slow_cable_is_named_for_what_comes_and_goes_and_a_slow_pair_for_itself() {
        let found = slow(&run(
            3,
            |from, to| if [from, to].contains(&1) { 5.0 } else { 1.0 },
        ));
        let ways: Vec<(Way, &str)> = found.iter().map(|l| (l.way, l.host.as_str())).collect();
        assert_eq!(ways, [(Way::From, "host1"), (Way::Into, "host1")]);
        let found = slow(&run(
            4,
            |from, to| if (from, to) == (0, 3) { 5.0 } else { 1.0 },
        ));
        let [link] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (link.way, link.to.as_deref()),
            (Way::Between, Some("host3"))
        );
    }

    #[test]
    fn two_nodes_have_nobody_to_be_compared_with() {
        let mut two = run(1, |_, _| 1.0);
        two.rounds
            .values_mut()
            .for_each(|rounds| rounds.retain(|r| r.rank < 2 && r.last_from < Some(2)));
        assert_eq!(links(&two), None);
    }
}
