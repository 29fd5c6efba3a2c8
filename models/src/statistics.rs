//! What a training found out about each cell, for people, exports and `status --json`.

use colltune_core::catalogue::{self, Steering, Variant};
use colltune_core::library::Library;
use colltune_core::model::Source;
use colltune_core::space::Cell;
use colltune_core::variant::DEFAULT;
use serde::{Deserialize, Serialize};

/// One cell, in the layout of `status --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellStatistics {
    #[serde(flatten)]
    pub cell: Cell,
    pub source: Source,
    /// The variant to run when nothing is sampled.
    pub best: String,
    /// The default's time over the best variant's; 1 where `best` is `default`. Shrunk: what is the largest of many
    /// noisy numbers is not told as it came out.
    pub gain: f64,
    /// Its 95 % interval.
    #[serde(default = "one")]
    pub gain_lo: f64,
    #[serde(default = "one")]
    pub gain_hi: f64,
    /// Share of the time in all recorded collectives, each counted by all of its calls that runs account for.
    #[serde(default)]
    pub time_share: f64,
    /// Share of the time that is waiting for late ranks.
    #[serde(default)]
    pub waiting: f64,
    /// Octaves by which the level of its newest runs differs from the older ones', where that is more than noise.
    #[serde(default)]
    pub drift: f64,
    /// Why exploring has ended; empty while it goes on.
    #[serde(default)]
    pub settled: String,
    pub variants: Vec<VariantStatistics>,
}

/// One variant in one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantStatistics {
    pub name: String,
    /// Calls that were timed, each counted once however many ranks recorded it.
    pub samples: u64,
    pub probability: f64,
    pub time_ns: Interval,
    /// The default's time over this one's; `None` where nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrast: Option<Contrast>,
    /// Whether it may stand in for the default: the one rule that exploiting, status and exports share.
    #[serde(default)]
    pub replaces_default: bool,
    /// Why, or why not.
    #[serde(default)]
    pub reason: String,
}

/// A gain with its 95 % interval, shrunk towards what is known of other cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    pub gain: f64,
    pub lo: f64,
    pub hi: f64,
}

/// The gain of cells that keep the default, in files that say no interval.
fn one() -> f64 {
    1.0
}

/// A time with its 95 % confidence interval; predictions have no interval, the unknown no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub median: Option<f64>,
    pub lo: Option<f64>,
    pub hi: Option<f64>,
}

impl CellStatistics {
    /// A cell about which nothing is known.
    pub fn unknown(cell: Cell) -> CellStatistics {
        CellStatistics {
            cell,
            source: Source::Prior,
            best: DEFAULT.to_owned(),
            gain: 1.0,
            gain_lo: 1.0,
            gain_hi: 1.0,
            time_share: 0.0,
            waiting: 0.0,
            drift: 0.0,
            settled: String::new(),
            variants: Vec::new(),
        }
    }

    pub fn samples(&self) -> u64 {
        self.variants.iter().map(|variant| variant.samples).sum()
    }

    pub fn variant(&self, name: &str) -> Option<&VariantStatistics> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// The algorithm of the library's own that may stand in for its default in tables, which can name no other: the best
    /// variant, else the fastest one. The rule is the training's (`replaces_default`), which asks more of what
    /// is not the best; what was never measured has not met it.
    pub fn native(&self, library: Library) -> Option<(&VariantStatistics, Variant)> {
        let gain = |one: &VariantStatistics| match one.contrast {
            _ if one.name == self.best => f64::INFINITY,
            Some(contrast) => contrast.gain,
            None => 0.0,
        };
        let fitting = self.variants.iter().filter(|one| self.may_stand(one));
        let own = fitting.filter_map(|one| {
            let known = catalogue::find(library, self.cell.collective, &one.name)?;
            (known.steering != Steering::None).then_some((one, known))
        });
        own.max_by(|(a, _), (b, _)| gain(a).total_cmp(&gain(b)))
    }

    /// Whether a training says that a variant may stand in for the default: where that was measured, or, by the learner
    /// as published alone, predicted.
    pub fn may_stand(&self, one: &VariantStatistics) -> bool {
        self.source != Source::Prior && one.replaces_default && one.name != DEFAULT
    }
}
