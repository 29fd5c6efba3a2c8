//! What a tuner may choose in the run: the arms of each lever, with the names that it knows them by.

use colltune_placement::{Balancer, Trigger};

use super::placement::{PlacementName, trigger_name};

/// One lever. The first arm is that of a run without a tuner.
#[derive(Clone, Debug, PartialEq)]
pub struct Lever {
    pub name: &'static str,
    pub arms: Arms,
    /// The arms as a tuner, the report and the telemetry have them.
    pub names: Vec<String>,
}

/// What the arms are.
#[derive(Clone, Debug, PartialEq)]
pub enum Arms {
    Placements(Vec<PlacementName>),
    Triggers(Vec<Option<Trigger>>),
}

impl Lever {
    /// On one rank there is nothing to place: one arm is left, about which no tuner is asked.
    pub(super) fn of_placement(placements: &[PlacementName], n_ranks: usize) -> Lever {
        let arms = &placements[..n_offered(placements.len(), n_ranks)];
        Lever {
            name: "placement",
            names: arms.iter().map(ToString::to_string).collect(),
            arms: Arms::Placements(arms.to_vec()),
        }
    }

    pub(super) fn of_triggers(triggers: &[Option<Trigger>], n_ranks: usize) -> Lever {
        let arms = &triggers[..n_offered(triggers.len(), n_ranks)];
        Lever {
            name: "balance_when",
            names: arms.iter().copied().map(trigger_name).collect(),
            arms: Arms::Triggers(arms.to_vec()),
        }
    }

    /// From now on blocks are placed by this arm.
    pub fn apply(&self, arm: usize, balancer: &mut Balancer<PlacementName>) {
        match &self.arms {
            Arms::Placements(placements) => {
                balancer.use_policy(placements[arm].clone());
                // An arm is judged by its own placement.
                balancer.demand();
            }
            Arms::Triggers(triggers) => {
                balancer.use_triggers(triggers[arm].into_iter().collect());
            }
        }
    }
}

fn n_offered(n_arms: usize, n_ranks: usize) -> usize {
    if n_ranks == 1 { 1 } else { n_arms }
}
