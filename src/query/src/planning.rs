//! What a query needs, as SQLite's own program for it says over tables without rows.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, Error, Result};

use crate::fill::declare;
use crate::table::{Opened, Table};

/// The columns that a query uses, by their places, and by table.
pub type Used = BTreeMap<String, BTreeSet<usize>>;

/// Declares the tables that a query names.
///
/// Errors: for what is wrong with the query.
pub fn prepare<'t>(
    connection: &Connection,
    sql: &str,
    table: impl Fn(&str) -> Option<(&'t Table, &'t Opened)>,
) -> Result<()> {
    loop {
        guard(connection)?;
        let Err(error) = connection.prepare(sql) else {
            return Ok(());
        };
        let missing = match &error {
            Error::SqlInputError { msg: message, .. } | Error::SqliteFailure(_, Some(message)) => {
                message.strip_prefix("no such table: ").unwrap_or_default()
            }
            _ => return Err(error),
        };
        let Some((table, opened)) = table(missing.rsplit('.').next().unwrap_or(missing)) else {
            return Err(error);
        };
        unguard(connection)?;
        if declare(connection, table, opened.columns.iter()).is_err() {
            // It is there by another name.
            return Err(error);
        }
    }
}

/// Lets only through what reads tables, and nothing that makes, changes or opens any.
pub fn guard(connection: &Connection) -> Result<()> {
    connection.authorizer(Some(|context: AuthContext<'_>| match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name } if function_name != "load_extension" => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }))
}

pub fn unguard(connection: &Connection) -> Result<()> {
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)
}

/// A step of a program, with its first two numbers: often a cursor, and the page where its table begins or a column.
type Step = (String, i64, i64);

/// The program for a query; none for a question about the program itself.
fn program(connection: &Connection, sql: &str) -> Result<Vec<Step>> {
    let Ok(mut program) = connection.prepare(&format!("EXPLAIN {sql}")) else {
        return Ok(Vec::new());
    };
    if program.parameter_count() > 0 {
        return Ok(Vec::new());
    }
    let steps = program.query_map([], |row| Ok((row.get(1)?, row.get(2)?, row.get(3)?)))?;
    steps.collect()
}

/// The cursors of a program that walk over a table.
fn cursors(steps: &[Step], root: i64) -> BTreeSet<i64> {
    let is_opened = |(step, _, page): &&Step| step == "OpenRead" && *page == root;
    steps.iter().filter(is_opened).map(|step| step.1).collect()
}

/// The tables and columns that a query reads. Columns of `USING` are among them, which an authorizer never sees.
pub fn used(connection: &Connection, sql: &str) -> Result<Used> {
    let steps = program(connection, sql)?;
    let mut tables =
        connection.prepare("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'")?;
    let tables = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut used = Used::new();
    for table in tables {
        let (name, root) = table?;
        let cursors = cursors(&steps, root);
        if !cursors.is_empty() {
            let reads = |(step, cursor, _): &&Step| step == "Column" && cursors.contains(cursor);
            let columns = steps
                .iter()
                .filter(reads)
                .filter_map(|step| usize::try_from(step.2).ok());
            used.insert(name, columns.collect());
        }
    }
    Ok(used)
}

/// Whether a query reaches a table only by an index of the rows in force: a database keeps all its generations, and
/// most queries want the last.
pub fn wants_in_force(connection: &Connection, sql: &str, table: &str) -> Result<bool> {
    let index = format!("CREATE INDEX of_today ON {table}(in_force) WHERE in_force = 1");
    unguard(connection)?;
    connection.execute_batch(&index)?;
    let steps = program(connection, sql)?;
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
    let cursors = cursors(
        &steps,
        connection.query_row(root, [table], |row| row.get(0))?,
    );
    connection.execute_batch("DROP INDEX of_today")?;
    // Steps that choose a row; without them a cursor stands where the index has led it.
    let chooses = |step: &str| {
        step.starts_with("Seek") || ["Rewind", "Last", "NotExists", "Count"].contains(&step)
    };
    let mut of_table = steps.iter().filter(|step| cursors.contains(&step.1));
    Ok(!of_table.any(|(step, ..)| chooses(step)))
}
