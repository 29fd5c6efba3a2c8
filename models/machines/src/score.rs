//! What came of a campaign, held against the truth.

use colltune_core::model::Model;
use colltune_models::belief::{Correction, of_default};

use crate::campaign::{History, Training};
use crate::job::Account;
use crate::site::Arm;

/// A choice that costs at most so many times the best's is as good as that.
const NEAR: f64 = 1.05;

impl History {
    fn cells(&self) -> std::ops::Range<usize> {
        0..self.site.cells.len()
    }

    /// Geometric mean over cells of what the choice costs, in times of the best.
    pub fn distance(&self, training: &Training) -> f64 {
        let logs = self.cells().map(|cell| self.ratio(training, cell).ln());
        (logs.sum::<f64>() / self.site.cells.len() as f64).exp()
    }

    fn ratio(&self, training: &Training, cell: usize) -> f64 {
        let truth = &self.site.cells[cell];
        truth.cost_of(training.best[cell]) / truth.best_ns()
    }

    /// Jobs until the mean over cells is near the best; infinite where it never is.
    pub fn jobs_until_near(&self) -> f64 {
        self.first(|training| self.distance(training) <= NEAR)
    }

    /// The median over cells of the jobs until each is near its best.
    pub fn median_jobs_until_near(&self) -> f64 {
        let of = |cell| self.first(|training| self.ratio(training, cell) <= NEAR);
        median(self.cells().map(of).collect())
    }

    /// Jobs until it is said that nothing can be gained.
    pub fn jobs_until_told(&self) -> f64 {
        self.first(|training| training.nothing_to_gain)
    }

    /// Trainings that said that nothing can be gained, and all.
    pub fn told(&self) -> (f64, f64) {
        let told = self
            .trainings
            .iter()
            .filter(|training| training.nothing_to_gain);
        (told.count() as f64, self.trainings.len() as f64)
    }

    /// The last training's share of sampled calls that draw something else than the best, mean over cells.
    pub fn exploring(&self) -> f64 {
        let last = self.trainings.last().map(|last| last.exploring.as_slice());
        let shares = last.unwrap_or_default();
        shares.iter().sum::<f64>() / shares.len() as f64
    }

    fn first(&self, is: impl Fn(&Training) -> bool) -> f64 {
        let first = self.trainings.iter().find(|training| is(training));
        first.map_or(f64::INFINITY, |training| f64::from(training.jobs))
    }

    /// How much of the reachable gain, in logarithms over all cells, the choice behind so many jobs has.
    pub fn share_of_gain(&self, jobs: u32) -> f64 {
        let Some(training) = self
            .trainings
            .iter()
            .rfind(|training| training.jobs <= jobs)
        else {
            return 0.0;
        };
        let (mut gained, mut reachable) = (0.0, 0.0);
        for cell in self.cells() {
            let truth = &self.site.cells[cell];
            gained += (truth.default_ns() / truth.cost_of(training.best[cell])).ln();
            reachable += (truth.default_ns() / truth.best_ns()).ln();
        }
        gained / reachable
    }

    /// What all runs of the best would have saved, in logarithms, as a gain.
    pub fn reachable(&self) -> f64 {
        let logs = self
            .site
            .cells
            .iter()
            .map(|truth| (truth.default_ns() / truth.best_ns()).ln());
        (logs.sum::<f64>() / self.site.cells.len() as f64).exp()
    }

    /// How much of the reachable gain the best has that generation 0 draws at all, whatever is learned.
    pub fn share_of_generation_0(&self) -> f64 {
        let site = &self.site;
        let model = Model::initial(&site.settings, site.library, "made");
        let (mut gained, mut reachable) = (0.0, 0.0);
        for (cell, truth) in site.cells.iter().enumerate() {
            let shape = truth.shape;
            let (nodes, ppn) = (u64::from(shape.nodes), u64::from(shape.ppn));
            let own = model.cells.iter().filter(|entry| {
                let cell = &entry.cell;
                cell.contains(shape.collective, shape.message_bytes, nodes, ppn)
            });
            let drawn = own.flat_map(|entry| &entry.variants);
            let places = drawn.filter_map(|share| site.place(cell, &share.name));
            let costs = places.map(|place| truth.cost_of(place));
            gained += (truth.default_ns() / costs.fold(truth.default_ns(), f64::min)).ln();
            reachable += (truth.default_ns() / truth.best_ns()).ln();
        }
        gained / reachable
    }

