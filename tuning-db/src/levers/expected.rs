//! Expected times of a lever's arms before a program ran: they weigh the first draws, and nothing else.

use colltune_core::levers::asked::LeverPlace;
use colltune_core::levers::learned::{LearnedArm, LearnedLever};
use colltune_models::levers::first_shares;

use super::file::{key_of, path, read, write_down};
use crate::database::{Database, DbError};
use crate::lock::Lock;

/// What is expected of a program's lever on communicators of one shape.
pub struct Expected<'a> {
    /// The name of the program's file.
    pub program: &'a str,
    /// The database key of the library.
    pub library: &'a str,
    pub place: LeverPlace,
    /// Each arm with the seconds that the same work is expected to take, above 0; the first one runs without the tuner.
    pub arms: &'a [(String, f64)],
}

/// Puts the first draws of a lever in force, by what is expected of its arms. Measured epochs go before that.
///
/// Errors: `Locked` while something trains, `Io`, `Levers` for a file of levers that cannot be read, which stays.
pub fn expect(db: &Database, expected: &Expected) -> Result<(), DbError> {
    let _lock = Lock::take(&db.lock_path())?;
    let seconds: Vec<f64> = expected.arms.iter().map(|(_, seconds)| *seconds).collect();
    let arms = expected.arms.iter().zip(first_shares(&seconds));
    let arms: Vec<LearnedArm> = arms
        .map(|((name, _), probability)| LearnedArm {
            name: name.clone(),
            probability,
            gain: [1.0, 0.0, f64::MAX],
        })
        .collect();
    let Some(first) = arms.first() else {
        return Ok(());
    };
    let place = expected.place.clone();
    let new = LearnedLever {
        program: expected.program.to_owned(),
        library: expected.library.to_owned(),
        lever: place.lever,
        class: place.class,
        nodes: place.nodes,
        ppn: place.ppn,
        ranks: place.ranks,
        best: first.name.clone(),
        epochs: 0,
        is_settled: false,
        arms,
    };
    let mut levers = read(db).map_err(|problem| DbError::Levers {
        problem,
        path: path(db),
    })?;
    let is_measured = |one: &LearnedLever| key_of(one) == key_of(&new) && !one.is_expected();
    if levers.iter().any(is_measured) {
        return Ok(());
    }
    levers.retain(|one| key_of(one) != key_of(&new));
    levers.push(new);
    write_down(db, levers)
}

/// Where epochs tell nothing of the arms, so that all are as likely, what was expected of them still weighs the draws.
pub(super) fn or_expected(mut new: LearnedLever, before: &[LearnedLever]) -> LearnedLever {
    let mut shares = new.arms.iter().map(|arm| arm.probability);
    let first = shares.next();
    if !shares.all(|share| Some(share) == first) {
        return new;
    }
    let has_its_shape = |one: &&LearnedLever| {
        one.is_expected()
            && (&one.program, &one.library, &one.lever) == (&new.program, &new.library, &new.lever)
            && (one.nodes, one.ppn, one.ranks) == (new.nodes, new.ppn, new.ranks)
    };
    let has_its_arms = |one: &&LearnedLever| {
        let names = one.arms.iter().map(|arm| &arm.name);
        names.eq(new.arms.iter().map(|arm| &arm.name))
    };
    let expected = before.iter().filter(has_its_shape).find(has_its_arms);
    if let Some(expected) = expected {
        for (arm, expected) in new.arms.iter_mut().zip(&expected.arms) {
            arm.probability = expected.probability;
        }
    }
    new
}
