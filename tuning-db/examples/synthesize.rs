//! Fills a database with synthetic runs, to measure ingest and training.
//!
//! ```text
//! $ cargo run --release -p colltune-db --example synthesize -- /tmp/db 25 4 10000   # runs, ranks, records
//! $ time colltune train --db /tmp/db
//! ```

use colltune_db::test_support::Run;
use colltune_db::{Database, TrainOptions, train};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, runs, ranks, records, rest @ ..] = &arguments[..] else {
        return Err("usage: synthesize DB RUNS RANKS RECORDS [train]".into());
    };
    let db = Database::create_or_open(folder)?;
    let machine = db.machine(&db.settings()?);
    for number in 0..runs.parse::<u64>()? {
        let nodes = [1, 2, 4][number as usize % 3];
        let run = Run {
            machine: machine.clone(),
            nodes,
            recording_ranks: ranks.parse()?,
            calls: records.parse()?,
            sizes: (0..20).map(|log| 1 << log).collect(),
            ..Run::new(&format!("synthetic-{number}"), number)
        };
        run.write(&db.incoming())?;
    }
    if rest.first().is_some_and(|word| word == "train") {
        let started = std::time::Instant::now();
        let report = train(&db, TrainOptions::default(), &|step| {
            eprintln!("{:7.3} s  {step}", started.elapsed().as_secs_f64())
        })?;
        eprintln!(
            "{:7.3} s  done: {:?}",
            started.elapsed().as_secs_f64(),
            report.libraries
        );
    }
    Ok(())
}
