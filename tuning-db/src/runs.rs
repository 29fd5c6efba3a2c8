//! The ledger: what jobs said of themselves, in every mode. Of which variants are fast nothing is learned from it; a
//! training asks it how programs spend their time, people look at it.
//!
//! Whose an account is its file says; it is believed as far as a trace of that user (`claim.rs`).
//!
//! A job leaves `incoming/JOB.run`, or `JOB.run.open` while it runs and where it died. A training takes what has ended
//! into `DB/runs/*.parquet`, which are immutable but for being joined. A run may stand in several files after a crash:
//! who reads counts it once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use colltune_core::account::{Exit, JobSummary};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use serde::Deserialize;

use crate::check_word::check_word;
use crate::claim::believed;
use crate::database::{Database, DbError};
use crate::folder::Found as Opened;
use crate::owners::Owners;
use crate::partition::{self, publish_table, unreadable};
use crate::quarantine;
use crate::table::{self, Column, Kind, Table, Values};

/// A line is 10 KB where a job calls every collective with messages of every size; a file has two.
const BYTES_MAX: u64 = 1 << 20;
/// What is read of them at once; the others wait for the next training.
const WAITING_MAX: usize = 100_000;
const FILES_MAX: usize = 16;
/// So many runs tell how programs spend their time; they are looked for among so many, of 10 KB each.
const NEWEST: usize = 256;
const LOOKED_AT: usize = 1024;
const SCHEMA: u32 = 1;
const SCHEMA_KEY: &str = "colltune.ledger";
/// The column with all that a run said; the others are what queries are about.
const WHOLE: &str = "summary";
const SAVED: &str = "saved_s";

/// All runs of a database, those in `incoming/` included, the oldest first. A file that cannot be read is left out,
/// with a warning.
pub fn all(db: &Database, warnings: &mut Vec<String>) -> Vec<JobSummary> {
    let mut found = Found::default();
    match partition::list(&db.runs()) {
        Ok(paths) => found.add_tables(&paths, warnings),
        Err(error) => warnings.push(format!("failed to {error}")),
    }
    found.extend(readable(waiting(db, &known(db, warnings)), warnings));
    found.into_runs()
}

/// What is added up of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    pub job: String,
    pub exit: Exit,
    pub nodes: u64,
    pub wall_s: f64,
    /// In blocking collectives, mean over the ranks.
    pub collectives_s: f64,
    /// By how much it was shorter than with the library's own choices; 0 where nobody knows.
    pub saved_s: f64,
}

impl From<JobSummary> for Times {
    fn from(run: JobSummary) -> Times {
        Times {
            saved_s: run.saved_s(),
            job: run.job,
            exit: run.exit,
            nodes: run.nodes,
            wall_s: run.wall_s,
            collectives_s: run.collectives_s.mean,
        }
    }
}

/// The times of all runs, those in `incoming/` included, by name: of tables a few columns, where [`all`] reads what
/// each run said of every collective. A file that cannot be read is left out, with a warning.
pub fn times(db: &Database, warnings: &mut Vec<String>) -> Vec<Times> {
    let mut found: BTreeMap<String, Times> = BTreeMap::new();
    let mut take = |run: Times| {
        let known = found.get(&run.job);
        if known.is_none_or(|known| known.exit == Exit::Missing) {
            found.insert(run.job.clone(), run);
        }
    };
    match partition::list(&db.runs()) {
        Ok(paths) => {
            for path in paths {
                match times_of(&path) {
                    Ok(runs) => runs.into_iter().for_each(&mut take),
                    Err(error) => warnings.push(left_out(&path, error)),
                }
            }
        }
        Err(error) => warnings.push(format!("failed to {error}")),
    }
    for run in readable(waiting(db, &known(db, warnings)), warnings) {
        take(run.into());
    }
    found.into_values().collect()
}

fn times_of(path: &Path) -> Result<Vec<Times>, ParquetError> {
    let table = open(path)?;
    // Earlier versions wrote that into the whole accounts alone.
    if !table.has(SAVED) {
        return Ok(read_table(path)?.into_iter().map(Times::from).collect());
    }
    let (nodes, wall_s) = (table.longs("nodes")?, table.floats("wall_s")?);
    let (exits, collectives_s) = (table.words("exit")?, table.floats("collectives_s")?);
    let saved_s = table.floats(SAVED)?;
    let jobs = table.words("job")?.into_iter().enumerate();
    let times = jobs.map(|(row, job)| Times {
        job: String::from_utf8_lossy(job.data()).into_owned(),
        exit: match exits[row].data() {
            b"finalized" => Exit::Finalized,
            _ => Exit::Missing,
        },
        nodes: nodes[row],
        wall_s: wall_s[row],
        collectives_s: collectives_s[row],
        saved_s: saved_s[row],
    });
    Ok(times.collect())
}

