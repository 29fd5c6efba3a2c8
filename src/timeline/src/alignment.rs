//! Where each host's times lie in a picture.

use colltune_statistics::clock::{ClockFit, Meetings};

/// A host in the picture: where its times are.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// `None` where they are on the picture's clock as they are.
    fit: Option<ClockFit>,
    /// Its first time, from which its clock counts alone where it compares with no other.
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

fn difference(one: u64, other: u64) -> f64 {
    one.wrapping_sub(other) as i64 as f64
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