    /// The geometric mean over cells of the time spent in jobs, in times of the best's, less 1.
    pub fn regret(&self, jobs: std::ops::Range<u32>) -> f64 {
        self.excess(jobs, |account| account.best_ns)
    }

    /// The same against what was published as the best.
    pub fn cost_of_exploring(&self, jobs: std::ops::Range<u32>) -> f64 {
        self.excess(jobs, |account| account.published_ns)
    }

    fn excess(&self, jobs: std::ops::Range<u32>, than: impl Fn(&Account) -> f64) -> f64 {
        let jobs = jobs.start as usize..(jobs.end as usize).min(self.accounts.len());
        let of = |cell: usize| {
            let of_cell = || {
                self.accounts[jobs.clone()]
                    .iter()
                    .map(move |job| &job[cell])
            };
            let spent: f64 = of_cell().map(|account| account.spent_ns).sum();
            let least: f64 = of_cell().map(&than).sum();
            (spent / least).ln()
        };
        (self.cells().map(of).sum::<f64>() / self.site.cells.len() as f64).exp() - 1.0
    }

    /// Share of the reachable gain that the last quarter of one job's calls has.
    pub fn gain_inside(&self, job: usize) -> f64 {
        let (mut gained, mut reachable) = (0.0, 0.0);
        for account in &self.late[job] {
            gained += (account.default_ns / account.spent_ns).ln();
            reachable += (account.default_ns / account.best_ns).ln();
        }
        gained / reachable
    }

    /// Each change to something else than the default, and whether it was wrong: no faster in truth.
    pub fn replacements(&self) -> Replacements {
        let mut found = Replacements::default();
        for cell in self.cells() {
            let truth = &self.site.cells[cell];
            let (mut before, mut ever) = (0, false);
            for training in &self.trainings {
                let best = training.best[cell];
                if best != before && best != 0 {
                    found.all += 1.0;
                    if truth.cost_of(best) >= truth.default_ns() {
                        found.wrong += 1.0;
                        ever = true;
                    }
                }
                before = best;
            }
            found.cells += 1.0;
            found.cells_ever_wrong += f64::from(u8::from(ever));
            let harmed = truth.cost_of(before) * 0.97 > truth.default_ns();
            found.cells_harmed += f64::from(u8::from(harmed));
        }
        found
    }

    /// How many of the last training's claims there are, and how many hold the truth; and of the chosen ones the
    /// mean logarithm of the true over the claimed gain.
    pub fn claims(&self) -> Claims {
        let mut found = Claims::default();
        let Some(last) = self.trainings.last() else {
            return found;
        };
        for claim in &last.claims {
            let truth = self.true_gain(claim.cell, claim.variant);
            found.all += 1.0;
            found.holding += f64::from(u8::from((claim.lo..=claim.hi).contains(&truth)));
            if last.best[claim.cell] == claim.variant {
                found.chosen += 1.0;
                found.chosen_holding += f64::from(u8::from((claim.lo..=claim.hi).contains(&truth)));
                found.overstated += (claim.gain / truth).ln();
            }
        }
        found
    }

    /// The default's time, waiting included, over what the program would spend with the variant instead; both with what
    /// counts of the default's shift, by the rule by which gains are stated.
    pub fn true_gain(&self, cell: usize, variant: usize) -> f64 {
        let truth = &self.site.cells[cell];
        let arrival = self.site.recipe.arrival;
        let waiting = arrival.waiting_ns(truth.default_ns(), truth.shape.n_ranks as usize);
        let seen = |arm: &Arm| {
            let inside = arm.leaving.inside();
            (waiting + inside * arm.cost_ns, (1.0 - inside) * arm.cost_ns)
        };
        let default = truth.arms[0].as_ref().map(seen);
        let (time, shift) = default.unwrap_or((waiting + truth.default_ns(), 0.0));
        let all = truth.arms.iter().flatten().map(seen);
        let of_default = of_default(all.map(|(own_time, own_shift)| {
            let contrast = (own_shift - shift) / time;
            let variance = 0.0;
            (own_time / time, Correction { contrast, variance })
        }));
        let cost = (1.0 + of_default) * time;
        cost / (cost + truth.cost_of(variant) - truth.default_ns()).max(1e-3 * time)
    }
}

