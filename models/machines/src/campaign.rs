//! Round and round: jobs, a training, jobs under what it published.

use std::time::{Duration, Instant};

use colltune_core::model::Model;
use colltune_core::request::Mode;

use crate::job::{Account, Sample, play, published_best};
use crate::policy::{Claim, Policy};
use crate::site::Site;

/// When trainings come, and what happens meanwhile.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Trainings come behind so many jobs, ascending.
    pub trainings: Vec<u32>,
    /// Behind so many jobs the default becomes 10 % better than all others.
    pub default_improves_after: Option<u32>,
}

impl Plan {
    /// Batches of ten, as README has them.
    pub fn batches(n: u32) -> Plan {
        Plan {
            trainings: (1..=n).map(|batch| 10 * batch).collect(),
            default_improves_after: None,
        }
    }

    /// Behind each of so many jobs.
    pub fn each(jobs: u32) -> Plan {
        Plan {
            trainings: (1..=jobs).collect(),
            default_improves_after: None,
        }
    }
}

/// What one training left behind.
pub struct Training {
    /// Jobs before it.
    pub jobs: u32,
    /// By cell, the place of what is published as the best.
    pub best: Vec<usize>,
    pub claims: Vec<Claim>,
    pub nothing_to_gain: bool,
    pub took: Duration,
    /// The share of sampled calls that draw something else than the best, by cell.
    pub exploring: Vec<f64>,
}

/// One database's life on one machine.
pub struct History {
    pub trainings: Vec<Training>,
    /// By job and cell.
    pub accounts: Vec<Vec<Account>>,
    pub late: Vec<Vec<Account>>,
    /// The machine as it was in the end.
    pub site: Site,
}

pub fn campaign(mut site: Site, policy: &dyn Policy, plan: &Plan) -> History {
    let known = site.clone();
    let mut learner = policy.begin(&known);
    let mut model = Model::initial(&site.settings, site.library, "made");
    let (mut trainings, mut accounts, mut late) = (Vec::new(), Vec::new(), Vec::new());
    let mut fresh: Vec<Sample> = Vec::new();
    for run in 0..plan.trainings.last().copied().unwrap_or(0) {
        if plan.default_improves_after == Some(run) {
            site.improve_default(0.1);
        }
        let played = play(&site, &model, Mode::Explore, run);
        accounts.push(played.accounts);
        late.push(played.late);
        fresh.extend(played.samples);
        if plan.trainings.contains(&(run + 1)) {
            let start = Instant::now();
            let published = learner.train(&fresh, &site);
            let took = start.elapsed();
            fresh.clear();
            model = published.model;
            let cells = 0..site.cells.len();
            trainings.push(Training {
                jobs: run + 1,
                best: cells
                    .clone()
                    .map(|cell| published_best(&site, &model, cell))
                    .collect(),
                claims: published.claims,
                nothing_to_gain: published.nothing_to_gain,
                took,
                exploring: cells.map(|cell| exploring(&site, &model, cell)).collect(),
            });
        }
    }
    drop(learner);
    History {
        trainings,
        accounts,
        late,
        site,
    }
}

fn exploring(site: &Site, model: &Model, cell: usize) -> f64 {
    let shape = site.cells[cell].shape;
    let (nodes, ppn) = (u64::from(shape.nodes), u64::from(shape.ppn));
    let mut entries = model.cells.iter();
    let of_cell = entries.find(|entry| {
        entry
            .cell
            .contains(shape.collective, shape.message_bytes, nodes, ppn)
    });
    of_cell.map_or(0.0, |entry| {
        let others = entry
            .variants
            .iter()
            .filter(|share| share.name != entry.best);
        others.map(|share| share.probability).sum()
    })
}
