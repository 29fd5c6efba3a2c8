//! The ledger as a whole: jobs leave accounts, trainings take them, people read them.

use std::fs;

use colltune_core::account::JobFacts;
use colltune_core::select::mix;

use super::*;

fn facts(job: &str, started_unix_ms: u64) -> JobFacts {
    JobFacts {
        job: job.to_owned(),
        program: "<b>solver</b>".to_owned(),
        label: "night".to_owned(),
        started_unix_ms,
        wall_ns: 2_000_000_000,
        ..JobFacts::default()
    }
}

fn begun(job: &str, at: u64) -> String {
    JobSummary::begun(facts(job, at)).line()
}

fn ended(job: &str, at: u64) -> String {
    let kinds = vec![Default::default(); colltune_core::account::KINDS];
    JobSummary::new(facts(job, at), &kinds).line()
}

fn database(folder: &Path) -> Database {
    Database::create_or_open(folder).unwrap()
}

fn take_all(db: &Database, stale: SystemTime) -> Vec<String> {
    let mut warnings = Vec::new();
    take(db, stale, &mut warnings).unwrap();
    warnings
}

#[test]
fn runs_are_taken_when_they_end_or_are_stale_and_count_once() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    let at = |name: &str| db.incoming().join(name);
    fs::write(at("a.run"), begun("a", 2) + &ended("a", 2)).unwrap();
    fs::write(at("b.run.open"), begun("b", 1)).unwrap();
    fs::write(at("c.run"), "{").unwrap();
    let names = |db: &Database| {
        let runs = all(db, &mut Vec::new());
        let name = |run: JobSummary| (run.job, run.exit == Exit::Finalized);
        runs.into_iter().map(name).collect::<Vec<_>>()
    };
    let expected = [("b".to_owned(), false), ("a".to_owned(), true)];
    assert_eq!(names(&db), expected);
    assert_eq!(take_all(&db, SystemTime::UNIX_EPOCH), Vec::<String>::new());
    assert!(at("b.run.open").exists() && !at("a.run").exists());
    assert!(at("c.run").exists());
    assert_eq!(names(&db), expected);
    take_all(&db, SystemTime::now());
    assert!(!at("b.run.open").exists());
    assert_eq!(names(&db), expected);
    // It was not dead, only slow; and what a crash left behind is no second run.
    fs::write(at("b.run"), ended("b", 1)).unwrap();
    fs::write(at("a.run"), ended("a", 2)).unwrap();
    take_all(&db, SystemTime::UNIX_EPOCH);
    assert_eq!(names(&db), expected.map(|(job, _)| (job, true)));
    let wholes = all(&db, &mut Vec::new()).into_iter();
    let mut wholes: Vec<Times> = wholes.map(Times::from).collect();
    wholes.sort_by(|one, other| one.job.cmp(&other.job));
    assert_eq!(times(&db, &mut Vec::new()), wholes);
    let run = &all(&db, &mut Vec::new())[0];
    assert_eq!(
        (run.program.as_str(), run.label.as_str(), run.wall_s),
        ("<b>solver</b>", "night", 2.0)
    );
}

#[test]
fn what_an_account_tells_while_a_training_takes_it_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    let path = db.incoming().join("a.run");
    fs::write(&path, ended("a", 1)).unwrap();
    let read = waiting(&db, &Owners::default());
    assert!(read[0].is_unchanged(&db));
    // The launcher's end adds the whole time, as it does it.
    let kinds = vec![Default::default(); colltune_core::account::KINDS];
    let more = JobSummary {
        whole_s: Some(3.0),
        ..JobSummary::new(facts("a", 1), &kinds)
    };
    let add = || {
        let incoming = db.folder(&db.incoming()).unwrap();
        crate::write::atomically(&incoming, "a.run", more.line().as_bytes()).unwrap();
    };
    add();
    assert!(!read[0].is_unchanged(&db), "that one is not removed");
    fs::write(&path, ended("a", 1)).unwrap();
    take_all(&db, SystemTime::UNIX_EPOCH);
    add();
    let wholes = |db: &Database| {
        let runs = all(db, &mut Vec::new());
        runs.iter().map(|run| run.whole_s).collect::<Vec<_>>()
    };
    assert_eq!(wholes(&db), [Some(3.0)]);
    take_all(&db, SystemTime::UNIX_EPOCH);
    assert!(!path.exists());
    assert_eq!(wholes(&db), [Some(3.0)]);
    // What tells less, as of a crash, takes nothing back.
    fs::write(&path, ended("a", 1)).unwrap();
    take_all(&db, SystemTime::UNIX_EPOCH);
    assert_eq!(wholes(&db), [Some(3.0)]);
}

