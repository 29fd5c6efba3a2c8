//! Who comes late to collectives, from the time that each rank spent in them alone.
//!
//! All ranks leave a synchronising collective together, more or less, so who came last was in it for the shortest time:
//! no clocks are compared, and nothing of the program needs to be known. A host is late whose ranks are the last far
//! more often than their number explains, and which keeps the others waiting for longer than the collective itself
//! takes. Whether it is slow or has more to do, these records cannot tell.
//!
//! Source of the test: the upper tail of the binomial distribution, of calls in which the host comes last.

use std::collections::BTreeMap;

use serde::Serialize;
use statrs::distribution::{Binomial, DiscreteCDF as _};

use crate::statistics::median;
use crate::text::{percent, table, time};

/// Chance explains a late host with at most this probability.
const P_MAX: f64 = 1e-6;
/// Hosts that are listed.
const MOST: usize = 10;

/// Collectives that no rank leaves before all have come.
pub const SYNCHRONISING: [&str; 8] = [
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "barrier",
    "reduce_scatter",
    "reduce_scatter_block",
];

/// A rank's time in one call; communicator and number are the same on all ranks of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    pub comm: u64,
    pub call: u64,
    pub duration_ns: u64,
}

/// What is known of each call so far; ranks are added one after the other.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    hosts: Vec<String>,
    ranks: Vec<u32>,
    calls: BTreeMap<(u64, u64), Call>,
}

#[derive(Clone, Debug, Default)]
struct Call {
    longest_ns: u64,
    /// By host, its ranks and the shortest stay of one.
    hosts: Vec<OfCall>,
}

