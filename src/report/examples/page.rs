//! How long a report takes, and how long its page is.
//!
//! ```text
//! $ cargo run --release -p colltune-report --example page -- DB report.html [HOLDOUT]
//! ```

use std::time::Instant;

use colltune_db::Database;
use colltune_report::{Question, page, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [db, file, holdout @ ..] = &arguments[..] else {
        return Err("usage: page DB FILE [HOLDOUT]".into());
    };
    let question = Question {
        holdout: holdout.first().map(|text| text.parse()).transpose()?,
        ..Question::default()
    };
    let begun = Instant::now();
    let report = read(&Database::open(db)?, &question)?;
    let read_s = begun.elapsed().as_secs_f64();
    let page = page::html(&report);
    std::fs::write(file, &page)?;
    let all_s = begun.elapsed().as_secs_f64();
    for warning in &report.warnings {
        eprintln!("{warning}");
    }
    eprintln!(
        "{} records, {} cells: read in {read_s:.3} s, {} bytes in {all_s:.3} s",
        report.head.records,
        report.cells.shown.len(),
        page.len()
    );
    Ok(())
}
