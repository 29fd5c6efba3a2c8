//! The ledger's tables, `DB/runs/*.parquet`: how they are written, and read whole or a few columns of them.

use std::path::{Path, PathBuf};

use colltune_core::account::{Exit, JobSummary};
use colltune_core::levers;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use super::accounts::parse;
use crate::check_word::check_word;
use crate::database::{Database, DbError};
use crate::partition::publish_table;
use crate::table::{self, Column, Kind, Table, Values};

/// The accounts' version: a table of version 1 holds none of version 2.
const SCHEMA: u32 = 2;
const SCHEMA_KEY: &str = "colltune.ledger";
/// The column with all that a run said; the others are what queries are about.
const WHOLE: &str = "summary";
const SAVED: &str = "saved_s";

/// What is added up of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    pub job: String,
    pub library: String,
    pub mode: String,
    pub exit: Exit,
    pub nodes: u64,
    pub wall_s: f64,
    /// In blocking collectives, mean over the ranks.
    pub collectives_s: f64,
    /// By how much it was shorter than with the library's own choices; 0 where that is unknown.
    pub saved_s: f64,
}

impl From<JobSummary> for Times {
    fn from(run: JobSummary) -> Times {
        Times {
            saved_s: run.saved_s(),
            job: run.job,
            library: run.library,
            mode: run.mode,
            exit: run.exit,
            nodes: run.nodes,
            wall_s: run.wall_s,
            collectives_s: run.collectives_s.mean,
        }
    }
}

pub(super) fn open(path: &Path) -> Result<Table, ParquetError> {
    let table = Table::open(path)?;
    let schema = table.footer(SCHEMA_KEY).unwrap_or("none");
    match schema.parse::<u32>() {
        Ok(1..=SCHEMA) => Ok(table),
        _ => Err(ParquetError::General(format!(
            "it has version {schema}, this colltune reads 1 to {SCHEMA}"
        ))),
    }
}

pub(super) fn read_table(path: &Path) -> Result<Vec<JobSummary>, ParquetError> {
    read_rows(&open(path)?)
}

pub(super) fn read_rows(table: &Table) -> Result<Vec<JobSummary>, ParquetError> {
    let lines = table.words(WHOLE)?;
    let lines = lines
        .iter()
        .map(|line| String::from_utf8_lossy(line.data()));
    Ok(lines.filter_map(|line| parse(&line).ok()).collect())
}

pub(super) fn times_of(path: &Path) -> Result<Vec<Times>, ParquetError> {
    let table = open(path)?;
    // Earlier versions wrote that into the whole accounts alone.
    if !table.has(SAVED) {
        return Ok(read_table(path)?.into_iter().map(Times::from).collect());
    }
    let (nodes, wall_s) = (table.longs("nodes")?, table.floats("wall_s")?);
    let (exits, collectives_s) = (table.words("exit")?, table.floats("collectives_s")?);
    let saved_s = table.floats(SAVED)?;
    let (libraries, modes) = (table.words("library")?, table.words("mode")?);
    let word = |word: &ByteArray| String::from_utf8_lossy(word.data()).into_owned();
    let jobs = table.words("job")?.into_iter().enumerate();
    let times = jobs.map(|(row, job)| Times {
        job: word(&job),
        library: word(&libraries[row]),
        mode: word(&modes[row]),
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

pub(super) fn publish(db: &Database, runs: &[JobSummary]) -> Result<PathBuf, DbError> {
    let folder = db.make_folder(&db.runs())?;
    // One that tells more of the same jobs takes no other's place.
    let lines: String = runs.iter().map(JobSummary::line).collect();
    let word = check_word(lines.as_bytes());
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
        Column::new("levers", Kind::Word, move || {
            let spelt = |run: &JobSummary| levers::spell(&run.levers).into_bytes();
            Values::Word(runs.iter().map(|run| ByteArray::from(spelt(run))).collect())
        }),
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

    use colltune_core::account::{JobFacts, KINDS};

    use super::*;
    use crate::runs::times;

    #[test]
    fn tables_of_earlier_versions_say_the_same_times() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let exploits = |job: &str, gain| {
            let facts = JobFacts {
                job: job.to_owned(),
                wall_ns: 2_000_000_000,
                ..JobFacts::default()
            };
            JobSummary {
                estimated_gain: gain,
                ..JobSummary::new(facts, &vec![Default::default(); KINDS])
            }
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
}
