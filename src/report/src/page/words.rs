//! Numbers and names as people read them.

use std::time::{Duration, UNIX_EPOCH};

use colltune_core::space::{Cell, Range};
use colltune_statistics::Interval;

/// How wide a letter of a picture is, in pixels, at the most.
pub const LETTER: f64 = 7.0;

/// Between a number and its unit: they stay on one line.
const JOINED: char = '\u{a0}';

/// Less is what is left of a difference of equal numbers.
const NOTHING: f64 = 1e-9;

/// Three digits that say something.
pub fn number(value: f64) -> String {
    if value.abs() < NOTHING {
        return "0".to_owned();
    }
    if value < 0.0 {
        return format!("\u{2212}{}", number(-value));
    }
    let size = value;
    if !value.is_finite() {
        "unknown".to_owned()
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        let digits = (2 - size.log10().floor() as i32).clamp(0, 9) as usize;
        format!("{value:.digits$}")
    }
}

pub fn percent(share: f64) -> String {
    let value = 100.0 * share;
    if value < 0.0 {
        return format!("\u{2212}{}", percent(-share));
    }
    match value {
        size if size >= 10.0 || size == 0.0 => format!("{value:.0}{JOINED}%"),
        size if size >= 0.1 => format!("{value:.1}{JOINED}%"),
        _ => format!("{value:.2}{JOINED}%"),
    }
}

pub fn seconds(value: f64) -> String {
    match value.abs() {
        size if size >= 7200.0 => format!("{}{JOINED}h", number(value / 3600.0)),
        size if size >= 1.0 || size == 0.0 => format!("{}{JOINED}s", number(value)),
        size if size >= 1e-3 => format!("{}{JOINED}ms", number(1e3 * value)),
        _ => format!("{}{JOINED}µs", number(1e6 * value)),
    }
}

pub fn nanoseconds(value: f64) -> String {
    seconds(value / 1e9)
}

/// A round time at an axis: without digits that say nothing, as in `2 µs`.
pub fn nanoseconds_at(value: f64) -> String {
    seconds_at(value / 1e9)
}

pub fn seconds_at(value: f64) -> String {
    let text = seconds(value);
    match text.split_once(JOINED) {
        Some((digits, unit)) if digits.contains('.') => {
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits}{JOINED}{unit}")
        }
        _ => text,
    }
}

/// What other crates say, with its percents on one line.
pub fn joined(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// A factor, as in `1.32`; digits behind the point say nothing of large ones.
pub fn factor(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Nodes' time, of a small program in seconds.
pub fn node_time(hours: f64) -> String {
    match hours {
        hours if hours >= 0.1 => format!("{} node-hours", number(hours)),
        _ => format!("{} node-seconds", number(3600.0 * hours)),
    }
}

pub fn interval(estimate: Interval) -> String {
    let Interval { low, value, high } = estimate;
    format!("{value:.3} (95{JOINED}% interval {low:.3} to {high:.3})")
}

/// The number and its noun, in the plural but for one.
pub fn count(n: u64, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(n))
}

/// A whole number with its thousands apart.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes, as in `64 KiB`.
pub fn bytes(n: u64) -> String {
    for (unit, size) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if n >= size && n.is_multiple_of(size) {
            return format!("{}{JOINED}{unit}", n / size);
        }
    }
    format!("{n}{JOINED}B")
}

/// The sizes of a range: what it begins with, and what it ends before.
pub fn sizes(range: Range) -> String {
    match range.hi {
        Some(hi) if hi == range.lo + 1 => bytes(range.lo),
        Some(hi) => format!("{} to <{}", bytes(range.lo), bytes(hi)),
        None if range.lo == 0 => "any size".to_owned(),
        None => format!("{} and more", bytes(range.lo)),
    }
}

/// The sizes of a range where there is little room, as in `16–64 KiB`.
pub fn sizes_short(range: Range) -> String {
    let whole = sizes(range);
    let Some((from, to)) = whole.split_once(" to <") else {
        return whole.replace(" and more", "+");
    };
    match (from.split_once(JOINED), to.split_once(JOINED)) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}–{to}"),
        _ => format!("{from}–{to}"),
    }
}