#[test]
fn what_cannot_be_read_of_the_ledger_is_named_and_the_rest_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    let write = |name: &str, text: &str| fs::write(db.incoming().join(name), text).unwrap();
    write("whole.run", &(begun("whole", 1) + &ended("whole", 1)));
    // Its last line is cut off: that it began is known.
    let end = ended("cut", 2);
    write("cut.run", &(begun("cut", 2) + &end[..end.len() / 2]));
    write("half.run", &end[..end.len() / 2]);
    write("empty.run", "");
    write("later.run", r#"{"schema":7,"job":{"name":"later"}}"#);
    // A job that is about to say that it began.
    write("new.run.open", "{");
    let mut warnings = Vec::new();
    let runs = all(&db, &mut warnings);
    let known: Vec<(&str, bool)> = runs
        .iter()
        .map(|run| (run.job.as_str(), run.exit == Exit::Finalized))
        .collect();
    assert_eq!(known, [("whole", true), ("cut", false)]);
    let says = [
        ("empty.run", "nothing stands in it"),
        ("half.run", "cut off"),
        ("later.run", "version 7, this colltune reads up to 2"),
    ];
    assert_eq!(warnings.len(), says.len(), "{warnings:?}");
    for (warning, (name, problem)) in warnings.iter().zip(says) {
        assert!(
            warning.contains(name) && warning.contains(problem),
            "{warning}"
        );
    }
    let mut told = Vec::new();
    assert_eq!(times(&db, &mut told).len(), 2);
    assert_eq!(told, warnings);
}

#[test]
fn the_newest_runs_are_those_of_wanted_jobs_that_ended() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    for half in 0..2 {
        for at in 300 * half..300 * (half + 1) {
            let job = format!("job{at:03}");
            let line = if at % 100 == 98 {
                begun(&job, at)
            } else {
                ended(&job, at)
            };
            fs::write(db.incoming().join(format!("{job}.run")), line).unwrap();
        }
        take_all(&db, SystemTime::now());
    }
    let mut warnings = Vec::new();
    let even = |job: &str| job.ends_with(['0', '2', '4', '6', '8']);
    let found = newest(&db, |run| has_ended(run) && even(&run.job), &mut warnings);
    let found: Vec<u64> = found.iter().map(|run| run.started_unix_ms).collect();
    let wanted = (0..600).filter(|at| at % 2 == 0 && at % 100 != 98);
    let wanted: Vec<u64> = wanted.collect();
    assert_eq!(found, wanted[wanted.len() - NEWEST..]);
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn files_are_joined_where_there_are_many_and_a_damaged_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    for number in 0..20 {
        let job = format!("job{number}");
        fs::write(
            db.incoming().join(format!("{job}.run")),
            ended(&job, number),
        )
        .unwrap();
        assert_eq!(take_all(&db, SystemTime::now()), Vec::<String>::new());
    }
    let files = partition::list(&db.runs()).unwrap();
    assert!(files.len() <= 1 + SMALL_FILES_MAX / 2, "{}", files.len());
    assert_eq!(all(&db, &mut Vec::new()).len(), 20);
    let bytes = fs::read(&files[0]).unwrap();
    fs::write(&files[0], &bytes[..bytes.len() / 2]).unwrap();
    let mut warnings = Vec::new();
    assert!(all(&db, &mut warnings).len() < 20);
    let mut told = Vec::new();
    assert!(times(&db, &mut told).len() < 20);
    assert_eq!(told, warnings);
    assert!(
        warnings.len() == 1 && warnings[0].contains("left out"),
        "{warnings:?}"
    );
}

#[test]
fn a_file_that_has_grown_is_not_written_again_and_the_newest_runs_are_found_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    let account = |number: u64| {
        let label: Vec<String> = (0..200u64)
            .map(|word| format!("{:016x}", mix(number, word)))
            .collect();
        let facts = JobFacts {
            label: label.concat(),
            ..facts(&format!("job{number:05}"), number)
        };
        let kinds = vec![Default::default(); colltune_core::account::KINDS];
        JobSummary::new(facts, &kinds)
    };
    db.make_folder(&db.runs()).unwrap();
    let grown = tables::publish(&db, &(0..700).map(account).collect::<Vec<_>>()).unwrap();
    let bytes = fs::read(&grown).unwrap();
    assert!(bytes.len() as u64 > SMALL_FILE_BYTES, "{}", bytes.len());
    let rewritten = grown.metadata().unwrap().modified().unwrap();
    for number in 700..720 {
        let path = db.incoming().join(format!("job{number:05}.run"));
        fs::write(path, account(number).line()).unwrap();
        assert_eq!(take_all(&db, SystemTime::now()), Vec::<String>::new());
    }
    assert_eq!(grown.metadata().unwrap().modified().unwrap(), rewritten);
    let files = partition::list(&db.runs()).unwrap();
    assert!(files.len() <= 2 + SMALL_FILES_MAX / 2, "{}", files.len());
    let runs = all(&db, &mut Vec::new());
    assert_eq!(runs.len(), 720);
    let newest = newest(&db, has_ended, &mut Vec::new());
    let of: Vec<u64> = newest.iter().map(|run| run.started_unix_ms).collect();
    assert_eq!(of, (720 - NEWEST as u64..720).collect::<Vec<_>>());
}
