//! What a training found, or why it found nothing.

use colltune_core::model::{Model, ModelError};
use thiserror::Error;

use super::control::Control;
use crate::statistics::CellStatistics;

/// What a training found.
#[derive(Clone, Debug)]
pub struct Learned {
    pub model: Model,
    /// Of the cells that were measured or predicted; about the others nothing is known.
    pub statistics: Vec<CellStatistics>,
    pub calls: u64,
    /// Share of the recorded time that was work, which bounds what tuning can gain.
    pub work: f64,
    /// How often a copy of the default would have replaced it.
    pub control: Control,
    /// Why there is nothing to gain in any cell; empty where there may be.
    pub nothing_to_gain: String,
    /// What a person should know of it, in sentences.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum LearnError {
    /// No job would take such a model.
    #[error("publish what was learned: {0}")]
    Invalid(#[from] ModelError),
    /// `who` wants it and how, as in "the learner needs".
    #[error("load XGBoost, which {who}: {why}")]
    NoXgboost { who: &'static str, why: String },
    #[error("regress the run times of {variant}: {why}")]
    Regression { variant: String, why: String },
}
