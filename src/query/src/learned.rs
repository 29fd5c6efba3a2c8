//! Columns of what a training published.

use colltune_core::model::Source;
use colltune_core::space::{Cell, Range};
use colltune_db::{DataKey, Database, Generation, Meta, Passed};
use colltune_models::statistics::{CellStatistics, VariantStatistics};
use rusqlite::types::Value;

use crate::table::{BOOLEAN, Field, INTEGER, REAL, TEXT, text, whole};

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
    Field("created_unix_ms", INTEGER, |meta| {
        whole(meta.created_unix_ms)
    }),
    Field("colltune_version", TEXT, |meta| {
        text(&meta.colltune_version)
    }),
    Field("seed", INTEGER, |meta| whole(meta.seed)),
    Field("runs", INTEGER, |meta| whole(meta.runs)),
    Field("records", INTEGER, |meta| whole(meta.records)),
    Field("calls", INTEGER, |meta| whole(meta.calls)),
    Field("evidence", INTEGER, |meta| whole(meta.evidence)),
    Field("seconds", REAL, |meta| Value::Real(meta.seconds)),
    Field("cells_measured", INTEGER, |meta| whole(meta.cells_measured)),
    Field("work_share", REAL, |meta| Value::Real(meta.work)),
    Field("nothing_to_gain", TEXT, |meta| text(&meta.nothing_to_gain)),
    Field("learn_ms", INTEGER, |meta| whole(meta.learn_ms)),
];

/// A cell as a row.
pub struct OfCell(pub CellStatistics);

pub const CELLS: &[Field<OfCell>] = &[
    Field("collective", TEXT, |row| text(row.0.cell.collective.name())),
    Field("bytes_lo", INTEGER, |row| whole(row.0.cell.bytes.lo)),
    Field("bytes_hi", INTEGER, |row| end(row.0.cell.bytes)),
    Field("nodes_lo", INTEGER, |row| whole(row.0.cell.nodes.lo)),
    Field("nodes_hi", INTEGER, |row| end(row.0.cell.nodes)),
    Field("ppn_lo", INTEGER, |row| whole(row.0.cell.ppn.lo)),
    Field("ppn_hi", INTEGER, |row| end(row.0.cell.ppn)),
    Field("source", TEXT, |row| {
        text(match row.0.source {
            Source::Prior => "prior",
            Source::Measured => "measured",
            Source::Predicted => "predicted",
        })
    }),
    Field("best", TEXT, |row| text(&row.0.best)),
    Field("gain", REAL, |row| Value::Real(row.0.gain)),
    Field("gain_lo", REAL, |row| Value::Real(row.0.gain_lo)),
    Field("gain_hi", REAL, |row| Value::Real(row.0.gain_hi)),
    Field("samples", INTEGER, |row| whole(row.0.samples())),
    Field("time_share", REAL, |row| Value::Real(row.0.time_share)),
    Field("waiting_share", REAL, |row| Value::Real(row.0.waiting)),
    Field("drift", REAL, |row| Value::Real(row.0.drift)),
    Field("settled", TEXT, |row| text(&row.0.settled)),
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
    Field("collective", TEXT, |row| text(row.cell.collective.name())),
    Field("bytes_lo", INTEGER, |row| whole(row.cell.bytes.lo)),
    Field("bytes_hi", INTEGER, |row| end(row.cell.bytes)),
    Field("nodes_lo", INTEGER, |row| whole(row.cell.nodes.lo)),
    Field("nodes_hi", INTEGER, |row| end(row.cell.nodes)),
    Field("ppn_lo", INTEGER, |row| whole(row.cell.ppn.lo)),
    Field("ppn_hi", INTEGER, |row| end(row.cell.ppn)),
    Field("variant", TEXT, |row| text(&row.variant.name)),
    Field("probability", REAL, |row| {
        Value::Real(row.variant.probability)
    }),
    Field("samples", INTEGER, |row| whole(row.variant.samples)),
    Field("time_ns", REAL, |row| row.variant.time_ns.median.into()),
    Field("time_lo_ns", REAL, |row| row.variant.time_ns.lo.into()),
    Field("time_hi_ns", REAL, |row| row.variant.time_ns.hi.into()),
    Field("gain", REAL, |row| {
        row.variant.contrast.map(|one| one.gain).into()
    }),
    Field("gain_lo", REAL, |row| {
        row.variant.contrast.map(|one| one.lo).into()
    }),
    Field("gain_hi", REAL, |row| {
        row.variant.contrast.map(|one| one.hi).into()
    }),
    Field("replaces_default", BOOLEAN, |row| {
        Value::Integer(row.variant.replaces_default.into())
    }),
    Field("reason", TEXT, |row| text(&row.variant.reason)),
];

pub const PASSED: &[Field<Passed>] = &[
    Field("collective", TEXT, |row| text(row.collective.name())),
    Field("manner", TEXT, |row| text(&row.manner)),
    Field("bytes_lo", INTEGER, |row| whole(row.bytes[0])),
    Field("bytes_hi", INTEGER, |row| whole(row.bytes[1])),
    Field("nodes", INTEGER, |row| Value::Integer(row.nodes.into())),
    Field("ppn", INTEGER, |row| Value::Integer(row.ppn.into())),
    Field("records", INTEGER, |row| whole(row.records)),
    Field("median_ns", INTEGER, |row| whole(row.median_ns)),
];

fn end(range: Range) -> Value {
    range.hi.map_or(Value::Null, whole)
}
