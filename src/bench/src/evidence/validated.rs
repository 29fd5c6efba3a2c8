//! What `colltune-bench validate` found, a study of the evidence for each of its rows.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use colltune_statistics::median;
use serde::Deserialize;

use super::found::{Findings, Judged, Reproduction};
use super::measured::of_another_version;
use crate::validate::{FILE, SCHEMA};
use colltune_output::failure::usage;

/// Whose figure of emulated and actual times the runs of [`FIRST`] stand for.
pub const PAPER: &str = "Wu et al., CLUSTER 2011";
/// The row whose runs do.
pub const FIRST: &str = "V1";

/// What the other rows are about.
const REAL_RUNS: &str = "emulated runs beside real ones";
/// What writes the files.
const COMMAND: &str = "colltune-bench validate";

/// What every version of the JSON says.
#[derive(Deserialize)]
struct Edition {
    schema: u32,
}

/// What is read of the validation's JSON.
#[derive(Deserialize)]
struct Validated {
    row: Option<String>,
    version: String,
    command: String,
    place: String,
    source: String,
    steps: u64,
    fit_steps: u64,
    repetitions: u64,
    rows: Vec<Run>,
    validated: Vec<Claim>,
}

#[derive(Deserialize)]
struct Run {
    deck: String,
    policy: String,
    measured_s: Vec<f64>,
    emulated_s: f64,
    error: f64,
    noise: f64,
}

#[derive(Deserialize)]
struct Claim {
    id: String,
    what: String,
    found: Option<f64>,
    holds: bool,
}

/// How far the paper's emulated times are off at most (fig. 6).
const NEAR: f64 = 0.12;

/// The files that were named; where none was, those of all rows in this folder, which need not be there.
///
/// Errors: a folder that cannot be listed.
pub fn files(named: &[PathBuf], folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let listed = || format!("list {}", folder.display());
    let inside = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        inside => inside.with_context(listed)?,
    };
    let mut files = Vec::new();
    for entry in inside {
        let file = entry.with_context(listed)?.path();
        if is_of_a_row(&file) {
            files.push(file);
        }
    }
    Ok(files)
}

fn is_of_a_row(file: &Path) -> bool {
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or("");
    let row = name
        .strip_prefix(FILE)
        .and_then(|row| row.strip_prefix('-'));
    row.is_some_and(|row| row.ends_with(".json"))
}

/// The studies of these files, in the order of their rows.
///
/// Errors: a file that cannot be read, is none of a validation or of another version of them; two files of one row.
pub fn studies(files: &[PathBuf]) -> anyhow::Result<Vec<Reproduction>> {
    let studies = files.iter().map(|file| study(file));
    let mut studies: Vec<Reproduction> = studies.collect::<anyhow::Result<_>>()?;
    studies.sort_by(|a, b| a.name.cmp(&b.name));
    let twice = studies.windows(2).find(|two| two[0].name == two[1].name);
    match twice {
        None => Ok(studies),
        Some(two) => Err(usage(format!(
            "show {} twice: name one file of each row with --validated",
            two[0].name
        ))),
    }
}

fn study(file: &Path) -> anyhow::Result<Reproduction> {
    let validated = read(file)?;
    let is_first = validated.row.as_deref() == Some(FIRST);
    let name = validated.row.as_deref().unwrap_or("validate");
    Ok(Reproduction {
        name: name.to_owned(),
        paper: if is_first { PAPER } else { REAL_RUNS }.to_owned(),
        command: validated.command.clone(),
        seconds: None,
        found: Ok(findings(&validated, is_first, file)),
    })
}

fn read(file: &Path) -> anyhow::Result<Validated> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    let anew = || format!("read {}: `{COMMAND}` writes it anew", file.display());
    let edition: Edition = serde_json::from_str(&text).with_context(anew)?;
    ensure!(
        edition.schema == SCHEMA,
        "{}: it has version {} of validations, and this colltune reads version {SCHEMA}",
        anew(),
        edition.schema
    );
    serde_json::from_str(&text).with_context(anew)
}

/// What the validation said; of the first row its runs as well, as the paper's figure has them.
fn findings(validated: &Validated, is_first: bool, file: &Path) -> Findings {
    let runs = validated.rows.iter().filter(|_| is_first).map(of_figure);
    let claims = validated.validated.iter().map(|claim| Judged {
        id: claim.id.clone(),
        what: claim.what.clone(),
        paper: Vec::new(),
        ours: claim.found.into_iter().collect(),
        tolerance: String::new(),
        verdict: verdict(claim.holds),
        note: String::new(),
    });
    let mut assumptions = vec![format!(
        "costs fitted to the first {} of {} steps, once in each turn; medians of {} turns",
        validated.fit_steps, validated.steps, validated.repetitions
    )];
    if is_first {
        assumptions.push("the mini-app instead of ART".to_owned());
    }
    assumptions.extend(of_another_version(file, &validated.version));
    Findings {
        rows: runs.chain(claims).collect(),
        source: format!("{}; machine: {}", validated.place, validated.source),
        assumptions,
    }
}

