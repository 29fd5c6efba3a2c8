//! Which lever gives how much: placement, the algorithm of a collective, or both.

use serde::Serialize;

use crate::EmulateError;
use crate::clock::{Timer, Timings};
use crate::price::Choices;
use crate::run::{Keep, Scenario, run};

/// Times of all pairs of a policy and a variant; the first of each is what runs today.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grid {
    pub policies: Vec<String>,
    pub variants: Vec<String>,
    /// Seconds by policy, then by variant.
    pub total_s: Vec<Vec<f64>>,
}

/// What the levers give, as shares of today's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Levers {
    pub best_policy: String,
    pub best_variant: String,
    /// The best policy with today's variant.
    pub placement: f64,
    /// The best variant under today's policy.
    pub algorithm: f64,
    /// The best pair.
    pub both: f64,
    /// What the best pair's levers give together beyond their sum; seconds.
    pub interaction_s: f64,
}

/// Seconds of a scenario with each of these collectives, a row of a grid. A timer is asked in the first of them alone:
/// blocks are placed alike in all, so variants differ by their collectives and not by what the same policy took again.
///
/// Errors: those of [`run`].
pub fn row(scenario: &Scenario, variants: &[Choices]) -> Result<Vec<f64>, EmulateError> {
    let timings = Timings::default();
    let total_s = |choices: &Choices| {
        let timer = scenario.timer.map(|timer| timings.once_more(timer));
        let scenario = Scenario {
            choices: choices.clone(),
            timer: timer.as_ref().map(|timer| timer as Timer),
            ..scenario.clone()
        };
        Ok(run(&scenario, Keep::SUMS)?.outcome.total_s)
    };
    variants.iter().map(total_s).collect()
}

impl Grid {
    /// Shape: a row for each policy with a time for each variant, one of each at least.
    pub fn levers(&self) -> Levers {
        let today = self.total_s[0][0];
        let places =
            || (0..self.policies.len()).flat_map(|i| (0..self.variants.len()).map(move |j| (i, j)));
        let time = |&(i, j): &(usize, usize)| self.total_s[i][j];
        let least = |all: &mut dyn Iterator<Item = (usize, usize)>| {
            // The first of equal ones: today's, if nothing is better.
            let best = all.reduce(|best, next| {
                if time(&next) < time(&best) {
                    next
                } else {
                    best
                }
            });
            best.expect("one of each at least")
        };
        let (i, j) = least(&mut places());
        let of_policy = time(&least(&mut places().filter(|&(_, j)| j == 0)));
        let of_variant = time(&least(&mut places().filter(|&(i, _)| i == 0)));
        let gain = |time: f64| 1.0 - time / today;
        Levers {
            best_policy: self.policies[i].clone(),
            best_variant: self.variants[j].clone(),
            placement: gain(of_policy),
            algorithm: gain(of_variant),
            both: gain(time(&(i, j))),
            interaction_s: time(&(i, j)) - time(&(i, 0)) - time(&(0, j)) + today,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(total_s: [[f64; 3]; 2]) -> Grid {
        Grid {
            policies: ["today", "other"].map(str::to_owned).to_vec(),
            variants: ["default", "ring", "tree"].map(str::to_owned).to_vec(),
            total_s: total_s.map(|row| row.to_vec()).to_vec(),
        }
    }

    #[test]
    fn levers_are_taken_alone_and_together() {
        let found = grid([[10.0, 9.0, 11.0], [8.0, 6.0, 8.5]]).levers();
        assert_eq!(
            (found.best_policy.as_str(), found.best_variant.as_str()),
            ("other", "ring")
        );
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(
            close(found.placement, 0.2) && close(found.algorithm, 0.1) && close(found.both, 0.4)
        );
        // 6 - 8 - 9 + 10: together they give one second more than each alone.
        assert!(close(found.interaction_s, -1.0));
    }

    #[test]
    fn where_nothing_is_better_today_is_best() {
        let found = grid([[5.0, 5.0, 6.0], [5.0, 7.0, 7.0]]).levers();
        assert_eq!(
            (found.best_policy.as_str(), found.best_variant.as_str()),
            ("today", "default")
        );
        assert_eq!(
            (found.placement, found.algorithm, found.both),
            (0.0, 0.0, 0.0)
        );
    }
}
