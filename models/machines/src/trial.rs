//! Kinds of machines, each lived through by each policy, and how their figures become rows.

use std::ops::RangeInclusive;

use rayon::prelude::*;

use crate::campaign::{History, Plan, campaign};
use crate::policies::{PRODUCT, policies};
use crate::policy::Policy;
use crate::recipe::Recipe;
use crate::report::{Bound, Row, Spread};
use crate::site::Site;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Quick,
    Full,
}

/// On which machines how much is measured of whom.
pub struct Scope {
    pub extent: Extent,
    pub seeds: RangeInclusive<u64>,
    pub policies: Vec<&'static dyn Policy>,
}

impl Scope {
    /// All policies on the machines of the first seeds.
    pub fn of(extent: Extent) -> Scope {
        let machines = match extent {
            Extent::Quick => 5,
            Extent::Full => 7,
        };
        Scope {
            extent,
            seeds: 1..=machines,
            policies: policies(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.extent == Extent::Full
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.policies.iter().map(|policy| policy.name()).collect()
    }

    /// Those that say what they know.
    pub(crate) fn learners(&self) -> Vec<&'static dyn Policy> {
        let learns = |policy: &&'static dyn Policy| policy.name() == PRODUCT.name();
        self.policies.iter().copied().filter(learns).collect()
    }
}

/// Machines of one kind, each lived through by each policy.
pub(crate) struct Trial {
    pub recipe: Recipe,
    pub plan: Plan,
    pub seeds: RangeInclusive<u64>,
}

/// One list of histories a policy.
pub(crate) type Lives = Vec<Vec<History>>;

impl Trial {
    pub fn live(&self, policies: &[&dyn Policy]) -> Lives {
        let sites: Vec<Site> = self
            .seeds
            .clone()
            .into_par_iter()
            .map(|seed| Site::new(self.recipe.clone(), seed))
            .collect();
        let all: Vec<(usize, usize)> = (0..policies.len())
            .flat_map(|policy| (0..sites.len()).map(move |site| (policy, site)))
            .collect();
        let lived: Vec<History> = all
            .into_par_iter()
            .map(|(policy, site)| campaign(sites[site].clone(), policies[policy], &self.plan))
            .collect();
        let mut lived = lived.into_iter();
        policies
            .iter()
            .map(|_| lived.by_ref().take(sites.len()).collect())
            .collect()
    }
}

/// One value a machine, and its spread.
pub(crate) fn each(lives: &Lives, of: impl Fn(&History) -> f64) -> Vec<Option<Spread>> {
    let spread = |lived: &Vec<History>| Spread::of(lived.iter().map(&of).collect());
    lives.iter().map(spread).collect()
}

/// A share over all machines together.
pub(crate) fn pooled(lives: &Lives, of: impl Fn(&History) -> (f64, f64)) -> Vec<Option<Spread>> {
    let share = |lived: &Vec<History>| pooled_of(lived, &of);
    lives.iter().map(share).collect()
}

pub(crate) fn pooled_of(lived: &[History], of: impl Fn(&History) -> (f64, f64)) -> Option<Spread> {
    let (part, whole) = lived
        .iter()
        .map(of)
        .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (whole != 0.0).then(|| Spread::exactly(part / whole))?
}

pub(crate) fn row(figure: &str, found: Vec<Option<Spread>>, must: Bound, aim: Bound) -> Row {
    Row {
        figure: figure.to_owned(),
        found,
        must,
        aim,
    }
}

/// A row that nothing is asked of.
pub(crate) fn told(figure: &str, found: Vec<Option<Spread>>) -> Row {
    row(figure, found, Bound::None, Bound::None)
}

/// How often what is said of a variant holds the truth.
pub(crate) fn covered(name: &str, lives: &Lives) -> Row {
    let figure = format!("{name}: coverage of 95 % intervals");
    let found = pooled(lives, |one| (one.claims().holding, one.claims().all));
    row(&figure, found, Bound::Within(0.93, 0.97), Bound::None)
}

/// How much more is said of what was chosen than it gains.
pub(crate) fn overstated(name: &str, lives: &Lives) -> Row {
    let figure = format!("{name}: claimed over true gain, mean logarithm");
    let found = pooled(lives, |one| (one.claims().overstated, one.claims().chosen));
    told(&figure, found)
}

/// How often what replaced the default was no faster, by what every trial has to keep to.
pub(crate) fn wrong_replacements(name: &str, lives: &Lives) -> Row {
    let figure = format!("{name}: wrong replacements");
    let found = pooled(lives, wrong);
    row(&figure, found, Bound::AtMost(0.01), Bound::AtMost(0.005))
}

/// A row for some of the policies.
pub(crate) fn padded(
    scope: &Scope,
    figure: &str,
    mut found: Vec<Option<Spread>>,
    must: Bound,
    aim: Bound,
) -> Row {
    found.resize(scope.policies.len(), None);
    row(figure, found, must, aim)
}

pub(crate) fn on_one(layout: (u32, u32), scope: &Scope, run_effect: f64) -> Recipe {
    let usual = Recipe::usual(run_effect);
    Recipe {
        layouts: vec![layout],
        collectives: usual.collectives[..if scope.is_full() { 5 } else { 3 }].to_vec(),
        ..usual
    }
}

pub(crate) fn wrong(one: &History) -> (f64, f64) {
    let found = one.replacements();
    (found.wrong, found.all)
}
