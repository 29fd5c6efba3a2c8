//! Levers that programs ask about: from the epochs in the ledger to `DB/levers.json`, which jobs read.

use std::collections::BTreeMap;

use colltune_core::account::JobSummary;
use colltune_core::levers::asked::Asked;
use colltune_core::levers::learned::{LearnedArm, LearnedLever};
use colltune_core::request::Mode;
use colltune_models::levers::{
    Epoch, Epochs, Lever, LeverJudged, ROWS_MAX, Row, judge, rows_of_epochs,
};

use super::expected::or_expected;
use super::file::{Key, key_of, measured, read, write_down};
use super::place;
use crate::database::{Database, DbError};
use crate::dropped::Dropped;
use crate::runs;

/// The epochs that are learned from are of so many runs at most.
const RUNS_MAX: usize = 16;
/// The same evidence gives the same answer.
const SEED: u64 = 1;

/// Learns from the newest runs that asked, and puts that in force. Only the holder of the lock may call it.
///
/// Errors: `Io` and `Owners`; what was in force is then still.
pub(crate) fn learn(
    db: &Database,
    warnings: &mut Vec<String>,
) -> Result<Vec<LearnedLever>, DbError> {
    let before = read(db);
    let is_whole = before.is_ok();
    let before = before.unwrap_or_else(|problem| {
        warnings.push(format!("failed to {problem}"));
        Vec::new()
    });
    let mut found = runs::newest(db, |run| !run.asked.is_empty(), warnings);
    if found.is_empty() && is_whole {
        return Ok(measured(before));
    }
    found.sort_by_key(|run| run.started_unix_ms);
    let dropped = Dropped::of(db)?;
    // Of a lever whose runs were all dropped nothing is known any more.
    let mut by_key: BTreeMap<Key, Vec<(&JobSummary, &Asked)>> = BTreeMap::new();
    for run in &found {
        for asked in &run.asked {
            let key = (
                run.program.clone(),
                run.library.clone(),
                asked.place.clone(),
            );
            let of_key = by_key.entry(key).or_default();
            if !dropped.has(&run.job) {
                of_key.push((run, asked));
            }
        }
    }
    let is_told = |one: &&LearnedLever| !by_key.contains_key(&key_of(one));
    let kept: Vec<LearnedLever> = before.iter().filter(is_told).cloned().collect();
    let new = by_key.iter().filter_map(|(key, asked)| {
        let is_it = |one: &&LearnedLever| key_of(one) == *key && !one.is_expected();
        let new = learned_of(key, asked, before.iter().find(is_it))?;
        Some(or_expected(new, &before))
    });
    let mut levers: Vec<LearnedLever> = new.chain(kept).collect();
    levers.sort_by_key(key_of);
    if before != levers || !is_whole {
        write_down(db, levers.clone())?;
    }
    Ok(measured(levers))
}

/// Of runs in the order of time; the arms that the newest one offered may be drawn.
fn learned_of(
    (program, library, place): &Key,
    asked: &[(&JobSummary, &Asked)],
    before: Option<&LearnedLever>,
) -> Option<LearnedLever> {
    let offered = &asked.last()?.1.arms;
    let (names, rows) = rows(asked, offered);
    let lever = Lever {
        n_arms: names.len(),
        n_offered: offered.len(),
        before: before.and_then(|one| names.iter().position(|name| *name == one.best)),
    };
    let judged: Vec<LeverJudged> = judge(&[lever], &rows, SEED);
    let judged = judged.first()?;
    // Nothing tells arms apart: what was learned before holds.
    if let Some(before) = before.filter(|_| judged.runs.iter().all(|runs| *runs == 0)) {
        return Some(before.clone());
    }
    let known = judged
        .contrasts
        .iter()
        .map(|one| [one.gain, one.lo, one.hi]);
    let arms = offered
        .iter()
        .zip(judged.shares_of_epochs().into_iter().zip(known));
    Some(LearnedLever {
        program: program.clone(),
        library: library.clone(),
        lever: place.lever.clone(),
        class: place.class,
        nodes: place.nodes,
        ppn: place.ppn,
        ranks: place.ranks,
        best: offered[judged.best].clone(),
        epochs: asked.iter().map(|(_, asked)| asked.all).sum(),
        is_settled: judged.is_settled,
        arms: arms
            .map(|(name, (probability, gain))| LearnedArm {
                name: name.clone(),
                probability,
                gain: gain.map(|ratio| ratio.min(f64::MAX)),
            })
            .collect(),
    })
}

