//! Windows of all ranks side by side, on one clock.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::FolderError;
use crate::folder::Folder;
use crate::rows::{self, Place, Round, Window};

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

/// How far a clock is ahead of clock 0, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Offset {
    pub clock: u32,
    pub ahead: i64,
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
        let windows = rows::windows(folder)?;
        let rounds = rows::rounds(folder);
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

    /// Moves all times to clock 0.
    ///
    /// No rank leaves a collective before all have come, so `leave_j - arrive_i` is at least the offset of j's
    /// clock from i's, and at its least hardly more: half the difference of both directions is the offset, half
    /// their sum its uncertainty, as with NTP.
    fn correct(&mut self) {
        let clock_of = self.clock_of();
        let clock = |rank: u32| clock_of.get(&rank).copied().unwrap_or(0);
        let clocks: BTreeSet<u32> = self.ranks.iter().map(|&rank| clock(rank)).collect();
        let reference = clocks.first().copied().unwrap_or(0);
        let mut offsets = BTreeMap::new();
        for &other in clocks.iter().filter(|&&other| other != reference) {
            let least = |from: u32, to: u32| {
                let of_meeting = |meeting: &Meeting| {
                    let of = |wanted| {
                        meeting
                            .ranks
                            .iter()
                            .filter(move |w| clock(w.rank) == wanted)
                    };
                    let arrive = of(from).map(|window| window.arrive).max();
                    let leave = of(to).map(|window| window.leave).min();
                    leave.zip(arrive).map(|(leave, arrive)| leave - arrive)
                };
                self.meetings.iter().filter_map(of_meeting).min()
            };
            if let Some((there, back)) = least(reference, other).zip(least(other, reference)) {
                let offset = Offset {
                    clock: other,
                    ahead: (there - back) / 2,
                    uncertainty: ((there + back) / 2).max(0),
                };
                offsets.insert(other, offset);
            }
        }
        let ahead = |rank: u32| {
            offsets
                .get(&clock(rank))
                .map_or(0, |offset: &Offset| offset.ahead)
        };
        for window in self.meetings.iter_mut().flat_map(|m| &mut m.ranks) {
            let ahead = ahead(window.rank);
            for time in [&mut window.begin, &mut window.arrive, &mut window.leave] {
                *time -= ahead;
            }
        }
        for round in self.rounds.values_mut().flatten() {
            let ahead = ahead(round.rank);
            for time in [
                &mut round.begin,
                &mut round.posted,
                &mut round.served,
                &mut round.last,
                &mut round.done,
            ] {
                *time -= ahead;
            }
        }
        self.clocks = offsets.into_values().collect();
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
            ..Window::default()
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
        let place = |rank| Place {
            rank,
            clock: rank,
            node: rank,
            ..Place::default()
        };
        let run = Run::of(windows, Vec::new(), vec![place(0), place(1)]);
        let [offset] = run.clocks[..] else { panic!() };
        assert_eq!((offset.ahead, offset.uncertainty), (ahead, 300));
        assert_eq!(run.meetings[0].straggler().rank, 1);
        assert_eq!(run.meetings[0].ranks[1].arrive, 4000);
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