/// What the newest runs of some jobs said that ended as they should, at most [`NEWEST`] and of the newest
/// [`LOOKED_AT`] alone; of what a training took, which is read in parts.
pub(crate) fn newest(
    db: &Database,
    is_wanted: impl Fn(&str) -> bool,
    warnings: &mut Vec<String>,
) -> Vec<JobSummary> {
    let paths = partition::list(&db.runs()).unwrap_or_else(|error| {
        warnings.push(format!("failed to {error}"));
        Vec::new()
    });
    let (mut found, mut left) = (BTreeMap::new(), LOOKED_AT);
    // Their names begin with the time of their first run.
    for path in paths.iter().rev() {
        if let Err(error) = add_newest(path, &is_wanted, &mut found, &mut left) {
            warnings.push(left_out(path, error));
        }
    }
    found.into_values().collect()
}

fn add_newest(
    path: &Path,
    is_wanted: &impl Fn(&str) -> bool,
    found: &mut BTreeMap<String, JobSummary>,
    left: &mut usize,
) -> Result<(), ParquetError> {
    let mut table = open(path)?;
    let mut end = table.rows();
    while end > 0 && *left > 0 && found.len() < NEWEST {
        let start = end.saturating_sub(NEWEST.min(*left));
        table.read_only(start..end);
        *left -= end - start;
        end = start;
        let runs = read_rows(&table)?.into_iter().rev();
        let ended = runs.filter(|run| run.exit == Exit::Finalized && is_wanted(&run.job));
        for run in ended {
            if found.len() < NEWEST {
                found.insert(run.job.clone(), run);
            }
        }
    }
    Ok(())
}

/// Whom a person who looks at the ledger believes. What cannot be read is told.
fn known(db: &Database, warnings: &mut Vec<String>) -> Owners {
    Owners::of(db, warnings).unwrap_or_else(|error| {
        warnings.push(format!("failed to {error}; everybody is believed"));
        Owners::default()
    })
}

/// Takes the runs that have ended out of `incoming/`, and those that began before `stale_before` and never ended.
/// Only the holder of the lock may call it. Returns what went to quarantine, with the reasons.
///
/// Errors: `Io`, `Owners` and `Parquet` (a full disk, for one); nothing is lost then.
pub(crate) fn take(
    db: &Database,
    stale_before: SystemTime,
    warnings: &mut Vec<String>,
) -> Result<Vec<(String, String)>, DbError> {
    let mut found = Found::default();
    let mut taken = Vec::new();
    let mut refused = Vec::new();
    // A training has read them before, and told what is wrong with them.
    let owners = Owners::of(db, &mut Vec::new())?;
    for entry in waiting(db, &owners) {
        let Entry {
            path,
            written,
            run,
            end,
        } = entry;
        if end == End::Open && written.is_none_or(|written| written > stale_before) {
            continue;
        }
        match run {
            Ok(run) => {
                found.extend([run]);
                taken.push(path);
            }
            Err(Problem::NotBelieved(reason)) => {
                refused.extend(refuse(db, &path, reason, warnings));
            }
            // It may be a newer colltune's.
            Err(Problem::Unreadable(_)) => {}
        }
    }
    let mut replaced = partition::list(&db.runs())?;
    if replaced.len() < FILES_MAX {
        replaced.clear();
    }
    if taken.is_empty() && replaced.is_empty() {
        return Ok(refused);
    }
    let before = warnings.len();
    found.add_tables(&replaced, warnings);
    if warnings.len() > before {
        replaced.clear();
    }
    let published = publish(db, &found.into_runs())?;
    replaced.retain(|path| *path != published);
    for path in taken.iter().chain(&replaced) {
        if let Err(error) = db.remove(path) {
            warnings.push(format!(
                "failed to remove {}: {error}; its runs count once",
                path.display()
            ));
        }
    }
    Ok(refused)
}

/// Puts an account into quarantine: its name, and why. One that cannot be moved stays, and is told.
fn refuse(
    db: &Database,
    path: &Path,
    reason: String,
    warnings: &mut Vec<String>,
) -> Option<(String, String)> {
    let name = path.file_name()?;
    let moved = db
        .folder(&db.incoming())
        .and_then(|incoming| quarantine::refuse(db, &incoming, name, &reason));
    match moved {
        Ok(()) => Some((name.to_string_lossy().into_owned(), reason)),
        Err(error) => {
            warnings.push(format!(
                "{} is left where it is: {reason}; failed to {error}",
                shown(path)
            ));
            None
        }
    }
}

/// Whether an entry of `incoming/` is one of the ledger.
pub(crate) fn is_of_the_ledger(name: &str) -> bool {
    End::of(name).is_some()
}

/// Whether the job has said that it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Said,
    Open,
}

