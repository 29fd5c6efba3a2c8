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

#[cfg(test)]
mod tests {
    use colltune_core::collective::Collective;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;
    use crate::arrival::Leaving;
    use crate::policies::PRODUCT;
    use crate::recipe::{CLUSTER, Differences, Recipe};

    /// A machine where a variant makes its ranks leave far apart, that one's place, and what it costs beside the default.
    fn spreading() -> (Site, usize, [f64; 2]) {
        let recipe = Recipe {
            layouts: vec![CLUSTER],
            collectives: vec![Collective::Allreduce],
            sizes: vec![8],
            arms_most: 4,
            calls: 3_000,
            differences: Differences::None,
            skew_most: 0.0,
            next_waits: true,
            ..Recipe::usual(0.05)
        };
        let mut site = Site::new(recipe, 3);
        let cell = &mut site.cells[0];
        let cost_ns = 0.9 * cell.default_ns();
        let known = cell.arms.iter_mut().enumerate().skip(1);
        let (place, arm) = known
            .filter_map(|(place, arm)| Some((place, arm.as_mut()?)))
            .next()
            .unwrap();
        // Of the orders in which ranks may leave, one in which few have a late neighbour.
        let costs = |leaving: &Leaving| {
            let seen = leaving.seen(0.9, &[0.0; 8], &mut [0.0; 8]);
            let sum = seen.time_ns + seen.shift_ns;
            [sum, sum + seen.pushed_ns]
        };
        let mut orders =
            (0..).map(|seed| Leaving::new(8, 0.6, &mut ChaCha8Rng::seed_from_u64(seed)));
        let leaving = orders.find(|one| costs(one)[1] > 1.08).unwrap();
        let costs = costs(&leaving);
        (arm.cost_ns, arm.leaving) = (cost_ns, leaving);
        (site, place, costs)
    }

    #[test]
    fn who_leaves_early_and_waits_in_the_next_collective_wins_only_where_that_is_not_known() {
        let (site, place, [without, with]) = spreading();
        assert!(
            (without - 0.9).abs() < 1e-9 && (with - 1.1).abs() < 0.03,
            "{with}"
        );
        let model = Model::initial(&site.settings, site.library, "made");
        let jobs = 0..12;
        let samples = jobs.flat_map(|run| play(&site, &model, Mode::Explore, run).samples);
        let samples: Vec<Sample> = samples.collect();
        let chosen = |samples: &[Sample]| {
            let published = PRODUCT.begin(&site).train(samples, &site);
            published_best(&site, &published.model, 0)
        };
        assert_ne!(chosen(&samples), place);
        let mut unknown = samples;
        for sample in &mut unknown {
            sample.call.after_ns = None;
        }
        assert_eq!(chosen(&unknown), place);
    }
}
