//! SQLite over the tables: nothing of it lies on disk, and nothing can be changed.

use std::sync::Arc;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Statement};

use crate::complaint::explain;
use crate::error::QueryError;
use crate::relation::{Journal, Named};
use crate::scan::{Shared, register};
use crate::{functions, views};

/// Tables that can be asked.
pub struct Engine {
    connection: Connection,
    pub tables: Vec<Arc<Named>>,
    pub journal: Arc<Journal>,
}

/// What takes an answer.
pub trait Sink {
    /// Errors: `Output`, as all of them.
    fn begin(&mut self, columns: &[String]) -> Result<(), QueryError>;
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), QueryError>;
    fn end(&mut self) -> Result<(), QueryError>;
}

impl Engine {
    /// Errors: `Engine` where SQLite cannot be had, such as for want of memory.
    pub fn new(tables: Vec<Named>) -> Result<Engine, QueryError> {
        let tables: Vec<Arc<Named>> = tables.into_iter().map(Arc::new).collect();
        let journal = Arc::new(Journal::default());
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open_in_memory()?;
            // What is sorted stays in memory: a query leaves nothing behind.
            connection.execute_batch("PRAGMA temp_store = MEMORY;")?;
            functions::register(&connection)?;
            for named in &tables {
                let (named, journal) = (Arc::clone(named), Arc::clone(&journal));
                register(&connection, Shared { named, journal })?;
            }
            for view in views::of(&tables) {
                connection.execute_batch(view)?;
            }
            connection.authorizer(Some(reads_only))?;
            Ok(connection)
        };
        let connection = open().map_err(|error| QueryError::Engine(error.to_string()))?;
        Ok(Engine {
            connection,
            tables,
            journal,
        })
    }

    /// Answers a query.
    ///
    /// Errors: `Sql` for what is wrong with it; those of the sink.
    pub fn ask(&self, sql: &str, answer: &mut dyn Sink) -> Result<(), QueryError> {
        let complain = |error: Error| self.complain(error, sql);
        let mut statement = self.connection.prepare(sql).map_err(complain)?;
        let names = names(&statement);
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

    /// The columns of a table or view.
    ///
    /// Errors: as [`Engine::ask`].
    pub fn columns(&self, table: &str) -> Result<Vec<String>, QueryError> {
        let sql = format!("SELECT * FROM {table}");
        let statement = self.connection.prepare(&sql);
        let statement = statement.map_err(|error| self.complain(error, &sql))?;
        Ok(names(&statement))
    }

    fn complain(&self, error: Error, sql: &str) -> QueryError {
        let tables: Vec<&Named> = self.tables.iter().map(AsRef::as_ref).collect();
        explain(error, sql, &tables, &self.journal)
    }
}

fn names(statement: &Statement<'_>) -> Vec<String> {
    let names = statement.column_names();
    names.into_iter().map(str::to_owned).collect()
}

/// Lets through what reads tables, and nothing that makes, changes or opens any.
fn reads_only(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name } if function_name != "load_extension" => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}