impl End {
    fn of(name: &str) -> Option<End> {
        match name.strip_suffix(".open") {
            Some(name) => name.ends_with(".run").then_some(End::Open),
            None => name.ends_with(".run").then_some(End::Said),
        }
    }
}

struct Entry {
    path: PathBuf,
    written: Option<SystemTime>,
    /// What it says, or what is wrong with it.
    run: Result<JobSummary, Problem>,
    end: End,
}

/// What is wrong with an account.
enum Problem {
    Unreadable(String),
    NotBelieved(String),
}

/// What can be read of it; the others are warned of, but for jobs that have just begun to write.
fn readable(entries: Vec<Entry>, warnings: &mut Vec<String>) -> Vec<JobSummary> {
    let mut runs = Vec::new();
    for entry in entries {
        match entry.run {
            Ok(run) => runs.push(run),
            Err(_) if entry.end == End::Open => {}
            Err(Problem::Unreadable(problem) | Problem::NotBelieved(problem)) => {
                warnings.push(format!(
                    "failed to read {}: {problem}; it is left out",
                    shown(&entry.path)
                ))
            }
        }
    }
    runs
}

/// A path whose last name somebody else chose, on one line.
fn shown(path: &Path) -> impl std::fmt::Display {
    let path = path.to_string_lossy();
    path.escape_debug().to_string()
}

/// What jobs left in `incoming/`, by name.
fn waiting(db: &Database, owners: &Owners) -> Vec<Entry> {
    let Ok(folder) = db.folder(&db.incoming()) else {
        return Vec::new();
    };
    let entry = |name: OsString| {
        let text = name.to_str()?.to_owned();
        let end = End::of(&text)?;
        let job = text.trim_end_matches(".open").strip_suffix(".run")?;
        let found = folder.read(&name).map_err(|error| error.to_string());
        let written = found.as_ref().ok();
        Some(Entry {
            written: written.and_then(|found| found.metadata.modified().ok()),
            path: folder.path().join(name),
            run: found
                .map_err(Problem::Unreadable)
                .and_then(|found| read(found, job, owners)),
            end,
        })
    };
    let names = folder.names().unwrap_or_default().into_iter();
    names.filter_map(entry).take(WAITING_MAX).collect()
}

/// What a job said last.
///
/// Errors: a sentence about what is no account, one of another version, or another name of some file; or why it is not
/// believed.
fn read(found: Opened, job: &str, owners: &Owners) -> Result<JobSummary, Problem> {
    let owner = found.metadata.uid();
    let run = last(found).map_err(Problem::Unreadable)?;
    believed(run, job, owner, owners).map_err(Problem::NotBelieved)
}

