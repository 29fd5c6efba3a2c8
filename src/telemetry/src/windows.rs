//! Windows of all ranks side by side, on one clock.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use colltune_statistics::clock::{ClockFit, Meetings};
use serde::Serialize;

use crate::FolderError;
use crate::folder::Folder;
use crate::rows::{self, Place, Round, Window};

/// Collectives that no rank leaves before all have come.
const NEEDS_ALL_OF_ALL: [&str; 5] = ["allreduce", "allgather", "agree", "alltoall", "barrier"];

/// A collective of all ranks and the window that each of them had before it, by rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Meeting {
    pub step: u64,
    pub window: u32,
    pub ranks: Vec<Window>,
}

/// Meetings in the order of time, whose times are those of clock 0.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub meetings: Vec<Meeting>,
    pub rounds: BTreeMap<(u64, u32), Vec<Round>>,
    pub ranks: Vec<u32>,
    pub places: Vec<Place>,
    pub clocks: Vec<Offset>,
    /// Meetings that lack ranks and were left out.
    pub n_incomplete: usize,
}

/// How far a clock is ahead of clock 0 at its first collective, in nanoseconds, and what it gains in each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Offset {
    pub clock: u32,
    pub ahead: i64,
    pub drift: f64,
    pub uncertainty: i64,
}

impl Meeting {
    /// The last rank that came, and when.
    pub fn straggler(&self) -> &Window {
        let last = self.ranks.iter().max_by_key(|window| window.arrive);
        last.expect("a meeting has ranks")
    }

    /// From the first rank's beginning to the last one's leaving.
    pub fn wall(&self) -> i64 {
        let begin = self.ranks.iter().map(|window| window.begin).min();
        let leave = self.ranks.iter().map(|window| window.leave).max();
        leave.zip(begin).map_or(0, |(leave, begin)| leave - begin)
    }
}

impl Run {
    /// Reads the windows of some steps, and rounds where there are any.
    ///
    /// Errors: no windows, or none of these steps.
    pub fn read(folder: &Folder, steps: &RangeInclusive<u64>) -> Result<Run, FolderError> {
        let windows = rows::windows(folder, steps)?;
        let rounds = rows::rounds(folder, steps);
        let windows = windows.into_iter().filter(|row| steps.contains(&row.step));
        let rounds = rounds.into_iter().filter(|row| steps.contains(&row.step));
        let run = Run::of(windows.collect(), rounds.collect(), rows::places(folder));
        if run.meetings.is_empty() {
            return Err(FolderError::TooLittle {
                folder: folder.path.clone(),
                reason: match run.n_incomplete {
                    0 => "it has no windows of these steps".into(),
                    n => format!("all {n} windows lack ranks: files of some ranks are missing"),
                },
            });
        }
        if run.n_incomplete > 0 {
            let n = run.n_incomplete;
            folder.warn(format!(
                "{n} windows lack ranks and are left out: files of some ranks are missing"
            ));
        }
        Ok(run)
    }

    /// Puts windows and rounds side by side.
    pub fn of(windows: Vec<Window>, rounds: Vec<Round>, places: Vec<Place>) -> Run {
        let ranks: BTreeSet<u32> = windows.iter().map(|window| window.rank).collect();
        let mut by_window: BTreeMap<(u64, u32), Vec<Window>> = BTreeMap::new();
        for window in windows {
            let key = (window.step, window.window);
            by_window.entry(key).or_default().push(window);
        }
        let n_all = by_window.len();
        let meetings = by_window
            .into_iter()
            .filter_map(|((step, window), mut of)| {
                of.sort_by_key(|window| window.rank);
                let complete = of.len() == ranks.len();
                complete.then_some(Meeting {
                    step,
                    window,
                    ranks: of,
                })
            });
        let meetings: Vec<Meeting> = meetings.collect();
        let mut run = Run {
            n_incomplete: n_all - meetings.len(),
            meetings,
            rounds: BTreeMap::new(),
            ranks: ranks.into_iter().collect(),
            places,
            clocks: Vec::new(),
        };
        for round in rounds {
            let key = (round.step, round.window);
            run.rounds.entry(key).or_default().push(round);
        }
        run.correct();
        run
    }

    /// The clock of a rank; 0 where nothing is known of its host.
    fn clock_of(&self) -> BTreeMap<u32, u32> {
        self.places.iter().map(|p| (p.rank, p.clock)).collect()
    }

    /// The node of a rank, where it is known.
    pub fn node_of(&self) -> BTreeMap<u32, u32> {
        self.places.iter().map(|p| (p.rank, p.node)).collect()
    }

