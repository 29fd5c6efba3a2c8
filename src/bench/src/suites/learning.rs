//! How long a million records take, and how much memory.
//!
//! Ingest and training are one command. What ingest takes is the difference between a training
//! with a million new records and one with a hundred more.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use colltune_core::catalogue::{self, Facts, Variant};
use colltune_core::library::{Library, Product};
use colltune_core::record::{CallClass, Header, Manner, Record};
use colltune_core::select::mix;
use colltune_statistics::{Interval, median, spread};

use super::report::{Finding, Report, Row, Target};
use super::ways::MEASURED;
use super::{Bench, database};
use colltune_launch::library::reference;
use colltune_launch::own;

const RECORDS: usize = 1_000_000;
const RECORDS_PER_TRACE: usize = 10_000;
/// Each call is recorded by two ranks.
const RANKS_PER_JOB: u32 = 2;

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = Report::comparing("measured", "the most it may be");
    report.notes.push(format!(
        "{RECORDS} synthetic records of {}: {} jobs, 2 recording ranks each, 1, 2 and 4 nodes, all collectives and \
         variants, 8 B to 1 MiB",
        reference(Product::OpenMpi),
        RECORDS / RECORDS_PER_TRACE / RANKS_PER_JOB as usize
    ));
    let (mut ingest, mut train, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for repetition in 0..bench.pick(3, 1) {
        let db = database::empty(bench, "learning")?;
        bench.progress(&format!(
            "learning: writing traces, repetition {}",
            repetition + 1
        ));
        let jobs = RECORDS / RECORDS_PER_TRACE / RANKS_PER_JOB as usize;
        (0..jobs).try_for_each(|job| write_job(&db, job as u64, RECORDS_PER_TRACE))?;
        bench.progress(&format!(
            "learning: first training, repetition {}",
            repetition + 1
        ));
        let first = timed_training(&db)?;
        write_job(&db, jobs as u64, 50)?;
        bench.progress(&format!(
            "learning: second training, repetition {}",
            repetition + 1
        ));
        let second = timed_training(&db)?;
        ingest.push((first.seconds - second.seconds).max(0.0));
        train.push(second.seconds);
        memory.push(first.peak_mib.max(second.peak_mib));
        let _ = std::fs::remove_dir_all(&db); // a benchmark need not leave 64 MB behind
    }
    for (what, values, limit, unit) in [
        (
            "ingest (first training less the second)",
            &ingest,
            2.0,
            " s",
        ),
        (
            "training (second training, whole command)",
            &train,
            10.0,
            " s",
        ),
        ("peak resident memory", &memory, 1024.0, " MiB"),
    ] {
        add_limited(&mut report, what, values, (limit, unit));
    }
    report
        .notes
        .push("intervals are least and most of the repetitions".to_owned());
    Ok(report)
}

