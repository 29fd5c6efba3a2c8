//! How long one grouping over many rows of telemetry takes.
//!
//! ```text
//! $ cargo run --release -p colltune-query --example grouping -- FOLDER 10000000 5
//! ```
//! Writes `phases.*.parquet` into the folder where there are none: 64 ranks, 9 phases, a row group for 64 steps, as
//! colltune-amr writes them. Then asks each query so many times.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use colltune_query::answer::CsvLines;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

const SCHEMA: &str = "message phases {
    REQUIRED INT64 step (INTEGER(64, false));
    REQUIRED INT32 rank (INTEGER(32, false));
    REQUIRED BYTE_ARRAY phase (UTF8);
    REQUIRED INT64 time_ns (INTEGER(64, false));
}";
const RANKS: u64 = 64;
const PHASES: [&str; 9] = [
    "compute",
    "pack",
    "wait",
    "unpack",
    "allreduce",
    "refine",
    "place",
    "migrate",
    "output",
];
const QUERIES: [&str; 4] = [
    "SELECT step, sum(time_ns) FROM phases GROUP BY step",
    "SELECT step, rank, sum(time_ns) FROM phases GROUP BY step, rank",
    "SELECT phase, median(time_ns) FROM phases GROUP BY phase",
    "SELECT sum(time_ns) FROM phases WHERE step BETWEEN 100 AND 110",
];

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, rows, times] = &arguments[..] else {
        return Err("usage: grouping FOLDER ROWS TIMES".into());
    };
    let folder = Path::new(folder);
    let file = folder.join("phases.0000.parquet");
    if !file.exists() {
        std::fs::create_dir_all(folder)?;
        write(&file, rows.parse()?)?;
    }
    for query in QUERIES {
        let mut seconds = Vec::new();
        for _ in 0..times.parse::<usize>()? {
            let begun = Instant::now();
            let engine = colltune_query::open(None, &[folder.to_owned()])?;
            engine.ask(query, &mut CsvLines::new(std::io::sink()))?;
            seconds.push(begun.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        let (min, max) = (seconds[0], seconds[seconds.len() - 1]);
        println!(
            "{query}: {min:.2} {:.2} {max:.2} s",
            seconds[seconds.len() / 2]
        );
    }
    Ok(())
}

fn write(path: &Path, rows: u64) -> Result<(), Failed> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let file = std::fs::File::create(path)?;
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    let of_step = RANKS * PHASES.len() as u64;
    for begin in (0..rows).step_by(64 * of_step as usize) {
        let places: Vec<u64> = (begin..(begin + 64 * of_step).min(rows)).collect();
        let mut group = writer.next_row_group()?;
        let steps = places.iter().map(|place| (place / of_step) as i64);
        put::<Int64Type>(&mut group, steps.collect())?;
        let ranks = places
            .iter()
            .map(|place| (place / PHASES.len() as u64 % RANKS) as i32);
        put::<Int32Type>(&mut group, ranks.collect())?;
        let phases = places
            .iter()
            .map(|place| PHASES[*place as usize % PHASES.len()]);
        put::<ByteArrayType>(&mut group, phases.map(ByteArray::from).collect())?;
        // No two alike.
        let times = places
            .iter()
            .map(|place| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as i64);
        put::<Int64Type>(&mut group, times.collect())?;
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, std::fs::File>,
    values: Vec<T::T>,
) -> Result<(), Failed> {
    let mut column = group.next_column()?.ok_or("there are too many columns")?;
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()?;
    Ok(())
}