/// A run as the paper's figure shows it: emulated beside actual.
fn of_figure(run: &Run) -> Judged {
    let off = format!("{:+.1} %", 100.0 * run.error);
    let measured = median(&run.measured_s);
    Judged {
        id: "A1".to_owned(),
        what: format!("fig. 6: {} under {}, time loop in s", run.deck, run.policy),
        paper: Vec::new(),
        ours: vec![run.emulated_s],
        tolerance: format!("within {:.0} % of the measured time", 100.0 * NEAR),
        verdict: verdict(run.error.abs() <= NEAR),
        note: format!(
            "{off} of {measured:.3} s measured, half of whose range is {:.1} %",
            100.0 * run.noise
        ),
    }
}

fn verdict(holds: bool) -> String {
    match holds {
        true => "reproduced",
        false => "not reproduced",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a validation of a row, whose two runs are off by less and by more than the paper's.
    fn written(folder: &Path, name: &str, row: &str, schema: u32) -> PathBuf {
        let run = |error: f64| {
            format!(
                r#"{{ "deck": "d", "policy": "p", "measured_s": [2.0, 1.0, 4.0], "emulated_s": 2.0, "error": {error}, "noise": 0.01 }}"#
            )
        };
        let text = format!(
            r#"{{ "schema": {schema}, "row": {row}, "version": "0.0.1", "command": "c", "place": "here",
                "source": "measured", "steps": 20, "fit_steps": 10, "repetitions": 5, "rows": [{}, {}],
                "validated": [{{ "id": "V5", "what": "counts", "found": 0.0, "holds": true }}] }}"#,
            run(-0.119),
            run(0.121)
        );
        let file = folder.join(name);
        std::fs::write(&file, text).expect("written");
        file
    }

    fn verdicts(study: &Reproduction) -> Vec<(&str, &str)> {
        let rows = &study.found.as_ref().expect("findings").rows;
        rows.iter().map(|row| (&*row.id, &*row.verdict)).collect()
    }

    #[test]
    fn the_papers_figure_is_of_the_first_row_alone_and_every_row_says_what_it_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        written(folder, "emulate-validate-v2.json", r#""V2""#, SCHEMA);
        written(folder, "emulate-validate-v1.json", r#""V1""#, SCHEMA);
        let alone = written(folder, "emulate-validate.json", "null", SCHEMA);
        let found = files(&[], folder).expect("listed");
        assert_eq!(found.len(), 2, "what no row prescribed is not shown");
        let found = studies(&found).expect("read");
        let names: Vec<&str> = found.iter().map(|study| &*study.name).collect();
        assert_eq!(names, ["V1", "V2"]);
        let claim = ("V5", "reproduced");
        let runs = [("A1", "reproduced"), ("A1", "not reproduced"), claim];
        assert_eq!(verdicts(&found[0]), runs);
        assert_eq!(verdicts(&found[1]), [claim]);
        let first = found[0].found.as_ref().expect("findings");
        let note = &first.rows[0].note;
        assert!(note.contains("-11.9 % of 2.000 s"), "{note}");
        let older = first.assumptions.last().expect("assumptions");
        assert!(older.contains("emulate-validate-v1.json was written by colltune 0.0.1"));
        let named = studies(&files(&[alone], folder).expect("named")).expect("read");
        assert_eq!(verdicts(&named[0]), [claim]);
        assert!(files(&[], &folder.join("none")).expect("none").is_empty());
    }

    #[test]
    fn a_file_that_is_of_no_use_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let none = folder.join("none.json");
        let empty = folder.join("empty.json");
        std::fs::write(&empty, "{}").expect("written");
        let old = written(folder, "old.json", r#""V1""#, SCHEMA - 1);
        for (file, word) in [
            (&none, "none.json"),
            (&empty, "empty.json"),
            (&old, "version 5"),
        ] {
            let error = studies(std::slice::from_ref(file)).expect_err("of no use");
            let error = format!("{error:#}");
            assert!(error.contains(word), "{error}");
            assert!(error.contains(&file.display().to_string()), "{error}");
        }
        let new = written(folder, "new.json", r#""V1""#, SCHEMA);
        let error = studies(&[new.clone(), new]).expect_err("of one row");
        assert!(error.to_string().contains("V1 twice"), "{error}");
    }
}
