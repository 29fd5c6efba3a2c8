//! The result of a suite: `NAME.json` for programs, a table for people.

use std::fmt::Write as _;

use colltune_statistics::{Interval, Spread, ratios, spread};
use serde_json::{Map, Value, json};

use super::Bench;
use colltune_output::aligned;

/// What one suite found.
#[derive(Default)]
pub struct Report {
    /// What `a` and `b` of the rows are, with units.
    pub a: String,
    pub b: String,
    pub rows: Vec<Row>,
    pub findings: Vec<Finding>,
    /// How it was measured, and what the reader must know.
    pub notes: Vec<String>,
    /// Why this machine cannot run the suite, or a part of it.
    pub skipped: Vec<String>,
    /// By the MPI library's name, SVG.
    pub pictures: Vec<(&'static str, String)>,
    pub head: Map<String, Value>,
}

/// One comparison; `ratio` is a / b.
pub struct Row {
    pub case: String,
    pub a: f64,
    pub b: f64,
    pub ratio: Spread,
    pub n: usize,
    /// Further columns of the table and keys of the JSON.
    pub more: Vec<(&'static str, Value)>,
}

impl Row {
    /// Compares jobs that ran in pairs: `a` and `b` hold one value per round.
    pub fn of_rounds(case: String, a: &[f64], b: &[f64]) -> Row {
        let middle = |values: &[f64]| colltune_statistics::median(values);
        Row {
            case,
            a: middle(a),
            b: middle(b),
            ratio: spread(&ratios(a, b)),
            n: a.len().min(b.len()),
            more: Vec::new(),
        }
    }

    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Row {
        self.more.push((key, value.into()));
        self
    }
}

/// What a target demands of a value.
#[derive(Clone, Copy)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    Within(f64, f64),
    /// Reported only.
    None,
}

/// A figure that the suite exists for, held against its target.
pub struct Finding {
    pub what: String,
    pub found: Interval,
    pub unit: &'static str,
    pub target: Target,
}

impl Finding {
    /// `met` or `missed` by the estimate; `(within noise)` where the interval also allows the other.
    pub fn verdict(&self) -> &'static str {
        let Interval { low, value, high } = self.found;
        let (met, surely) = match self.target {
            Target::None => return "",
            Target::AtMost(limit) => (value <= limit, high <= limit || low > limit),
            Target::AtLeast(limit) => (value >= limit, low >= limit || high < limit),
            Target::Within(least, most) => (
                (least..=most).contains(&value),
                (low >= least && high <= most) || high < least || low > most,
            ),
        };
        match (met, surely) {
            (true, true) => "met",
            (true, false) => "met (within noise)",
            (false, true) => "MISSED",
            (false, false) => "MISSED (within noise)",
        }
    }

    fn json(&self) -> Value {
        let (bound, limit) = match self.target {
            Target::AtMost(limit) => ("at most", json!(limit)),
            Target::AtLeast(limit) => ("at least", json!(limit)),
            Target::Within(least, most) => ("within", json!([least, most])),
            Target::None => ("none", Value::Null),
        };
        let met = (!limit.is_null()).then(|| self.verdict().starts_with("met"));
        json!({ "what": self.what, "value": self.found.value, "low": self.found.low, "high": self.found.high,
                "unit": self.unit, "target": { "bound": bound, "limit": limit }, "met": met, "verdict": self.verdict() })
    }
}

impl Report {
    pub fn comparing(a: &str, b: &str) -> Report {
        Report {
            a: a.to_owned(),
            b: b.to_owned(),
            ..Report::default()
        }
    }

    /// Adds what every report says, with the suite's name and line, and the warnings that its jobs printed.
    pub fn finished(mut self, name: &str, about: &str, bench: &Bench) -> Report {
        colltune_output::progress::clear();
        let quick = if bench.quick { " --quick" } else { "" };
        self.head.insert("name".into(), name.into());
        self.head.insert("about".into(), about.into());
        self.head.insert("machine".into(), machine());
        self.head.insert("versions".into(), versions());
        self.head.insert(
            "command".into(),
            format!("colltune-bench{quick} {name}").into(),
        );
        self.notes.extend(
            bench
                .take_warnings()
                .into_iter()
                .map(|warning| format!("a job printed: {warning}")),
        );
        self
    }

    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            let mut object = Map::new();
            object.insert("case".into(), row.case.as_str().into());
            object.insert("a".into(), row.a.into());
            object.insert("b".into(), row.b.into());
            object.insert("ratio".into(), json!(row.ratio));
            object.insert("n".into(), row.n.into());
            object.extend(
                row.more
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), value.clone())),
            );
            Value::Object(object)
        };
        let mut object = self.head.clone();
        object.insert("a".into(), self.a.as_str().into());
        object.insert("b".into(), self.b.as_str().into());
        object.insert("rows".into(), self.rows.iter().map(row).collect());
        object.insert(
            "findings".into(),
            self.findings.iter().map(Finding::json).collect(),
        );
        object.insert("notes".into(), json!(self.notes));
        object.insert("skipped".into(), json!(self.skipped));
        Value::Object(object)
    }

    /// The table for people: rows, then findings against their targets, then notes.
    pub fn table(&self) -> String {
        let text = |key: &str| {
            self.head
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        let mut out = format!("== {}: {} ==\n", text("name"), text("about"));
        if !self.rows.is_empty() {
            let _ = writeln!(
                out,
                "a: {}; b: {}; ratio: a / b over n pairs of jobs",
                self.a, self.b
            );
            out.push_str(&columns(&self.cells()));
        }
        for finding in &self.findings {
            let Interval { low, value, high } = finding.found;
            let unit = finding.unit;
            let target = match finding.target {
                Target::AtMost(limit) => format!(", target at most {limit}{unit}"),
                Target::AtLeast(limit) => format!(", target at least {limit}{unit}"),
                Target::Within(least, most) => format!(", target {least} to {most}{unit}"),
                Target::None => String::new(),
            };
            let interval = if low == high {
                String::new()
            } else {
                format!(" [{}, {}]", short(low), short(high))
            };
            let verdict = finding.verdict();
            let verdict = if verdict.is_empty() {
                String::new()
            } else {
                format!(": {verdict}")
            };
            let _ = writeln!(
                out,
                "{}: {}{unit}{interval}{target}{verdict}",
                finding.what,
                short(value)
            );
        }
        out.extend(self.notes.iter().map(|note| format!("- {note}\n")));
        out.extend(
            self.skipped
                .iter()
                .map(|reason| format!("SKIPPED: {reason}\n")),
        );
        out
    }

    fn cells(&self) -> Vec<Vec<String>> {
        let mut head: Vec<String> = ["case", "a", "b", "min", "median", "max", "n"]
            .map(str::to_owned)
            .to_vec();
        head.extend(
            self.rows[0]
                .more
                .iter()
                .map(|(key, _)| key.replace('_', " ")),
        );
        let row = |row: &Row| {
            let Spread { min, median, max } = row.ratio;
            let mut cells = vec![row.case.clone()];
            cells.extend([row.a, row.b, min, median, max].map(short));
            cells.push(row.n.to_string());
            cells.extend(row.more.iter().map(|(_, value)| match value {
                Value::Number(number) => short(number.as_f64().unwrap_or(f64::NAN)),
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            }));
            cells
        };
        std::iter::once(head)
            .chain(self.rows.iter().map(row))
            .collect()
    }
}