fn last(Opened { file, metadata }: Opened) -> Result<JobSummary, String> {
    if metadata.len() > BYTES_MAX {
        return Err(format!("it has over {BYTES_MAX} bytes"));
    }
    if metadata.nlink() != 1 {
        return Err("it has another name, too".to_owned());
    }
    let mut text = String::new();
    let read = file.take(BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    // The last line may be cut off, where the disk was full.
    let mut problem = "nothing stands in it".to_owned();
    for line in text.lines().rev() {
        match parse(line) {
            Ok(run) => return Ok(run),
            Err(found) => problem = found,
        }
    }
    Err(problem)
}

fn parse(line: &str) -> Result<JobSummary, String> {
    /// What every version has.
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    let damaged = |error: serde_json::Error| format!("it is cut off or damaged: {error}");
    let Version { schema } = serde_json::from_str(line).map_err(damaged)?;
    if schema != JobSummary::SCHEMA {
        let known = JobSummary::SCHEMA;
        return Err(format!(
            "it has version {schema}, this colltune reads {known}"
        ));
    }
    serde_json::from_str(line).map_err(damaged)
}

/// Runs by name; who knows of an end knows more.
#[derive(Default)]
struct Found(BTreeMap<String, JobSummary>);

impl Found {
    fn add_tables(&mut self, paths: &[PathBuf], warnings: &mut Vec<String>) {
        for path in paths {
            match read_table(path) {
                Ok(runs) => self.extend(runs),
                Err(error) => warnings.push(left_out(path, error)),
            }
        }
    }

    fn extend(&mut self, runs: impl IntoIterator<Item = JobSummary>) {
        for run in runs {
            let known = self.0.get(&run.job);
            if known.is_none_or(|known| known.exit == Exit::Missing) {
                self.0.insert(run.job.clone(), run);
            }
        }
    }

    fn into_runs(self) -> Vec<JobSummary> {
        let mut runs: Vec<JobSummary> = self.0.into_values().collect();
        runs.sort_by_key(|run| run.started_unix_ms);
        runs
    }
}

fn left_out(path: &Path, error: ParquetError) -> String {
    format!("failed to {}; it is left out", unreadable(path)(error))
}

fn open(path: &Path) -> Result<Table, ParquetError> {
    let table = Table::open(path)?;
    let schema = table.footer(SCHEMA_KEY).unwrap_or("none");
    match schema == SCHEMA.to_string() {
        true => Ok(table),
        false => Err(ParquetError::General(format!(
            "it has version {schema}, this colltune reads {SCHEMA}"
        ))),
    }
}

fn read_table(path: &Path) -> Result<Vec<JobSummary>, ParquetError> {
    read_rows(&open(path)?)
}

fn read_rows(table: &Table) -> Result<Vec<JobSummary>, ParquetError> {
    let lines = table.words(WHOLE)?;
    let lines = lines
        .iter()
        .map(|line| String::from_utf8_lossy(line.data()));
    Ok(lines.filter_map(|line| parse(&line).ok()).collect())
}

fn publish(db: &Database, runs: &[JobSummary]) -> Result<PathBuf, DbError> {
    let folder = db.make_folder(&db.runs())?;
    let names: Vec<&str> = runs.iter().map(|run| run.job.as_str()).collect();
    let word = check_word(names.join("\n").as_bytes());
    let started = runs.first().map_or(0, |run| run.started_unix_ms);
    let name = format!("{started:015}-{word:016x}.parquet");
    let footer = vec![(SCHEMA_KEY, SCHEMA.to_string())];
    publish_table(&folder, &name, |file| {
        table::write(file, "run", footer, &columns(runs))
    })?;
    Ok(folder.path().join(name))
}

fn columns(runs: &[JobSummary]) -> Vec<Column<'_>> {
    let word = |name, value: fn(&JobSummary) -> &str| {
        Column::new(name, Kind::Word, move || {
            Values::Word(runs.iter().map(|run| ByteArray::from(value(run))).collect())
        })
    };
    let long = |name, value: fn(&JobSummary) -> u64| {
        Column::new(name, Kind::Long, move || {
            Values::Long(runs.iter().map(value).collect())
        })
    };
    let float = |name, value: fn(&JobSummary) -> f64| {
        Column::new(name, Kind::Float, move || {
            Values::Float(runs.iter().map(value).collect())
        })
    };
    vec![
        word("job", |run| &run.job),
        word("program", |run| &run.program),
        word("arguments_hash", |run| &run.arguments_hash),
        word("label", |run| &run.label),
        word("library", |run| &run.library),
        word("machine", |run| &run.machine),
        word("mode", |run| &run.mode),
        word("exit", |run| match run.exit {
            Exit::Finalized => "finalized",
            Exit::Missing => "missing",
        }),
        long("generation", |run| run.generation),
        long("nodes", |run| run.nodes),
        long("ppn", |run| run.ppn),
        long("ranks", |run| run.ranks),
        long("seed", |run| run.seed),
        long("started_unix_ms", |run| run.started_unix_ms),
        float("wall_s", |run| run.wall_s),
        float("collectives_s", |run| run.collectives_s.mean),
        float("overhead_s", |run| run.overhead_s.mean),
        float(SAVED, JobSummary::saved_s),
        long("calls", |run| run.calls),
        long("passed", |run| run.passed),
        long("sampled", |run| run.sampled),
        float("tuned_share", |run| run.tuned_share),
        Column::new(WHOLE, Kind::Word, move || {
            Values::Word(
                runs.iter()
                    .map(|run| ByteArray::from(run.line().into_bytes()))
                    .collect(),
            )
        }),
    ]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use colltune_core::account::JobFacts;

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
    fn tables_of_earlier_versions_say_the_same_times() {
        let folder = tempfile::tempdir().unwrap();
        let db = database(folder.path());
        let exploits = |job: &str, gain| JobSummary {
            estimated_gain: gain,
            ..serde_json::from_str(&ended(job, 1)).unwrap()
        };
        let runs = [exploits("a", Some(1.5)), exploits("b", None)];
        db.make_folder(&db.runs()).unwrap();
        let expected = runs.clone().map(Times::from);
        assert_eq!(expected.each_ref().map(|run| run.saved_s), [1.0, 0.0]);
        for left_out in [&[][..], &[SAVED]] {
            let mut columns = columns(&runs);
            columns.retain(|column| !left_out.contains(&column.name));
            let file = fs::File::create(db.runs().join("1.parquet")).unwrap();
            let footer = vec![(SCHEMA_KEY, SCHEMA.to_string())];
            table::write(file, "run", footer, &columns).unwrap();
            let mut warnings = Vec::new();
            assert_eq!(times(&db, &mut warnings), expected, "{left_out:?}");
            assert_eq!(warnings, Vec::<String>::new());
        }
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
            ("later.run", "version 7, this colltune reads 1"),
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
        let found = newest(&db, even, &mut warnings);
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
        assert!(files.len() <= 1 + FILES_MAX / 2, "{}", files.len());
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
}
