//! What `colltune-bench ompicolltune` measured, as a study of the evidence.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::found::{Findings, Judged, Reproduction};

pub const PAPER: &str = "Hunold and Steiner, PMBS 2022";

/// What is read of a bench's JSON.
#[derive(Deserialize)]
struct Measured {
    about: String,
    command: String,
    /// Of colltune and of the libraries.
    #[serde(default)]
    versions: BTreeMap<String, Option<String>>,
    findings: Vec<Found>,
    notes: Vec<String>,
    skipped: Vec<String>,
}

#[derive(Deserialize)]
struct Found {
    what: String,
    /// None where there was nothing to compute it from.
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    target: Target,
    met: Option<bool>,
    verdict: String,
}

#[derive(Deserialize)]
struct Target {
    bound: String,
    limit: Option<f64>,
}

/// The study, or why there is none; `None` where nothing was measured yet.
///
/// Errors: a file that cannot be read, or is none of a bench.
pub fn study(file: &Path) -> anyhow::Result<Option<Reproduction>> {
    let Some(measured) = read_if_there(file)? else {
        return Ok(None);
    };
    Ok(Some(Reproduction {
        name: "ompicolltune".to_owned(),
        paper: PAPER.to_owned(),
        command: measured.command.clone(),
        seconds: None,
        found: match measured.skipped.first() {
            Some(why) => Err(why.trim_start_matches("failed to ").to_owned()),
            None => Ok(findings(measured, file)),
        },
    }))
}

fn read_if_there(file: &Path) -> anyhow::Result<Option<Measured>> {
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("read {}", file.display()))?,
    };
    let read = serde_json::from_str(&text);
    let anew = || {
        let file = file.display();
        format!("read {file}: `colltune-bench ompicolltune` writes it anew")
    };
    read.map(Some).with_context(anew)
}

/// What is said of a file that another version of colltune wrote; nothing of one that this version did.
pub(super) fn of_another_version(file: &Path, version: &str) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    let file = file.display();
    (version != own).then(|| format!("{file} was written by colltune {version}, and this by {own}"))
}

fn findings(measured: Measured, file: &Path) -> Findings {
    let version = measured.versions.get("colltune").cloned().flatten();
    let older = version.and_then(|version| of_another_version(file, &version));
    Findings {
        source: format!("{}; {}", measured.about, size(&measured.command)),
        rows: measured.findings.into_iter().map(judged).collect(),
        assumptions: measured.notes.into_iter().chain(older).collect(),
    }
}

/// How large the run was that a command line started.
fn size(command: &str) -> &'static str {
    match command.split_whitespace().any(|word| word == "--quick") {
        true => "from a quick run, whose values are rough",
        false => "from a full run",
    }
}

fn judged(found: Found) -> Judged {
    let (id, what) = found
        .what
        .split_once([',', ':'])
        .unwrap_or(("", &found.what));
    let verdict = match found.met {
        Some(true) => "reproduced",
        Some(false) => "not reproduced",
        None => "not judged",
    };
    let limit = found.target.limit;
    let note = match (found.low, found.high) {
        (Some(low), Some(high)) if low < high => format!("95 % interval {low:.3} to {high:.3}"),
        _ => String::new(),
    };
    let noise = found.verdict.contains("within noise");
    Judged {
        id: id.to_owned(),
        what: what.trim().to_owned(),
        paper: Vec::new(),
        ours: found.value.into_iter().collect(),
        tolerance: limit.map_or_else(String::new, |limit| {
            format!("{} {}", found.target.bound, (limit * 1e4).round() / 1e4)
        }),
        verdict: verdict.to_owned(),
        note: note
            + if noise {
                ", which allows the other verdict"
            } else {
                ""
            },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Option<Reproduction>> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ompicolltune.json");
        std::fs::write(&file, text).expect("written");
        study(&file)
    }

    #[test]
    fn a_full_run_is_called_so_and_one_of_this_version_needs_no_word() {
        assert_eq!(size("colltune-bench ompicolltune"), "from a full run");
        let own = env!("CARGO_PKG_VERSION");
        assert_eq!(of_another_version(Path::new("f"), own), None);
    }

    #[test]
    fn a_miss_stays_a_miss_and_what_was_skipped_says_why() {
        assert!(study(Path::new("/no/such/file")).expect("none").is_none());
        let error = read("{}").expect_err("no bench wrote that");
        assert!(
            format!("{error:#}").contains("ompicolltune.json"),
            "{error:#}"
        );
        let finding = r#"{ "what": "O3: whole time", "value": 1.1, "low": 1.0, "high": 1.2, "met": false,
            "target": { "bound": "at most", "limit": 1.05 }, "verdict": "MISSED (within noise)" }"#;
        let with = |findings: &str, skipped: &str| {
            format!(
                r#"{{ "about": "a", "command": "colltune-bench --quick o", "versions": {{ "colltune": "0.0.1", "mpich": null }},
                    "findings": [{findings}], "notes": ["n"], "skipped": [{skipped}] }}"#
            )
        };
        let found = read(&with(finding, "")).expect("read").expect("there");
        let found = found.found.expect("findings");
        assert_eq!(found.source, "a; from a quick run, whose values are rough");
        let older = found.assumptions.last().expect("notes");
        assert!(older.contains("was written by colltune 0.0.1"), "{older}");
        let rows = found.rows;
        assert_eq!((&*rows[0].id, &*rows[0].verdict), ("O3", "not reproduced"));
        assert_eq!(rows[0].tolerance, "at most 1.05");
        assert!(rows[0].note.contains("1.000 to 1.200, which allows"));
        let skipped = read(&with("", r#""failed to start the test cluster""#));
        let found = skipped.expect("read").expect("there").found;
        assert_eq!(found.expect_err("why"), "start the test cluster");
    }
}
