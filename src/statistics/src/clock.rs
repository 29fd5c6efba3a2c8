//! Clocks of hosts, compared by what their ranks did together.
//!
//! No rank leaves a collective in which all need something of all before the last one has entered it. So each such
//! call that ranks of two hosts recorded bounds the difference of their clocks from both sides, and many calls tell
//! how fast it grows: a line through the middles of the bounds, in which close bounds weigh more, moved to where it
//! keeps all bounds.

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
pub struct ClockFit {
    /// On the host's clock, where the difference is `offset_ns`.
    pub origin_ns: u64,
    /// What has to be added there for the other one's time.
    pub offset_ns: f64,
    /// What the difference grows by in a nanosecond.
    pub drift: f64,
    /// Half of what the calls together leave open, or by how much some call contradicts the line.
    pub uncertainty_ns: f64,
    pub calls: usize,
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
    pub fn fit(&self, other: &Meetings) -> Option<ClockFit> {
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
        // Where one offset keeps all bounds, there is no drift to be seen.
        let mut line_at = (0.0, 0.0);
        let [mut lowest, mut highest] = beside(&bounds, line_at)?;
        if lowest > highest {
            // The slope rests on all calls; where the line lies, on the two that leave the least open.
            line_at = line(&bounds)?;
            [lowest, highest] = beside(&bounds, line_at)?;
        }
        let (offset_ns, drift) = line_at;
        Some(ClockFit {
            origin_ns,
            offset_ns: offset_ns + (lowest + highest) / 2.0,
            drift,
            uncertainty_ns: ((highest - lowest) / 2.0).abs(),
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

/// The highest of the lower bounds and the lowest of the upper ones, from a line with this offset and slope.
fn beside(bounds: &[Bound], (offset, slope): (f64, f64)) -> Option<[f64; 2]> {
    let from_line = |bound: &Bound| bound.middle - (offset + slope * bound.at);
    let lower = bounds.iter().map(|bound| from_line(bound) - bound.half);
    let upper = bounds.iter().map(|bound| from_line(bound) + bound.half);
    Some([lower.reduce(f64::max)?, upper.reduce(f64::min)?])
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

impl ClockFit {
    /// A time of the host on the other's clock.
    pub fn at(&self, ns: u64) -> f64 {
        let since = difference(ns, self.origin_ns);
        self.origin_ns as f64 + self.offset_ns + (1.0 + self.drift) * since
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
        // More than the errors, and less than half of what the typical call leaves open.
        let uncertainty_ns = fit.uncertainty_ns;
        assert!(
            (3000.0..11_000.0).contains(&uncertainty_ns),
            "{uncertainty_ns}"
        );
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
}
