//! What windows, from one collective to the next, tell of ranks' noise: how often something else took a rank's core, and
//! how paces change within a step.

use std::collections::BTreeMap;

/// What a rank did between two collectives, without waiting. Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkRow {
    pub step: u64,
    pub window: u32,
    pub rank: u32,
    pub wall_ns: f64,
    pub cpu_ns: f64,
}

/// The share of the working time in which ranks were stopped while others worked on, and how long each time. What all
/// ranks of a window were stopped together makes none of them wait: so the real-time scheduler leaves the other
/// processes their twentieth of each second, on all cores at the same time.
///
/// Units:  the length is that of stops which are alike and of which a row has one at most: the mean of their squares
///         over their mean. 0 and 0 without rows.
pub fn stops(rows: &[WorkRow]) -> (f64, f64) {
    let away = |row: &WorkRow| (row.wall_ns - row.cpu_ns).max(0.0);
    let mut together: BTreeMap<(u64, u32), f64> = BTreeMap::new();
    for row in rows {
        let least = together
            .entry((row.step, row.window))
            .or_insert(f64::INFINITY);
        *least = least.min(away(row));
    }
    let (mut work, mut stopped, mut squares) = (0.0, 0.0, 0.0);
    for row in rows {
        let away = away(row) - together[&(row.step, row.window)];
        work += row.wall_ns;
        stopped += away;
        squares += away * away;
    }
    match stopped > 0.0 && work > stopped {
        true => (stopped / work, squares / stopped),
        false => (0.0, 0.0),
    }
}

/// How much faster than the others a rank works in one window and slower in another of the same step, as a relative
/// standard deviation, and in how many windows a step falls. What a rank has to do in a step, beside the others, and
/// what a window has, are none of it.
///
/// Units:  0 and 0 without a step of two windows and two ranks.
/// Source: two-way layout without interaction, of logarithms of processor time.
pub fn paces(rows: &[WorkRow]) -> (f64, f64) {
    let mut steps: BTreeMap<u64, BTreeMap<u32, BTreeMap<u32, f64>>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.cpu_ns > 0.0) {
        let windows = steps.entry(row.step).or_default();
        let ranks = windows.entry(row.window).or_default();
        ranks.insert(row.rank, row.cpu_ns.ln());
    }
    let (mut squares, mut free, mut n_windows, mut n_steps) = (0.0, 0.0, 0.0, 0.0);
    for windows in steps.values() {
        let n_ranks = windows.values().map(BTreeMap::len).max().unwrap_or(0);
        let whole: Vec<Vec<f64>> = windows
            .values()
            .filter(|ranks| ranks.len() == n_ranks)
            .map(|ranks| ranks.values().copied().collect())
            .collect();
        if whole.len() < 2 || n_ranks < 2 {
            continue;
        }
        let of_window: Vec<f64> = whole.iter().map(|logs| mean(logs.iter())).collect();
        let of_rank: Vec<f64> = (0..n_ranks)
            .map(|rank| mean(whole.iter().map(|logs| &logs[rank])))
            .collect();
        let of_all = mean(of_rank.iter());
        for (logs, window) in whole.iter().zip(&of_window) {
            for (log, rank) in logs.iter().zip(&of_rank) {
                squares += (log - window - rank + of_all).powi(2);
            }
        }
        free += (whole.len() - 1) as f64 * (n_ranks - 1) as f64;
        n_windows += whole.len() as f64;
        n_steps += 1.0;
    }
    match n_steps > 0.0 {
        true => ((squares / free).sqrt(), n_windows / n_steps),
        false => (0.0, 0.0),
    }
}

fn mean<'v>(values: impl Iterator<Item = &'v f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_within_a_step_are_told_from_what_ranks_and_windows_have_to_do() {
        // In turns by 0.1 faster and slower; rank 1 has twice as much to do, and each window more than the last.
        let row = |step: u64, window: u32, rank: u32| {
            let turn = if (window + rank).is_multiple_of(2) {
                0.1
            } else {
                -0.1
            };
            let work = 1e6 * f64::from(window + 1) * f64::from(rank + 1);
            WorkRow {
                step,
                window,
                rank,
                wall_ns: 2.0 * work,
                cpu_ns: work * f64::exp(turn),
            }
        };
        let of_step = |step| (0..4).flat_map(move |w| [row(step, w, 0), row(step, w, 1)]);
        let rows: Vec<WorkRow> = (1..=5).flat_map(of_step).collect();
        let (cv, n_windows) = paces(&rows);
        // Two ranks and four windows: 8 squares of 0.1 on 3 degrees of freedom.
        assert!((cv - (0.08f64 / 3.0).sqrt()).abs() < 1e-9, "{cv}");
        assert_eq!(n_windows, 4.0);
        let alone: Vec<WorkRow> = rows.into_iter().filter(|row| row.window == 0).collect();
        assert_eq!(paces(&alone), (0.0, 0.0), "a window a step");
    }

    #[test]
    fn stops_that_are_alike_are_found_again() {
        // In turns, and once in ten windows; both together in every seventh besides.
        let row = |window: u32, rank: u32| {
            let stopped = u32::from(window % 10 == 5 * rank) + u32::from(window.is_multiple_of(7));
            WorkRow {
                step: 1,
                window,
                rank,
                wall_ns: 1e6 + 5e5 * f64::from(stopped),
                cpu_ns: 1e6,
            }
        };
        let all = (0..700).flat_map(|window| [row(window, 0), row(window, 1)]);
        let rows: Vec<WorkRow> = all.collect();
        let (share, length) = stops(&rows);
        let work = 700.0 * (1.0 + 0.05 + 0.5 / 7.0);
        assert!((share - 700.0 * 0.05 / work).abs() < 1e-12 && (length - 5e5).abs() < 1e-3);
        assert_eq!(stops(&[]), (0.0, 0.0));
    }
}
