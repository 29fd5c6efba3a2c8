//! What a trial adds to the ledger: how long its launcher ran, which no tuner in its ranks can know.
//!
//! A job with the tuner has left its account; one without it has none, and gets one of the program that the other trials
//! of the line ran. A ledger that cannot be written to costs a sentence and no trial.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use colltune_core::account::JobSummary;
use colltune_core::levers::Arms;
use colltune_db::{Database, runs, write};

use super::summary;
use colltune_output::progress;

/// The whole times of the trials of one line.
#[derive(Debug, Default)]
pub struct WholeTimes {
    /// What a job with the tuner said of the program.
    known: Option<JobSummary>,
    /// Jobs without the tuner before that: when they began, how long they ran, and with which arms.
    waiting: Vec<(u64, f64, Arms)>,
    n_bare: usize,
    has_failed: bool,
}

impl WholeTimes {
    /// Notes a job that ended well; what it said of itself, if it had the tuner.
    pub fn note(
        &mut self,
        db: &std::path::Path,
        whole: Duration,
        said: Option<&JobSummary>,
        arms: &Arms,
    ) {
        let whole_s = whole.as_secs_f64();
        let begun = SystemTime::now().checked_sub(whole);
        let begun = begun.and_then(|begun| begun.duration_since(UNIX_EPOCH).ok());
        let written = match said {
            Some(said) => {
                self.known = Some(said.clone());
                tell_whole(db, said)
            }
            None => {
                let begun_ms = begun.map_or(0, |begun| begun.as_millis() as u64);
                self.waiting.push((begun_ms, whole_s, arms.clone()));
                Ok(())
            }
        };
        let written = written.and_then(|()| self.write_bare(db));
        if let Err(error) = written
            && !std::mem::replace(&mut self.has_failed, true)
        {
            progress::hint(format_args!(
                "whole times are not in the ledger: failed to {error:#}"
            ));
        }
    }

    /// Takes the arms out of the account of a job that failed: how long it took says nothing of them.
    pub fn forget(&mut self, db: &std::path::Path, said: &JobSummary) {
        let account = JobSummary {
            levers: Arms::new(),
            asked: Vec::new(),
            whole_s: None,
            ..said.clone()
        };
        let _ = tell_whole(db, &account);
    }

    /// Writes the accounts of jobs without the tuner, once it is known of which program they are.
    fn write_bare(&mut self, db: &std::path::Path) -> anyhow::Result<()> {
        let Some(known) = &self.known else {
            return Ok(());
        };
        for (begun_ms, whole_s, levers) in self.waiting.drain(..) {
            let job = format!("bare-{begun_ms:x}-{}-{}", std::process::id(), self.n_bare);
            self.n_bare += 1;
            let bare = known.bare(job, begun_ms, whole_s);
            put(db, &JobSummary { levers, ..bare })?;
        }
        Ok(())
    }
}

/// Adds the whole time to the account that a job has left. Where a training has taken it meanwhile, a second one tells.
fn tell_whole(db: &std::path::Path, said: &JobSummary) -> anyhow::Result<()> {
    let db_at = Database::open(db)?;
    let path = db_at.incoming().join(format!("{}.run", said.job));
    let left = summary::read(&path).filter(|account| account.job == said.job);
    let account = left.or_else(|| {
        let mut taken = runs::times(&db_at, &mut Vec::new()).into_iter();
        taken.any(|run| run.job == said.job).then(|| said.clone())
    });
    account.map_or(Ok(()), |account| {
        let whole_s = said.whole_s;
        let levers = said.levers.clone();
        put(
            db,
            &JobSummary {
                whole_s,
                levers,
                ..account
            },
        )
    })
}

fn put(db: &std::path::Path, account: &JobSummary) -> anyhow::Result<()> {
    let db = Database::open(db)?;
    let incoming = db.folder(&db.incoming())?;
    let name = format!("{}.run", account.job);
    write::atomically(&incoming, &name, account.line().as_bytes()).context("write into the ledger")
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::account::{JobFacts, KINDS};

    fn account() -> JobSummary {
        let facts = JobFacts {
            job: "a".to_owned(),
            program: "solver".to_owned(),
            mode: "exploit".to_owned(),
            ranks: 2,
            nodes: 1,
            ppn: 2,
            wall_ns: 100_000_000,
            ..JobFacts::default()
        };
        JobSummary::new(facts, &vec![Default::default(); KINDS])
    }

    #[test]
    fn a_training_that_takes_the_account_first_costs_no_whole_time() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let said = JobSummary {
            whole_s: Some(0.75),
            ..account()
        };
        let train = || colltune_db::train(&db, Default::default(), &|_| ()).unwrap();
        let told = || {
            let runs = runs::all(&db, &mut Vec::new());
            let whole = |run: &JobSummary| (run.job.clone(), run.whole_s);
            runs.iter().map(whole).collect::<Vec<_>>()
        };
        let note = || {
            let mut times = WholeTimes::default();
            let whole = Duration::from_secs_f64(0.75);
            times.note(folder.path(), whole, Some(&said), &Arms::new());
            assert!(!times.has_failed);
        };
        // Of a job whose account is elsewhere there is none here.
        note();
        assert_eq!(told(), []);
        std::fs::write(db.incoming().join("a.run"), account().line()).unwrap();
        train();
        assert_eq!(told(), [("a".to_owned(), None)]);
        note();
        let expected = [("a".to_owned(), Some(0.75))];
        assert_eq!(told(), expected);
        train();
        assert_eq!(told(), expected, "the next training takes that, too");
        assert!(!db.incoming().join("a.run").exists());
    }

    #[test]
    fn jobs_without_the_tuner_are_in_the_ledger_as_soon_as_their_program_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        std::fs::write(db.incoming().join("a.run"), account().line()).unwrap();
        let mut times = WholeTimes::default();
        let seconds = Duration::from_secs_f64;
        let arms = Arms::from([("grid".to_owned(), "2x4".to_owned())]);
        times.note(folder.path(), seconds(1.5), None, &arms);
        assert_eq!(runs::all(&db, &mut Vec::new()).len(), 1);
        let said = JobSummary {
            whole_s: Some(0.75),
            ..account()
        };
        times.note(folder.path(), seconds(0.75), Some(&said), &Arms::new());
        times.note(folder.path(), seconds(1.25), None, &Arms::new());
        let mut warnings = Vec::new();
        let mut found = runs::all(&db, &mut warnings);
        assert_eq!(warnings, Vec::<String>::new());
        found.sort_by(|a, b| a.whole_s.partial_cmp(&b.whole_s).unwrap());
        let told: Vec<_> = found
            .iter()
            .map(|run| (run.mode.as_str(), run.program.as_str(), run.whole_s))
            .collect();
        let bare = JobSummary::BARE;
        assert_eq!(
            told,
            [
                ("exploit", "solver", Some(0.75)),
                (bare, "solver", Some(1.25)),
                (bare, "solver", Some(1.5))
            ]
        );
        assert_eq!(found[2].levers, arms);
        assert!(!times.has_failed);
        times.forget(
            folder.path(),
            &JobSummary {
                levers: arms,
                ..said
            },
        );
        assert!(runs::all(&db, &mut warnings)[0].levers.is_empty());
    }
}
