//! How long the ten queries of `--examples` take, and how much memory, on a database of so many records.
//!
//! ```text
//! $ cargo run --release -p colltune-query --example million -- FOLDER 1000000 [QUERY [TIMES]]
//! ```
//! Makes the database and its telemetry where there is none: four ranks record each call of jobs of 10,000 calls, and
//! 64 ranks of a mesh have 9 phases a step. QUERY is a number from 0, or SQL; without it all ten are asked.

use std::path::Path;
use std::time::Instant;

use colltune_core::account::{JobFacts, JobSummary, KINDS, Together};
use colltune_db::test_support::Run;
use colltune_db::{Database, TrainOptions, train};
use colltune_query::answer::{CsvLines, ParquetOut};
use colltune_query::{examples, open};

type Failed = Box<dyn std::error::Error>;

const ROWS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ROWS - 1)";
const PHASES: &str = "SELECT i / 576 AS step, i / 9 % 64 AS rank,
    CASE i % 9 WHEN 0 THEN 'compute' WHEN 1 THEN 'pack' WHEN 2 THEN 'wait' WHEN 3 THEN 'unpack' WHEN 4 THEN 'allreduce'
    WHEN 5 THEN 'refine' WHEN 6 THEN 'place' WHEN 7 THEN 'migrate' ELSE 'output' END AS phase,
    i * 7919 % 1000003 AS time_ns FROM n";
const MESSAGES: &str = "SELECT i / 128 AS step, i / 2 % 64 AS rank, CASE i % 2 WHEN 0 THEN 'flux' ELSE 'local' END AS kind,
    i * 31 % 17 AS messages, i * 7907 % 65537 AS bytes FROM n";

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, records, asked @ ..] = &arguments[..] else {
        return Err("usage: million FOLDER RECORDS [QUERY [TIMES]]".into());
    };
    let folder = Path::new(folder);
    if !folder.exists() {
        make(folder, records.parse()?)?;
    }
    let number = |text: &String| text.parse::<usize>().ok();
    let queries: Vec<&str> = match asked.first() {
        None => examples::all().collect(),
        Some(query) => match number(query) {
            Some(place) => examples::all().nth(place).into_iter().collect(),
            None => vec![query.as_str()],
        },
    };
    for (place, sql) in queries.iter().enumerate() {
        for _ in 0..asked.get(1).and_then(number).unwrap_or(1) {
            let begun = Instant::now();
            let engine = open(Some(&folder.join("db")), &[folder.join("telemetry")])?;
            engine.ask(sql, &mut CsvLines::new(std::io::sink()))?;
            println!(
                "{place} {:.2} s, {}",
                begun.elapsed().as_secs_f64(),
                peak()?
            );
        }
    }
    Ok(())
}

/// The most memory that the process has had.
fn peak() -> Result<String, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.ok_or("there is no VmHWM")?.trim().to_owned())
}

fn make(folder: &Path, records: u64) -> Result<(), Failed> {
    let place = folder.join("db");
    std::fs::create_dir_all(&place)?;
    std::fs::write(place.join("colltune.toml"), "machine = \"testing\"\n")?;
    let db = Database::create_or_open(&place)?;
    let jobs = records / 40_000;
    for number in 0..jobs {
        let job = format!("job{number}");
        let run = Run {
            calls: 10_000,
            ..Run::new(&job, number)
        };
        run.write(&db.incoming())?;
        let facts = JobFacts {
            job: job.clone(),
            program: ["solver", "fft"][number as usize % 2].to_owned(),
            ranks: 8,
            nodes: 4,
            ppn: 2,
            wall_ns: 1_000_000_000,
            ..JobFacts::default()
        };
        let line = JobSummary::new(facts, &[Together::default(); KINDS]).line();
        std::fs::write(db.incoming().join(format!("{job}.run")), line)?;
        // Four generations.
        if (number + 1) % (jobs / 4).max(1) == 0 {
            train(&db, TrainOptions::default(), &|_| {})?;
        }
    }
    let telemetry = folder.join("telemetry");
    std::fs::create_dir_all(&telemetry)?;
    let engine = open(None, std::slice::from_ref(&telemetry))?;
    for (name, select) in [("phases", PHASES), ("messages", MESSAGES)] {
        let sql = format!("{} {select}", ROWS.replace("ROWS", &records.to_string()));
        engine.ask(
            &sql,
            &mut ParquetOut::new(&telemetry.join(format!("{name}.0000.parquet")), u64::MAX),
        )?;
    }
    Ok(())
}
