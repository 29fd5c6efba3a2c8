//! The levers of a line: what its jobs run with, and what was learned of that.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::together::{self, Round};
use colltune_core::account::JobSummary;
use colltune_core::levers::{Arms, LEVERS_MAX};
use colltune_core::library::{Library, Product};
use colltune_core::request::Mode;
use colltune_core::settings::Reproducible;
use colltune_db::{Database, Generation, Passed, levers};
use colltune_launch::levers::{Lever, check, is_variable, line_hash};
use colltune_launch::nonblocking::{self, users_own};
use colltune_models::levers::{LeverJudged, drawn, judge};
use colltune_output::failure::usage;
use colltune_output::progress;
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

/// Those of a line without variables that the user has set, and those that `--lever nonblocking` stands for: the ones that
/// a run of the line on `library` had, else by what is recorded of its product; of any library where none is named. And
/// what there is to say.
pub fn expanded(
    all: &[Lever],
    line: &[OsString],
    db: Option<&Database>,
    library: Option<Library>,
) -> (Vec<Lever>, Vec<String>) {
    let mut said = Vec::new();
    let is_free = |name: &str, said: &mut Vec<String>| {
        let own = users_own(name, line);
        said.extend(own.clone());
        own.is_none()
    };
    let named = all.iter().filter(|lever| !lever.is_preset()).cloned();
    let mut levers: Vec<Lever> = named.filter(|one| is_free(&one.name, &mut said)).collect();
    if !all.iter().any(Lever::is_preset) {
        return (levers, said);
    }
    let is_other = |name: &str| is_variable(name) && all.iter().all(|one| one.name != name);
    let reproducible = db.and_then(|db| Some(db.settings().ok()?.reproducible));
    let reproducible = reproducible.unwrap_or_default();
    let hash = line_hash(line);
    let is_free_to_sum = reproducible == Reproducible::Off;
    let ran = db.filter(|_| is_free_to_sum).and_then(|db| {
        let key = library.map(|library| library.to_string());
        let is_run = |run: &JobSummary| {
            run.arguments_hash == hash && key.as_ref().is_none_or(|key| run.library == *key)
        };
        let run = levers::lines(db, is_run, is_other).pop()?;
        let library = run.library.parse::<Library>().ok()?;
        let names = run.levers.keys().filter(|name| is_other(name));
        let known: Vec<Lever> = names
            .filter_map(|name| nonblocking::known(library, name))
            .collect();
        (!known.is_empty()).then_some(known)
    });
    let product = library.map(|library| library.product);
    match (ran, db.and_then(|db| recorded(db, product))) {
        (Some(known), _) => {
            let known = known.into_iter();
            levers.extend(known.filter(|lever| is_free(&lever.name, &mut said)));
        }
        (None, Some((library, passed))) => {
            let (found, words) = nonblocking::levers(library, &passed, line, reproducible);
            levers.extend(found.into_iter().filter(|lever| is_other(&lever.name)));
            said.extend(words);
        }
        (None, None) => said.push(nonblocking::NOTHING_RECORDED.to_owned()),
    }
    levers.truncate(LEVERS_MAX);
    (levers, said)
}

/// The newest trained library, of `product` where one is named, and what was recorded of calls that it ran alone.
pub fn recorded(db: &Database, product: Option<Product>) -> Option<(Library, Vec<Passed>)> {
    let keys = db.keys().ok()?.into_iter();
    let keys = keys.filter(|key| product.is_none_or(|product| key.library.product == product));
    let loaded = keys.filter_map(|key| {
        let library = key.library;
        let meta = Generation::load(db, key).ok()?.meta?;
        Some((meta.created_unix_ms, library, meta.passed))
    });
    let newest = loaded.max_by_key(|one| one.0)?;
    Some((newest.1, newest.2))
}

/// The variables of a library that are chosen for its programs, without those of which they choose differently.
pub fn variables(db: &Database, library: Library) -> Vec<(String, String)> {
    let key = library.to_string();
    // As it may be set since: then reductions are left alone.
    let settings = db.settings().ok();
    let may_sum = settings.is_some_and(|one| one.reproducible == Reproducible::Off);
    let mut chosen: BTreeMap<String, Option<String>> = BTreeMap::new();
    for run in levers::lines(db, |run| run.library == key, is_variable) {
        let known = |name: &String| {
            let may_run = may_sum || !nonblocking::is_reduction(library, name);
            nonblocking::known(library, name).filter(|_| may_run)
        };
        let levers: Vec<Lever> = run.levers.keys().filter_map(known).collect();
        let learned = learned_of(db, &levers, &run.arguments_hash);
        let tells = |one: &&LeverJudged| one.best != 0 || one.is_settled;
        for (lever, one) in levers.iter().zip(&learned).filter(|(_, one)| tells(one)) {
            let arm = Some(lever.arms[one.best].clone());
            let kept = chosen
                .entry(lever.name.clone())
                .or_insert_with(|| arm.clone());
            if *kept != arm {
                *kept = None;
            }
        }
    }
    let arms = chosen.into_iter();
    nonblocking::assignments(&arms.filter_map(|(name, arm)| Some((name, arm?))).collect())
}

/// What the ledger tells of each.
pub fn learned(db: Option<&Database>, levers: &[Lever], line: &[OsString]) -> Vec<LeverJudged> {
    let Some(db) = db else {
        let alone = levers.iter().map(|lever| colltune_models::levers::Lever {
            n_arms: lever.arms.len(),
            n_offered: lever.arms.len(),
            before: None,
        });
        return judge(&alone.collect::<Vec<_>>(), &[], SEED);
    };
    learned_of(db, levers, &line_hash(line))
}

fn learned_of(db: &Database, levers: &[Lever], line_hash: &str) -> Vec<LeverJudged> {
    let offered = levers.iter().map(|lever| (&*lever.name, &*lever.arms));
    let (known, rows) = levers::rows(db, line_hash, &offered.collect::<Vec<_>>());
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
/// Errors: a usage error where the first arm is unknown, or both are the same.
pub fn compared(db: &Database, all: &[Lever], line: &[OsString]) -> anyhow::Result<(Arms, Arms)> {
    checked(all, line)?;
    let given = all;
    let (all, said) = expanded(all, line, Some(db), None);
    if all.is_empty() {
        return Err(usage(format!("compare the levers: {}", said.join("; "))));
    }
    said.iter().for_each(progress::hint);
    let all = &all[..];
    let is_given = |name: &String| given.iter().any(|one| one.name == *name);
    let known = levers::first_arms(db, &line_hash(line)).unwrap_or_default();
    let learned = learned(Some(db), all, line);
    let (mut first, mut chosen) = (Arms::new(), Arms::new());
    for (lever, learned) in all.iter().zip(&learned) {
        let (name, arms) = (&lever.name, &lever.arms);
        let other = match arms.len() {
            1 => &arms[0],
            2 if is_given(name) => &arms[1],
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
