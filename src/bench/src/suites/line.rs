//! `colltune-bench`: how fast colltune is on this machine, as ratios measured in one run.
//!
//! ```text
//! $ colltune-bench --quick overhead
//! $ colltune-bench tuned-node tuned-cluster
//! ```

use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use crate::suites::{Bench, FOLDER, SUITES, Suite, programs};
use colltune_output::failure::{Stopped, usage};
use colltune_output::progress;
use colltune_output::{aligned, json, print, tell, write};

/// Every suite.
const ALL: &str = "all";
/// The suites whose programs can be named.
const PROGRAMS: &str = "programs";

/// Runs the suites one after the other; one that fails does not keep the others from running.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.list {
        return list(args.json);
    }
    let asked = match args.names.is_empty() {
        true => ask()?,
        false => args.names.clone(),
    };
    let (programs, mut names): (Vec<String>, Vec<String>) = asked
        .into_iter()
        .partition(|name| programs::names().any(|known| known == name));
    if !programs.is_empty() && !names.iter().any(|name| name.starts_with(PROGRAMS)) {
        names.push(PROGRAMS.to_owned());
    }
    let suites = chosen(&names)?;
    let bench = Bench::new(&args.out, args.quick)?
        .of_programs(programs)
        .with_trainings(args.trainings.map(|n| n as usize))
        .with_ranks(args.ranks.map(|n| n as usize));
    let (mut reports, mut failed) = (Vec::new(), Vec::new());
    for suite in suites {
        match run_one(suite, &bench, args.json) {
            Ok(report) => reports.push(report),
            Err(error) => {
                progress::error(format_args!(
                    "failed to run the benchmark {}: {error:#}",
                    suite.name
                ));
                failed.push(suite.name);
            }
        }
    }
    if args.json {
        json(&serde_json::json!({ "schema": 1, "suites": reports, "failed": failed }))?;
    }
    if failed.is_empty() {
        Ok(())
    } else {
        anyhow::bail!("run {}", failed.join(", "))
    }
}

/// What there is.
fn list(as_json: bool) -> anyhow::Result<()> {
    let programs: Vec<_> = programs::names().collect();
    if as_json {
        let suite = |suite: &Suite| serde_json::json!({ "name": suite.name, "about": suite.about });
        let suites: Vec<_> = SUITES.iter().map(suite).collect();
        return json(&serde_json::json!({ "schema": 1, "suites": suites, "programs": programs }));
    }
    let line = |suite: &Suite| vec![suite.name.to_owned(), suite.about.to_owned()];
    let lines: Vec<_> = SUITES.iter().map(line).collect();
    let suites = aligned(&lines, |_| true);
    print(&format!(
        "{suites}Programs of `{PROGRAMS}`: {}\n",
        programs.join(", ")
    ))
}

/// Who names no suite might not want to wait for hours: a person is asked, a script gets an error.
fn ask() -> anyhow::Result<Vec<String>> {
    let (stdin, stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(usage(format!(
            "choose a benchmark: name one or more of `colltune-bench --list`; `{ALL}` runs every one, in hours"
        )));
    }
    list(false)?;
    progress::error(format_args!(
        "which of these? (names; `{ALL}`, in hours; nothing: none)"
    ));
    let mut answer = String::new();
    stdin
        .lock()
        .read_line(&mut answer)
        .context("read the answer")?;
    let names: Vec<String> = answer.split_whitespace().map(str::to_owned).collect();
    match names.is_empty() {
        true => Err(Stopped {
            message: "no benchmark was named".to_owned(),
            code: 2,
        }
        .into()),
        false => Ok(names),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune-bench --list
  colltune-bench --quick all          everything, about a minute a suite
  colltune-bench tuned-node           one suite in full
  colltune-bench tuned                tuned-node and tuned-cluster
  colltune-bench programs lammps fft  of the programs these alone, on a node and on the cluster

Each suite writes NAME.json and NAME.txt, and the table to stdout. In a row, `ratio` is a / b. A
target that is missed is said on the table; it is no failure: the exit code is 0 as soon as every
suite could measure. A suite that this machine cannot run (no root, one MPI library missing) says
so. Ranks that outnumber the cores need real-time scheduling (root, or an rtprio limit).")]
pub struct Args {
    /// Suites to run, `all` of them, or those of a name on a node and on the cluster; and programs of the suites
    /// `programs-*`. Without a name you are asked
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    names: Vec<String>,
    /// List the suites
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Where results and working files go
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    out: PathBuf,
    /// Fewer rounds: about a minute a suite, wider bounds
    #[arg(long)]
    quick: bool,
    /// Trainings behind each interval in `levers-*`, `solver-*` and `tuned-*` [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    trainings: Option<u64>,
    /// Ranks in `solver-node` and `programs-node` [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1024))]
    ranks: Option<u64>,
}

/// What can be named: suites, what stands for several of them, and programs.
fn names() -> impl Iterator<Item = &'static str> {
    let suites = SUITES.iter().map(|suite| suite.name);
    [ALL, "levers", "solver", "tuned", PROGRAMS]
        .into_iter()
        .chain(suites)
        .chain(programs::names())
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Suite>> {
    let mut chosen = Vec::new();
    for name in names {
        let before = chosen.len();
        // One name stands for a suite wherever it can run.
        let anywhere = format!("{name}-");
        let is_named =
            |suite: &&Suite| name == ALL || suite.name == name || suite.name.starts_with(&anywhere);
        chosen.extend(SUITES.iter().filter(is_named));
        if chosen.len() == before {
            // Only what was answered: the line's own words were looked at before.
            return Err(usage(format!(
                "run the benchmark {name:?}: `colltune-bench --list` names those that there are"
            )));
        }
    }
    Ok(chosen)
}

/// Its report as JSON, printed for people unless programs read.
fn run_one(suite: &Suite, bench: &Bench, as_json: bool) -> anyhow::Result<Value> {
    let report = (suite.run)(bench)?;
    let report = report.finished(suite.name, suite.about, bench);
    let table = report.table();
    let json = report.json();
    let pretty = serde_json::to_string_pretty(&json)?;
    for (extension, text) in [("json", &pretty), ("txt", &table)] {
        let name = format!("{}.{extension}", suite.name);
        write(&bench.out, &name, &format!("{text}\n"))?;
    }
    for (library, svg) in &report.pictures {
        write(&bench.out, &format!("{}.{library}.svg", suite.name), svg)?;
    }
    if !as_json {
        tell(table);
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_is_listed_stands_for_suites_or_programs() {
        for name in names().filter(|name| programs::names().all(|program| program != *name)) {
            let found = chosen(&[name.to_owned()]).expect(name);
            assert!(!found.is_empty(), "{name}");
        }
        assert_eq!(chosen(&[ALL.to_owned()]).expect("all").len(), SUITES.len());
        assert!(chosen(&["nothing".to_owned()]).is_err());
    }
}
