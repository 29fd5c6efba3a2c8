//! One training: evidence, belief, choice, allocation and watching in their order, for all cells of a library.

mod cells;
mod context;
mod control;
mod learned;

mod publish;

mod ompicolltune;

mod promise;

use colltune_core::model::Model;
use colltune_core::settings::LearnerKind;
use rayon::prelude::*;

use crate::belief::{self, Belief};
use crate::choice;
use crate::evidence::Evidence;
use crate::predict;
use cells::Cells;

pub(crate) use cells::merged;

pub use context::{Context, Veto};
pub use control::Control;
pub use learned::{LearnError, Learned};

/// Learns from all evidence of one library, in whatever order it comes.
///
/// Errors: `Invalid` for a result that jobs would refuse; `NoXgboost` where its library cannot be loaded; `Regression` for what
/// it reports.
pub fn learn(evidence: &[Evidence], context: Context) -> Result<Learned, LearnError> {
    if context.settings.learner == LearnerKind::OmpiCollTune {
        return ompicolltune::learn(evidence, &context);
    }
    let no_xgboost = |why| LearnError::NoXgboost {
        who: "`predictor` in the settings asks for",
        why,
    };
    let predictor = predict::chosen(context.settings.predictor).map_err(no_xgboost)?;
    let cells = Cells::new(evidence, &context);
    let (mut beliefs, predictions) = belief::believe(&cells.measured, &cells.asked, predictor);
    if let Some(spent) = context.spent {
        for (belief, cell) in beliefs.iter_mut().zip(&cells.measured) {
            belief.time_ns = spent.ns(cell.rows.iter().copied());
        }
    }
    let choices = choice::choose(&beliefs, &cells.allowed(), &cells.before());
    let mut learned = Learned {
        model: Model {
            generation: context.generation,
            cells: Vec::new(),
            ..cells.initial.clone()
        },
        statistics: Vec::new(),
        calls: evidence.iter().map(|row| row.calls).sum(),
        work: 1.0,
        control: control::control(evidence, context.copies, &cells.initial, predictor),
        nothing_to_gain: String::new(),
        notes: Vec::new(),
    };
    let time_ns: f64 = beliefs.iter().map(|belief| belief.time_ns).sum();
    learned.nothing_to_gain = promise::nothing_to_gain(&cells, &beliefs, &choices, &context);
    let published: Vec<_> = (0..beliefs.len())
        .into_par_iter()
        .map(|index| {
            publish::measured(
                &cells,
                index,
                &beliefs[index],
                &choices[index],
                time_ns,
                &learned.nothing_to_gain,
                &context,
            )
        })
        .collect();
    let predicted: Vec<_> = (0..predictions.len())
        .into_par_iter()
        .map(|index| publish::predicted(&cells, index, &predictions[index], &context))
        .collect();
    let mut entries = cells.initial.cells.clone();
    for (cell, entry, statistics) in published.into_iter().chain(predicted) {
        entries[cell] = entry;
        learned.statistics.push(statistics);
    }
    learned.statistics.sort_by_key(|cell| cell.cell);
    learned.model.cells = merged(entries);
    learned.work = share_of_work(&beliefs, time_ns);
    learned.model.check(context.library)?;
    Ok(learned)
}

fn share_of_work(beliefs: &[Belief], time_ns: f64) -> f64 {
    if time_ns <= 0.0 {
        return 1.0;
    }
    beliefs
        .iter()
        .map(|belief| belief.work.min(1.0) * belief.time_ns)
        .sum::<f64>()
        / time_ns
}
