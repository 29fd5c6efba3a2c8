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
    use colltune_models::evidence::Call;
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
            sizes: vec![8, 4096],
            arms_most: 4,
            calls: 3_000,
            differences: Differences::None,
            skew_most: 0.0,
            next_waits: true,
            ..Recipe::usual(0.05)
        };
        let sites = (3..).map(|seed| Site::new(recipe.clone(), seed));
        // One of which the first job tries something in the first cell.
        let tried = |site: Site| {
            let model = Model::initial(&site.settings, site.library, "made");
            let samples = play(&site, &model, Mode::Explore, 0).samples;
            let mut samples = samples.into_iter().map(|sample| sample.call);
            let is_other = |call: &Call| call.shape == site.cells[0].shape && call.variant != 0;
            let place = usize::from(samples.find(is_other)?.variant);
            Some((site, place))
        };
        let (mut site, place) = sites.filter_map(tried).next().unwrap();
        let cell = &mut site.cells[0];
        let cost_ns = 0.9 * cell.default_ns();
        let arm = cell.arms[place].as_mut().unwrap();
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

    #[test]
    fn what_is_pushed_into_the_next_call_of_the_same_cell_is_in_that_ones_time_alone() {
        let (two, place, _) = spreading();
        let mut one = two.clone();
        one.cells.truncate(1);
        let initial = Model::initial(&two.settings, two.library, "made");
        let mut played: Vec<Sample> = (0..12)
            .flat_map(|run| play(&two, &initial, Mode::Explore, run).samples)
            .collect();
        for sample in &mut played {
            sample.call.after_ns = None;
        }
        let model = PRODUCT.begin(&two).train(&played, &two).model;
        assert_eq!(published_best(&two, &model, 0), place);
        // The watch draws the default and the choice one behind the other.
        let of_first = |site: &Site, mode, model: &Model| -> Vec<Sample> {
            let samples = play(site, model, mode, 12).samples.into_iter();
            samples
                .filter(|sample| sample.call.shape == site.cells[0].shape)
                .collect()
        };
        for mode in [Mode::Exploit, Mode::Explore] {
            let (alone, beside) = (of_first(&one, mode, &model), of_first(&two, mode, &model));
            // Where it is alone its calls take longer, and the watch leaves it.
            assert!(alone.len() >= 2 && beside.len() >= 8, "{mode:?}");
            assert!(alone.iter().all(|sample| sample.call.after_ns.is_none()));
            let told = beside
                .iter()
                .filter(|sample| sample.call.after_ns.is_some());
            assert!(2 * told.count() > beside.len(), "{mode:?}");
        }
    }
}
