//! Waits and calls far above their median.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::statistics::{mad, mean, median, pearson};
use crate::windows::Run;

const DEVIATIONS: f64 = 6.0;
/// A period is one where spikes of a step foretell those of a later one this well.
const CORRELATION_MIN: f64 = 0.3;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spikes {
    pub of: &'static str,
    pub all: usize,
    pub n: usize,
    /// Nanoseconds from which on a value is a spike.
    pub above: f64,
    pub share: f64,
    pub mean_over_median: f64,
    /// The host with most of them, and its share, where there are several hosts.
    pub host: Option<(String, f64)>,
    pub rank: Option<u32>,
    pub period_steps: Option<usize>,
    pub bytes_over_others: Option<f64>,
}

/// A wait or a call.
struct Event {
    rank: u32,
    step: u64,
    time: f64,
    bytes: f64,
}

pub fn spikes(run: &Run, host_of: &BTreeMap<u32, &str>) -> Vec<Spikes> {
    let calls = run.meetings.iter().flat_map(|meeting| {
        let last = meeting.straggler().arrive;
        meeting.ranks.iter().map(move |window| Event {
            rank: window.rank,
            step: meeting.step,
            time: (window.leave - last).max(0) as f64,
            bytes: window.bytes as f64,
        })
    });
    let rounds = run.rounds.values().flatten();
    let rounds = rounds
        .filter(|round| round.messages > 0)
        .map(|round| Event {
            rank: round.rank,
            step: round.step,
            time: (round.last - round.served).max(0) as f64,
            bytes: round.bytes as f64,
        });
    let calls = of_events("collectives", calls.collect(), host_of);
    let rounds = of_events("waits for messages", rounds.collect(), host_of);
    calls.into_iter().chain(rounds).collect()
}

fn of_events(
    of: &'static str,
    events: Vec<Event>,
    host_of: &BTreeMap<u32, &str>,
) -> Option<Spikes> {
    let times: Vec<f64> = events.iter().map(|event| event.time).collect();
    if times.is_empty() {
        return None;
    }
    let middle = median(&times);
    let above = middle + DEVIATIONS * mad(&times).max(0.01 * middle).max(1.0);
    let (spiked, others): (Vec<&Event>, Vec<&Event>) =
        events.iter().partition(|event| event.time > above);
    let sum = |events: &[&Event]| events.iter().map(|event| event.time).sum::<f64>();
    let bytes =
        |events: &[&Event]| mean(&events.iter().map(|event| event.bytes).collect::<Vec<_>>());
    let hosts: BTreeSet<&&str> = host_of.values().collect();
    let mut by_host: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_rank: BTreeMap<u32, usize> = BTreeMap::new();
    for event in &spiked {
        *by_rank.entry(event.rank).or_default() += 1;
        if let Some(host) = host_of.get(&event.rank) {
            *by_host.entry(host).or_default() += 1;
        }
    }
    let worst = by_host
        .into_iter()
        .max_by_key(|(_, n)| *n)
        .filter(|_| hosts.len() > 1);
    let larger = bytes(&spiked) / bytes(&others);
    Some(Spikes {
        of,
        all: events.len(),
        n: spiked.len(),
        above,
        share: sum(&spiked) / times.iter().sum::<f64>().max(1.0),
        mean_over_median: mean(&times) / middle.max(1.0),
        host: worst.map(|(host, n)| (host.to_owned(), n as f64 / spiked.len() as f64)),
        rank: by_rank
            .into_iter()
            .max_by_key(|(_, n)| *n)
            .map(|(rank, _)| rank),
        period_steps: period(&events, &spiked),
        bytes_over_others: larger.is_finite().then_some(larger),
    })
}

/// The number of steps after which spikes return, by the autocorrelation of their numbers.
fn period(events: &[Event], spiked: &[&Event]) -> Option<usize> {
    let mut by_step: BTreeMap<u64, f64> = events.iter().map(|event| (event.step, 0.0)).collect();
    for event in spiked {
        *by_step.entry(event.step).or_default() += 1.0;
    }
    let numbers: Vec<f64> = by_step.into_values().collect();
    let lags = 2..=numbers.len() / 4;
    let scored = lags.filter_map(|lag| {
        let r = pearson(&numbers[lag..], &numbers[..numbers.len() - lag])?;
        Some((lag, r))
    });
    let scored: Vec<(usize, f64)> = scored.filter(|(_, r)| *r >= CORRELATION_MIN).collect();
    let best = scored.iter().map(|(_, r)| *r).fold(0.0, f64::max);
    // Multiples of a period look as good as itself.
    scored
        .into_iter()
        .find(|(_, r)| *r >= 0.9 * best)
        .map(|(lag, _)| lag)
}