/// The numbers of a range.
pub fn numbers(range: Range) -> String {
    match range.hi {
        Some(hi) if hi == range.lo + 1 => range.lo.to_string(),
        Some(hi) => format!("{} to {}", range.lo, hi - 1),
        None => format!("{} and more", range.lo),
    }
}

pub fn layout(cell: &Cell) -> String {
    let one = cell.nodes.hi == Some(2);
    let nodes = if one { "node" } else { "nodes" };
    let ranks = if cell.ppn.hi == Some(2) {
        "rank"
    } else {
        "ranks"
    };
    format!(
        "{} {nodes}, {} {ranks} on each",
        numbers(cell.nodes),
        numbers(cell.ppn)
    )
}

pub fn cell(cell: &Cell) -> String {
    format!(
        "{}, {}, {}",
        cell.collective,
        sizes(cell.bytes),
        layout(cell)
    )
}

/// A variant's name without its family where that is the library, and without words that every name has.
pub fn short(name: &str) -> String {
    let name = name.strip_prefix("native:").unwrap_or(name);
    name.replace("segsize=", "").replace('_', " ")
}

/// At most so many characters of a text.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// The day, in UTC.
pub fn day(unix_ms: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(unix_ms));
    let text = time
        .filter(|_| unix_ms < 1 << 47)
        .map(|time| humantime::format_rfc3339_seconds(time).to_string());
    text.map_or_else(
        || "unknown".to_owned(),
        |text| text.chars().take(10).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_say_what_people_read() {
        assert_eq!(
            ["123", "12.3", "1.23", "0.123", "0", "0"],
            [123.4, 12.34, 1.234, 0.1234, 0.0, -2e-15]
                .map(number)
                .each_ref()
                .map(String::as_str)
        );
        assert_eq!(percent(0.1234), "12\u{a0}%");
        assert_eq!(percent(0.0123), "1.2\u{a0}%");
        assert_eq!(seconds(0.00123), "1.23\u{a0}ms");
        assert_eq!(
            [seconds(-0.00123), percent(-0.02)],
            ["\u{2212}1.23\u{a0}ms", "\u{2212}2.0\u{a0}%"]
        );
        assert_eq!(nanoseconds(12_300.0), "12.3\u{a0}µs");
        let round = [2e3, 5e5, 1.5e6, 1e8, 2e10].map(nanoseconds_at);
        assert_eq!(
            round.map(|text| text.replace('\u{a0}', " ")),
            ["2 µs", "500 µs", "1.5 ms", "100 ms", "20 s"]
        );
        assert_eq!([1.234, 12.34, 179.25].map(factor), ["1.23", "12.3", "179"]);
        assert_eq!(node_time(0.001), "3.60 node-seconds");
        assert_eq!(node_time(2.0), "2.00 node-hours");
        assert_eq!(joined("3 % of 5 %"), "3\u{a0}% of 5\u{a0}%");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(1, "run") + " " + &count(2, "run"), "1 run 2 runs");
        assert_eq!(day(1_795_390_109_365), "2026-11-22");
        assert_eq!(day(u64::MAX), "unknown");
    }

    #[test]
    fn ranges_say_where_they_begin_and_end() {
        let range = |lo, hi| Range { lo, hi };
        assert_eq!(sizes(range(16, Some(64))), "16\u{a0}B to <64\u{a0}B");
        assert_eq!(sizes(range(0, Some(1))), "0\u{a0}B");
        let brief = [(16, Some(64)), (256, Some(1024)), (1 << 30, None)];
        let brief = brief.map(|(lo, hi)| sizes_short(range(lo, hi)).replace('\u{a0}', " "));
        assert_eq!(brief, ["16–64 B", "256 B–1 KiB", "1 GiB+"]);
        assert_eq!(sizes(range(4 << 20, None)), "4\u{a0}MiB and more");
        assert_eq!(numbers(range(5, Some(9))), "5 to 8");
        assert_eq!(cut("recursive doubling", 10), "recursive…");
        assert_eq!(short("native:pipeline:segsize=32KiB"), "pipeline:32KiB");
    }
}
