//! Clocks of hosts, compared by what their ranks did together.
//!
//! Nobody leaves a collective in which all need something of all before the last one has entered it. So each such call
//! that ranks of two hosts recorded bounds the difference of their clocks from both sides, and many calls tell how
//! fast it grows: a line through the middles of the bounds, in which close bounds weigh more.

use std::collections::HashMap;

/// Of one host: when its last rank entered each call, and its first one left it, on the host's clock.
#[derive(Clone, Debug, Default)]
pub struct Meetings(HashMap<(u64, u64), Together>);

#[derive(Clone, Copy, Debug)]
struct Together {
    last_entry_ns: u64,
    first_exit_ns: u64,
}

/// How a host's times become those of another one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fit {
    /// On the host's clock, where the difference is `offset_ns`.
    origin_ns: u64,
    offset_ns: f64,
    /// What the difference grows by in a nanosecond.
    drift: f64,
    /// Half of what a typical call leaves open.
    uncertainty_ns: f64,
    calls: usize,
}

/// Calls from which a drift is read.
const CALLS_FOR_DRIFT: usize = 8;

impl Meetings {
    /// A rank of the host was in the call from `entry_ns` to `exit_ns`.
    pub fn add(&mut self, call: (u64, u64), entry_ns: u64, exit_ns: u64) {
        let of_rank = Together {
            last_entry_ns: entry_ns,
            first_exit_ns: exit_ns,
        };
        let together = self.0.entry(call).or_insert(of_rank);
        together.last_entry_ns = together.last_entry_ns.max(entry_ns);
        together.first_exit_ns = together.first_exit_ns.min(exit_ns);
    }

    /// How times of this host become those of `other`; `None` where they met in no call.
    fn fit(&self, other: &Meetings) -> Option<Fit> {
        let origin_ns = self.0.values().map(|call| call.last_entry_ns).min()?;
        let mut bounds: Vec<Bound> = Vec::new();
        for (call, here) in &self.0 {
            let Some(there) = other.0.get(call) else {
                continue;
            };
            let least = difference(there.last_entry_ns, here.first_exit_ns);
            let most = difference(there.first_exit_ns, here.last_entry_ns);
            bounds.push(Bound {
                at: (here.last_entry_ns - origin_ns) as f64,
                middle: (least + most) / 2.0,
                half: ((most - least) / 2.0).abs().max(1.0),
            });
        }
        // The order of a table with random keys must not show in the last digit.
        bounds.sort_by(|a, b| a.at.total_cmp(&b.at));
        let (offset_ns, drift) = line(&bounds)?;
        let mut halves: Vec<f64> = bounds.iter().map(|bound| bound.half).collect();
        halves.sort_by(f64::total_cmp);
        Some(Fit {
            origin_ns,
            offset_ns,
            drift,
            uncertainty_ns: halves[halves.len() / 2],
            calls: bounds.len(),
        })
    }
}

struct Bound {
    at: f64,
    middle: f64,
    half: f64,
}

fn difference(one: u64, other: u64) -> f64 {
    one.wrapping_sub(other) as i64 as f64
}

/// Offset and slope; a few calls tell no slope.
fn line(bounds: &[Bound]) -> Option<(f64, f64)> {
    let weight = |bound: &Bound| bound.half.powi(-2);
    let sum = |value: &dyn Fn(&Bound) -> f64| -> f64 {
        bounds
            .iter()
            .map(|bound| weight(bound) * value(bound))
            .sum()
    };
    let all = sum(&|_| 1.0);
    if bounds.is_empty() || !all.is_normal() {
        return None;
    }
    let (at, middle) = (sum(&|b| b.at) / all, sum(&|b| b.middle) / all);
    let spread = sum(&|b| (b.at - at).powi(2));
    let drift = match bounds.len() < CALLS_FOR_DRIFT || spread == 0.0 {
        true => 0.0,
        false => sum(&|b| (b.at - at) * (b.middle - middle)) / spread,
    };
    Some((middle - drift * at, drift))
}

impl Fit {
    /// A time of the host on the other's clock.
    fn at(&self, ns: u64) -> f64 {
        let since = difference(ns, self.origin_ns);
        self.origin_ns as f64 + self.offset_ns + (1.0 + self.drift) * since
    }
}

/// A host in the picture: where its times are.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// `None` where they are on the picture's clock as they are.
    fit: Option<Fit>,
    /// Its first time, from which its clock counts alone where it compares with nobody's.
    first_ns: u64,
    is_alone: bool,
    zero_ns: f64,
}

/// What is known of a host before its clock is compared.
pub struct Known<'a> {
    pub clock: u64,
    pub first_ns: u64,
    pub meetings: &'a Meetings,
}

