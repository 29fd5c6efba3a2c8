//! Which nodes are sick before a job runs on them: compared with each other, and with what they were.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::statistics::{mad, median};

/// The fewest other nodes that one is compared with, and the fewest earlier measurements: with one it is unknown
/// which of the two is sick.
const PEERS_MIN: usize = 2;
const EARLIER_MIN: usize = 3;
/// What differs by so many deviations differs, and they are never taken for less than this.
const DEVIATIONS: f64 = 6.0;
const SPREAD_MIN: f64 = 0.02;

/// What was measured of a node; NaN where it was not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    pub host: String,
    pub ranks: u32,
    /// Nanoseconds of a unit of computing, the median over ranks.
    pub kernel_ns: f64,
    /// What all its ranks together read and write.
    pub memory_bytes_per_ns: f64,
    /// Half a round trip of 8 bytes, and of 1 MiB, to the nearer of its neighbours.
    pub small_ns: f64,
    pub large_ns: f64,
    /// How often it was throttled meanwhile, where the system counts that.
    pub throttled: Option<u64>,
}

/// What a node is compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    Kernel,
    Memory,
    Small,
    Large,
    Throttled,
}

/// With what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    Peers,
    History,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sickness {
    pub host: String,
    pub measure: Measure,
    pub against: Against,
    /// How many times as long it takes, or how often it was throttled.
    pub factor: f64,
}

impl Measure {
    const TIMES: [Measure; 4] = [
        Measure::Kernel,
        Measure::Memory,
        Measure::Small,
        Measure::Large,
    ];

    /// The longer, the worse.
    fn time(self, node: &Node) -> f64 {
        match self {
            Measure::Kernel => node.kernel_ns,
            Measure::Memory => 1.0 / node.memory_bytes_per_ns,
            Measure::Small => node.small_ns,
            Measure::Large => node.large_ns,
            Measure::Throttled => f64::NAN,
        }
    }

    /// From how many times as long on a node is sick; messages vary more than work.
    fn limit(self) -> f64 {
        match self {
            Measure::Kernel => 1.15,
            Measure::Memory => 1.3,
            Measure::Small => 2.0,
            Measure::Large => 1.5,
            Measure::Throttled => 1.0,
        }
    }
}

