//! How often something else took a rank's core, from what windows took and what of it the processor gave.

/// What a rank did between two collectives, without waiting. Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkRow {
    pub step: u64,
    pub rank: u32,
    pub wall_ns: f64,
    pub cpu_ns: f64,
}

/// The share of the working time in which ranks were stopped, and how long each time.
///
/// Units:  the length is that of stops which are alike and of which a row has one at most: the mean of their squares
///         over their mean. 0 and 0 without rows.
pub fn stops(rows: &[WorkRow]) -> (f64, f64) {
    let (mut work, mut stopped, mut squares) = (0.0, 0.0, 0.0);
    for row in rows {
        let away = (row.wall_ns - row.cpu_ns).max(0.0);
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
        let row = |i: u64| WorkRow {
            step: i,
            rank: 0,
            wall_ns: if i.is_multiple_of(10) { 1.5e6 } else { 1e6 },
            cpu_ns: 1e6,
        };
        let rows: Vec<WorkRow> = (0..100).map(row).collect();
        let (share, length) = stops(&rows);
        assert!((share - 5.0 / 105.0).abs() < 1e-12 && (length - 5e5).abs() < 1e-6);
        assert_eq!(stops(&[]), (0.0, 0.0));
    }
}
