//! The cost of one call by MPI library and by the caller's language, as in `overhead`.
//!
//! Each library, of Debian and of PyPI, gets the same small program from each of its compilers, and
//! mpi4py. What this machine lacks is named.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use colltune_core::collective::Collective;
use colltune_core::library::Abi;
use colltune_statistics as statistics;
use serde::Deserialize;
use serde_json::Value;

use super::jobs::{self, Cell};
use super::overhead::{self, BLOCKS, CALLS_PER_BLOCK};
use super::place::{self, Place};
use super::report::{Finding, Report};
use super::{Bench, database};

/// What each caller calls, on MPI_COMM_SELF.
const CELL: Cell = (Collective::Allreduce, 8);

/// A program that makes the calls, and how it comes to a library.
struct Caller {
    name: &'static str,
    file: &'static str,
    source: &'static str,
    runs: Runs,
}

enum Runs {
    /// Built by the library's compiler of this kind, with these flags.
    Compiled(&'static str, &'static [&'static str]),
    /// By the Python that has mpi4py.
    Python,
}

const C: &str = include_str!("callers/caller.c");
const FORTRAN: &str = include_str!("callers/caller.F90");
const PYTHON: &str = include_str!("callers/caller.py");

#[rustfmt::skip] // One line each reads as a table.
const CALLERS: [Caller; 5] = [
    Caller { name: "C", file: "caller.c", source: C, runs: Runs::Compiled("c", &[]) },
    Caller { name: "C (standard interface)", file: "caller.c", source: C, runs: Runs::Compiled("c_abi", &[]) },
    Caller { name: "Fortran (mpif.h)", file: "caller.F90", source: FORTRAN, runs: Runs::Compiled("fortran", &["-DMPIFH"]) },
    Caller { name: "Fortran (mpi_f08)", file: "caller.F90", source: FORTRAN, runs: Runs::Compiled("fortran", &[]) },
    Caller { name: "mpi4py", file: "caller.py", source: PYTHON, runs: Runs::Python },
];

/// What `scripts/mpi-libraries` prints.
#[derive(Deserialize)]
struct Found {
    libraries: Vec<Library>,
    missing: BTreeMap<String, String>,
    python: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Library {
    name: String,
    abi: String,
    launcher: PathBuf,
    variables: BTreeMap<String, String>,
    compilers: BTreeMap<String, PathBuf>,
}

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let mut report = overhead::comparison();
    report.notes.push("an MPI_Allreduce of one double; passed: mode off; drawn: every call drawn, no rank records; \
                       recorded: every call drawn and recorded, `records` of how many by each job".to_owned());
    bench.progress("callers: looking for MPI libraries");
    let found = find()?;
    for (name, reason) in &found.missing {
        report.skipped.push(format!("{name}: {reason}"));
    }
    let mut largest: BTreeMap<&str, Finding> = BTreeMap::new();
    for library in &found.libraries {
        for caller in &CALLERS {
            let what = format!("{}, {}", library.name, caller.name);
            let measured = program(bench, library, caller, found.python.as_deref())
                .and_then(|program| measure(bench, library, &program, &what, &mut report));
            match measured {
                Ok(findings) => {
                    for (way, finding) in findings {
                        let known = largest.get(way);
                        if known.is_none_or(|known| finding.found.value > known.found.value) {
                            largest.insert(way, finding);
                        }
                    }
                }
                Err(reason) => report.skipped.push(format!("{what}: failed to {reason:#}")),
            }
        }
    }
    report.findings.extend(largest.into_values());
    Ok(report)
}

fn find() -> anyhow::Result<Found> {
    let script = place::in_source_tree("scripts/mpi-libraries")
        .context("find scripts/mpi-libraries in the source tree")?;
    let output = Command::new("timeout")
        .args(["-k", "2", "600"])
        .arg(script)
        .output()
        .context("start scripts/mpi-libraries")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("look for MPI libraries: {}", stderr.trim());
    }
    serde_json::from_slice(&output.stdout).context("read what scripts/mpi-libraries printed")
}

/// The words that start the caller.
fn program(
    bench: &Bench,
    library: &Library,
    caller: &Caller,
    python: Option<&Path>,
) -> anyhow::Result<Vec<OsString>> {
    let folder = bench.out.join("callers");
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let source = folder.join(caller.file);
    std::fs::write(&source, caller.source)
        .with_context(|| format!("write {}", source.display()))?;
    match caller.runs {
        Runs::Python => {
            let python = python.context("find a Python with mpi4py")?;
            Ok(vec![python.into(), source.into()])
        }
        Runs::Compiled(kind, flags) => {
            let compiler = library
                .compilers
                .get(kind)
                .with_context(|| format!("find a compiler: the library has none ({kind})"))?;
            let program = folder.join(format!("{}-{kind}{}", library.name, flags.concat()));
            let output = Command::new(compiler)
                .arg("-O2")
                .args(flags)
                .arg("-o")
                .args([&program, &source])
                .output()
                .with_context(|| format!("start {}", compiler.display()))?;
            if !output.status.success() {
                let stderr = String::from_utf8_lossy(&output.stderr);
                let first = stderr.lines().next().unwrap_or("");
                bail!("compile {}: {first}", caller.file);
            }
            Ok(vec![program.into()])
        }
    }
}

/// Measures what each way costs a caller: a row of the report for each, and a finding.
fn measure(
    bench: &Bench,
    library: &Library,
    program: &[OsString],
    what: &str,
    report: &mut Report,
) -> anyhow::Result<Vec<(&'static str, Finding)>> {
    let abi = Abi::from_name(&library.abi)
        .with_context(|| format!("use the binary interface {:?}", library.abi))?;
    let variables = library.variables.clone().into_iter().collect();
    let place = Place::of_launcher(abi, library.launcher.clone().into(), variables);
    let db = database::empty(bench, "callers")?;
    let mut words = program.to_vec();
    words.extend([BLOCKS.to_string(), CALLS_PER_BLOCK.to_string()].map(OsString::from));
    let mut ways = overhead::ways(&db);
    ways.retain(|way| way.name != "known");
    let rounds = bench.pick(20, 3);
    let costs = overhead::costs(&ways, rounds, |round, tuner| {
        bench.progress(&format!("{what}: round {} of {rounds}", round + 1));
        let (_, printed) = jobs::output_of(bench, &place, 1, tuner, &words)?;
        Ok(BTreeMap::from([(CELL, time_of_call(&printed)?)]))
    })?;
    let mut findings = Vec::new();
    for cost in &costs {
        let way = cost.way;
        let found = cost.difference();
        let records = match way.name {
            "recorded" => overhead::records_per_trace(&db).into(),
            _ => Value::Null,
        };
        let row = cost.row(format!("{what}, {}", way.name));
        report.rows.push(
            row.with("low", found.low)
                .with("high", found.high)
                .with("records", records),
        );
        findings.push((
            way.name,
            Finding {
                what: format!("the largest cost of a call that is {}: {what}", way.name),
                found,
                unit: " ns",
                target: way.target,
            },
        ));
    }
    Ok(findings)
}

/// The median over the blocks that a caller printed, in nanoseconds.
fn time_of_call(printed: &str) -> anyhow::Result<f64> {
    let times: Vec<f64> = printed
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("read the times in {printed:?}"))?;
    if times.len() != BLOCKS {
        bail!("read {BLOCKS} times in {printed:?}");
    }
    Ok(statistics::median(&times))
}
