//! What the programs write: files into a folder, a table or JSON to standard output; and the arguments that they share.
#![forbid(unsafe_code)]
// A closed pipe would end a command in the middle of its work: `print` does not.
#![deny(clippy::print_stdout)]

pub mod verbosity;

pub mod progress;

pub mod failure;

pub mod globals;

pub mod parse;

pub mod manual;

pub mod program;

pub mod lines;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

/// Prints to standard output; a closed pipe is no error. Colours are kept where a terminal has them, or `--color` says so.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    no_reader_left(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
    .context("write to standard output")
}

fn no_reader_left(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints what is for programs.
pub fn json(found: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string(found).context("write JSON")? + "\n"))
}

/// Tells a line on the way to a result: where the reader is gone, the work goes on.
pub fn tell(line: impl std::fmt::Display) {
    let _ = writeln!(anstream::stdout().lock(), "{line}");
}

/// Whether `-` was named in the place of a file: standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Says what was written to a file; beside it, where it went to standard output.
pub fn told(path: &Path, text: &str) -> anyhow::Result<()> {
    match is_stdout(path) {
        true => {
            progress::tell(text.trim_end());
            Ok(())
        }
        false => print(text),
    }
}

/// Writes one file, which appears whole or not at all; `-` is standard output.
pub fn fill<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if !is_stdout(path) {
        let filled = colltune_files::publish::publish(path, |file| {
            write(file).map_err(Unwritten::Otherwise)
        });
        return filled.map_err(|unwritten| match unwritten {
            Unwritten::Otherwise(error) => error,
            Unwritten::Io(error) => {
                anyhow::Error::new(error).context(format!("write {}", path.display()))
            }
        });
    }
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let filled = write(&mut stdout)?;
    no_reader_left(stdout.flush()).context("write to standard output")?;
    Ok(filled)
}

/// Why a file was not written.
enum Unwritten {
    Io(io::Error),
    Otherwise(anyhow::Error),
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Unwritten {
        Unwritten::Io(error)
    }
}

/// Writes a text to one file, or to standard output for `-`.
pub fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    fill(path, |file| {
        let written = match is_stdout(path) {
            true => no_reader_left(file.write_all(text.as_bytes())),
            false => file.write_all(text.as_bytes()),
        };
        written.with_context(|| format!("write {}", path.display()))
    })?;
    progress::detail(format_args!(
        "wrote {} bytes to {}",
        text.len(),
        path.display()
    ));
    Ok(())
}

/// Writes `DIR/NAME`, and makes the folder first.
pub fn write(folder: &Path, name: &str, contents: &str) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| match folder.is_file() {
        true => format!(
            "write into {}: it is a file; name a folder",
            folder.display()
        ),
        false => format!("create {}", folder.display()),
    })?;
    let path = folder.join(name);
    save(&path, contents)?;
    Ok(path)
}

/// Rows as CSV with a header line.
pub fn csv<R: Serialize>(rows: &[R]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).context("write CSV")?;
    }
    let bytes = writer.into_inner().context("write CSV")?;
    String::from_utf8(bytes).context("write CSV")
}

/// Aligned columns under a header: the first to the left, the others to the right.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let lines = std::iter::once(header.iter().map(|cell| (*cell).to_owned()).collect());
    let lines: Vec<Vec<String>> = lines.chain(rows.iter().cloned()).collect();
    let to_the_left = |column: usize| column == 0;
    aligned(&lines, to_the_left)
}

/// Aligned columns, two blanks apart; which of them begin where they begin, and which end where they end.
pub fn aligned(lines: &[Vec<String>], to_the_left: impl Fn(usize) -> bool) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).add_rows(lines);
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if place == 0 { 0 } else { 2 }, 0));
        if !to_the_left(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_seen_of_them() {
        let rows = [["\u{3bc}s", "1.5"], ["longer", "10"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let text = table(&["name", "us"], &rows);
        assert_eq!(text, "name     us\n\u{3bc}s      1.5\nlonger   10\n");
        let lines = [["a", "b", ""], ["aa", "bbb", "c"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&lines, |_| true), "a   b\naa  bbb  c\n");
        assert_eq!(table(&["none"], &[]), "none\n");
    }
}
