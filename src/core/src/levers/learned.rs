//! What trainings published of the levers that programs ask about, `DB/levers.json`, and which arm comes of it.

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::asked::LeverPlace;

/// The version of the layout of `levers.json`.
pub const SCHEMA: u32 = 2;
/// The file in a database's folder.
pub const FILE: &str = "levers.json";

/// All that is known of levers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnedLevers {
    pub schema: u32,
    pub levers: Vec<LearnedLever>,
}

/// What is known of a program's lever, for one class of sizes on communicators of one shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct LearnedLever {
    /// The name of the program's file.
    pub program: String,
    /// The database key of the library, as in `openmpi-4.1.4`.
    pub library: String,
    pub lever: String,
    pub class: i32,
    pub nodes: u64,
    pub ppn: u64,
    pub ranks: u64,
    pub best: String,
    pub epochs: u64,
    /// Whether further epochs are expected to gain next to nothing.
    pub is_settled: bool,
    /// The first arm is the one that runs without the tuner.
    pub arms: Vec<LearnedArm>,
}

/// What is known of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Encode, Decode)]
pub struct LearnedArm {
    pub name: String,
    /// Of the next draw.
    pub probability: f64,
    /// The first arm's time over this one's, with its 95 % interval.
    pub gain: [f64; 3],
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum LeversError {
    #[error("read what was learned of levers: {0}")]
    Json(String),
    #[error(
        "use what was learned of levers: its layout has version {0}, this colltune reads version {SCHEMA}"
    )]
    Schema(u32),
    #[error("use what was learned of the lever {lever}: {problem}")]
    Lever { lever: String, problem: String },
}

impl LearnedLevers {
    /// Reads `levers.json`.
    ///
    /// Errors: `Json` for text that is not this layout, `Schema`, `Lever` for probabilities that are none.
    pub fn from_json(text: &str) -> Result<LearnedLevers, LeversError> {
        let read: LearnedLevers =
            serde_json::from_str(text).map_err(|error| LeversError::Json(error.to_string()))?;
        if read.schema != SCHEMA {
            return Err(LeversError::Schema(read.schema));
        }
        for lever in &read.levers {
            lever.check().map_err(|problem| LeversError::Lever {
                lever: lever.lever.clone(),
                problem,
            })?;
        }
        Ok(read)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("they hold only numbers, names and lists")
    }

    /// Those of one program with one library.
    pub fn of(self, program: &str, library: &str) -> Vec<LearnedLever> {
        let levers = self.levers.into_iter();
        let is_its = |lever: &LearnedLever| lever.program == program && lever.library == library;
        levers.filter(is_its).collect()
    }
}

impl LearnedLever {
    fn check(&self) -> Result<(), String> {
        let is_share = |arm: &LearnedArm| (0.0..=1.0).contains(&arm.probability);
        let sum: f64 = self.arms.iter().map(|arm| arm.probability).sum();
        if !self.arms.iter().all(is_share) || (sum - 1.0).abs() > 1e-6 {
            return Err(format!("the probabilities sum to {sum}"));
        }
        match self.arm(&self.best) {
            Some(_) => Ok(()),
            None => Err(format!("unknown best arm {:?}", self.best)),
        }
    }

    pub fn arm(&self, name: &str) -> Option<&LearnedArm> {
        self.arms.iter().find(|arm| arm.name == name)
    }

    /// Nothing was measured: it only weighs first draws.
    pub fn is_expected(&self) -> bool {
        self.epochs == 0
    }

    /// How many times as fast the best arm is as the first one, with its 95 % interval.
    pub fn gain(&self) -> [f64; 3] {
        self.arm(&self.best).map_or([1.0; 3], |arm| arm.gain)
    }
}

/// What is known nearest to a place: of its lever and shape, of the class next to its own. What was expected before
/// anything ran is of no class, and the last resort.
pub fn nearest<'a>(known: &'a [LearnedLever], place: &LeverPlace) -> Option<&'a LearnedLever> {
    let has_its_shape = |one: &&LearnedLever| {
        one.lever == place.lever
            && (one.nodes, one.ppn, one.ranks) == (place.nodes, place.ppn, place.ranks)
    };
    let known = known.iter().filter(has_its_shape);
    known.min_by_key(|one| {
        (
            one.is_expected(),
            one.class.abs_diff(place.class),
            one.class,
        )
    })
}

/// The arm that is known to be best, of those that are offered; the first one where nothing was measured.
pub fn best(known: Option<&LearnedLever>, arms: &[String]) -> usize {
    let known = known.filter(|known| !known.is_expected());
    let place = known.and_then(|known| arms.iter().position(|arm| *arm == known.best));
    place.unwrap_or(0)
}