/// Four significant digits at most, without an exponent.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The first column and text to the left, numbers to the right.
fn columns(rows: &[Vec<String>]) -> String {
    let numeric = |column: usize| {
        let mut below = rows
            .iter()
            .skip(1)
            .filter_map(|row| row.get(column))
            .filter(|cell| !cell.is_empty());
        below.all(|cell| cell.parse::<f64>().is_ok())
    };
    let text = aligned(rows, |column| !numeric(column));
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn machine() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, name)| name);
    json!({
        "cpu": model,
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").split_whitespace().next(),
    })
}

fn versions() -> Value {
    let mut versions = Map::new();
    versions.insert("colltune".into(), env!("CARGO_PKG_VERSION").into());
    for (abi, launcher) in super::place::launchers() {
        let text = launcher.library.map(|library| library.to_string());
        versions.insert(abi.name().into(), text.into());
    }
    Value::Object(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(low: f64, value: f64, high: f64, target: Target) -> Finding {
        Finding {
            what: "x".into(),
            found: Interval { low, value, high },
            unit: "",
            target,
        }
    }

    #[test]
    fn verdicts_never_hide_a_miss() {
        assert_eq!(finding(1.0, 2.0, 3.0, Target::AtMost(5.0)).verdict(), "met");
        assert_eq!(
            finding(1.0, 4.0, 6.0, Target::AtMost(5.0)).verdict(),
            "met (within noise)"
        );
        assert_eq!(
            finding(4.0, 5.5, 6.0, Target::AtMost(5.0)).verdict(),
            "MISSED (within noise)"
        );
        assert_eq!(
            finding(0.8, 0.9, 0.94, Target::AtLeast(0.95)).verdict(),
            "MISSED"
        );
        assert_eq!(
            finding(f64::NAN, f64::NAN, f64::NAN, Target::AtLeast(0.95)).verdict(),
            "MISSED (within noise)"
        );
    }

    #[test]
    fn what_has_to_lie_within_two_limits_misses_on_either_side() {
        let target = Target::Within(0.93, 0.97);
        for (low, value, high, verdict) in [
            (0.94, 0.95, 0.96, "met"),
            (0.92, 0.95, 0.96, "met (within noise)"),
            (0.94, 0.96, 0.98, "met (within noise)"),
            (0.90, 0.91, 0.92, "MISSED"),
            (0.98, 0.98, 0.98, "MISSED"),
            (0.96, 0.98, 0.99, "MISSED (within noise)"),
            (f64::NAN, f64::NAN, f64::NAN, "MISSED (within noise)"),
        ] {
            assert_eq!(finding(low, value, high, target).verdict(), verdict);
        }
        let json = finding(0.98, 0.98, 0.98, target).json();
        assert_eq!(
            json["target"],
            json!({ "bound": "within", "limit": [0.93, 0.97] })
        );
        assert_eq!(json["met"], json!(false));
        let none = finding(1.0, 1.0, 1.0, Target::None).json();
        assert!(none["met"].is_null() && none["target"]["limit"].is_null());
    }

    #[test]
    fn a_report_has_the_keys_that_readers_rely_on() {
        let mut report = Report::comparing("with, ns", "without, ns");
        report
            .rows
            .push(Row::of_rounds("x".into(), &[2.0, 3.0], &[1.0, 1.0]).with("best", "ring"));
        let row = &report.json()["rows"][0];
        assert_eq!(
            row["ratio"],
            json!({ "min": 2.0, "median": 2.5, "max": 3.0 })
        );
        assert_eq!((&row["n"], &row["best"]), (&json!(2), &json!("ring")));
        assert!(report.table().contains("ring"));
    }
}
