//! An answer as a table for people: aligned columns, as wide as the terminal.

use std::io::Write;

use rusqlite::types::ValueRef;

use crate::answer::{Sink, text};
use crate::error::QueryError;

/// So many rows are shown; people read no more, and programs ask for CSV.
pub const ROWS_MAX: usize = 10_000;
/// Words are not made shorter than this.
const WIDTH_MIN: usize = 8;

pub struct Grid<W: Write> {
    out: W,
    /// Columns of the terminal; `None` where it is none.
    width: Option<usize>,
    columns: Vec<String>,
    rows: Vec<Vec<Entry>>,
    more: u64,
}

struct Entry {
    text: String,
    is_number: bool,
}

impl<W: Write> Grid<W> {
    pub fn new(out: W, width: Option<usize>) -> Grid<W> {
        Grid {
            out,
            width,
            columns: Vec::new(),
            rows: Vec::new(),
            more: 0,
        }
    }

    /// How wide each column is: as its widest entry; where that is too much for the terminal, the widest words are cut.
    fn widths(&self) -> Vec<usize> {
        let wide = |column: usize| {
            let cells = self.rows.iter().map(|row| length(&row[column].text));
            cells
                .chain([length(&self.columns[column])])
                .max()
                .unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.columns.len()).map(wide).collect();
        let Some(most) = self.width else {
            return widths;
        };
        loop {
            let whole: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            let can_shrink = |column: &usize| {
                let is_words = self.rows.iter().any(|row| !row[*column].is_number);
                is_words && widths[*column] > WIDTH_MIN
            };
            let widest = (0..widths.len())
                .filter(can_shrink)
                .max_by_key(|&one| widths[one]);
            match widest {
                Some(widest) if whole > most => {
                    widths[widest] -= (whole - most).min(widths[widest] - WIDTH_MIN).clamp(1, 4);
                }
                _ => return widths,
            }
        }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

impl<W: Write> Sink for Grid<W> {
    fn begin(&mut self, columns: &[String]) -> Result<(), QueryError> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), QueryError> {
        if self.rows.len() < ROWS_MAX {
            self.rows.push(values.iter().map(entry).collect());
        } else {
            self.more += 1;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), QueryError> {
        let widths = self.widths();
        let is_number: Vec<bool> = (0..widths.len())
            .map(|column| {
                let mut entries = self.rows.iter().map(|row| &row[column]);
                !self.rows.is_empty() && entries.all(|one| one.is_number || one.text.is_empty())
            })
            .collect();
        let header: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        writeln!(self.out, "{}", line(&header, &widths, &is_number))?;
        for row in &self.rows {
            let texts: Vec<&str> = row.iter().map(|one| one.text.as_str()).collect();
            writeln!(self.out, "{}", line(&texts, &widths, &is_number))?;
        }
        if self.more > 0 {
            writeln!(
                self.out,
                "and {} more rows, which --csv, --json and -o FILE.parquet give",
                self.more
            )?;
        }
        Ok(self.out.flush()?)
    }
}

fn line(texts: &[&str], widths: &[usize], is_number: &[bool]) -> String {
    let mut line = String::new();
    for (column, text) in texts.iter().enumerate() {
        let width = widths[column];
        let text = shortened(text, width);
        let sign = if column == 0 { "" } else { "  " };
        line += &match is_number[column] {
            true => format!("{sign}{text:>width$}"),
            false => format!("{sign}{text:width$}"),
        };
    }
    line.trim_end().to_owned()
}

fn shortened(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

fn entry(value: &ValueRef<'_>) -> Entry {
    let is_number = !matches!(value, ValueRef::Text(_) | ValueRef::Blob(_));
    // A user's name for something moves no cursor.
    let plain = |sign: char| if sign.is_control() { '·' } else { sign };
    let text = match value {
        ValueRef::Real(value) => real(*value),
        value => text(*value).chars().map(plain).collect(),
    };
    Entry { text, is_number }
}

/// Six digits that count; people who need all of them ask for CSV.
fn real(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let size = value.abs().log10().floor() as i32;
    if !(-5..15).contains(&size) {
        return format!("{value:.5e}");
    }
    let digits = usize::try_from(5 - size).unwrap_or(0);
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: Option<usize>, rows: &[[ValueRef<'_>; 3]]) -> String {
        let mut out = Vec::new();
        let mut grid = Grid::new(&mut out, width);
        let columns = ["program", "runs", "gain"].map(str::to_owned);
        grid.begin(&columns).unwrap();
        rows.iter().for_each(|row| grid.row(row).unwrap());
        grid.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_words_are_cut_to_the_terminal() {
        let rows = [
            [
                ValueRef::Text(b"a_solver_with_a_long_name"),
                ValueRef::Integer(12),
                ValueRef::Real(1.25),
            ],
            [
                ValueRef::Text(b"b\x1b[2J"),
                ValueRef::Integer(3),
                ValueRef::Null,
            ],
        ];
        assert_eq!(
            shown(None, &rows),
            "program                    runs  gain\na_solver_with_a_long_name    12  1.25\nb·[2J                         3\n"
        );
        assert_eq!(
            shown(Some(24), &rows),
            "program       runs  gain\na_solver_wi…    12  1.25\nb·[2J            3\n"
        );
        assert!(shown(Some(5), &rows).contains("a_solve…"), "no less");
        assert_eq!(shown(None, &[]), "program  runs  gain\n");
    }

    #[test]
    fn rows_beyond_the_most_are_counted() {
        let row = [ValueRef::Integer(1); 3];
        let text = shown(None, &vec![row; ROWS_MAX + 2]);
        assert_eq!(text.lines().count(), ROWS_MAX + 2);
        assert!(text.contains("and 2 more rows"));
    }

    #[test]
    fn six_digits_of_a_number_count() {
        let said = [
            0.0,
            1.0,
            1234.5678,
            0.000_123_456_789,
            1e-9,
            1e20,
            98_765_432.1,
        ]
        .map(real);
        let expected = [
            "0",
            "1",
            "1234.57",
            "0.000123457",
            "1.00000e-9",
            "1.00000e20",
            "98765432",
        ];
        assert_eq!(said, expected);
    }
}