#[derive(Clone, Copy, Debug)]
struct OfCall {
    host: usize,
    n_ranks: u32,
    shortest_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfHost {
    pub host: String,
    pub ranks: u32,
    /// Calls with ranks of this host and of others, and those of them in which it came last.
    pub calls: u64,
    pub last: u64,
    /// Calls in which it would come last if each rank were as likely to.
    pub expected: f64,
    /// That chance makes it the last so often, or more often.
    pub p: f64,
    /// The median over calls of how long the first rank waited for this host, in nanoseconds.
    pub lateness: f64,
    /// The median over calls of the same in units of the call's own time.
    pub lateness_in_calls: f64,
    pub is_late: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lateness {
    pub calls: usize,
    /// The median over calls of the time that the last rank spent in it, in nanoseconds.
    pub call_itself: f64,
    /// Who comes last most often first.
    pub hosts: Vec<OfHost>,
    pub warnings: Vec<String>,
}

impl Arrivals {
    /// Adds what one rank recorded of synchronising collectives.
    pub fn add(&mut self, host: &str, stays: impl IntoIterator<Item = Stay>) {
        let known = self.hosts.iter().position(|known| known == host);
        let place = known.unwrap_or_else(|| {
            self.hosts.push(host.to_owned());
            self.ranks.push(0);
            self.hosts.len() - 1
        });
        self.ranks[place] += 1;
        for stay in stays {
            let call = self.calls.entry((stay.comm, stay.call)).or_default();
            call.longest_ns = call.longest_ns.max(stay.duration_ns);
            match call.hosts.iter_mut().find(|of| of.host == place) {
                Some(of) => {
                    of.n_ranks += 1;
                    of.shortest_ns = of.shortest_ns.min(stay.duration_ns);
                }
                None => call.hosts.push(OfCall {
                    host: place,
                    n_ranks: 1,
                    shortest_ns: stay.duration_ns,
                }),
            }
        }
    }

    /// Compares the hosts; `None` where no call has ranks of two.
    pub fn lateness(&self) -> Option<Lateness> {
        let mut sums: Vec<Sums> = vec![Sums::default(); self.hosts.len()];
        let mut itself = Vec::new();
        for call in self.calls.values().filter(|call| call.hosts.len() > 1) {
            let shortest = call.shortest_ns();
            itself.push(shortest as f64);
            let n_ranks: u32 = call.hosts.iter().map(|of| of.n_ranks).sum();
            let last = call.last_host();
            for of in &call.hosts {
                let sum = &mut sums[of.host];
                let late = (call.longest_ns - of.shortest_ns) as f64;
                sum.lateness.push(late);
                sum.in_calls.push(late / shortest.max(1) as f64);
                // Two hosts that were in it for equally long tell nothing.
                if let Some(last) = last {
                    sum.n += 1;
                    sum.last += u64::from(last == of.host);
                    sum.expected += f64::from(of.n_ranks) / f64::from(n_ranks);
                }
            }
        }
        if itself.is_empty() {
            return None;
        }
        let named = self.hosts.iter().zip(&self.ranks).zip(sums);
        let mut hosts: Vec<OfHost> = named
            .filter(|(_, sums)| !sums.lateness.is_empty())
            .map(|((host, &ranks), sums)| sums.judge(host, ranks))
            .collect();
        hosts.sort_by(|a, b| (b.last as f64 - b.expected).total_cmp(&(a.last as f64 - a.expected)));
        Some(Lateness {
            calls: itself.len(),
            call_itself: median(&itself),
            hosts,
            warnings: Vec::new(),
        })
    }
}

impl Call {
    fn shortest_ns(&self) -> u64 {
        let stays = self.hosts.iter().map(|of| of.shortest_ns);
        stays.min().unwrap_or(0)
    }

    fn last_host(&self) -> Option<usize> {
        let shortest = self.shortest_ns();
        let mut last = self.hosts.iter().filter(|of| of.shortest_ns == shortest);
        match (last.next(), last.next()) {
            (Some(of), None) => Some(of.host),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Sums {
    n: u64,
    last: u64,
    expected: f64,
    lateness: Vec<f64>,
    in_calls: Vec<f64>,
}

impl Sums {
    fn judge(self, host: &str, ranks: u32) -> OfHost {
        let share = (self.expected / self.n.max(1) as f64).clamp(0.0, 1.0);
        let p = match self.last {
            0 => 1.0,
            last => Binomial::new(share, self.n).map_or(1.0, |calls| calls.sf(last - 1)),
        };
        let lateness_in_calls = median(&self.in_calls);
        OfHost {
            host: host.to_owned(),
            ranks,
            calls: self.n,
            last: self.last,
            expected: self.expected,
            p,
            lateness: median(&self.lateness),
            lateness_in_calls,
            is_late: p < P_MAX && lateness_in_calls > 1.0,
        }
    }
}

impl Lateness {
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} calls with ranks of several hosts; a call itself takes {}\n",
            self.calls,
            time(self.call_itself)
        );
        let late: Vec<&OfHost> = self.hosts.iter().filter(|of| of.is_late).collect();
        if late.is_empty() {
            text += "No host is late.\n";
        }
        for of in late {
            text += &format!(
                "host late: {} comes last in {} of the calls, where {} would be its share, and keeps others waiting for \
                 {}: it is slow, or has more to do\n",
                of.host,
                percent(of.last as f64 / of.calls.max(1) as f64),
                percent(of.expected / of.calls.max(1) as f64),
                time(of.lateness)
            );
        }
        let rows = self.hosts.iter().take(MOST).map(|of| {
            vec![
                of.host.clone(),
                of.ranks.to_string(),
                format!("{} of {}", of.last, of.calls),
                format!("{:.0}", of.expected),
                format!("{:.1e}", of.p),
                time(of.lateness),
                format!("{:.1}", of.lateness_in_calls),
            ]
        });
        text += "\n";
        let header = [
            "host",
            "ranks",
            "last in",
            "expected",
            "by chance",
            "late by",
            "in calls",
        ];
        text += &table(&header, &rows.collect::<Vec<_>>());
        text
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    /// Four hosts with two ranks each; ranks come within 20 us of each other, those of `late` so much later.
    fn job(seed: u64, late: Option<(usize, u64)>) -> Arrivals {
        let mut random = StdRng::seed_from_u64(seed);
        let mut stays = vec![Vec::new(); 8];
        for call in 0..400 {
            let mut at: Vec<u64> = (0..8).map(|_| random.random_range(0..20_000)).collect();
            if let Some((host, ns)) = late {
                at[2 * host] += ns;
                at[2 * host + 1] += ns;
            }
            let leave = at.iter().max().expect("ranks") + 15_000;
            for (rank, at) in at.iter().enumerate() {
                // They leave together within a microsecond.
                let leave = leave + random.random_range(0..1_000);
                stays[rank].push(Stay {
                    comm: 7,
                    call,
                    duration_ns: leave - at,
                });
            }
        }
        let mut arrivals = Arrivals::default();
        for (rank, stays) in stays.into_iter().enumerate() {
            arrivals.add(&format!("host{}", rank / 2), stays);
        }
        arrivals
    }

    fn late(arrivals: &Arrivals) -> Vec<String> {
        let found = arrivals.lateness().expect("several hosts");
        let late = found.hosts.into_iter().filter(|of| of.is_late);
        late.map(|of| of.host).collect()
    }

    #[test]
    fn a_host_that_comes_last_and_late_is_named_and_chance_is_not() {
        for seed in 0..20 {
            assert_eq!(late(&job(seed, Some((2, 100_000)))), ["host2"], "{seed}");
            assert_eq!(late(&job(seed, None)), [""; 0], "{seed}");
        }
        // Nearly always the last, but not for as long as the call itself takes.
        let slightly = job(1, Some((1, 4_000)));
        let found = slightly.lateness().expect("several hosts");
        assert!(
            found.hosts[0].p < P_MAX && !found.hosts[0].is_late,
            "{found:?}"
        );
    }

    #[test]
    fn calls_on_one_host_and_calls_in_which_all_are_alike_say_nothing() {
        let stay = |duration_ns| Stay {
            comm: 1,
            call: 1,
            duration_ns,
        };
        let mut arrivals = Arrivals::default();
        arrivals.add("a", [stay(10)]);
        arrivals.add("a", [stay(20)]);
        assert_eq!(arrivals.lateness(), None);
        arrivals.add("b", [stay(10)]);
        let found = arrivals.lateness().expect("two hosts");
        assert!(
            found.hosts.iter().all(|of| of.calls == 0 && of.p == 1.0),
            "{found:?}"
        );
        assert_eq!((found.calls, found.call_itself), (1, 10.0));
    }
}
