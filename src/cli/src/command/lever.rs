//! The levers of a line: what its jobs run with, and what was learned of that.

use std::ffi::OsString;

use crate::together::{self, Round};
use colltune_core::levers::Arms;
use colltune_core::request::Mode;
use colltune_db::{Database, levers};
use colltune_launch::levers::{Lever, check, line_hash};
use colltune_models::levers::{LeverJudged, drawn, judge};
use colltune_output::failure::usage;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// The same evidence gives the same answer.
const SEED: u64 = 1;

/// Checks them for a line.
///
/// Errors: a usage error that names lever and remedy.
pub fn checked(levers: &[Lever], line: &[OsString]) -> anyhow::Result<()> {
    check(levers, line).map_err(|problem| usage(format!("use the levers: {problem}")))
}

/// What the ledger tells of each.
pub fn learned(db: Option<&Database>, levers: &[Lever], line: &[OsString]) -> Vec<LeverJudged> {
    let offered: Vec<(&str, &[String])> = levers
        .iter()
        .map(|lever| (&*lever.name, &*lever.arms))
        .collect();
    let Some(db) = db else {
        let alone = levers.iter().map(|lever| colltune_models::levers::Lever {
            n_arms: lever.arms.len(),
            n_offered: lever.arms.len(),
            before: None,
        });
        return judge(&alone.collect::<Vec<_>>(), &[], SEED);
    };
    let (known, rows) = levers::rows(db, &line_hash(line), &offered);
    judge(&known, &rows, SEED)
}

pub fn first(levers: &[Lever]) -> Arms {
    arms(levers, |_| 0)
}

pub fn chosen(levers: &[Lever], learned: &[LeverJudged]) -> Arms {
    arms(levers, |place| learned[place].best)
}

/// Draws an arm of each, independently.
pub fn draw(levers: &[Lever], learned: &[LeverJudged], seed: u64) -> Arms {
    let mut random = StdRng::seed_from_u64(seed);
    let draws: Vec<f64> = levers.iter().map(|_| random.random()).collect();
    arms(levers, |place| drawn(&learned[place].shares, draws[place]))
}

fn arms(levers: &[Lever], arm: impl Fn(usize) -> usize) -> Arms {
    let levers = levers.iter().enumerate();
    let arm =
        |(place, lever): (usize, &Lever)| (lever.name.clone(), lever.arms[arm(place)].clone());
    levers.map(arm).collect()
}

/// What a job in this mode runs with, and how that came about.
pub fn of_job(
    levers: &[Lever],
    line: &[OsString],
    db: Option<&Database>,
    (mode, seed): (Mode, u64),
) -> (Arms, &'static str) {
    if levers.iter().all(|lever| lever.arms.len() == 1) {
        return (first(levers), "");
    }
    match mode {
        Mode::Record | Mode::Off => (first(levers), "the first"),
        Mode::Explore => (draw(levers, &learned(db, levers, line), seed), "drawn"),
        Mode::Exploit | Mode::Tables => (chosen(levers, &learned(db, levers, line)), "chosen"),
    }
}

/// The arms to compare: the first of each lever, and the other one.
///
/// Errors: a usage error where nobody says what the first arm is, or both are the same.
pub fn compared(db: &Database, all: &[Lever], line: &[OsString]) -> anyhow::Result<(Arms, Arms)> {
    checked(all, line)?;
    let known = levers::first_arms(db, &line_hash(line)).unwrap_or_default();
    let learned = learned(Some(db), all, line);
    let (mut first, mut chosen) = (Arms::new(), Arms::new());
    for (lever, learned) in all.iter().zip(&learned) {
        let (name, arms) = (&lever.name, &lever.arms);
        let other = match arms.len() {
            1 => &arms[0],
            2 => &arms[1],
            _ => &arms[learned.best],
        };
        let beside = match arms.len() {
            1 => known.get(name).ok_or_else(|| {
                usage(format!(
                    "compare the lever {name}: the database does not know what this line runs with otherwise; name that \
                     first: --lever {name}=FIRST,{other}"
                ))
            })?,
            _ => &arms[0],
        };
        first.insert(name.clone(), beside.clone());
        chosen.insert(name.clone(), other.clone());
    }
    match first == chosen {
        true => Err(usage(format!(
            "compare the levers: what is chosen is the first arm already ({}); name another one",
            colltune_core::levers::spell(&first)
        ))),
        false => Ok((first, chosen)),
    }
}

/// What a comparison of arms found, as a sentence.
pub fn verdict(rounds: &[Round], first: &Arms, chosen: &Arms) -> String {
    let differs = first.iter().filter(|(name, arm)| chosen[*name] != **arm);
    let arms: Vec<String> = differs
        .map(|(name, arm)| format!("the arm {} of {name} instead of {arm}", chosen[name]))
        .collect();
    let arms = arms.join(" and ");
    match together::levers(rounds) {
        (low, _) if low > 1.0 => format!("With {arms} the program is faster.\n"),
        (_, high) if high < 1.0 => format!("With {arms} the program is SLOWER.\n"),
        _ => format!("No difference can be shown with {arms}.\n"),
    }
}

/// What was learned of one lever.
pub fn sentence(lever: &Lever, learned: &LeverJudged) -> String {
    let (name, first) = (&lever.name, &lever.arms[0]);
    let runs: usize = learned.runs.iter().sum();
    if learned.best != 0 {
        let gain = learned.contrasts[learned.best];
        return format!(
            "Lever {name}: {} is chosen, {:.3} times as fast as {first} (95 % interval {:.3} to {:.3}).",
            lever.arms[learned.best], gain.gain, gain.lo, gain.hi
        );
    }
    match (learned.has_no_effect(), learned.is_settled) {
        (true, true) => {
            format!("Lever {name}: no effect is shown in {runs} jobs; it stays at {first}.")
        }
        (true, false) => {
            format!("Lever {name}: {runs} jobs tell no difference yet; it stays at {first}.")
        }
        (false, _) => {
            format!("Lever {name}: no arm is shown to be faster than {first}, which stays.")
        }
    }
}