/// The names of the arms, those that are offered first, and rows of the newest runs that drew arms; of all runs where none
/// did. Runs that exploit have one arm but for the checks of it: the newest of them would leave no room for what tells arms
/// apart. Of runs with many epochs each so-many-th is taken, the same ones of all: the whole of a run counts, and runs share
/// moments.
fn rows(asked: &[(&JobSummary, &Asked)], offered: &[String]) -> (Vec<String>, Vec<Row>) {
    let draws = |(run, _): &&(&JobSummary, &Asked)| run.mode == Mode::Explore.name();
    let drew = asked.iter().any(|one| draws(&one));
    let told: Vec<_> = asked.iter().filter(|one| !drew || draws(one)).collect();
    let told = &told[told.len().saturating_sub(RUNS_MAX)..];
    let all: usize = told.iter().map(|(_, asked)| asked.epochs.len()).sum();
    let every = all.div_ceil(ROWS_MAX).max(1);
    let (mut names, mut ways, mut arguments) = (offered.to_vec(), Vec::new(), Vec::new());
    let runs = told.iter().map(|(run, asked)| {
        let before = (asked.all as usize).saturating_sub(asked.epochs.len());
        let epochs = (before..).zip(&asked.epochs);
        let told = epochs.filter_map(|(number, epoch)| {
            let name = asked.arms.get(usize::from(epoch.arm))?;
            number.is_multiple_of(every).then(|| Epoch {
                number,
                arm: place(&mut names, name.clone()),
                work: epoch.work,
                log_time: epoch.seconds.ln() - epoch.work.ln(),
            })
        });
        Epochs {
            epochs: told.collect(),
            arguments: place(&mut arguments, run.arguments_hash.clone()),
            way: place(&mut ways, run.mode.clone()),
        }
    });
    let runs: Vec<Epochs> = runs.collect();
    (names, rows_of_epochs(&runs))
}

#[cfg(test)]
mod tests {
    use colltune_core::account::{JobFacts, KINDS};
    use colltune_core::levers::asked::{self, Epoch, LeverPlace};
    use colltune_core::levers::learned::nearest;

    use super::super::expected::{Expected, expect};
    use super::super::file::{learned, path};
    use super::*;

    /// A run of a program with three arms. The last one takes `slow` times as long as the second, the first one half
    /// as long again. Each run is as fast as its node happens to be. `arm` says what an epoch runs.
    fn run_of(
        run: u16,
        epochs: u16,
        slow: f64,
        mode: &str,
        arm: impl Fn(u16) -> u16,
    ) -> JobSummary {
        let place = LeverPlace {
            lever: "placement".to_owned(),
            class: 4,
            nodes: 2,
            ppn: 2,
            ranks: 4,
        };
        let mut told = Vec::new();
        let arms = ["a", "b", "c"].map(str::to_owned);
        for number in 0..epochs {
            let arm = arm(number);
            let noise = 1.0 + 0.01 * f64::from((run * 7 + number * 11) % 5);
            let seconds = noise * [1.5, 1.0, slow][usize::from(arm)] * f64::from(1 + run % 3);
            // A blast that grows: more work, and longer.
            let work = 10.0 + f64::from(number);
            let seconds = seconds * work;
            asked::add(&mut told, &place, &arms, Epoch { arm, seconds, work });
        }
        let facts = JobFacts {
            job: format!("job-{run}"),
            program: "app".to_owned(),
            mode: mode.to_owned(),
            library: "openmpi-4.1.4".to_owned(),
            asked: told,
            ranks: 4,
            started_unix_ms: u64::from(run),
            ..JobFacts::default()
        };
        match run {
            // It died.
            0 => JobSummary::begun(facts),
            _ => JobSummary::new(facts, &vec![Default::default(); KINDS]),
        }
    }

