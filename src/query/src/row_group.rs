//! Row groups of Parquet files as parts of tables: what a table asks of a file that may lack some of its columns.

use std::sync::Arc;

use rusqlite::types::{Value, ValueRef};

use crate::decoded::{Decoded, Domain};
use crate::parquet_file::ParquetFile;
use crate::pruning::MinMax;
use crate::relation::{Fragment, Relation, Tuples};

/// What a file's rows have beside its own columns, and which of them count.
#[derive(Default)]
pub struct Role {
    /// Columns with the same value in all rows.
    pub constants: Vec<(&'static str, Value)>,
    pub counting: Option<Counting>,
}

/// Rows count whose value in a column is a place where `true` stands.
#[derive(Clone)]
pub struct Counting {
    pub column: &'static str,
    pub counts: Vec<bool>,
}

/// A row group as a part of a table.
struct RowGroup {
    file: Arc<ParquetFile>,
    group: usize,
    /// Where the table's columns come from.
    origins: Arc<Vec<Origin>>,
    counting: Option<(usize, Arc<Counting>)>,
}

/// Where the values of a table's column come from in one file.
#[derive(Clone, Debug)]
enum Origin {
    Column(usize),
    Constant(Value),
}

/// Puts a file behind a table's rows. Columns of earlier files that it lacks are unknown, and the other way round.
///
/// Shape:  the columns of the table grow by what is new.
pub fn add(relation: &mut Relation, file: ParquetFile, role: Role) {
    let mut origins: Vec<Origin> = Vec::new();
    let mut set = |place: usize, origin: Origin| {
        let missing = (place + 1).saturating_sub(origins.len());
        origins.extend(std::iter::repeat_n(Origin::Constant(Value::Null), missing));
        origins[place] = origin;
    };
    for (name, value) in role.constants {
        let domain = match value {
            Value::Integer(_) => Domain::Integer,
            Value::Real(_) => Domain::Real,
            _ => Domain::Text,
        };
        set(relation.place(name, domain), Origin::Constant(value));
    }
    for (column, name, domain) in file.columns() {
        set(relation.place(name, domain), Origin::Column(column));
    }
    let counting = role.counting.and_then(|counting| {
        let mut columns = file.columns();
        let (column, ..) = columns.find(|(_, name, _)| *name == counting.column)?;
        let all = counting.counts.iter().all(|counts| *counts);
        (!all).then(|| (column, Arc::new(counting)))
    });
    let (file, origins) = (Arc::new(file), Arc::new(origins));
    for group in 0..file.n_row_groups() {
        relation.fragments.push(Box::new(RowGroup {
            file: Arc::clone(&file),
            group,
            origins: Arc::clone(&origins),
            counting: counting.clone(),
        }));
    }
}

impl Fragment for RowGroup {
    fn n_rows(&self) -> u64 {
        self.file.n_rows_of(self.group)
    }

    fn bounds(&self, attribute: usize) -> Option<MinMax> {
        match self.origins.get(attribute)? {
            Origin::Column(column) => self.file.bounds(self.group, *column),
            Origin::Constant(value) => Some(MinMax::of(value)),
        }
    }

    fn read(&self, wanted: &[usize]) -> Result<Tuples, String> {
        let counting = self.counting.as_ref().map(|(column, _)| *column);
        let of_file = wanted
            .iter()
            .filter_map(|&attribute| match self.origins.get(attribute)? {
                Origin::Column(column) => Some(*column),
                Origin::Constant(_) => None,
            });
        let of_file: Vec<usize> = counting.into_iter().chain(of_file).collect();
        let mut read = self.file.read(self.group, &of_file)?.into_iter();
        let kept: Option<Vec<bool>> = self.counting.as_ref().and_then(|(_, counting)| {
            let places = read.next()?;
            let counts = |row: usize| match places.value(row) {
                ValueRef::Integer(place) => {
                    let place = usize::try_from(place).ok();
                    place.and_then(|place| counting.counts.get(place)) == Some(&true)
                }
                _ => false,
            };
            Some((0..self.n_rows() as usize).map(counts).collect())
        });
        let mut columns = Vec::new();
        for &attribute in wanted {
            let column = match self.origins.get(attribute) {
                Some(Origin::Column(_)) => read.next(),
                Some(Origin::Constant(value)) => Some(Decoded::Same(value.clone())),
                None => Some(Decoded::Same(Value::Null)),
            };
            let column = match &kept {
                Some(kept) => column.map(|column| column.only(kept)),
                None => column,
            };
            if columns.len() <= attribute {
                columns.resize_with(attribute + 1, || None);
            }
            columns[attribute] = column;
        }
        let rows = match &kept {
            Some(kept) => kept.iter().filter(|&&kept| kept).count(),
            None => self.n_rows() as usize,
        };
        Ok(Tuples { rows, columns })
    }
}
