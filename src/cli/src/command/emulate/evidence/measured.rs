//! What `colltune bench ompicolltune` measured, as a study of the page.

use std::path::Path;

use anyhow::Context;
use colltune_report::evidence::{Findings, Judged, Reproduction};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub const PAPER: &str = "Hunold and Steiner, PMBS 2022";

/// What is read of a bench's JSON.
#[derive(Deserialize)]
struct Measured {
    about: String,
    command: String,
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
    let measured: Option<Measured> = read_if_there(file, "colltune bench ompicolltune")?;
    Ok(measured.map(|measured| Reproduction {
        name: "ompicolltune".to_owned(),
        paper: PAPER.to_owned(),
        command: measured.command.clone(),
        seconds: None,
        found: match measured.skipped.first() {
            Some(why) => Err(why.trim_start_matches("failed to ").to_owned()),
            None => Ok(findings(measured)),
        },
    }))
}

/// What a command wrote as JSON; `None` where it has not run yet.
///
/// Errors: a file that cannot be read, or is none of that command.
pub(super) fn read_if_there<T: DeserializeOwned>(
    file: &Path,
    command: &str,
) -> anyhow::Result<Option<T>> {
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("read {}", file.display()))?,
    };
    let read = serde_json::from_str(&text);
    let anew = || format!("read {}: `{command}` writes it anew", file.display());
    read.map(Some).with_context(anew)
}

fn findings(measured: Measured) -> Findings {
    Findings {
        source: measured.about,
        rows: measured.findings.into_iter().map(judged).collect(),
        assumptions: measured.notes,
        pictures: Vec::new(),
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
                r#"{{ "about": "a", "command": "c", "findings": [{findings}], "notes": ["n"], "skipped": [{skipped}] }}"#
            )
        };
        let found = read(&with(finding, "")).expect("read").expect("there");
        let rows = found.found.expect("findings").rows;
        assert_eq!((&*rows[0].id, &*rows[0].verdict), ("O3", "not reproduced"));
        assert_eq!(rows[0].tolerance, "at most 1.05");
        assert!(rows[0].note.contains("1.000 to 1.200, which allows"));
        let skipped = read(&with("", r#""failed to start the test cluster""#));
        let found = skipped.expect("read").expect("there").found;
        assert_eq!(found.expect_err("why"), "start the test cluster");
    }
}
