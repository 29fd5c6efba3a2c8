//! What a program asked about its levers in one job, and how long the epochs took, for the ledger.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// So many epochs of a lever are kept of a job, the newest, and of so many levers and sizes.
pub const EPOCHS_MAX: usize = 128;
pub const ASKED_MAX: usize = 64;
/// More arms than these no tens of jobs can tell apart.
pub const ARMS_MAX: usize = 64;
/// The names of all arms together: a job's account is a line.
const NAMES_BYTES_MAX: usize = 64 << 10;

/// Where an arm may be the best: a lever on communicators of one shape, for one class of sizes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeverPlace {
    pub lever: String,
    /// The power of two below the size that the program passed; see [`size_class`].
    pub class: i32,
    pub nodes: u64,
    /// The most ranks on one node.
    pub ppn: u64,
    pub ranks: u64,
}

/// From one `colltune_choose` to its `colltune_done`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u16, f64, f64)", into = "(u16, f64, f64)")]
pub struct Epoch {
    /// A place in the list of arms.
    pub arm: u16,
    /// Of the rank that took longest.
    pub seconds: f64,
    /// Of all ranks together.
    pub work: f64,
}

impl From<(u16, f64, f64)> for Epoch {
    fn from((arm, seconds, work): (u16, f64, f64)) -> Epoch {
        Epoch { arm, seconds, work }
    }
}

impl From<Epoch> for (u16, f64, f64) {
    fn from(epoch: Epoch) -> (u16, f64, f64) {
        (epoch.arm, epoch.seconds, epoch.work)
    }
}

/// One lever as a job asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    #[serde(flatten)]
    pub place: LeverPlace,
    /// By name, the first of which runs without the tuner.
    pub arms: Vec<String>,
    /// The newest ones, the oldest first.
    pub epochs: VecDeque<Epoch>,
    /// How many there were.
    pub all: u64,
}

/// Adds an epoch to a job's.
///
/// Errors: false where it is no measurement (no time, no work), or of one lever more than a job keeps.
pub fn add(asked: &mut Vec<Asked>, place: &LeverPlace, arms: &[String], epoch: Epoch) -> bool {
    let is_positive = |number: f64| number.is_finite() && number > 0.0;
    if !is_positive(epoch.seconds) || !is_positive(epoch.work) {
        return false;
    }
    let known = asked
        .iter()
        .position(|asked| asked.place == *place && asked.arms == arms);
    let index = match known {
        Some(index) => index,
        None if asked.len() < ASKED_MAX && bytes(asked, arms) <= NAMES_BYTES_MAX => {
            asked.push(Asked {
                place: place.clone(),
                arms: arms.to_vec(),
                epochs: VecDeque::new(),
                all: 0,
            });
            asked.len() - 1
        }
        None => return false,
    };
    let asked = &mut asked[index];
    if asked.epochs.len() == EPOCHS_MAX {
        asked.epochs.pop_front();
    }
    asked.epochs.push_back(epoch);
    asked.all += 1;
    true
}

/// What the names take, with these.
fn bytes(asked: &[Asked], arms: &[String]) -> usize {
    let known = asked.iter().flat_map(|asked| &asked.arms);
    known.chain(arms).map(String::len).sum()
}

/// The class of a size: the power of two below it. A size that is not finite or not above 0 is of the class of 1.
pub fn size_class(size: f64) -> i32 {
    match size.is_finite() && size > 0.0 {
        true => size.log2().floor() as i32,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_kept_by_lever_the_newest_ones_and_read_back_as_they_were() {
        let place = |lever: &str| LeverPlace {
            lever: lever.to_owned(),
            class: -2,
            nodes: 2,
            ppn: 4,
            ranks: 8,
        };
        let arms = ["a", "b"].map(str::to_owned);
        let epoch = |arm, seconds, work| Epoch { arm, seconds, work };
        let mut asked = Vec::new();
        for number in 0..EPOCHS_MAX + 2 {
            assert!(add(
                &mut asked,
                &place("one"),
                &arms,
                epoch(1, 1.0 + number as f64, 2.0)
            ));
        }
        assert!(add(&mut asked, &place("two"), &arms, epoch(0, 1.0, 2.0)));
        for (seconds, work) in [
            (0.0, 1.0),
            (1.0, 0.0),
            (1.0, f64::NAN),
            (f64::INFINITY, 1.0),
            (1.0, -1.0),
        ] {
            assert!(!add(
                &mut asked,
                &place("two"),
                &arms,
                epoch(0, seconds, work)
            ));
        }
        let [one, two] = &asked[..] else {
            panic!("{asked:?}")
        };
        assert_eq!(
            (one.epochs.len(), one.all, two.all),
            (EPOCHS_MAX, EPOCHS_MAX as u64 + 2, 1)
        );
        assert_eq!(one.epochs[0].seconds, 3.0);
        let text = serde_json::to_string(two).unwrap();
        assert!(
            text.contains(r#""lever":"two","class":-2"#) && text.contains("[0,1.0,2.0]"),
            "{text}"
        );
        assert_eq!(&serde_json::from_str::<Asked>(&text).unwrap(), two);
        for number in 0..ASKED_MAX {
            add(
                &mut asked,
                &place(&number.to_string()),
                &arms,
                epoch(0, 1.0, 1.0),
            );
        }
        assert_eq!(asked.len(), ASKED_MAX);
    }

    #[test]
    fn sizes_are_told_apart_by_their_powers_of_two() {
        let classes = [
            1.0,
            1.9,
            2.0,
            1000.0,
            0.3,
            0.0,
            f64::NAN,
            f64::INFINITY,
            -4.0,
        ]
        .map(size_class);
        assert_eq!(classes, [0, 0, 1, 9, -2, 0, 0, 0, 0]);
    }
}
