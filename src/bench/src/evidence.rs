//! `colltune-bench evidence`: every study, one after another, in one file.
//!
//! ```text
//! $ colltune-bench evidence --quick -o target/evidence
//! ```

mod found;
mod markdown;
mod measured;
mod validated;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use colltune_emulate::study::{ALL, Row, Size, Study};

use self::found::{Elsewhere, Evidence, Findings, Judged, Reproduction};
use crate::suites::FOLDER;
use colltune_lab::emulate::seconds_of;
use colltune_output::progress;
use colltune_output::{json, print, write};

/// What is written, in the folder.
const FILE: &str = "evidence.md";

/// After so long no further study is begun.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// What no study here has: it takes too long, or real jobs are needed first.
const ELSEWHERE: Elsewhere = Elsewhere {
    ids: "C0",
    what: "table I by the gas itself instead of the exact shock",
    paper: "Jain et al. 2025",
    how: "colltune-amr --deck blast-512 (to blast-4096), whose criterion is this app's own; not run to its end here",
};
const UNMEASURED: Elsewhere = Elsewhere {
    ids: "O1, O2, O3",
    what: "figs 3 to 5: how choices move, unseen layouts, the tuner's price and gain",
    paper: measured::PAPER,
    how: "colltune-bench ompicolltune, as root, before this",
};
const NOT_VALIDATED: Elsewhere = Elsewhere {
    ids: "A1",
    what: "fig. 6: emulated within 12 % of actual, the same trend",
    paper: validated::PAPER,
    how: "colltune-bench validate --machine DB --row V1, with MPI and a calibrated database, before this",
};
const PAIRS: Elsewhere = Elsewhere {
    ids: "V7",
    what: "the emulated order of pairs of a policy and an allreduce beside the measured one",
    paper: validated::PAPER,
    how: "colltune-bench levers, as root, in target/bench/levers-*.json",
};

/// Runs the studies and writes what they found, with each study's JSON beside it.
///
/// Errors: when all is written, the studies that failed.
pub fn run(args: &Args) -> anyhow::Result<()> {
    // What cannot be read is reported before an hour goes by.
    let measured = measured::study(&args.measured)?;
    let validated = validated::files(&args.validated, Path::new(FOLDER))?;
    let validated = validated::studies(&validated)?;
    let out = &args.out;
    std::fs::create_dir_all(out).with_context(|| format!("create {}", out.display()))?;
    let chosen = |row: &&Row| args.only.is_empty() || args.only.iter().any(|name| name == row.name);
    let rows: Vec<&Row> = ALL.iter().filter(chosen).collect();
    let (studies, mut files) = reproductions(&rows, args.quick);
    let ran = all_ran(&studies);
    let mut evidence = Evidence {
        quick: args.quick,
        studies,
        elsewhere: vec![ELSEWHERE, PAIRS],
    };
    match measured {
        Some(study) => evidence.studies.push(study),
        None => evidence.elsewhere.push(UNMEASURED),
    }
    if !validated.iter().any(|study| study.name == validated::FIRST) {
        evidence.elsewhere.push(NOT_VALIDATED);
    }
    evidence.studies.extend(validated);
    progress::clear();
    // It comes last: where it is, everything beside it is, too.
    files.push((FILE.to_owned(), markdown::text(&evidence)));
    for (name, contents) in &files {
        write(out, name, contents)?;
    }
    match args.json {
        true => json(&evidence),
        false => print(&in_words(&evidence, &out.join(FILE))),
    }?;
    ran
}

/// Runs studies one after another: what each found, and its file. Of one that fails it says why, and the others go on.
fn reproductions(rows: &[&Row], quick: bool) -> (Vec<Reproduction>, Vec<(String, String)>) {
    let begun = Instant::now();
    let (mut studies, mut files) = (Vec::new(), Vec::new());
    for row in rows {
        let since = Instant::now();
        let found = match begun.elapsed() < TIME_MAX {
            true => reproduced(row, quick).map_err(|error| format!("failed to {error:#}")),
            false => Err("skipped: one-hour limit reached".to_owned()),
        };
        let found = found.map(|(findings, json)| {
            files.push((format!("emulate-study-{}.json", row.name), json));
            findings
        });
        studies.push(Reproduction {
            name: row.name.to_owned(),
            paper: row.paper.to_owned(),
            command: command(row.name, quick),
            seconds: Some(since.elapsed().as_secs_f64()),
            found,
        });
    }
    (studies, files)
}

