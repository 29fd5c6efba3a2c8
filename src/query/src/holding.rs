//! Rows of a table that are kept while it is gone through again and again, as in a join.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use rusqlite::types::ValueRef;

use crate::relation::Tuples;

/// The most values that are kept; a larger table is read again each time.
pub const VALUES_MAX: u64 = 1 << 27;

/// The end of a chain.
pub const NONE: u32 = u32::MAX;

/// Rows, with an index by the columns that a query looks up.
pub struct Holding {
    /// The number of the table's part, and its rows.
    pub batches: Vec<(usize, Tuples)>,
    /// The number of each batch's first row.
    begins: Vec<u32>,
    index: Option<Index>,
}

/// Rows by the hash of some columns. Rows of equal hashes are a chain; whoever follows it compares.
struct Index {
    attributes: Vec<usize>,
    first: HashMap<u64, u32>,
    next: Vec<u32>,
}

impl Holding {
    /// Shape: `attributes` are those that a query looks up by equality; may be empty.
    pub fn new(batches: Vec<(usize, Tuples)>, attributes: Vec<usize>) -> Holding {
        let mut begins = Vec::with_capacity(batches.len());
        let mut rows = 0;
        for (_, tuples) in &batches {
            begins.push(rows);
            rows += tuples.rows as u32;
        }
        let index =
            (!attributes.is_empty()).then(|| Index::new(&batches, &begins, attributes, rows));
        Holding {
            batches,
            begins,
            index,
        }
    }

    /// The columns that can be looked up.
    pub fn attributes(&self) -> &[usize] {
        self.index.as_ref().map_or(&[], |index| &index.attributes)
    }

    /// The first row whose columns may have these values, or [`NONE`].
    pub fn first(&self, values: &[ValueRef<'_>]) -> u32 {
        let found = self.index.as_ref().and_then(|index| {
            let hash = hash(values.iter().copied())?;
            index.first.get(&hash).copied()
        });
        found.unwrap_or(NONE)
    }

    /// The next such row.
    pub fn next(&self, row: u32) -> u32 {
        self.index
            .as_ref()
            .map_or(NONE, |index| index.next[row as usize])
    }

    /// Which batch a row is in, and where.
    pub fn locate(&self, row: u32) -> (usize, usize) {
        let batch = self.begins.partition_point(|&begin| begin <= row) - 1;
        (batch, (row - self.begins[batch]) as usize)
    }
}

impl Index {
    fn new(
        batches: &[(usize, Tuples)],
        begins: &[u32],
        attributes: Vec<usize>,
        rows: u32,
    ) -> Index {
        let mut first = HashMap::new();
        let mut next = vec![NONE; rows as usize];
        // From behind, so that chains have the order of the rows.
        for ((_, tuples), begin) in batches.iter().zip(begins).rev() {
            for row in (0..tuples.rows).rev() {
                let value = |&attribute: &usize| match tuples.columns.get(attribute) {
                    Some(Some(column)) => column.value(row),
                    _ => ValueRef::Null,
                };
                if let Some(hash) = hash(attributes.iter().map(value)) {
                    let number = begin + row as u32;
                    next[number as usize] = first.insert(hash, number).unwrap_or(NONE);
                }
            }
        }
        Index {
            attributes,
            first,
            next,
        }
    }
}

/// Equal values have equal hashes, whole or real. `None` where one is unknown: that equals nothing.
fn hash<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    for value in values {
        match value {
            ValueRef::Null => return None,
            ValueRef::Integer(value) => value.hash(&mut hasher),
            ValueRef::Real(value) if value as i64 as f64 == value => {
                (value as i64).hash(&mut hasher);
            }
            ValueRef::Real(value) => value.to_bits().hash(&mut hasher),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.hash(&mut hasher),
        }
    }
    Some(hasher.finish())
}