/// Places hosts on the clock of the first one, so that the picture begins at 0.
pub fn places(hosts: &[Known<'_>]) -> Vec<Place> {
    let Some(first) = hosts.first() else {
        return Vec::new();
    };
    let place = |(number, host): (usize, &Known<'_>)| {
        let fit = match number {
            0 => None,
            _ => host.meetings.fit(first.meetings),
        };
        Place {
            fit,
            first_ns: host.first_ns,
            is_alone: fit.is_none() && host.clock != first.clock,
            zero_ns: 0.0,
        }
    };
    let mut places: Vec<Place> = hosts.iter().enumerate().map(place).collect();
    let firsts = places.iter().filter(|place| !place.is_alone).map(|place| {
        let first_ns = place.first_ns;
        place.fit.map_or(first_ns as f64, |fit| fit.at(first_ns))
    });
    let zero_ns = firsts.fold(f64::INFINITY, f64::min);
    for place in &mut places {
        place.zero_ns = match place.is_alone {
            true => place.first_ns as f64,
            false => zero_ns,
        };
    }
    places
}

impl Place {
    /// Begin and length in the picture of what was at `begin_ns` for `time_ns`. What follows each other does not overlap.
    pub fn of(&self, begin_ns: u64, time_ns: u64) -> (u64, u64) {
        let Some(fit) = self.fit else {
            return (begin_ns.saturating_sub(self.zero_ns as u64), time_ns);
        };
        let origin = fit.origin_ns as f64 - self.zero_ns + fit.offset_ns;
        let at = |ns: u64| {
            let since = difference(ns, fit.origin_ns);
            (origin + (1.0 + fit.drift) * since).max(0.0).round() as u64
        };
        let begin = at(begin_ns);
        (
            begin,
            at(begin_ns.saturating_add(time_ns)).saturating_sub(begin),
        )
    }

    /// What is to be said of the times of the host called `name`.
    pub fn note(&self, name: &str, first: &str) -> Option<String> {
        if self.is_alone {
            return Some(format!(
                "{name} shares no recorded collective with {first}: its times begin at 0 and compare with its own alone"
            ));
        }
        let fit = self.fit?;
        Some(format!(
            "times of {name} are on the clock of {first}, by {} collectives of both, to about {:.0} us",
            fit.calls,
            (fit.uncertainty_ns / 1000.0).max(1.0)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of 50 us every millisecond; the host's clock is 7 s ahead and gains 0.3 %.
    fn hosts(calls: u64) -> (Meetings, Meetings, impl Fn(f64) -> u64) {
        let theirs = |ns: f64| (7e9 + 1.003 * ns) as u64;
        let (mut there, mut here) = (Meetings::default(), Meetings::default());
        for call in 0..calls {
            let late = (call * 7919 % 40) * 1000;
            let begin = 5_000_000_000 + call * 1_000_000;
            let end = begin + 50_000;
            there.add((3, call), begin + late, end);
            there.add((3, call), begin, end + 500);
            here.add(
                (3, call),
                theirs((begin + 40_000 - late) as f64),
                theirs(end as f64),
            );
        }
        (there, here, theirs)
    }

    #[test]
    fn a_clock_that_is_ahead_and_fast_is_found_by_common_calls() {
        let (there, here, theirs) = hosts(1000);
        let fit = here.fit(&there).unwrap();
        assert_eq!(fit.calls, 1000);
        for ns in [5.0e9, 5.5e9, 6.0e9] {
            let error = fit.at(theirs(ns)) - ns;
            assert!(error.abs() < 3000.0, "{error} ns at {ns}");
        }
        assert!((fit.drift + 0.003).abs() < 2e-5, "{}", fit.drift);
        assert!((10_000.0..40_000.0).contains(&fit.uncertainty_ns));
    }

    #[test]
    fn a_few_calls_tell_the_offset_alone_and_none_nothing() {
        let (there, here, theirs) = hosts(3);
        let fit = here.fit(&there).unwrap();
        assert_eq!(fit.drift, 0.0);
        assert!((fit.at(theirs(5e9)) - 5e9).abs() < 50_000.0);
        assert_eq!(here.fit(&Meetings::default()), None);
        assert_eq!(Meetings::default().fit(&there), None);
    }

    #[test]
    fn what_follows_each_other_does_not_overlap_on_any_clock() {
        let (there, here, _) = hosts(100);
        let known = |clock, first_ns, meetings| Known {
            clock,
            first_ns,
            meetings,
        };
        let nobody = Meetings::default();
        let (theirs, ours) = (1 << 60, 5_000_000_000);
        let places = places(&[
            known(1, ours, &there),
            known(2, 12_015_000_000, &here),
            known(3, theirs, &nobody),
            known(1, ours, &nobody),
        ]);
        let alone: Vec<bool> = places.iter().map(|place| place.is_alone).collect();
        assert_eq!(alone, [false, false, true, false]);
        assert_eq!(places[2].of(theirs + 7, 5), (7, 5));
        for place in &places {
            let mut last = 0;
            for step in 0..1000 {
                let (begin, time) = place.of(place.first_ns + 333 * step, 333);
                assert!(begin >= last, "{place:?}");
                last = begin + time;
            }
        }
        assert!(places[2].note("b", "a").unwrap().contains("b shares no"));
        assert!(
            places[1]
                .note("b", "a")
                .unwrap()
                .contains("by 100 collectives")
        );
        assert_eq!(places[3].note("b", "a"), None);
    }
}
