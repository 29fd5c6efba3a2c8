//! How often something else took a rank's core, from what windows took and what of it the processor gave.

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

#[cfg(test)]
mod tests {
    use super::*;

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
