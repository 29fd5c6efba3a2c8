//! `notes.json`: what a table cannot say, and what stands in it instead.

use std::collections::BTreeSet;

use serde::Serialize;

/// Everything that the reader of an exported table should know.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Notes {
    pub schema: u32,
    pub library: String,
    pub machine: String,
    pub generation: u64,
    pub format: String,
    /// Collectives with at least one rule that departs from the library's own choice.
    pub exported: BTreeSet<String>,
    /// Sentences that hold for the whole table.
    pub warnings: Vec<String>,
    /// Which shape's winner stands where the format has no place for shapes.
    pub shapes: Vec<ShapeNote>,
    /// Cells whose winner the format cannot hold, and what stands there.
    pub replaced: Vec<ReplacedNote>,
    /// Cells whose entry in the table was not measured: the learner as published predicts it.
    pub predicted: Vec<PredictedNote>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PredictedNote {
    pub cell: String,
    pub winner: String,
}

/// For communicators of `ranks` [first, last]: the shape whose winners the rules hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ShapeNote {
    pub collective: &'static str,
    pub ranks: (u64, Option<u64>),
    pub nodes: (u64, Option<u64>),
    pub ppn: (u64, Option<u64>),
    /// Shapes of as many ranks with other winners: these are not in the table.
    pub instead_of: Vec<OtherShape>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OtherShape {
    pub nodes: (u64, Option<u64>),
    pub ppn: (u64, Option<u64>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ReplacedNote {
    pub cell: String,
    pub winner: String,
    pub instead: String,
    pub reason: String,
}
