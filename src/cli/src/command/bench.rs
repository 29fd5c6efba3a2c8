//! `colltune bench`: how fast colltune is on this machine, as ratios measured in one run.
//!
//! ```text
//! $ colltune bench --quick overhead
//! $ colltune bench tuned-node tuned-cluster
//! ```

use std::path::PathBuf;

use anyhow::Context as _;

use super::output::tell;
use crate::bench::{Bench, FOLDER, SUITES, Suite, programs};
use crate::failure::usage;
use crate::progress;

/// The suites whose programs can be named.
const PROGRAMS: &str = "programs";

/// Runs the suites one after the other; one that fails does not keep the others from running.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.list {
        SUITES
            .iter()
            .for_each(|suite| tell(format!("{:17} {}", suite.name, suite.about)));
        let programs: Vec<_> = programs::names().collect();
        tell(format!("Programs of `{PROGRAMS}`: {}", programs.join(", ")));
        return Ok(());
    }
    let (programs, mut names): (Vec<String>, Vec<String>) = args
        .names
        .iter()
        .cloned()
        .partition(|name| programs::names().any(|known| known == name));
    if !programs.is_empty() && !names.iter().any(|name| name.starts_with(PROGRAMS)) {
        names.push(PROGRAMS.to_owned());
    }
    let suites = chosen(&names)?;
    let bench = Bench::new(&args.out, args.quick)?
        .of_programs(programs)
        .with_trainings(args.trainings.map(|n| n as usize));
    let mut failed = Vec::new();
    for suite in suites {
        if let Err(error) = run_one(suite, &bench) {
            progress::tell(&format!(
                "colltune: failed to run the benchmark {}: {error:#}",
                suite.name
            ));
            failed.push(suite.name);
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        anyhow::bail!("run {}", failed.join(", "))
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune bench --list
  colltune bench --quick              everything, about a minute a suite
  colltune bench tuned-node           one suite in full
  colltune bench tuned                tuned-node and tuned-cluster
  colltune bench programs lammps fft  of the programs these alone, on a node and on the cluster

Each suite writes NAME.json and NAME.txt, and the table to stdout. In a row, `ratio` is a / b.
A target that is missed is said on the table; it is no failure: the exit code is 0 as soon as every
suite could measure. A suite that this machine cannot run (no root, one MPI library missing) says so.
Ranks that outnumber the cores need real-time scheduling (root, or an rtprio limit).")]
pub struct Args {
    /// Suites to run [default: all], and programs of the suites `programs-*`
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List the suites
    #[arg(long)]
    list: bool,
    /// Where results and working files go
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    out: PathBuf,
    /// Fewer rounds: about a minute a suite, wider bounds
    #[arg(long)]
    quick: bool,
    /// Trainings behind each interval in `solver-*` and `tuned-*` [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    trainings: Option<u64>,
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Suite>> {
    if names.is_empty() {
        return Ok(SUITES.iter().collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        let before = chosen.len();
        // One name stands for a suite wherever it can run.
        let anywhere = format!("{name}-");
        let is_named = |suite: &&Suite| suite.name == name || suite.name.starts_with(&anywhere);
        chosen.extend(SUITES.iter().filter(is_named));
        if chosen.len() == before {
            let known: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
            return Err(usage(format!(
                "run the benchmark {name:?}: allowed are {}",
                known.join(", ")
            )));
        }
    }
    Ok(chosen)
}

fn run_one(suite: &Suite, bench: &Bench) -> anyhow::Result<()> {
    let report = (suite.run)(bench)?;
    let report = report.finished(suite.name, suite.about, bench);
    let table = report.table();
    let json = serde_json::to_string_pretty(&report.json())?;
    for (extension, text) in [("json", &json), ("txt", &table)] {
        let file = bench.out.join(format!("{}.{extension}", suite.name));
        std::fs::write(&file, format!("{text}\n"))
            .with_context(|| format!("write {}", file.display()))?;
    }
    tell(table);
    Ok(())
}
