//! What can be asked: tables with their columns, in words.

use crate::engine::Engine;
use crate::functions::AGGREGATES;

/// The tables, each with what a row is and its columns with type and unit.
pub fn text(engine: &Engine) -> String {
    let mut text = String::new();
    for table in &engine.tables {
        let columns = engine.opened(table).columns.iter();
        let columns: Vec<(&str, &str)> = columns
            .map(|(name, holds)| (name.as_str(), *holds))
            .collect();
        text += &format!("{}: {}\n{}", table.name, table.about, lines(&columns));
    }
    text += "Beside SQLite's own functions (also over windows):\n";
    for (name, arguments, gives) in AGGREGATES {
        text += &format!("  {:18} {gives}\n", format!("{name}({arguments})"));
    }
    text += "  sqrt, exp, ln, log2, log10, floor, pow(x, y)\n";
    text
}

fn lines(columns: &[(&str, &str)]) -> String {
    let width = columns
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    let line = |(name, domain): &(&str, &str)| {
        let line = format!("  {name:width$}  {domain:7}  {}", unit(name, domain));
        line.trim_end().to_owned() + "\n"
    };
    columns.iter().map(line).collect()
}

/// The unit of a column, which its name ends with; empty where it has none.
fn unit(name: &str, domain: &str) -> &'static str {
    if domain == "text" || domain == "boolean" {
        return "";
    }
    let units = [
        ("_unix_ms", "ms since 1970"),
        ("_ns", "ns"),
        ("_us", "us"),
        ("_ms", "ms"),
        ("_s", "s"),
        ("seconds", "s"),
        ("bytes", "B"),
        ("bytes_lo", "B"),
        ("bytes_hi", "B"),
        ("share", "0 to 1"),
        ("probability", "0 to 1"),
        ("gain", "ratio"),
        ("gain_lo", "ratio"),
        ("gain_hi", "ratio"),
        ("_mean", "of level_ns"),
        ("_m2", "of level_ns squared"),
        ("drift", "octaves"),
    ];
    let found = units.iter().find(|(end, _)| name.ends_with(end));
    found.map_or("", |(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_what_names_end_with() {
        let said = [
            "time_ns",
            "started_unix_ms",
            "wall_s",
            "message_bytes",
            "tuned_share",
            "step",
        ];
        let units = said.map(|name| unit(name, "integer"));
        assert_eq!(units, ["ns", "ms since 1970", "s", "B", "0 to 1", ""]);
        assert_eq!(unit("settings", "text"), "");
    }
}
