//! Tables as SQLite asks for them: it says which columns it needs and which conditions rows must meet, and gets row
//! after row.
//!
//! A part of a table whose least and greatest values rule out a condition is not read, and of the others only the
//! columns that are needed are. SQLite checks every condition itself, so what is said here need not be exact. Where it
//! comes again with other values, as the inner side of a join does, the rows are kept with an index.
#![expect(
    unsafe_code,
    reason = "what SQLite calls is declared as such by unsafe traits"
)]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{
    Context, Filters, IndexInfo, Module, VTab, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use crate::holding::{Holding, NONE, VALUES_MAX};
use crate::plan::{Plan, operator};
use crate::pruning::{Constraint, Operator, owned};
use crate::relation::{Journal, Named, Relation, Tuples};

/// Makes a table known to a connection by its name.
pub fn register(connection: &Connection, table: Shared) -> Result<()> {
    const MODULE: Module<'_, Scan> = Module::eponymous_only_module();
    let name = table.named.name.clone();
    connection.create_module(name.as_str(), &MODULE, Some(table))
}

/// A table, and where it is noted what could not be read.
#[derive(Clone)]
pub struct Shared {
    pub named: Arc<Named>,
    pub journal: Arc<Journal>,
}

impl Shared {
    fn relation(&self) -> &Relation {
        self.named.relation(&self.journal)
    }
}

/// A table of a connection.
#[repr(C)]
struct Scan {
    base: sqlite3_vtab,
    table: Shared,
}

// SAFETY: the struct is `repr(C)` and begins with `sqlite3_vtab`, which is all that the trait asks for.
unsafe impl VTab<'_> for Scan {
    type Aux = Shared;
    type Cursor = Walk;

    fn connect(
        _: &mut VTabConnection,
        aux: Option<&Shared>,
        _module_name: &[u8],
        _database_name: &[u8],
        _table_name: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Scan)> {
        let table = aux.ok_or_else(|| Error::ModuleError("there is no such table".to_owned()))?;
        let columns = table.relation().attributes.iter();
        let quoted = |name: &str| name.replace('"', "\"\"");
        let columns =
            columns.map(|one| format!("\"{}\" {}", quoted(&one.name), one.domain.affinity()));
        let columns: Vec<String> = columns.collect();
        let declaration = CString::new(format!("CREATE TABLE x({})", columns.join(", ")))?;
        let base = sqlite3_vtab::default();
        let table = table.clone();
        Ok((Cow::Owned(declaration), Scan { base, table }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut plan = Plan {
            columns: info.col_used(),
            conditions: Vec::new(),
        };
        let mut usages = Vec::new();
        for (place, constraint) in info.constraints().enumerate() {
            let Ok(attribute) = usize::try_from(constraint.column()) else {
                continue;
            };
            if let Some(operator) = operator(&constraint.operator())
                && constraint.is_usable()
            {
                usages.push((place, attribute, operator));
            }
        }
        for (place, attribute, operator) in usages {
            // The least and greatest of words are those of their bytes.
            if info.collation(place)? != "BINARY" {
                continue;
            }
            let one_of = operator == Operator::Equal && info.set_in_constraint(place, true)?;
            let operator = if one_of { Operator::OneOf } else { operator };
            plan.conditions.push((attribute, operator));
            let argument = plan.conditions.len() as c_int;
            info.constraint_usage(place).set_argv_index(argument);
        }
        let rows = self.table.relation().n_rows() as f64;
        let found = plan.rows_found(rows);
        info.set_estimated_rows(found as i64);
        let is_looked_up = plan.looked_up().next().is_some();
        info.set_estimated_cost(if is_looked_up {
            found + 5.0
        } else {
            rows + 10.0
        });
        info.set_idx_str(&plan.to_text());
        Ok(true)
    }

    fn open(&mut self) -> Result<Walk> {
        Ok(Walk::new(self.table.clone()))
    }
}

/// A way through a table's rows.
#[repr(C)]
struct Walk {
    base: sqlite3_vtab_cursor,
    table: Shared,
    /// How often it has begun.
    begun: u64,
    wanted: Vec<usize>,
    constraints: Vec<Constraint>,
    way: Way,
    holding: Option<Holding>,
    /// The part that has been read, and its number.
    tuples: Tuples,
    part: usize,
    row: usize,
}

/// Where the rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Out of the table, part by part; the number is that of the next.
    Reading(usize),
    /// Batch by batch out of what is kept.
    Kept(usize),
    /// Row by row along a chain, of which this is the present row.
    Chain(u32),
    End,
}

impl Walk {
    fn new(table: Shared) -> Walk {
        Walk {
            base: sqlite3_vtab_cursor::default(),
            table,
            begun: 0,
            wanted: Vec::new(),
            constraints: Vec::new(),
            way: Way::End,
            holding: None,
            tuples: Tuples::default(),
            part: 0,
            row: 0,
        }
    }

    /// Whether a part may have such rows; what is not read is counted.
    fn may_hold(&self, part: usize) -> bool {
        let fragment = &self.table.relation().fragments[part];
        let may = self.constraints.iter().all(|constraint| {
            let bounds = fragment.bounds(constraint.attribute);
            bounds.is_none_or(|bounds| constraint.may_hold(&bounds))
        });
        if !may {
            Journal::count(&self.table.journal.fragments_left_out, 1);
        }
        may
    }

    fn read(&self, part: usize) -> Option<Tuples> {
        let journal = &self.table.journal;
        match self.table.relation().fragments[part].read(&self.wanted) {
            Ok(tuples) => {
                Journal::count(&journal.fragments_read, 1);
                Journal::count(&journal.columns_read, self.wanted.len());
                Some(tuples)
            }
            Err(problem) => {
                journal.warn(problem);
                None
            }
        }
    }

    /// Reads all rows, to be kept; `None` where they are too many.
    fn keep(&self, plan: &Plan) -> Option<Holding> {
        let relation = self.table.relation();
        let rows = relation.n_rows();
        let values = rows.saturating_mul(self.wanted.len().max(1) as u64);
        if values > VALUES_MAX || rows >= u64::from(NONE) {
            return None;
        }
        let parts = 0..relation.fragments.len();
        let batches = parts.filter_map(|part| Some((part, self.read(part)?)));
        let batches = batches.filter(|(_, tuples)| tuples.rows > 0);
        Some(Holding::new(batches.collect(), plan.looked_up().collect()))
    }

    /// Where rows that are kept begin for these conditions.
    fn begin(&self, holding: &Holding) -> Way {
        let mut values = Vec::new();
        for &attribute in holding.attributes() {
            let equal =
                |one: &&Constraint| (one.attribute, one.operator) == (attribute, Operator::Equal);
            let value = self.constraints.iter().find(equal);
            let Some(value) = value.and_then(|one| one.values.first()) else {
                return Way::Kept(0);
            };
            let value = ValueRef::from(value);
            let is_text = matches!(value, ValueRef::Text(_));
            let domain = self.table.relation().attributes[attribute].domain;
            // SQLite may make a number of text, or text of a number, before it compares.
            if is_text != (domain.affinity() == "TEXT") && value != ValueRef::Null {
                return Way::Kept(0);
            }
            values.push(value);
        }
        match values.is_empty() {
            true => Way::Kept(0),
            false => match holding.first(&values) {
                NONE => Way::End,
                first => Way::Chain(first),
            },
        }
    }

    /// Goes to the first row of what comes next.
    fn turn(&mut self) {
        self.row = 0;
        loop {
            match self.way {
                Way::Reading(part) if part < self.table.relation().fragments.len() => {
                    self.way = Way::Reading(part + 1);
                    if !self.may_hold(part) {
                        continue;
                    }
                    self.part = part;
                    self.tuples = self.read(part).unwrap_or_default();
                    if self.tuples.rows > 0 {
                        return;
                    }
                }
                Way::Kept(batch) => {
                    let batches = self.holding.as_ref().map_or(0, |held| held.batches.len());
                    if batch < batches {
                        return;
                    }
                    self.way = Way::End;
                }
                Way::Chain(NONE) | Way::Reading(_) => self.way = Way::End,
                Way::Chain(_) => return,
                Way::End => {
                    self.tuples = Tuples::default();
                    return;
                }
            }
        }
    }

    /// The present row: the number of its part, the rows that were read of that, and which of them.
    fn present(&self) -> (usize, &Tuples, usize) {
        let kept = match (self.way, &self.holding) {
            (Way::Kept(batch), Some(holding)) => Some((holding, (batch, self.row))),
            (Way::Chain(row), Some(holding)) => Some((holding, holding.locate(row))),
            _ => None,
        };
        match kept {
            Some((holding, (batch, row))) => {
                let (part, tuples) = &holding.batches[batch];
                (*part, tuples, row)
            }
            None => (self.part, &self.tuples, self.row),
        }
    }
}

// SAFETY: the struct is `repr(C)` and begins with `sqlite3_vtab_cursor`, which is all that the trait asks for.
unsafe impl VTabCursor for Walk {
    fn filter(&mut self, _: c_int, plan: Option<&str>, arguments: &Filters<'_>) -> Result<()> {
        let plan = plan.and_then(Plan::from_text);
        let plan =
            plan.ok_or_else(|| Error::ModuleError("a plan was not understood".to_owned()))?;
        let n_attributes = self.table.relation().attributes.len();
        let is_wanted =
            |&one: &usize| plan.wants(one) || plan.looked_up().any(|other| other == one);
        self.wanted = (0..n_attributes).filter(is_wanted).collect();
        self.constraints.clear();
        for (place, &(attribute, operator)) in plan.conditions.iter().enumerate() {
            let values = match operator {
                Operator::OneOf => all_of(arguments, place)?,
                _ => vec![arguments.get::<rusqlite::types::Value>(place)?],
            };
            self.constraints.push(Constraint {
                attribute,
                operator,
                values,
            });
        }
        self.begun += 1;
        if self.begun == 2 {
            self.holding = self.keep(&plan);
        }
        self.way = match &self.holding {
            Some(holding) => self.begin(holding),
            None => Way::Reading(0),
        };
        self.turn();
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.row += 1;
        match self.way {
            Way::Reading(_) if self.row < self.tuples.rows => return Ok(()),
            Way::Kept(batch) => {
                let rows = self.present().1.rows;
                if self.row < rows {
                    return Ok(());
                }
                self.way = Way::Kept(batch + 1);
            }
            Way::Chain(row) => {
                let next = self.holding.as_ref().map_or(NONE, |held| held.next(row));
                self.way = Way::Chain(next);
            }
            Way::Reading(_) | Way::End => {}
        }
        self.turn();
        Ok(())
    }

    #[inline]
    fn eof(&self) -> bool {
        self.way == Way::End
    }

    #[inline]
    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let (_, tuples, row) = self.present();
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        let value = match tuples.columns.get(column) {
            Some(Some(values)) => values.value(row),
            _ => ValueRef::Null,
        };
        context.set_result(&ToSqlOutput::Borrowed(value))
    }

    /// The same however the row is reached.
    fn rowid(&self) -> Result<i64> {
        let (part, _, row) = self.present();
        Ok(((part as i64) << 32) | row as i64)
    }
}

fn all_of(arguments: &Filters<'_>, place: usize) -> Result<Vec<rusqlite::types::Value>> {
    use rusqlite::fallible_iterator::FallibleIterator;
    arguments
        .in_values(place)?
        .map(|value| Ok(owned(value)))
        .collect()
}
