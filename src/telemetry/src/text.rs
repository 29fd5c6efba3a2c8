//! Tables for a terminal.

/// Aligned columns under a header: the first to the left, the others to the right.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let cells = || {
        rows.iter()
            .map(|row| row.iter().map(String::as_str).collect::<Vec<&str>>())
    };
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in cells() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: Vec<&str>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(place, (cell, &width))| match place {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<String>>().join("  ");
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(header.to_vec());
    cells().for_each(|row| text += &line(row));
    text
}

/// Nanoseconds for people.
pub fn time(ns: f64) -> String {
    match ns.abs() {
        t if t >= 1e9 => format!("{:.2} s", ns / 1e9),
        t if t >= 1e6 => format!("{:.2} ms", ns / 1e6),
        t if t >= 1e3 => format!("{:.1} us", ns / 1e3),
        _ => format!("{ns:.0} ns"),
    }
}

pub fn percent(share: f64) -> String {
    // An empty sum is -0.
    format!("{:.1} %", 100.0 * share + 0.0)
}