/// Names what is sick, by host.
///
/// Shape: `history` holds earlier measurements of hosts; those with another number of ranks are not comparable, and not
///        compared.
pub fn sick(nodes: &[Node], history: &[Node]) -> Vec<Sickness> {
    let mut found = Vec::new();
    for measure in Measure::TIMES {
        for (place, node) in nodes.iter().enumerate() {
            let mut say = |against, factor| {
                found.push(Sickness {
                    host: node.host.clone(),
                    measure,
                    against,
                    factor,
                });
            };
            let peers = [&nodes[..place], &nodes[place + 1..]];
            let peers = known(peers.into_iter().flatten(), measure);
            if let Some(factor) = worse(measure, node, &peers, PEERS_MIN) {
                say(Against::Peers, factor);
            }
            let own = history
                .iter()
                .filter(|then| then.host == node.host && then.ranks == node.ranks);
            if let Some(factor) = worse(measure, node, &known(own, measure), EARLIER_MIN) {
                say(Against::History, factor);
            }
        }
    }
    let throttled = nodes.iter().filter_map(|node| {
        let times = node.throttled.filter(|&n| n > 0)?;
        Some(Sickness {
            host: node.host.clone(),
            measure: Measure::Throttled,
            against: Against::History,
            factor: times as f64,
        })
    });
    found.extend(throttled);
    found.sort_by(|a, b| {
        (&a.host, b.factor)
            .partial_cmp(&(&b.host, a.factor))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    found
}

fn known<'a>(nodes: impl Iterator<Item = &'a Node>, measure: Measure) -> Vec<f64> {
    let times = nodes.map(|node| measure.time(node));
    times
        .filter(|time| time.is_finite() && *time > 0.0)
        .collect()
}

/// How many times as long the node takes as the median of the others, if that is too long.
fn worse(measure: Measure, node: &Node, others: &[f64], others_min: usize) -> Option<f64> {
    if others.len() < others_min {
        return None;
    }
    let usual = median(others);
    let relative: Vec<f64> = others.iter().map(|time| time / usual).collect();
    let spread = mad(&relative).max(SPREAD_MIN);
    let factor = measure.time(node) / usual;
    (factor > measure.limit() && factor - 1.0 > DEVIATIONS * spread).then_some(factor)
}

impl Sickness {
    pub fn text(&self) -> String {
        let what = match self.measure {
            Measure::Kernel => "computing takes",
            Measure::Memory => "reading and writing memory takes",
            Measure::Small => "a message of 8 bytes to a neighbour takes",
            Measure::Large => "a message of 1 MiB to a neighbour takes",
            Measure::Throttled => {
                return format!(
                    "{}: its processors were throttled {:.0} times while it was measured",
                    self.host, self.factor
                );
            }
        };
        let than = match self.against {
            Against::Peers => "on the other nodes",
            Against::History => "on this host before",
        };
        format!(
            "{}: {what} {:.2} times as long as {than}",
            self.host, self.factor
        )
    }
}

/// The nearer neighbour of each host, of pairs with half the round trips of both sizes: a link that is slow must not
/// make the node at its other end look sick.
pub fn nearest<'a>(
    pings: impl Iterator<Item = (&'a str, &'a str, [f64; 2])>,
) -> BTreeMap<&'a str, [f64; 2]> {
    let mut nearest: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (one, other, times) in pings {
        for host in [one, other] {
            let known = nearest.entry(host).or_insert([f64::INFINITY; 2]);
            *known = [known[0].min(times[0]), known[1].min(times[1])];
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(n: usize) -> Node {
        let noise = 1.0 + 0.01 * (n * 7 % 5) as f64;
        Node {
            host: format!("n{n}"),
            ranks: 4,
            kernel_ns: 50_000.0 * noise,
            memory_bytes_per_ns: 10.0 / noise,
            small_ns: 2_000.0 * noise,
            large_ns: 90_000.0 * noise,
            throttled: Some(0),
        }
    }

    fn names(found: &[Sickness]) -> Vec<(&str, Measure, Against)> {
        let names = found.iter();
        names
            .map(|s| (s.host.as_str(), s.measure, s.against))
            .collect()
    }

    #[test]
    fn a_node_that_is_slower_than_the_others_is_sick_in_what_it_is_slow_in() {
        let healthy: Vec<Node> = (0..6).map(node).collect();
        assert_eq!(sick(&healthy, &[]), []);
        for (measure, spoil) in [
            (
                Measure::Kernel,
                (|n: &mut Node| n.kernel_ns *= 1.3) as fn(&mut Node),
            ),
            (Measure::Memory, |n| n.memory_bytes_per_ns /= 2.0),
            (Measure::Small, |n| n.small_ns *= 3.0),
            (Measure::Large, |n| n.large_ns *= 2.0),
        ] {
            let mut nodes = healthy.clone();
            spoil(&mut nodes[2]);
            let found = sick(&nodes, &[]);
            assert_eq!(names(&found), [("n2", measure, Against::Peers)]);
        }
        let mut throttled = healthy;
        throttled[1].throttled = Some(3);
        assert!(
            sick(&throttled, &[])[0]
                .text()
                .contains("throttled 3 times")
        );
    }

    /// As a machine measured it that others used meanwhile: a median that holds the sick node hides it.
    #[test]
    fn a_sick_node_is_no_measure_of_itself() {
        let measured = |times: &[f64]| -> Vec<Node> {
            let of = |(n, time): (usize, &f64)| Node {
                kernel_ns: time * 1e3,
                ..node(n)
            };
            times.iter().enumerate().map(of).collect()
        };
        for (times, sick_node) in [
            (&[44.4, 42.3, 96.6, 56.8][..], "n2"),
            (&[50.0, 90.0, 51.0], "n1"),
        ] {
            let found = sick(&measured(times), &[]);
            assert_eq!(
                names(&found),
                [(sick_node, Measure::Kernel, Against::Peers)],
                "{times:?}"
            );
        }
        assert_eq!(
            sick(&measured(&[50.0, 90.0]), &[]),
            [],
            "nobody knows which of them"
        );
    }

    #[test]
    fn two_nodes_are_compared_with_what_they_were_as_the_same_number_of_ranks() {
        let mut now = vec![node(0), node(1)];
        now[1].kernel_ns *= 2.0;
        assert_eq!(sick(&now, &[]), [], "nobody knows which of them");
        let before = || (0..4).map(|_| node(1));
        let history: Vec<Node> = before().collect();
        let found = sick(&now, &history);
        assert_eq!(names(&found), [("n1", Measure::Kernel, Against::History)]);
        let other: Vec<Node> = before().map(|then| Node { ranks: 8, ..then }).collect();
        assert_eq!(sick(&now, &other), []);
    }

    #[test]
    fn a_slow_link_is_the_node_s_whose_other_links_are_slow_too() {
        // A ring of four; both links of c are slow.
        let pings = [
            ("a", "b", [2.0, 90.0]),
            ("b", "c", [9.0, 900.0]),
            ("c", "d", [9.0, 900.0]),
            ("d", "a", [2.0, 90.0]),
        ];
        let nearest = nearest(pings.into_iter());
        assert_eq!(nearest["b"], [2.0, 90.0]);
        assert_eq!(nearest["c"], [9.0, 900.0]);
        assert_eq!(nearest["d"], [2.0, 90.0]);
    }
}