/// Draws an arm by what was learned: an arm without data is as likely as any would be if nothing were known.
///
/// Units: `random` is from 0 up to 1.
pub fn drawn(known: Option<&LearnedLever>, arms: &[String], random: f64) -> usize {
    let even = 1.0 / arms.len() as f64;
    let share = |arm: &String| {
        let known = known.and_then(|known| known.arm(arm));
        known.map_or(even, |known| known.probability)
    };
    let shares: Vec<f64> = arms.iter().map(share).collect();
    let mut left = random * shares.iter().sum::<f64>();
    for (arm, share) in shares.iter().enumerate() {
        left -= share;
        if left < 0.0 {
            return arm;
        }
    }
    // Rounding, or nothing that is offered may be drawn.
    best(known, arms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lever(class: i32, shares: &[(&str, f64)]) -> LearnedLever {
        let arm = |&(name, probability): &(&str, f64)| LearnedArm {
            name: name.to_owned(),
            probability,
            gain: [1.1, 1.05, 1.15],
        };
        LearnedLever {
            program: "app".to_owned(),
            library: "openmpi-4.1.4".to_owned(),
            lever: "placement".to_owned(),
            class,
            nodes: 4,
            ppn: 2,
            ranks: 8,
            best: shares[0].0.to_owned(),
            epochs: 30,
            is_settled: false,
            arms: shares.iter().map(arm).collect(),
        }
    }

    fn place(class: i32) -> LeverPlace {
        LeverPlace {
            lever: "placement".to_owned(),
            class,
            nodes: 4,
            ppn: 2,
            ranks: 8,
        }
    }

    #[test]
    fn what_was_published_is_read_back_and_what_is_no_draw_is_refused_by_name() {
        let whole = LearnedLevers {
            schema: SCHEMA,
            levers: vec![lever(3, &[("lpt", 0.75), ("cplx:50", 0.25)])],
        };
        assert_eq!(
            LearnedLevers::from_json(&whole.to_json()),
            Ok(whole.clone())
        );
        assert_eq!(whole.clone().of("app", "openmpi-4.1.4").len(), 1);
        assert!(whole.clone().of("other", "openmpi-4.1.4").is_empty());
        let error = |change: fn(&mut LearnedLevers)| {
            let mut changed = whole.clone();
            change(&mut changed);
            LearnedLevers::from_json(&changed.to_json())
                .unwrap_err()
                .to_string()
        };
        assert!(error(|all| all.schema = 3).contains("version 3"));
        assert!(
            error(|all| all.levers[0].arms[0].probability = 0.9)
                .contains("lever placement: the probabilities")
        );
        assert!(
            error(|all| all.levers[0].best = "x".to_owned()).contains("unknown best arm \"x\"")
        );
        assert!(matches!(
            LearnedLevers::from_json("{"),
            Err(LeversError::Json(_))
        ));
    }

    #[test]
    fn the_nearest_class_of_the_same_shape_tells_the_arm_by_name() {
        let known = [
            lever(3, &[("lpt", 0.75), ("cplx:50", 0.25)]),
            lever(7, &[("cplx:50", 1.0), ("lpt", 0.0)]),
        ];
        let arms = ["contiguous", "lpt", "cplx:50"].map(str::to_owned);
        let at = |class| best(nearest(&known, &place(class)), &arms);
        assert_eq!([0, 5, 6, 9].map(at), [1, 1, 2, 2]);
        assert_eq!(
            nearest(
                &known,
                &LeverPlace {
                    ranks: 6,
                    ..place(3)
                }
            ),
            None
        );
        assert_eq!(best(None, &arms), 0);
        // An expectation counts only where nothing was measured.
        let expected = LearnedLever {
            epochs: 0,
            ..lever(5, &[("contiguous", 1.0)])
        };
        let both = [known[1].clone(), expected.clone()];
        assert_eq!(nearest(&both, &place(5)), Some(&known[1]));
        assert_eq!(nearest(&both[1..], &place(9)), Some(&expected));
        let turned = ["lpt", "contiguous"].map(str::to_owned);
        assert_eq!(best(Some(&expected), &turned), 0, "and draws alone");
        assert_eq!(best(Some(&known[0]), &arms[..1]), 0);
    }

    #[test]
    fn arms_are_drawn_by_their_shares_and_new_ones_by_an_even_share() {
        let known = lever(3, &[("lpt", 0.75), ("cplx:50", 0.25)]);
        let count = |known: Option<&LearnedLever>, arms: &[&str]| {
            let arms: Vec<String> = arms.iter().map(|arm| (*arm).to_owned()).collect();
            let mut counts = vec![0; arms.len()];
            for draw in 0..1200 {
                counts[drawn(known, &arms, (f64::from(draw) + 0.5) / 1200.0)] += 1;
            }
            counts
        };
        assert_eq!(count(Some(&known), &["lpt", "cplx:50"]), [900, 300]);
        assert_eq!(
            count(Some(&known), &["new", "lpt", "cplx:50"]),
            [300, 675, 225]
        );
        assert_eq!(count(None, &["a", "b", "c"]), [400, 400, 400]);
        let certain = lever(3, &[("lpt", 1.0), ("cplx:50", 0.0)]);
        assert_eq!(count(Some(&certain), &["cplx:50"]), [1200]);
    }
}
