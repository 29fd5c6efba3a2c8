//! How long a training takes on the evidence of very many runs, and how much memory.
//!
//! ```text
//! $ cargo run --release -p colltune-db --example history -- /tmp/db 3125 12 12 320000   # runs, cells, variants, records
//! $ cargo run --release -p colltune-db --example history -- /tmp/db train
//! ```
//! 3,125 runs of 32 recording ranks with 10,000 records each are 10^9 records.

use colltune_db::test_support::write_history;
use colltune_db::{Database, TrainOptions, train};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [folder, word] if word == "train" => {
            let started = std::time::Instant::now();
            let options = TrainOptions {
                force: true,
                ..TrainOptions::default()
            };
            let report = train(&Database::open(folder)?, options, &|step| {
                eprintln!("{:7.3} s  {step}", started.elapsed().as_secs_f64())
            })?;
            let status = std::fs::read_to_string("/proc/self/status")?;
            let peak = status.lines().find(|line| line.starts_with("VmHWM"));
            let seconds = started.elapsed().as_secs_f64();
            eprintln!(
                "{seconds:7.3} s  {}  {:?}",
                peak.unwrap_or(""),
                report.libraries
            );
            Ok(())
        }
        [folder, runs, cells, variants, records] => {
            let db = Database::create_or_open(folder)?;
            let (cells, variants) = (cells.parse()?, variants.parse()?);
            let rows = write_history(&db, runs.parse()?, cells, variants, records.parse()?)?;
            eprintln!("{rows} rows of evidence");
            Ok(())
        }
        _ => Err("usage: history DB RUNS CELLS VARIANTS RECORDS | history DB train".into()),
    }
}
