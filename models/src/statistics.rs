//! What a training found out about each cell, for people, exports and `status --json`.

use colltune_core::model::Source;
use colltune_core::space::Cell;
use serde::{Deserialize, Serialize};

/// One cell, in the layout of `status --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellStatistics {
    #[serde(flatten)]
    pub cell: Cell,
    pub source: Source,
    /// The variant to run when nothing is sampled.
    pub best: String,
    /// The default's time over the best variant's; 1 where `best` is `default`.
    pub gain: f64,
    pub variants: Vec<VariantStatistics>,
}

/// One variant in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantStatistics {
    pub name: String,
    /// Calls that were timed, each counted once however many ranks recorded it.
    pub samples: u64,
    pub probability: f64,
    pub time_ns: Interval,
}

/// A time with its 95 % confidence interval; predictions have no interval, the unknown no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub median: Option<f64>,
    pub lo: Option<f64>,
    pub hi: Option<f64>,
}

impl CellStatistics {
    pub fn samples(&self) -> u64 {
        self.variants.iter().map(|variant| variant.samples).sum()
    }

    pub fn variant(&self, name: &str) -> Option<&VariantStatistics> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}