/// Counts of changes away from the default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Replacements {
    pub all: f64,
    pub wrong: f64,
    pub cells: f64,
    pub cells_ever_wrong: f64,
    /// Whose choice in the end is more than 3 % slower than the default.
    pub cells_harmed: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Claims {
    pub all: f64,
    pub holding: f64,
    pub chosen: f64,
    pub chosen_holding: f64,
    /// Sum over the chosen of the logarithm of claimed over true gain.
    pub overstated: f64,
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use crate::arrival::Leaving;
    use crate::campaign::{Plan, campaign};
    use crate::policies::{ORACLE, PRODUCT, policies};
    use crate::policy::Policy;
    use crate::recipe::{CLUSTER, Recipe};
    use crate::site::Site;

    fn few() -> Site {
        let recipe = Recipe {
            layouts: vec![CLUSTER],
            sizes: vec![8, 32 << 10],
            ..Recipe::usual(0.05)
        };
        Site::new(recipe, 1)
    }

    #[test]
    fn who_knows_the_truth_reaches_all_of_it_and_is_never_wrong() {
        let history = campaign(few(), ORACLE, &Plan::each(3));
        assert!((history.share_of_gain(1) - 1.0).abs() < 1e-12);
        assert_eq!(history.jobs_until_near(), 1.0);
        assert_eq!(history.replacements().wrong, 0.0);
        // The first job draws everything; the later ones run the default until their communicators are set up.
        assert!(history.regret(1..3) < 0.1 * history.regret(0..1));
    }

    #[test]
    fn what_a_variant_gains_is_of_all_that_the_default_costs_where_that_shifts_more_than_the_variant_takes()
     {
        let mut site = few();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let arms = &mut site.cells[0].arms;
        let default = arms[0].as_mut().unwrap();
        default.leaving = Leaving::new(8, 0.6, &mut rng);
        let (cost_ns, shift) = (default.cost_ns, 1.0 - default.leaving.inside());
        assert!((0.1..0.4).contains(&shift), "{shift}");
        let variant = 1 + arms[1..].iter().position(Option::is_some).unwrap();
        let fast = arms[variant].as_mut().unwrap();
        fast.leaving = Leaving::new(8, 0.0, &mut rng);
        fast.cost_ns = 1.5 * shift * cost_ns;
        let history = campaign(site, ORACLE, &Plan::each(1));
        let share = history.true_gain(0, variant) * 1.5 * shift;
        assert!((0.9..1.1).contains(&share), "{share}");
    }

    #[test]
    fn five_jobs_of_the_learner_cost_less_than_even_draws_and_the_last_has_more_of_the_gain() {
        let uniform = policies()
            .into_iter()
            .find(|policy| policy.name() == "uniform");
        let uniform = uniform.expect("it is always compared");
        let of = |policy: &dyn Policy| {
            let lived = campaign(few(), policy, &Plan::each(5));
            let (regret, gain) = (lived.regret(0..5), lived.gain_inside(4));
            let (name, published) = (policy.name(), lived.share_of_gain(5));
            println!("{name}: regret {regret:.3}, gain {gain:.3}, published {published:.3}");
            (regret, gain)
        };
        let ((regret, gain), (of_even, gain_of_even)) = (of(PRODUCT), of(uniform));
        assert!(regret < of_even, "{regret} beside {of_even}");
        assert!(gain > gain_of_even, "{gain} beside {gain_of_even}");
    }

    #[test]
    fn a_campaign_is_made_by_its_seed() {
        let bests = || {
            let history = campaign(few(), PRODUCT, &Plan::each(2));
            history.trainings[1].best.clone()
        };
        assert_eq!(bests(), bests());
    }
}
