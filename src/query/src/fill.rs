//! Tables of a connection, and the rows that are put into them.

use std::collections::BTreeSet;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Result, Statement};

use crate::table::{Holds, Opened, Part, Table, Trouble};

/// Makes a table without rows.
pub fn declare<'c>(
    connection: &Connection,
    table: &Table,
    columns: impl Iterator<Item = &'c (String, Holds)>,
) -> Result<()> {
    let columns = columns.map(|(name, holds)| format!("{} {holds}", quoted(name)));
    let columns = columns.collect::<Vec<_>>().join(", ");
    connection.execute_batch(&format!("CREATE TABLE {} ({columns})", quoted(&table.name)))
}

/// A file may name a column as it likes, and itself after a word of SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Puts the columns that are used into a table, of all rows or of those in force; returns what had to be left out.
pub fn fill(
    connection: &Connection,
    table: &Table,
    opened: &Opened,
    used: &BTreeSet<usize>,
    in_force: bool,
) -> Result<Vec<String>> {
    let name = quoted(&table.name);
    let columns: Vec<&str> = used
        .iter()
        .map(|place| opened.columns[*place].0.as_str())
        .collect();
    let into = columns
        .iter()
        .map(|name| quoted(name))
        .collect::<Vec<_>>()
        .join(", ");
    let values = vec!["?"; columns.len()].join(", ");
    let mut insert = connection.prepare(&match columns.is_empty() {
        true => format!("INSERT INTO {name} DEFAULT VALUES"),
        false => format!("INSERT INTO {name} ({into}) VALUES ({values})"),
    })?;
    let mut problems = Vec::new();
    connection.execute_batch("BEGIN")?;
    for part in opened
        .parts
        .iter()
        .filter(|part| !in_force || part.is_in_force())
    {
        let n_rows = format!("SELECT coalesce(max(rowid), 0) FROM {name}");
        let n_rows: i64 = connection.query_row(&n_rows, [], |row| row.get(0))?;
        match read(part, &columns, &mut insert) {
            Ok(()) => {}
            Err(Trouble::Unreadable(problem)) => {
                problems.push(problem);
                connection.execute(&format!("DELETE FROM {name} WHERE rowid > ?"), [n_rows])?;
            }
            Err(Trouble::Engine(error)) => return Err(error),
        }
    }
    connection.execute_batch("COMMIT")?;
    Ok(problems)
}

fn read(
    part: &Part,
    columns: &[&str],
    insert: &mut Statement<'_>,
) -> std::result::Result<(), Trouble> {
    let (mut wanted, mut places) = (Vec::new(), Vec::new());
    for (place, name) in columns.iter().enumerate() {
        let constant = part.constants.iter().find(|(other, _)| other == name);
        match constant {
            Some((_, value)) => insert.raw_bind_parameter(place + 1, value)?,
            None => {
                wanted.push(*name);
                places.push(place + 1);
            }
        }
    }
    // SQLite keeps what is bound, so that values like those of the row before are not bound again.
    let mut bound: Vec<Option<Value>> = vec![None; places.len()];
    part.rows.read(&wanted, &mut |values| {
        for ((place, value), bound) in places.iter().zip(values).zip(&mut bound) {
            if bound.as_ref().map(ValueRef::from) != Some(*value) {
                insert.raw_bind_parameter(*place, ToSqlOutput::Borrowed(*value))?;
                *bound = Value::try_from(*value).ok();
            }
        }
        insert.raw_execute().map(|_| ())
    })
}