    fn leave(db: &Database, run: &JobSummary) {
        std::fs::create_dir_all(db.incoming()).unwrap();
        std::fs::write(db.incoming().join(format!("{}.run", run.job)), run.line()).unwrap();
    }

    fn database(runs: u16, epochs: u16, slow: f64) -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        for run in 0..runs {
            let drawn = |number| (run * 5 + number) % 3;
            leave(&db, &run_of(run, epochs, slow, "explore", drawn));
        }
        (folder, db)
    }

    fn trained(db: &Database) -> Vec<LearnedLever> {
        crate::train::train(db, Default::default(), &|_| ()).unwrap();
        learned(db, &mut Vec::new())
    }

    /// The first arm is as fast as the second but for the first third of each run.
    #[test]
    fn what_happens_early_in_long_runs_counts() {
        let (_folder, db) = database(0, 0, 1.0);
        for run in 0..10 {
            let mut told = run_of(run, 60, 3.0, "explore", |number| (run * 5 + number) % 3);
            for (number, epoch) in told.asked[0].epochs.iter_mut().enumerate() {
                // That of `run_of` repeats itself.
                let mixed =
                    (u64::from(run) * 60 + number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
                epoch.seconds *= 1.0 + 0.06 * mixed as f64 / 2f64.powi(24);
                if epoch.arm == 0 {
                    epoch.seconds *= if number < 20 { 1.3 } else { 1.0 } / 1.5;
                }
            }
            leave(&db, &told);
        }
        let learned = &trained(&db)[0];
        assert_eq!(learned.best, "b", "{learned:?}");
        // Weighed by work, of which there is least at first.
        let [gain, low, high] = learned.arms[1].gain;
        assert!(
            (1.03..1.07).contains(&gain) && low < 1.047 && 1.047 < high,
            "{gain} {low} {high}"
        );
    }

    #[test]
    fn what_epochs_tell_is_learned_whatever_their_runs_were_like_and_is_in_force_for_jobs() {
        let (_folder, db) = database(6, 12, 1.3);
        let known = trained(&db);
        let [one] = &known[..] else {
            panic!("{known:?}")
        };
        assert_eq!((&*one.best, one.epochs, one.class), ("b", 72, 4));
        let [gain, low, high] = one.gain();
        assert!(
            low < 1.5 && 1.5 < high && (gain - 1.5).abs() < 0.03,
            "{:?}",
            one.gain()
        );
        assert!(one.arms[1].probability > one.arms[2].probability);
        // Nothing new: nothing is written anew, and it stays.
        let written = || std::fs::metadata(path(&db)).unwrap().modified().unwrap();
        let before = written();
        assert_eq!(trained(&db), known);
        assert_eq!(written(), before);
        // Runs of what was learned take nothing from what they rest on.
        for run in 10..40 {
            leave(&db, &run_of(run, 12, 1.3, "exploit", |_| 1));
        }
        let after = trained(&db).remove(0);
        assert_eq!((&*after.best, after.epochs), ("b", 72 + 360));
        assert_eq!(after.gain(), one.gain());
        // Of runs that are dropped nothing is learned.
        let dropped = |jobs: &[String]| {
            let jobs: Vec<String> = jobs.iter().map(|job| format!("\"{job}\":1")).collect();
            let text = format!("{{\"schema\":1,\"jobs\":{{{}}}}}", jobs.join(","));
            std::fs::write(db.root().join(crate::database::DROPPED), text).unwrap();
        };
        let jobs =
            |runs: std::ops::Range<u16>| runs.map(|run| format!("job-{run}")).collect::<Vec<_>>();
        dropped(&jobs(10..40));
        assert_eq!(trained(&db)[0].epochs, 72);
        dropped(&jobs(0..40));
        assert!(trained(&db).is_empty());
    }

    #[test]
    fn what_is_expected_is_in_force_until_epochs_tell() {
        let (_folder, db) = database(0, 0, 1.0);
        let arms = [("a", 2.0), ("b", 1.0), ("c", 1.1)].map(|(name, s)| (name.to_owned(), s));
        let place = |class| LeverPlace {
            lever: "placement".to_owned(),
            class,
            nodes: 2,
            ppn: 2,
            ranks: 4,
        };
        let expected = |class| Expected {
            program: "app",
            library: "openmpi-4.1.4",
            place: place(class),
            arms: &arms,
        };
        let shares = |one: &LearnedLever| -> Vec<f64> {
            one.arms.iter().map(|arm| arm.probability).collect()
        };
        std::fs::write(path(&db), "{").unwrap();
        let error = expect(&db, &expected(0)).unwrap_err().to_string();
        assert!(
            error.contains("levers.json") && error.contains("colltune train"),
            "{error}"
        );
        std::fs::remove_file(path(&db)).unwrap();
        for _ in 0..2 {
            expect(&db, &expected(0)).unwrap();
            let all = read(&db).unwrap();
            assert_eq!((all.len(), &*all[0].best, all[0].epochs), (1, "a", 0));
            let shares = shares(&all[0]);
            assert!(shares[1] > shares[2] && shares[2] > shares[0] && shares[0] > 0.15);
            assert!(
                learned(&db, &mut Vec::new()).is_empty(),
                "nothing was measured"
            );
        }
        // A run of the first arm alone tells nothing of the others.
        leave(&db, &run_of(7, 12, 1.3, "record", |_| 0));
        let known = trained(&db);
        assert_eq!((known.len(), known[0].epochs, known[0].class), (1, 12, 4));
        assert_eq!(
            shares(&known[0]),
            shares(&read(&db).unwrap()[0]),
            "{known:?}"
        );
        for run in 0..6 {
            leave(
                &db,
                &run_of(run, 12, 1.3, "explore", |number| (run * 5 + number) % 3),
            );
        }
        let known = trained(&db);
        assert_eq!(
            (known.len(), &*known[0].best, known[0].epochs),
            (1, "b", 84)
        );
        // It is of another class, and who asks for any gets what was measured.
        let all = read(&db).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(nearest(&all, &place(0)), Some(&known[0]));
        expect(&db, &expected(4)).unwrap();
        assert_eq!(
            learned(&db, &mut Vec::new()),
            known,
            "what was measured stays"
        );
    }

    #[test]
    fn any_unit_of_work_is_learned_from_and_an_impossible_account_is_not() {
        let (_folder, db) = database(0, 0, 1.0);
        for run in 0..6 {
            let mut run = run_of(run, 12, 1.3, "explore", |number| (run * 5 + number) % 3);
            // The smallest number that there is, in every other run the largest.
            let work = [5e-324, f64::MAX][usize::from(run.job.ends_with(['1', '3', '5']))];
            let epochs = run.asked[0].epochs.iter_mut();
            epochs.for_each(|epoch| epoch.work = work);
            leave(&db, &run);
        }
        let mut wrong = run_of(9, 12, 1.3, "explore", |_| 1);
        wrong.asked[0].epochs[0].seconds = 1e300;
        leave(&db, &wrong);
        let known = trained(&db);
        assert_eq!(known[0].epochs, 72);
        assert!(known[0].gain().iter().all(|gain| gain.is_finite()));
        assert_eq!(trained(&db), known, "it can be read back");
    }

    #[test]
    fn the_first_arm_stays_where_another_one_is_faster_by_next_to_nothing() {
        let (_folder, db) = database(4, 12, 1.498);
        let mut known = trained(&db);
        assert_eq!(known.remove(0).best, "b");
        let (_folder, db) = database(0, 0, 1.0);
        assert!(trained(&db).is_empty() && !path(&db).exists());
    }

    #[test]
    fn a_file_that_is_no_such_file_is_told_and_replaced() {
        let (_folder, db) = database(3, 12, 1.3);
        std::fs::write(path(&db), "{}").unwrap();
        let mut warnings = Vec::new();
        assert!(learned(&db, &mut warnings).is_empty());
        assert!(warnings[0].contains("levers.json"), "{warnings:?}");
        assert_eq!(trained(&db).len(), 1);
    }
}
