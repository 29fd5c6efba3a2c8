//! The whole way from records to a published choice.

use std::collections::BTreeMap;

use colltune_core::catalogue;
use colltune_core::classify::{CellsBySize, Layout};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::model::Model;
use colltune_core::settings::Settings;
use rayon::prelude::*;

use crate::baseline::call::{self, Call, Row};
use crate::baseline::compare::{Comparison, compare};
use crate::baseline::regress::Regression;
use crate::learn::merged;
use crate::statistics::CellStatistics;

mod error;
mod known;
mod survey;

pub use error::LearnError;

use known::Known;
use survey::Survey;

/// What a training needs to know beside the records.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub settings: &'a Settings,
    pub library: Library,
    pub machine: &'a str,
    /// The number that the result will carry.
    pub generation: u64,
    pub seed: u64,
}

/// What a training found.
pub struct Learned {
    pub model: Model,
    /// Of the cells that were measured or predicted; about the others nothing is known.
    pub statistics: Vec<CellStatistics>,
    pub regressions: Vec<(Collective, String, Regression)>,
    pub calls: u64,
}

/// Learns from all records of one library.
///
/// Errors: `Regress` for what XGBoost reports.
/// Source: Hunold & Steiner, PMBS 2022, section III; robust comparison and proof are ours.
pub fn learn(rows: Vec<Row>, context: Context) -> Result<Learned, LearnError> {
    let initial = Model::initial(context.settings, context.library, context.machine);
    let catalogue =
        Collective::ALL.map(|collective| catalogue::variants(context.library, collective));
    let calls = call::calls(rows);
    let by_cell = sort_into_cells(&calls, &initial);
    let measured: BTreeMap<usize, Comparison> = {
        let compared = by_cell.par_iter().map(|(&cell, calls)| {
            let collective = initial.cells[cell].cell.collective;
            let n_variants = catalogue[collective.index()].len();
            (cell, compare(calls, n_variants))
        });
        compared.collect()
    };
    drop(by_cell);
    let mut learned = Learned {
        model: Model {
            generation: context.generation,
            ..initial
        },
        statistics: Vec::new(),
        regressions: Vec::new(),
        calls: calls.len() as u64,
    };
    for collective in Collective::ALL {
        let variants = &catalogue[collective.index()];
        let survey = Survey::new(collective, variants, &learned.model, &measured);
        let regressions = survey.regressions(context.seed)?;
        let predictions = survey.predict(&regressions)?;
        for (&(cell, place), predicted) in survey.places.iter().zip(predictions) {
            let entry = &mut learned.model.cells[cell];
            let known = Known {
                variants,
                predicted: &predicted,
                explore_total: context.settings.explore_total,
            };
            let statistics = match measured.get(&cell) {
                Some(comparison) => known.measure(entry, comparison),
                None if survey.reaches(place) => known.predict(entry, |variant| {
                    survey.is_convincing(variant, place, &predicted)
                }),
                None => continue,
            };
            learned.statistics.push(statistics);
        }
        let named = variants.iter().zip(regressions);
        learned
            .regressions
            .extend(named.filter_map(|(variant, regression)| {
                Some((collective, variant.name.to_string(), regression?))
            }));
    }
    learned.model.cells = merged(learned.model.cells);
    share_out(&mut learned.statistics);
    Ok(learned)
}

/// What part of the time in all timed calls each cell has.
fn share_out(cells: &mut [CellStatistics]) {
    let time = |cell: &CellStatistics| -> f64 {
        let times = cell.variants.iter();
        let times = times.map(|one| one.samples as f64 * one.time_ns.median.unwrap_or(0.0));
        times.sum()
    };
    let times: Vec<f64> = cells.iter().map(time).collect();
    let whole: f64 = times.iter().sum();
    for (cell, time) in cells.iter_mut().zip(times).filter(|(_, time)| *time > 0.0) {
        cell.time_share = time / whole;
    }
}

fn sort_into_cells(calls: &[Call], model: &Model) -> BTreeMap<usize, Vec<Call>> {
    let mut cells_of: BTreeMap<(Collective, u32, u32), CellsBySize> = BTreeMap::new();
    let mut by_cell: BTreeMap<usize, Vec<Call>> = BTreeMap::new();
    for call in calls {
        let layout = Layout {
            n_ranks: call.n_ranks,
            nodes: call.nodes,
            ppn: call.ppn,
        };
        let cells = cells_of
            .entry((call.collective, call.nodes, call.ppn))
            .or_insert_with(|| CellsBySize::new(model, call.collective, layout));
        if let Some(place) = cells.position(call.bytes) {
            by_cell
                .entry(cells.cells()[place] as usize)
                .or_default()
                .push(*call);
        }
    }
    by_cell
}
