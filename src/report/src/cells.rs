//! Figure 1: which cells are measured, predicted or unknown, and what is chosen there.

use colltune_core::catalogue::{self, Steering};
use colltune_core::library::Library;
use colltune_core::model::Source;
use colltune_core::variant::{DEFAULT, Size};
use colltune_db::Generation;
use colltune_models::statistics::{CellStatistics, Contrast, Interval};
use serde::Serialize;

use crate::question::Question;

/// So many cells are shown one by one; a page of them all would be too long for any browser.
pub const CELLS_MAX: usize = 2_500;

/// The cells that are asked for and of which anything is known, those with most of the time first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cells {
    pub shown: Vec<CellStatistics>,
    /// Known ones beyond the most that are shown.
    pub left_out: usize,
    /// Of which nothing is known.
    pub unknown: usize,
    pub opened: Option<Opened>,
}

/// One cell with all its variants.
#[derive(Clone, Debug, Serialize)]
pub struct Opened {
    pub cell: CellStatistics,
    pub settings: Vec<Settings>,
}

/// A variant as the library's settings name it.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// The place in the catalogue of the collective.
    pub id: usize,
    pub name: String,
    /// The library's own number or name of the algorithm.
    pub algorithm: String,
    pub segment: String,
    pub samples: u64,
    pub time_ns: Interval,
    pub probability: f64,
    pub contrast: Option<Contrast>,
    pub reason: String,
}

pub fn cells(generation: &Generation, question: &Question) -> Cells {
    let mut asked: Vec<&CellStatistics> = generation.cells.iter().collect();
    asked.retain(|cell| question.holds(&cell.cell));
    let all = asked.len();
    asked.retain(|cell| is_known(cell));
    let known = asked.len();
    asked.sort_by(|a, b| {
        let weight = |cell: &CellStatistics| (cell.time_share, cell.samples() as f64);
        weight(b)
            .partial_cmp(&weight(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    // The costliest one that was measured.
    let is_measured = |cell: &&&CellStatistics| cell.source == Source::Measured;
    let costliest = asked.iter().find(is_measured).or(asked.first());
    let opened = costliest.map(|cell| open(cell, generation.library));
    asked.truncate(CELLS_MAX);
    Cells {
        left_out: known - asked.len(),
        shown: asked.into_iter().cloned().collect(),
        unknown: all - known,
        opened,
    }
}

fn is_known(cell: &CellStatistics) -> bool {
    cell.source != Source::Prior
}

/// The variant that is expected to be fastest, and the default's time over its own. In measured cells it is what is
/// chosen, and so it is where a prediction is; elsewhere nothing replaces the default before it was measured, whatever is
/// expected.
pub fn expected(cell: &CellStatistics) -> (&str, f64) {
    if cell.source == Source::Measured || is_chosen_by_prediction(cell) {
        return (&cell.best, cell.gain);
    }
    let known = cell
        .variants
        .iter()
        .filter_map(|one| Some((one.name.as_str(), one.contrast?.gain)));
    known
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .filter(|(_, gain)| *gain > 1.0)
        .unwrap_or((DEFAULT, 1.0))
}

/// Whether another variant than the default is run without measurements, as the learner as published wants.
pub fn is_chosen_by_prediction(cell: &CellStatistics) -> bool {
    cell.source == Source::Predicted && cell.best != DEFAULT
}

fn open(cell: &CellStatistics, library: Library) -> Opened {
    let known = catalogue::variants(library, cell.cell.collective);
    let mut settings: Vec<Settings> = Vec::new();
    for one in &cell.variants {
        let place = known
            .iter()
            .position(|variant| variant.name.to_string() == one.name);
        let variant = place.map(|place| &known[place]);
        let algorithm = variant.map_or_else(String::new, |variant| match variant.steering {
            Steering::None => String::new(),
            Steering::OpenMpi { algorithm, .. } => algorithm.to_string(),
            Steering::Mpich { algorithm } => algorithm.to_owned(),
            Steering::Intel { preset } => preset.to_string(),
        });
        let segment = variant.and_then(|variant| variant.name.segsize);
        settings.push(Settings {
            id: place.unwrap_or(known.len()),
            name: one.name.clone(),
            algorithm,
            segment: segment.map_or_else(String::new, |bytes| Size(bytes).to_string()),
            samples: one.samples,
            time_ns: one.time_ns,
            probability: one.probability,
            contrast: one.contrast,
            reason: one.reason.clone(),
        });
    }
    settings.sort_by_key(|one| one.id);
    Opened {
        cell: cell.clone(),
        settings,
    }
}
