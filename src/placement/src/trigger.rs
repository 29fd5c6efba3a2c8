//! When to place anew.

use std::fmt;
use std::str::FromStr;

use crate::error::PlacementError;

/// The rule that says when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trigger {
    Never,
    /// Every so many steps.
    Every(u64),
    /// When the mesh has changed.
    MeshChange,
    /// When the makespan exceeds the mean load by more than this share of it.
    Imbalance(f64),
    /// When the predicted gain exceeds the cost: a balancer weighs a [`Prospect`].
    BreakEven,
}

/// What is known when the rule is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation {
    pub steps_since_placed: u64,
    pub mesh_changed: bool,
    /// The load of the most loaded rank under the present owners.
    pub makespan: f64,
    pub mean: f64,
}

/// The gain of a placement over the expected life of the mesh, against what it costs.
///
/// Units: all times in one unit, that of the costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prospect {
    /// The makespan that the placement is expected to have: a computed one, or a lower bound.
    pub makespan: f64,
    /// Steps until the mesh is expected to change again; see [`MeshLife`].
    pub steps_left: f64,
    /// The time that computing the placement takes.
    pub placing: f64,
    /// The time that moving the blocks takes.
    pub migrating: f64,
}

impl Trigger {
    /// True if it is time to place anew, whatever that would gain.
    pub fn is_due(&self, situation: &Situation) -> bool {
        match *self {
            Trigger::Never | Trigger::BreakEven => false,
            Trigger::Every(steps) => situation.steps_since_placed >= steps,
            Trigger::MeshChange => situation.mesh_changed,
            Trigger::Imbalance(share) => situation.makespan > situation.mean * (1.0 + share),
        }
    }
}

impl Prospect {
    /// The time that is saved until the mesh changes, less what placing and migrating take.
    pub fn gain(&self, makespan_now: f64) -> f64 {
        (makespan_now - self.makespan) * self.steps_left - self.placing - self.migrating
    }
}

/// How long a mesh lives, learned from how long the earlier ones did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeshLife {
    expected_steps: f64,
    weight: f64,
}

impl MeshLife {
    /// Starts with a guess; each mesh that ends moves it by `weight` towards its own life.
    pub fn new(expected_steps: f64, weight: f64) -> Self {
        MeshLife {
            expected_steps: expected_steps.max(0.0),
            weight: weight.clamp(0.0, 1.0),
        }
    }

    /// Notes that a mesh has lived for `steps`.
    pub fn ended(&mut self, steps: u64) {
        self.expected_steps += self.weight * (steps as f64 - self.expected_steps);
    }

    /// Steps that a mesh of age `steps` is expected to live on; one that has outlived the
    /// expectation is expected to live one step more.
    pub fn steps_left(&self, steps: u64) -> f64 {
        (self.expected_steps - steps as f64).max(1.0)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Never => f.write_str("never"),
            Trigger::Every(steps) => write!(f, "every:{steps}"),
            Trigger::MeshChange => f.write_str("mesh-change"),
            Trigger::Imbalance(share) => write!(f, "imbalance:{share}"),
            Trigger::BreakEven => f.write_str("break-even"),
        }
    }
}

impl FromStr for Trigger {
    type Err = PlacementError;

    fn from_str(name: &str) -> Result<Self, PlacementError> {
        let number = |text: &str| {
            text.parse()
                .ok()
                .filter(|n: &f64| n.is_finite() && *n >= 0.0)
        };
        let found = match name.split_once(':') {
            None if name == "never" => Some(Trigger::Never),
            None if name == "mesh-change" => Some(Trigger::MeshChange),
            None if name == "break-even" => Some(Trigger::BreakEven),
            Some(("every", n)) => n.parse().ok().filter(|&n| n > 0).map(Trigger::Every),
            Some(("imbalance", share)) => number(share).map(Trigger::Imbalance),
            _ => None,
        };
        found.ok_or_else(|| PlacementError::UnknownTrigger(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Situation = Situation {
        steps_since_placed: 4,
        mesh_changed: false,
        makespan: 11.0,
        mean: 10.0,
    };

    #[test]
    fn each_rule_answers_to_its_own_fact() {
        let due = |name: &str, situation| name.parse::<Trigger>().unwrap().is_due(situation);
        assert!(!due("never", &CALM));
        assert!(due("every:4", &CALM) && !due("every:5", &CALM));
        assert!(!due("mesh-change", &CALM));
        let changed = Situation {
            mesh_changed: true,
            ..CALM
        };
        assert!(due("mesh-change", &changed));
        assert!(due("imbalance:0.05", &CALM) && !due("imbalance:0.15", &CALM));
    }

    #[test]
    fn the_life_of_meshes_is_learned() {
        let mut life = MeshLife::new(10.0, 0.5);
        life.ended(20);
        assert_eq!(
            (life.steps_left(0), life.steps_left(12), life.steps_left(99)),
            (15.0, 3.0, 1.0)
        );
    }

    #[test]
    fn names_are_read_back_and_others_refused() {
        for name in [
            "never",
            "every:10",
            "mesh-change",
            "imbalance:0.25",
            "break-even",
        ] {
            assert_eq!(name.parse::<Trigger>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "every",
            "every:0",
            "every:x",
            "imbalance:-1",
            "imbalance:NaN",
            "always",
        ] {
            assert!(name.parse::<Trigger>().is_err(), "{name}");
        }
    }
}