/// What a study found, and its JSON.
fn reproduced(row: &Row, quick: bool) -> anyhow::Result<(Findings, String)> {
    progress::show(&format!("{}: emulating", row.name));
    let size = if quick { Size::Quick } else { Size::Full };
    let study = (row.run)(size, Some(&seconds_of))?;
    let json = serde_json::to_string_pretty(&study)? + "\n";
    Ok((findings(study), json))
}

/// Errors: the names of the studies that failed.
fn all_ran(studies: &[Reproduction]) -> anyhow::Result<()> {
    let failed = studies.iter().filter(|study| study.found.is_err());
    let failed: Vec<&str> = failed.map(|study| &*study.name).collect();
    ensure!(
        failed.is_empty(),
        "run {}: {FILE} says why",
        failed.join(", ")
    );
    Ok(())
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
It writes evidence.md and the JSON of each study. A study that cannot run here is named with the
reason, the others go on, and the exit code is 1. Of real jobs it shows what
`colltune-bench ompicolltune` found before, and `colltune-bench validate --row ROW`.")]
pub struct Args {
    /// Small studies, to see that they run
    #[arg(long)]
    quick: bool,
    /// Only these studies
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        value_parser = clap::builder::PossibleValuesParser::new(ALL.iter().map(|row| row.name))
    )]
    only: Vec<String>,
    /// What `colltune-bench ompicolltune` measured
    #[arg(
        long,
        value_name = "FILE",
        default_value = "target/bench/ompicolltune.json"
    )]
    measured: PathBuf,
    /// What `colltune-bench validate` found, a file for each row [default: target/bench/emulate-validate-*.json]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    validated: Vec<PathBuf>,
    /// Print what stands in evidence.md as JSON
    #[arg(long)]
    json: bool,
    /// Where the files go
    #[arg(short, long, value_name = "DIR", default_value = "target/evidence")]
    out: PathBuf,
}

fn command(name: &str, quick: bool) -> String {
    let quick = if quick { " --quick" } else { "" };
    format!("colltune-bench study {name}{quick}")
}

fn findings(study: Study) -> Findings {
    let rows = study.findings.into_iter().map(|finding| Judged {
        id: finding.id.to_owned(),
        what: finding.what,
        paper: finding.paper,
        ours: finding.ours,
        tolerance: finding.tolerance,
        verdict: finding.verdict.text().to_owned(),
        note: finding.note,
    });
    Findings {
        rows: rows.collect(),
        source: study.source.to_owned(),
        assumptions: study.assumptions,
    }
}

fn in_words(evidence: &Evidence, file: &Path) -> String {
    let mut text = String::new();
    for study in &evidence.studies {
        let took = study.seconds;
        let took = took.map_or_else(String::new, |seconds| format!(" ({seconds:.0} s)"));
        text += &match &study.found {
            Ok(_) => format!(
                "{}: {} reproduced, {} shape only, {} not reproduced{took}\n",
                study.name,
                study.count("reproduced"),
                study.count("shape only"),
                study.count("not reproduced"),
            ),
            Err(why) => format!("{}: {why}\n", study.name),
        };
    }
    text + &format!("{}\n", file.display())
}

#[cfg(test)]
mod tests {
    use colltune_emulate::EmulateError;

    use super::*;

    #[test]
    fn a_study_that_fails_says_why_in_the_file_and_in_the_end_and_the_others_go_on() {
        let bad = Row {
            name: "bad",
            paper: "a paper",
            run: |_, _| Err(EmulateError::Program("it has no end".to_owned())),
        };
        let good = Row {
            name: "good",
            paper: "another",
            run: |_, _| {
                Ok(Study {
                    name: "good",
                    source: "a table",
                    columns: Vec::new(),
                    findings: Vec::new(),
                    assumptions: Vec::new(),
                    figures: Vec::new(),
                })
            },
        };
        let (studies, files) = reproductions(&[&bad, &good], true);
        let names: Vec<&str> = studies.iter().map(|study| &*study.name).collect();
        assert_eq!(names, ["bad", "good"]);
        assert!(studies[1].found.is_ok());
        let files: Vec<&str> = files.iter().map(|(name, _)| &**name).collect();
        assert_eq!(files, ["emulate-study-good.json"]);
        let error = all_ran(&studies).expect_err("one failed").to_string();
        assert!(error.contains("bad") && !error.contains("good"), "{error}");
        all_ran(&studies[1..]).expect("the other ran");
        let text = markdown::text(&Evidence {
            studies,
            ..Evidence::default()
        });
        assert!(text.contains("failed to run the program: it has no end"));
        assert!(text.contains("a table") && text.contains("| bad | 0 | 0 | 0 | 0 |\n"));
    }
}