/// Adds what must be below a limit.
pub(super) fn add_limited(
    report: &mut Report,
    what: &str,
    values: &[f64],
    (limit, unit): (f64, &'static str),
) {
    let ratio: Vec<f64> = values.iter().map(|value| value / limit).collect();
    let found = spread(values);
    report.rows.push(Row {
        case: format!("{what},{unit}"),
        a: median(values),
        b: limit,
        ratio: spread(&ratio),
        n: values.len(),
        more: Vec::new(),
    });
    report.findings.push(Finding {
        what: what.to_owned(),
        found: Interval {
            low: found.min,
            value: found.median,
            high: found.max,
        },
        unit,
        target: Target::AtMost(limit),
    });
}

pub(super) struct Training {
    pub seconds: f64,
    pub peak_mib: f64,
}

/// Runs `colltune train` and watches its memory.
pub(super) fn timed_training(db: &Path) -> anyhow::Result<Training> {
    let own = own::colltune()?;
    let mut command = Command::new(own);
    command
        .args(["train", "--db"])
        .arg(db)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().context("start colltune train")?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_mib = 0.0f64;
    let status = loop {
        // The kernel keeps the high-water mark, so that only what comes in the last 10 ms can be missed.
        peak_mib = peak_mib.max(high_water_mib(&status_file).unwrap_or(0.0));
        if let Some(status) = child.try_wait().context("wait for colltune train")? {
            break status;
        }
        if start.elapsed() > Duration::from_secs(180) {
            let _ = child.kill();
            let _ = child.wait();
            bail!("train {}: not done after 180 s", db.display());
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    if !status.success() {
        bail!("train {}: {status}", db.display());
    }
    Ok(Training {
        seconds: start.elapsed().as_secs_f64(),
        peak_mib,
    })
}

fn high_water_mib(status_file: &str) -> Option<f64> {
    let text = std::fs::read_to_string(status_file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1024.0)
}

/// Writes the traces of one job, `records` records for each recording rank.
fn write_job(db: &Path, job: u64, records: usize) -> anyhow::Result<()> {
    let library = reference(Product::OpenMpi);
    let variants = catalogue::all(library);
    let nodes = [1, 2, 4][(job % 3) as usize];
    let ppn = 8;
    for rank in 0..RANKS_PER_JOB {
        let header = header(library, &variants, job, rank, nodes * ppn, records);
        let mut bytes = header.to_bytes();
        for call in 0..records as u64 {
            bytes.extend(record(&variants, job, rank, nodes, ppn, call).to_bytes());
        }
        let file = db
            .join("incoming")
            .join(format!("{}.{rank}.trace", header.job));
        std::fs::write(&file, bytes).with_context(|| format!("write {}", file.display()))?;
    }
    Ok(())
}

fn header(
    library: Library,
    variants: &[Variant],
    job: u64,
    rank: u32,
    world_ranks: u32,
    records: usize,
) -> Header {
    Header {
        job: format!("{:016x}", mix(0x6a6f_6273, job)),
        rank,
        world_ranks,
        library: library.to_string(),
        machine: "bench".to_owned(),
        host: "node0".to_owned(),
        clock: job,
        generation: 0,
        colltune_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ms: 1_700_000_000_000 + job * 60_000,
        capacity: records as u64,
        variants: variants
            .iter()
            .map(|variant| (variant.collective, variant.name.to_string()))
            .collect(),
        context: Vec::new(),
        transport: String::new(),
    }
}

/// A call whose time is a latency plus bytes over a bandwidth, both the variant's own, with noise.
fn record(variants: &[Variant], job: u64, rank: u32, nodes: u32, ppn: u32, call: u64) -> Record {
    let draw = |salt: u64, below: u64| mix(mix(job, salt), call) % below;
    let collective = MEASURED[draw(1, MEASURED.len() as u64) as usize];
    let message_bytes = 8u64 << draw(2, 18);
    let facts = Facts::usual(collective, message_bytes, nodes * ppn, nodes);
    let fitting = |place: &usize| {
        variants[*place].collective == collective && variants[*place].applies(&facts)
    };
    let places: Vec<usize> = (0..variants.len()).filter(fitting).collect();
    let variant = places[draw(3, places.len() as u64) as usize];
    let own = |salt: u64| 1.0 + (mix(variant as u64, salt) % 1000) as f64 / 500.0;
    let noise = 1.0 + (mix(mix(job, call), u64::from(rank)) % 1000) as f64 / 5000.0;
    let latency_ns = 2_000.0 * f64::from(nodes * ppn).log2() * own(4);
    let time_ns = (latency_ns + message_bytes as f64 * 0.2 * own(5)) * noise;
    Record {
        comm: 1,
        call,
        message_bytes,
        start_ns: call * 1_000_000,
        duration_ns: time_ns as u64,
        nodes,
        ppn,
        n_ranks: nodes * ppn,
        variant: variant as u16,
        collective,
        drawn: true,
        probability: None,
        manner: Manner::Blocking,
        shift_ns: None,
        after_ns: None,
        agreed: None,
        class: CallClass::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synthetic_traces_read_back() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("incoming")).unwrap();
        write_job(folder.path(), 4, 100).unwrap();
        for entry in std::fs::read_dir(folder.path().join("incoming")).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let (header, records) = colltune_core::record::read(&bytes).unwrap();
            assert_eq!((header.machine.as_str(), records.len()), ("bench", 100));
        }
    }
}
