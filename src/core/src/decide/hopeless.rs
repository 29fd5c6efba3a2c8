//! What a job tries no more: variants that reviews found hopeless ([`crate::review::hopeless`]) on two communicators.
//!
//! The ranks that were in such a review know of it. In the set-up of a later communicator, and in reviews, they tell its
//! other members, so all of them leave the same out. One communicator alone bans nothing elsewhere: of many first samples
//! some are disturbed. Of variants that share a word one is kept in mind; another is tried on.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::select::mix;

/// Words of a [`Hopeless`]; the members' are combined by the largest of each.
pub const HOPELESS_WORDS: usize = 32;

/// Cells' variants that were found hopeless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hopeless(pub [u64; HOPELESS_WORDS]);

impl Hopeless {
    pub const NOTHING: Hopeless = Hopeless([0; HOPELESS_WORDS]);

    /// Whether it was on two communicators. By the cell's place in the model and the variant's among those of its
    /// collective.
    pub(super) fn has(&self, model_cell: u32, variant: u16) -> bool {
        let found = found(model_cell, variant);
        self.0[place(found)] & !FINDER == found | TWICE
    }
}

/// What one process knows of that.
#[derive(Debug, Default)]
pub struct KnownHopeless([AtomicU64; HOPELESS_WORDS]);

impl KnownHopeless {
    pub fn all(&self) -> Hopeless {
        Hopeless(self.0.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// Takes what other ranks know.
    pub fn learn(&self, told: &Hopeless) {
        for (own, word) in self.0.iter().zip(told.0) {
            own.fetch_max(word, Ordering::Relaxed);
        }
    }

    /// The communicator of this number has found it.
    pub(super) fn add(&self, model_cell: u32, variant: u16, comm: u64) {
        let found = found(model_cell, variant);
        let by = mix(comm, 0) & FINDER;
        let word = &self.0[place(found)];
        let before = word.fetch_max(found | by, Ordering::Relaxed);
        // Another thread may have heard already of what this communicator found.
        let is_confirmed = before & !(TWICE | FINDER) == found && before & FINDER != by;
        if is_confirmed {
            word.fetch_max(found | TWICE, Ordering::Relaxed);
        }
    }
}

/// A word is the cell, the variant, whether two communicators have found it, and a mark of the first of them, or of one of
/// them.
const TWICE: u64 = 1 << 15;
const FINDER: u64 = TWICE - 1;

/// Without the last two. Not 0.
fn found(model_cell: u32, variant: u16) -> u64 {
    (u64::from(model_cell) + 1) << 32 | u64::from(variant) << 16
}

fn place(found: u64) -> usize {
    (mix(found, 0) % HOPELESS_WORDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(a: Hopeless, b: Hopeless) -> Hopeless {
        let pairs = a.0.into_iter().zip(b.0);
        let mut pairs = pairs.map(|(a, b)| a.max(b));
        Hopeless(std::array::from_fn(|_| pairs.next().expect("as many")))
    }

    #[test]
    fn members_know_together_what_each_of_them_knows() {
        let [one, other] = [KnownHopeless::default(), KnownHopeless::default()];
        for comm in 1..=2 {
            one.add(0, 3, comm);
            other.add(9, 4, comm);
        }
        assert!(one.all().has(0, 3) && !one.all().has(9, 4));
        let both = largest(one.all(), other.all());
        assert!(both.has(0, 3) && both.has(9, 4));
        assert!(!both.has(0, 4) && !both.has(9, 3));
        one.learn(&both);
        assert_eq!(one.all(), both);
    }

    #[test]
    fn what_one_communicator_found_another_one_confirms() {
        let [one, other] = [KnownHopeless::default(), KnownHopeless::default()];
        one.add(5, 2, 1);
        other.learn(&one.all());
        // The same communicator, of which this process has heard before it came to its end of the review.
        other.add(5, 2, 1);
        assert!(!one.all().has(5, 2) && !other.all().has(5, 2));
        other.add(5, 2, 2);
        assert!(other.all().has(5, 2));
        other.add(5, 2, 1);
        one.learn(&other.all());
        assert!(one.all().has(5, 2) && !one.all().has(5, 3));
    }

    #[test]
    fn of_many_some_are_forgotten_and_none_is_made_up() {
        let known = KnownHopeless::default();
        for comm in 1..=2 {
            for cell in 0..40 {
                for variant in (1..20).step_by(3) {
                    known.add(cell, variant, comm);
                }
            }
        }
        let all = known.all();
        let has = |cell, variant| all.has(cell, variant);
        let found = (0..40u32).flat_map(|cell| (0..30u16).map(move |variant| (cell, variant)));
        let found: Vec<(u32, u16)> = found
            .filter(|&(cell, variant)| has(cell, variant))
            .collect();
        assert!((HOPELESS_WORDS / 2..=HOPELESS_WORDS).contains(&found.len()));
        assert!(found.iter().all(|(_, variant)| variant % 3 == 1));
    }
}
