//! Parts of tables that come out of what the database's own code reads.

use rusqlite::types::Value;

use crate::decoded::{Decoded, Domain};
use crate::pruning::MinMax;
use crate::relation::{Attribute, Fragment, Relation, Tuples};

/// A column of rows of some type.
pub struct Field<T> {
    pub name: &'static str,
    pub domain: Domain,
    pub value: fn(&T) -> Value,
}

impl<T> Field<T> {
    pub const fn new(name: &'static str, domain: Domain, value: fn(&T) -> Value) -> Field<T> {
        Field {
            name,
            domain,
            value,
        }
    }
}

/// Rows that are made when a query wants them. They begin with columns that have one value in all of them, by which
/// the rows of other parts are left alone.
pub struct Made<T: 'static, F> {
    pub constants: Vec<Value>,
    pub fields: &'static [Field<T>],
    pub n_rows: u64,
    pub make: F,
}

/// The table with all columns, and no rows yet.
pub fn empty<T>(constants: &[(&str, Domain)], fields: &[Field<T>]) -> Relation {
    let constants = constants.iter().copied();
    let all = constants.chain(fields.iter().map(|field| (field.name, field.domain)));
    let attribute = |(name, domain): (&str, Domain)| Attribute {
        name: name.to_owned(),
        domain,
    };
    Relation {
        attributes: all.map(attribute).collect(),
        fragments: Vec::new(),
    }
}

impl<T, F> Fragment for Made<T, F>
where
    F: Fn() -> Result<Vec<T>, String> + Send + Sync,
{
    fn n_rows(&self) -> u64 {
        self.n_rows
    }

    fn bounds(&self, attribute: usize) -> Option<MinMax> {
        self.constants.get(attribute).map(MinMax::of)
    }

    fn read(&self, wanted: &[usize]) -> Result<Tuples, String> {
        let rows = (self.make)()?;
        let last = wanted.iter().max().map_or(0, |last| last + 1);
        let mut columns: Vec<Option<Decoded>> = (0..last).map(|_| None).collect();
        for &attribute in wanted {
            columns[attribute] = match self.constants.get(attribute) {
                Some(value) => Some(Decoded::Same(value.clone())),
                None => {
                    let field = &self.fields[attribute - self.constants.len()];
                    Some(Decoded::Mixed(rows.iter().map(field.value).collect()))
                }
            };
        }
        Ok(Tuples {
            rows: rows.len(),
            columns,
        })
    }
}

/// A whole number; above 2^63 - 1 negative, as in [`Decoded`].
pub fn whole(value: u64) -> Value {
    Value::Integer(value.cast_signed())
}

pub fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}
