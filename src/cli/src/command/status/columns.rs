//! The columns of `status`: one row each. A test names what else tells of a column.

use colltune_core::model::Source;
use colltune_core::space::Range;
use colltune_core::variant::Size;
use colltune_models::statistics::{CellStatistics, VariantStatistics};

use crate::comparison::percent;

/// One column of the table.
pub struct Column {
    /// As the table's head, `--help` and the book's page have it.
    pub name: &'static str,
    /// What `status --json` has of it.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "a test compares it with the JSON")
    )]
    pub json: &'static str,
    pub of: fn(&CellStatistics) -> String,
}

const fn column(
    name: &'static str,
    json: &'static str,
    of: fn(&CellStatistics) -> String,
) -> Column {
    Column { name, json, of }
}

pub const COLUMNS: [Column; 10] = [
    column("collective", "collective", |cell| {
        cell.cell.collective.to_string()
    }),
    column("bytes", "bytes", |cell| bytes_of(cell.cell.bytes)),
    column("nodes", "nodes", |cell| numbers_of(cell.cell.nodes)),
    column("ppn", "ppn", |cell| numbers_of(cell.cell.ppn)),
    column("time", "time_share", |cell| percent(cell.time_share)),
    column("waiting", "waiting", |cell| percent(cell.waiting)),
    column("calls", "variants", |cell| cell.samples().to_string()),
    column("best", "best", best),
    column("gain", "gain", gain),
    column("drawn most", "variants", drawn_most),
];

/// A range of message sizes.
pub fn bytes_of(bytes: Range) -> String {
    match bytes.hi {
        Some(hi) => format!("[{}, {})", Size(bytes.lo), Size(hi)),
        None => format!("{}+", Size(bytes.lo)),
    }
}

/// A range of nodes, or of ranks per node.
pub fn numbers_of(range: Range) -> String {
    match range.hi {
        Some(hi) if hi == range.lo + 1 => range.lo.to_string(),
        Some(hi) => format!("{}-{}", range.lo, hi - 1),
        None => format!("{}+", range.lo),
    }
}

fn best(cell: &CellStatistics) -> String {
    match cell.source {
        Source::Measured => cell.best.clone(),
        _ => format!("{} (predicted)", cell.best),
    }
}

/// Without an interval of its own a gain is a mere number.
fn gain(cell: &CellStatistics) -> String {
    match cell.gain_lo < cell.gain_hi {
        true => format!(
            "{:.2}x [{:.2}, {:.2}]",
            cell.gain, cell.gain_lo, cell.gain_hi
        ),
        false => format!("{:.2}x", cell.gain),
    }
}

/// Less than this is shown as 0 %, which says nothing.
const SHOWN_LEAST: f64 = 0.005;

fn drawn_most(cell: &CellStatistics) -> String {
    let drawn = cell
        .variants
        .iter()
        .filter(|one| one.probability >= SHOWN_LEAST);
    let mut likely: Vec<&VariantStatistics> = drawn.collect();
    likely.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let two = likely.iter().take(2);
    let told = two.map(|one| format!("{} {:.0} %", one.name, 100.0 * one.probability));
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use colltune_core::settings::Settings;

    /// What is missing of a column, one line each.
    fn missing(
        columns: &[Column],
        help: &str,
        page: &str,
        json: &serde_json::Value,
    ) -> Vec<String> {
        let mut missing = Vec::new();
        for Column {
            name, json: key, ..
        } in columns
        {
            if !help.contains(&format!("`{name}`")) {
                missing.push(format!(
                    "`{name}`: the text below the examples in src/cli/src/command/status.rs"
                ));
            }
            let of_table = |line: &&str| line.starts_with('|');
            let mut rows = page.lines().filter(of_table);
            let first = |row: &str| row.split('|').nth(1).unwrap_or("").to_owned();
            if !rows.any(|row| first(row).split(',').any(|word| word.trim() == *name)) {
                missing.push(format!("{name}: the table of docs/book/src/status.md"));
            }
            if json.get(key).is_none() {
                missing.push(format!(
                    "{key}: `CellStatistics` in models/src/statistics.rs, which is `status --json`"
                ));
            }
        }
        missing
    }

    #[test]
    fn help_book_and_json_tell_of_every_column() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            _args: super::super::Args,
        }
        let help = Line::command().render_long_help().to_string();
        let page = include_str!("../../../../../docs/book/src/status.md");
        let (cell, _) = Settings::default()
            .space
            .cells()
            .next()
            .expect("it has cells");
        let json = serde_json::to_value(CellStatistics::unknown(cell)).unwrap();
        let found = missing(&COLUMNS, &help, page, &json);
        assert!(
            found.is_empty(),
            "a column of `status` is missing in:\n{}",
            found.join("\n")
        );
        let made_up = [column("variance", "variance_ns", |_| String::new())];
        assert_eq!(
            missing(&made_up, &help, page, &json).len(),
            3,
            "a new column is told where to go"
        );
    }
}
