//! Whole runs on ranks in threads of this process, and what they leave.

#![allow(dead_code, reason = "each test uses a part")]

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use colltune_amr::checksum::Broken;
use colltune_amr::options;
use colltune_amr::ranks::threads::{self, Tuning};
use colltune_amr::report::Summary;
use colltune_amr::run;
use colltune_amr::settings::Settings;
use parquet::file::reader::SerializedFileReader;
use parquet::record::Row;

/// Runs a command line without the program's name. All ranks end alike, and the first one's end is given.
pub fn try_run(n_ranks: usize, line: &str) -> Result<Summary, Broken> {
    try_tuned(n_ranks, Tuning::Nobody, line)
}

/// The same with a tuner that chooses the arms of levers.
pub fn try_tuned(n_ranks: usize, tuning: Tuning, line: &str) -> Result<Summary, Broken> {
    let words = format!("colltune-amr {line}");
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let results = threads::run_with(n_ranks, tuning, |ranks| {
        let options = options::parse(words.clone()).expect("a good line");
        let settings = Settings::new(options, n_ranks).unwrap_or_else(|r| panic!("{}", r.text));
        run::run(ranks, &settings, Instant::now(), &mut |_| {})
    });
    let failed = results.iter().filter(|result| result.is_err()).count();
    assert!(failed == 0 || failed == n_ranks, "all ranks end alike");
    let first = results.into_iter().next().expect("at least one rank");
    first.map(|(summary, _)| summary)
}

/// What a run ends with, to the last bit: sums, mesh, steps and shock.
pub fn bits(summary: &Summary) -> String {
    let sums: Vec<u64> = summary.checksums.iter().map(|sum| sum.to_bits()).collect();
    let mesh = (&summary.mesh_hash, summary.splits, summary.joins);
    let shock = summary
        .shock
        .map(|shock| [shock.time, shock.radius].map(f64::to_bits));
    format!("{sums:?} {mesh:?} {} {shock:?}", summary.steps)
}

/// A table of telemetry.
pub fn open(folder: &Path, name: &str) -> SerializedFileReader<File> {
    let file = File::open(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    SerializedFileReader::new(file).expect("parquet")
}

pub fn rows(folder: &Path, name: &str) -> impl Iterator<Item = Row> {
    let rows = open(folder, name).into_iter();
    rows.map(|row| row.expect("a row"))
}
