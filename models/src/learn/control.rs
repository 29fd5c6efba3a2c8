//! A negative control: how often a copy of the default would have replaced the default.
//!
//! The default's sampled calls are two halves of one thing (an A/A test). The second half is judged against the first by
//! the rule that judges variants, so whatever wins does so by chance, or by noise that the rule does not know.

use std::collections::HashMap;

use rayon::prelude::*;

use super::cells::{by_cell, middle};
use crate::belief::{Measured, believe};
use crate::choice::{SAMPLES_LEAST, choose};
use crate::evidence::{COPY, Evidence};
use crate::predict::Predictor;
use colltune_core::model::Model;
use serde::{Deserialize, Serialize};

/// What the control came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Cells in which both halves have calls enough to be judged.
    pub cells: u64,
    /// Those in which the copy would have been chosen.
    pub won: u64,
}

/// Judges the copies, each beside the rest of the default's calls in the same run.
pub(super) fn control(
    evidence: &[Evidence],
    copies: &[Evidence],
    model: &Model,
    predictor: &dyn Predictor,
) -> Control {
    let key = |row: &Evidence| (row.run, row.shape, row.component);
    let copies: HashMap<_, &Evidence> = copies.iter().map(|row| (key(row), row)).collect();
    let defaults = evidence.iter().filter(|row| row.variant == 0);
    let halves = defaults.filter_map(|row| {
        let copy = *copies.get(&key(row))?;
        let rest = row.without(copy);
        (rest.calls > 0).then_some([rest, *copy])
    });
    let rows: Vec<Evidence> = halves.flatten().collect();
    let measured: Vec<Measured> = by_cell(&rows, model)
        .into_iter()
        .map(|(cell, mut rows)| {
            rows.sort_unstable_by_key(|row| (row.run, row.shape, row.component, row.variant));
            Measured {
                cell,
                collective: rows[0].shape.collective,
                weights: Default::default(),
                variants: vec![(COPY, middle(&rows))],
                rows,
            }
        })
        .collect();
    let (beliefs, _) = believe(&measured, &[], predictor);
    let one_each = vec![vec![true]; beliefs.len()];
    let choices = choose(&beliefs, &one_each, &vec![None; beliefs.len()]);
    let is_judged = |place: &usize| {
        let belief = &beliefs[*place];
        belief.default_calls.min(belief.arms[0].calls) >= SAMPLES_LEAST
    };
    let judged: Vec<usize> = (0..beliefs.len())
        .into_par_iter()
        .filter(is_judged)
        .collect();
    let has_won = |place: &&usize| choices[**place].best.is_some();
    Control {
        cells: judged.len() as u64,
        won: judged.iter().filter(has_won).count() as u64,
    }
}
