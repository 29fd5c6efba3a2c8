//! What a bench prints: one row a figure, a column a policy, beside what it must be and what it aims at.

use std::fmt::{self, Write as _};

use serde::Serialize;

/// One figure of all policies.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub figure: String,
    /// What the policies of the table reach, in their order; `None` where a policy has none.
    pub found: Vec<Option<Spread>>,
    pub must: Bound,
    pub aim: Bound,
}

/// What is asked of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    None,
    AtMost(f64),
    AtLeast(f64),
    Within(f64, f64),
}

impl Bound {
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Bound::None => true,
            Bound::AtMost(most) => value <= most,
            Bound::AtLeast(least) => value >= least,
            Bound::Within(least, most) => (least..=most).contains(&value),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::None => Ok(()),
            Bound::AtMost(most) => write!(f, "<= {most}"),
            Bound::AtLeast(least) => write!(f, ">= {least}"),
            Bound::Within(least, most) => write!(f, "{least} to {most}"),
        }
    }
}

/// The least, the median and the largest over machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.retain(|value| !value.is_nan());
        values.sort_by(f64::total_cmp);
        Some(Spread {
            least: *values.first()?,
            median: values[values.len() / 2],
            most: *values.last()?,
        })
    }

    /// A share of a whole that is counted over all machines together.
    pub fn exactly(value: f64) -> Option<Spread> {
        (!value.is_nan()).then_some(Spread {
            least: value,
            median: value,
            most: value,
        })
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Table {
    pub title: &'static str,
    /// Its columns.
    pub policies: Vec<&'static str>,
    pub rows: Vec<Row>,
    pub notes: Vec<String>,
}

impl Table {
    pub fn text(&self) -> String {
        let mut lines = vec![{
            let mut head = vec![self.title.to_owned()];
            head.extend(self.policies.iter().map(|name| (*name).to_owned()));
            head.extend(["must".to_owned(), "aim".to_owned()]);
            head
        }];
        lines.extend(self.rows.iter().map(|row| {
            let mut line = vec![row.figure.clone()];
            line.extend(
                row.found
                    .iter()
                    .map(|found| found.map_or_else(String::new, shown)),
            );
            line.extend([row.must.to_string(), row.aim.to_string()]);
            line
        }));
        let columns = lines[0].len();
        let width = |column: usize| {
            lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for line in &lines {
            let cells = line
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        out.extend(self.notes.iter().map(|note| format!("- {note}\n")));
        out
    }
}

fn shown(spread: Spread) -> String {
    let Spread {
        least,
        median,
        most,
    } = spread;
    if least == most {
        short(median)
    } else {
        format!("{} [{}, {}]", short(median), short(least), short(most))
    }
}

fn short(value: f64) -> String {
    match value.abs() {
        size if size.is_infinite() => "never".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
