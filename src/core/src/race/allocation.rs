//! How the arms that are left share the draws.
//!
//! By top-two Thompson sampling (Russo, COLT 2016): of posterior draws of what each arm takes the best two get one more
//! share each. They are drawn with half of the standard errors: where all are much alike beside the noise, the budget
//! would not do for all of them. Compared on synthetic cells of 20 and 60 arms and 20,000 calls: of what can be gained
//! 0.91 and 0.91 are reached, by successive halving 0.90 and 0.79; where calls vary by 50 % instead of 20 % it is 0.67
//! and 0.67 against 0.64 and 0.20. LUCB, compared before the test allowed for what wanders, reached 0.93 and 0.89 against
//! 0.93 and 0.92, and with that noise 0.20 and nothing.

use super::Race;
use crate::select::mix;

/// Posterior draws of a review.
const DRAWS: u64 = 64;
/// The part of a standard error that a draw varies by.
const SPREAD: f64 = 0.5;
/// The least share of the default.
const CONTROL: f64 = 0.1;
/// The share of an arm that no draw ranked among the best two.
const HARDLY: f64 = 1e-9;

impl Race {
    /// Shares the draws among the arms that have a share. What was never sampled keeps its own, which is what the model
    /// expects of it; the default's is what makes contrasts of many arms with one most precise.
    pub(super) fn allocate(&mut self, best: usize, seed: u64) {
        let mut unseen = 0.0;
        for place in 0..self.arms.len() {
            let arm = &mut self.arms[place];
            if place == best {
                arm.share = arm.share.max(HARDLY);
            }
            match arm.samples() > 0.0 {
                _ if place == self.control || arm.share <= 0.0 => {}
                true => arm.share = HARDLY,
                false => unseen += arm.share,
            }
        }
        for turn in 0..DRAWS {
            for top in self.best_two(mix(seed, turn)).into_iter().flatten() {
                self.arms[top].share += 1.0;
            }
        }
        let is_ranked = |place: &usize| self.arms[*place].samples() > 0.0;
        let ranked: f64 = self
            .alive()
            .filter(is_ranked)
            .map(|place| self.arms[place].share)
            .sum();
        let scale = (1.0 - unseen).max(CONTROL) / ranked.max(HARDLY);
        let control = self.control;
        let (mut all, mut drawn) = (0.0, 0.0);
        for (place, arm) in self.arms.iter_mut().enumerate() {
            if place != control && arm.share > 0.0 {
                if arm.samples() > 0.0 {
                    arm.share *= scale;
                }
                all += arm.share;
                drawn += f64::from(arm.share > HARDLY);
            }
        }
        let least = (1.0 / (1.0 + f64::sqrt(drawn))).max(CONTROL);
        self.arms[control].share = match all > 0.0 {
            true => least / (1.0 - least) * all,
            false => 1.0,
        };
    }

    /// The best two arms of one posterior draw.
    fn best_two(&self, seed: u64) -> [Option<usize>; 2] {
        let mut tops = [(f64::INFINITY, None); 2];
        let seen = self
            .alive()
            .filter(|place| self.arms[*place].samples() > 0.0);
        for place in seen {
            let error_ns = SPREAD * self.error_ns(place);
            let drawn = self.expected_ns(place) + error_ns * normal(mix(seed, place as u64));
            if drawn < tops[0].0 {
                tops = [(drawn, Some(place)), tops[0]];
            } else if drawn < tops[1].0 {
                tops[1] = (drawn, Some(place));
            }
        }
        tops.map(|(_, place)| place)
    }
}

/// A normal number, nearly: four uniform ones of 16 bits, scaled to the variance 1.
fn normal(word: u64) -> f64 {
    let part = |at: u32| (word >> (16 * at) & 0xffff) as f64 / 65536.0 - 0.5;
    (part(0) + part(1) + part(2) + part(3)) * f64::sqrt(3.0)
}
