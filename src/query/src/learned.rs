//! Columns of what a training published.

use colltune_core::model::Source;
use colltune_core::space::{Cell, Range};
use colltune_db::{DataKey, Database, Generation, Meta, Passed};
use colltune_models::statistics::{CellStatistics, VariantStatistics};
use rusqlite::types::Value;

use crate::decoded::Domain::{Boolean, Integer, Real, Text};
use crate::made::{Field, text, whole};

/// Reads one generation; 0 is what holds before any training.
///
/// Errors: a sentence that names the file.
pub fn read(db: &Database, key: &DataKey, number: u64) -> Result<Generation, String> {
    let read = match number {
        0 => Generation::load(db, key.clone()),
        number => Generation::load_number(db, key.clone(), number),
    };
    read.map_err(|error| format!("failed to {error}; it is left out"))
}

pub const GENERATIONS: &[Field<Meta>] = &[
    Field::new("created_unix_ms", Integer, |meta| {
        whole(meta.created_unix_ms)
    }),
    Field::new("colltune_version", Text, |meta| {
        text(&meta.colltune_version)
    }),
    Field::new("seed", Integer, |meta| whole(meta.seed)),
    Field::new("runs", Integer, |meta| whole(meta.runs)),
    Field::new("records", Integer, |meta| whole(meta.records)),
    Field::new("calls", Integer, |meta| whole(meta.calls)),
    Field::new("evidence", Integer, |meta| whole(meta.evidence)),
    Field::new("seconds", Real, |meta| Value::Real(meta.seconds)),
    Field::new("cells_measured", Integer, |meta| whole(meta.cells_measured)),
    Field::new("work_share", Real, |meta| Value::Real(meta.work)),
    Field::new("nothing_to_gain", Text, |meta| text(&meta.nothing_to_gain)),
    Field::new("learn_ms", Integer, |meta| whole(meta.learn_ms)),
];

/// A cell as a row.
pub struct OfCell(pub CellStatistics);

pub const CELLS: &[Field<OfCell>] = &[
    Field::new("collective", Text, |row| text(row.0.cell.collective.name())),
    Field::new("bytes_lo", Integer, |row| whole(row.0.cell.bytes.lo)),
    Field::new("bytes_hi", Integer, |row| end(row.0.cell.bytes)),
    Field::new("nodes_lo", Integer, |row| whole(row.0.cell.nodes.lo)),
    Field::new("nodes_hi", Integer, |row| end(row.0.cell.nodes)),
    Field::new("ppn_lo", Integer, |row| whole(row.0.cell.ppn.lo)),
    Field::new("ppn_hi", Integer, |row| end(row.0.cell.ppn)),
    Field::new("source", Text, |row| {
        text(match row.0.source {
            Source::Prior => "prior",
            Source::Measured => "measured",
            Source::Predicted => "predicted",
        })
    }),
    Field::new("best", Text, |row| text(&row.0.best)),
    Field::new("gain", Real, |row| Value::Real(row.0.gain)),
    Field::new("gain_lo", Real, |row| Value::Real(row.0.gain_lo)),
    Field::new("gain_hi", Real, |row| Value::Real(row.0.gain_hi)),
    Field::new("samples", Integer, |row| whole(row.0.samples())),
    Field::new("time_share", Real, |row| Value::Real(row.0.time_share)),
    Field::new("waiting_share", Real, |row| Value::Real(row.0.waiting)),
    Field::new("drift", Real, |row| Value::Real(row.0.drift)),
    Field::new("settled", Text, |row| text(&row.0.settled)),
];

/// A variant in a cell as a row.
pub struct OfVariant {
    cell: Cell,
    variant: VariantStatistics,
}

impl OfVariant {
    pub fn all(cell: &CellStatistics) -> Vec<OfVariant> {
        let of = |variant: &VariantStatistics| OfVariant {
            cell: cell.cell,
            variant: variant.clone(),
        };
        cell.variants.iter().map(of).collect()
    }
}

pub const VARIANTS: &[Field<OfVariant>] = &[
    Field::new("collective", Text, |row| text(row.cell.collective.name())),
    Field::new("bytes_lo", Integer, |row| whole(row.cell.bytes.lo)),
    Field::new("bytes_hi", Integer, |row| end(row.cell.bytes)),
    Field::new("nodes_lo", Integer, |row| whole(row.cell.nodes.lo)),
    Field::new("nodes_hi", Integer, |row| end(row.cell.nodes)),
    Field::new("ppn_lo", Integer, |row| whole(row.cell.ppn.lo)),
    Field::new("ppn_hi", Integer, |row| end(row.cell.ppn)),
    Field::new("variant", Text, |row| text(&row.variant.name)),
    Field::new("probability", Real, |row| {
        Value::Real(row.variant.probability)
    }),
    Field::new("samples", Integer, |row| whole(row.variant.samples)),
    Field::new("time_ns", Real, |row| row.variant.time_ns.median.into()),
    Field::new("time_lo_ns", Real, |row| row.variant.time_ns.lo.into()),
    Field::new("time_hi_ns", Real, |row| row.variant.time_ns.hi.into()),
    Field::new("gain", Real, |row| {
        row.variant.contrast.map(|one| one.gain).into()
    }),
    Field::new("gain_lo", Real, |row| {
        row.variant.contrast.map(|one| one.lo).into()
    }),
    Field::new("gain_hi", Real, |row| {
        row.variant.contrast.map(|one| one.hi).into()
    }),
    Field::new("replaces_default", Boolean, |row| {
        Value::Integer(row.variant.replaces_default.into())
    }),
    Field::new("reason", Text, |row| text(&row.variant.reason)),
];

pub const PASSED: &[Field<Passed>] = &[
    Field::new("collective", Text, |row| text(row.collective.name())),
    Field::new("manner", Text, |row| text(&row.manner)),
    Field::new("bytes_lo", Integer, |row| whole(row.bytes[0])),
    Field::new("bytes_hi", Integer, |row| whole(row.bytes[1])),
    Field::new("nodes", Integer, |row| Value::Integer(row.nodes.into())),
    Field::new("ppn", Integer, |row| Value::Integer(row.ppn.into())),
    Field::new("records", Integer, |row| whole(row.records)),
    Field::new("median_ns", Integer, |row| whole(row.median_ns)),
];

fn end(range: Range) -> Value {
    range.hi.map_or(Value::Null, whole)
}
