//! Which learners are judged, and the learner colltune without each of its mechanisms beside the whole one.

use std::collections::{BTreeSet, HashMap};

use colltune_core::settings::LearnerKind;
use colltune_models::ablation::Mechanism;
use colltune_models::evaluation::{Estimated, Trial, evaluate};
use colltune_output::table;
use serde::Serialize;

#[derive(Clone)]
pub(super) struct Learner {
    pub(super) kind: LearnerKind,
    pub(super) seed: u64,
    /// What it is compared without; of the whole learner `None`.
    pub(super) without: Option<Vec<Mechanism>>,
}

/// Both learners; and colltune with other random numbers and without each mechanism.
pub(super) fn learners(ablation: bool) -> Vec<Learner> {
    let whole = LearnerKind::ALL.into_iter().map(|kind| Learner {
        kind,
        seed: 1,
        without: None,
    });
    let nothing = (2, Vec::new());
    let each = Mechanism::ALL.into_iter().map(|one| (1, vec![one]));
    let parts = std::iter::once(nothing).chain(each);
    let parts = parts.map(|(seed, without)| Learner {
        kind: LearnerKind::Colltune,
        seed,
        without: Some(without),
    });
    whole.chain(parts.filter(|_| ablation)).collect()
}

/// The learner colltune without something, beside itself.
#[derive(Serialize)]
pub(super) struct Ablated {
    pub(super) left_out: String,
    /// What is run when nothing is sampled, and what is drawn meanwhile: its time over the whole learner's.
    pub(super) choice: Option<Range>,
    pub(super) drawing: Option<Range>,
    /// Calls of the cells in which the choices of both are judged.
    pub(super) calls: usize,
    /// Parts and cells with another choice, and with other probabilities of what is drawn.
    pub(super) other_choices: usize,
    pub(super) other_draws: usize,
}

/// The parts of the learner beside the whole one.
pub(super) fn ablated(trials: &[Trial], targets: &[Target]) -> Vec<Ablated> {
    let is_whole =
        |one: &&Target| one.learner.kind == LearnerKind::Colltune && one.learner.without.is_none();
    let Some(whole) = targets.iter().find(is_whole) else {
        return Vec::new();
    };
    let beside = |part: &[Shares], whole: &[Shares]| {
        evaluate(
            trials,
            |trial| share(part, trial),
            |trial| share(whole, trial),
        )
    };
    let others = |part: &[Shares], whole: &[Shares]| {
        let by_part = part.iter().zip(whole).map(|(part, whole)| {
            let cells: BTreeSet<&usize> = part.keys().chain(whole.keys()).collect();
            let differs = |cell: &&&usize| part.get(cell) != whole.get(cell);
            cells.iter().filter(differs).count()
        });
        by_part.sum()
    };
    let parts = targets.iter().filter(|one| one.learner.without.is_some());
    let row = |part: &Target| {
        let choice = beside(&part.choice, &whole.choice);
        let drawing = beside(&part.draws, &whole.draws);
        Ablated {
            left_out: part.learner.name(),
            calls: choice.calls,
            choice: choice.ratio.map(|ratio| range(ratio, 1.0)),
            drawing: drawing.ratio.map(|ratio| range(ratio, 1.0)),
            other_choices: others(&part.choice, &whole.choice),
            other_draws: others(&part.draws, &whole.draws),
        }
    };
    parts.map(row).collect()
}

impl Learner {
    pub(super) fn name(&self) -> String {
        match self.without.as_deref() {
            None => self.kind.name().to_owned(),
            Some([]) => "nothing".to_owned(),
            Some(without) => without
                .iter()
                .map(|one| one.name())
                .collect::<Vec<_>>()
                .join(", "),
        }
    }
}

/// The table of them; empty where nothing was left out.
pub(super) fn text(rows: &[Ablated]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head = [
        "left out",
        "calls",
        "its choice's time over the whole learner's",
        "drawing",
        "other choices",
        "other draws",
    ];
    let rows = rows.iter().map(|row| {
        let [choice, drawing] = [&row.choice, &row.drawing].map(|one| told(one, 4));
        vec![
            row.left_out.clone(),
            row.calls.to_string(),
            choice,
            drawing,
            row.other_choices.to_string(),
            row.other_draws.to_string(),
        ]
    });
    table(&head, &rows.collect::<Vec<_>>())
}
/// What a learner runs when nothing is sampled, and what it draws: by part of the runs and cell, variants with their
/// probabilities.
pub(super) struct Target {
    pub(super) learner: Learner,
    pub(super) choice: Vec<Shares>,
    pub(super) draws: Vec<Shares>,
}

pub(super) type Shares = HashMap<usize, Vec<(u16, f64)>>;

#[derive(Serialize)]
pub(super) struct Range {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// With which probability the variant of a trial would have been run, by part of the runs.
pub(super) fn share(by_part: &[Shares], trial: &Trial) -> f64 {
    let of_part = &by_part[trial.run as usize % by_part.len()];
    let shares = of_part.get(&trial.cell).map_or(&[][..], Vec::as_slice);
    let own = shares.iter().find(|(variant, _)| *variant == trial.variant);
    own.map_or(0.0, |(_, share)| *share)
}

pub(super) fn told(range: &Option<Range>, digits: usize) -> String {
    match range {
        Some(Range { value, low, high }) => {
            format!("{value:.digits$} [{low:.digits$}, {high:.digits$}]")
        }
        None => "-".to_owned(),
    }
}

pub(super) fn range(of: Estimated, unit: f64) -> Range {
    Range {
        value: of.value / unit,
        low: of.low / unit,
        high: of.high / unit,
    }
}
