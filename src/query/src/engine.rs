//! SQLite over the tables, in memory: what a query uses is read first, and nothing can be changed.

use std::cell::RefCell;
use std::collections::BTreeSet;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error};

use crate::answer::Sink;
use crate::complaint::explain;
use crate::error::QueryError;
use crate::fill::{declare, fill};
use crate::functions;
use crate::planning::{guard, prepare, unguard, used, wants_in_force};
use crate::table::{Opened, Table};

/// Tables that can be asked.
pub struct Engine {
    pub tables: Vec<Table>,
    pub(crate) warnings: RefCell<Vec<String>>,
}

impl Engine {
    pub(crate) fn new(tables: Vec<Table>) -> Engine {
        let warnings = RefCell::default();
        Engine { tables, warnings }
    }

    /// Bounds the memory that SQLite takes in this process; it can only be lowered.
    ///
    /// Errors: `Engine`.
    pub fn limit_memory(bytes: u64) -> Result<(), QueryError> {
        let sql = format!("PRAGMA hard_heap_limit = {bytes}");
        let limit = || Connection::open_in_memory()?.execute_batch(&sql);
        limit().map_err(|error| QueryError::Engine(error.to_string()))
    }

    /// What has been left out since this was last asked; each sentence once.
    pub fn take_warnings(&self) -> Vec<String> {
        let mut said = BTreeSet::new();
        let mut warnings = self.warnings.take();
        warnings.retain(|one| said.insert(one.clone()));
        warnings
    }

    /// Answers a query.
    ///
    /// Errors: `Sql` for what is wrong with it; `Memory`; those of the sink.
    pub fn ask(&self, sql: &str, answer: &mut dyn Sink) -> Result<(), QueryError> {
        let complain = |error: Error| explain(error, sql, &self.tables);
        let connection = self.filled(sql).map_err(complain)?;
        let mut statement = connection.prepare(sql).map_err(complain)?;
        let names = statement.column_names().into_iter().map(str::to_owned);
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            return Err(complain(Error::InvalidQuery));
        }
        if statement.parameter_count() > 0 {
            let problem = "answer a query with parameters: put their values in their places";
            return Err(QueryError::Sql(problem.to_owned()));
        }
        answer.begin(&names)?;
        let mut rows = statement.query([]).map_err(complain)?;
        while let Some(row) = rows.next().map_err(complain)? {
            let values = (0..names.len()).map(|column| row.get_ref(column));
            let values: rusqlite::Result<Vec<ValueRef<'_>>> = values.collect();
            answer.row(&values.map_err(complain)?)?;
        }
        answer.end()
    }

    pub(crate) fn opened<'t>(&self, table: &'t Table) -> &'t Opened {
        table.opened(&mut self.warnings.borrow_mut())
    }

    /// A connection whose tables have what a query uses.
    fn filled(&self, sql: &str) -> rusqlite::Result<Connection> {
        let connection = Connection::open_in_memory()?;
        // What is sorted stays in memory, too: a query leaves nothing behind.
        connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA journal_mode = OFF;")?;
        functions::register(&connection)?;
        let named = |name: &str| {
            let mut tables = self.tables.iter();
            let table = tables.find(|table| table.name.eq_ignore_ascii_case(name))?;
            Some((table, self.opened(table)))
        };
        prepare(&connection, sql, named)?;
        let asked = used(&connection, sql)?;
        let mut needed = asked.clone();
        let mut inserts = Vec::new();
        for (name, columns) in &asked {
            let of_query = named(name).and_then(|(_, opened)| opened.query.as_ref());
            if let Some(query) = of_query {
                let select = query.select(columns);
                prepare(&connection, &select, named)?;
                for (source, columns) in used(&connection, &select)? {
                    needed.entry(source).or_default().extend(columns);
                }
                inserts.push(format!("INSERT INTO {name} {select}"));
            }
        }
        for (name, columns) in &needed {
            if let Some((table, opened @ Opened { query: None, .. })) = named(name) {
                let has_old = opened.parts.iter().any(|part| !part.is_in_force());
                let in_force = has_old && wants_in_force(&connection, sql, name)?;
                unguard(&connection)?;
                if !asked.contains_key(name) {
                    // Our own query names its columns, so that it is not in need of the others.
                    connection.execute_batch(&format!("DROP TABLE {name}"))?;
                    declare(
                        &connection,
                        table,
                        columns.iter().map(|place| &opened.columns[*place]),
                    )?;
                }
                let problems = fill(&connection, table, opened, columns, in_force)?;
                self.warnings.borrow_mut().extend(problems);
            }
        }
        for insert in inserts {
            connection.execute_batch(&insert)?;
        }
        for source in needed.keys().filter(|name| !asked.contains_key(*name)) {
            connection.execute_batch(&format!("DROP TABLE {source}"))?;
        }
        guard(&connection)?;
        Ok(connection)
    }
}