    /// Moves all times to clock 0, as far ahead and as fast as the others are by the collectives of all.
    fn correct(&mut self) {
        let clock_of = self.clock_of();
        let clock = |rank: u32| clock_of.get(&rank).copied().unwrap_or(0);
        let mut calls: BTreeMap<u32, Meetings> = BTreeMap::new();
        for meeting in &self.meetings {
            for window in &meeting.ranks {
                let of_clock = calls.entry(clock(window.rank)).or_default();
                if NEEDS_ALL_OF_ALL.contains(&&*window.collective) {
                    let call = (meeting.step, meeting.window.into());
                    of_clock.add(call, window.arrive as u64, window.leave as u64);
                }
            }
        }
        let Some((_, reference)) = calls.pop_first() else {
            return;
        };
        let fits = calls.iter().filter_map(|(&clock, calls)| {
            let fit = calls.fit(&reference)?;
            Some((clock, fit))
        });
        let fits: BTreeMap<u32, ClockFit> = fits.collect();
        let set_right = |rank: u32, times: &mut [&mut i64]| {
            if let Some(fit) = fits.get(&clock(rank)) {
                for time in times {
                    **time = fit.at(**time as u64).round() as i64;
                }
            }
        };
        for w in self.meetings.iter_mut().flat_map(|m| &mut m.ranks) {
            set_right(w.rank, &mut [&mut w.begin, &mut w.arrive, &mut w.leave]);
        }
        for r in self.rounds.values_mut().flatten() {
            let (begin, done) = (&mut r.begin, &mut r.done);
            let times = &mut [begin, &mut r.posted, &mut r.served, &mut r.last, done];
            set_right(r.rank, times);
        }
        let offset = |(&clock, fit): (&u32, &ClockFit)| Offset {
            clock,
            ahead: -fit.offset_ns.round() as i64,
            drift: -fit.drift,
            uncertainty: fit.uncertainty_ns.ceil() as i64,
        };
        self.clocks = fits.iter().map(offset).collect();
    }

    /// The largest uncertainty of a clock.
    pub fn uncertainty(&self) -> i64 {
        let of_clocks = self.clocks.iter().map(|offset| offset.uncertainty);
        of_clocks.max().unwrap_or(0)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A window of a rank from `begin` to `arrive`; all leave at `leave`.
    pub fn window(rank: u32, begin: i64, arrive: i64, leave: i64) -> Window {
        Window {
            step: 1,
            rank,
            begin,
            arrive,
            leave,
            collective: "allreduce".into(),
            ..Window::default()
        }
    }

    fn place(rank: u32) -> Place {
        Place {
            rank,
            clock: rank,
            node: rank,
            ..Place::default()
        }
    }

    #[test]
    fn a_clock_that_is_ahead_is_set_right_within_its_uncertainty() {
        let ahead = 5_000_000;
        let mut windows = Vec::new();
        for n in 0..20 {
            let t = 10_000 * n;
            // By turns one and the other comes last; a collective takes 300.
            let (own, other) = if n % 2 == 0 {
                (1000, 4000)
            } else {
                (4000, 1000)
            };
            let mut of_0 = window(0, t, t + own, t + 4300);
            let mut of_1 = window(1, t + ahead, t + ahead + other, t + ahead + 4300);
            (of_0.window, of_1.window) = (n as u32, n as u32);
            windows.extend([of_0, of_1]);
        }
        let run = Run::of(windows, Vec::new(), vec![place(0), place(1)]);
        let [offset] = run.clocks[..] else { panic!() };
        assert_eq!((offset.ahead, offset.uncertainty), (ahead, 300));
        assert_eq!(run.meetings[0].straggler().rank, 1);
        assert_eq!(run.meetings[0].ranks[1].arrive, 4000);
    }

    #[test]
    fn a_clock_that_drifts_is_set_right_at_both_ends_and_calls_that_let_ranks_go_early_do_not_count()
     {
        // Ten minutes, in which the second host's clock gains 3 ms.
        let (step, drift) = (600_000_000, 5e-6);
        let theirs = |t: i64| t + 7_000_000_000 + (drift * t as f64) as i64;
        let mut windows = Vec::new();
        for n in 0..1000 {
            let t = step * n;
            let late = 1000 + 7919 * n % 40_000;
            let leave = t + 50_000;
            let mut of_0 = window(0, t, t + late, leave);
            let mut of_1 = window(1, theirs(t), theirs(t + 41_000 - late), theirs(leave));
            if n % 10 == 0 {
                // A rank that gives in a broadcast leaves long before others come.
                (of_0.leave, of_0.collective) = (t + late + 1, "broadcast".into());
                of_1.arrive = theirs(t + 49_000);
                of_1.collective = "broadcast".into();
            }
            (of_0.window, of_1.window) = (n as u32, n as u32);
            windows.extend([of_0, of_1]);
        }
        let run = Run::of(windows, Vec::new(), vec![place(0), place(1)]);
        let [offset] = run.clocks[..] else { panic!() };
        assert!((offset.drift - drift).abs() < 1e-8, "{offset:?}");
        assert!((500..20_000).contains(&offset.uncertainty), "{offset:?}");
        for (n, meeting) in run.meetings.iter().enumerate() {
            let [of_0, of_1] = &meeting.ranks[..] else {
                panic!()
            };
            let error = of_1.begin - of_0.begin;
            assert!(error.abs() <= offset.uncertainty, "{error} in {n}");
            if n % 10 != 0 {
                let late = 1000 + 7919 * n as i64 % 40_000;
                // Who came last, where that is clear.
                if (late - 20_500).abs() > offset.uncertainty {
                    let last = u32::from(late < 20_500);
                    assert_eq!(meeting.straggler().rank, last, "{n}: {late}");
                }
            }
        }
    }

    #[test]
    fn windows_that_lack_a_rank_are_counted_and_left_out() {
        let mut alone = window(0, 0, 1, 2);
        alone.window = 1;
        let windows = vec![window(0, 0, 1, 2), window(1, 0, 1, 2), alone];
        let run = Run::of(windows, Vec::new(), Vec::new());
        assert_eq!((run.meetings.len(), run.n_incomplete), (1, 1));
    }
}
