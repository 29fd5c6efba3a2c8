//! `colltune-bench evidence`: its file beside the studies' own JSON.

use std::path::Path;
use std::process::{Command, Output};

use colltune_tests::{colltune_bench as command, folder};
use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.args(arguments).output().expect("it starts")
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("a name in UTF-8")
}

/// What each row of the file says: its figure and its verdict.
fn rows(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let rows = rows.map(|line| line.split(" | ").collect::<Vec<_>>());
    rows.filter(|cells| cells.len() == 7 && cells[1] != "figure")
        .map(|cells| {
            let what = cells[1].replace("\\|", "|").replace("\\<", "<");
            (what, cells[5].to_owned())
        })
        .collect()
}

/// What a bench of real jobs wrote.
const MEASURED: &str = r#"{ "about": "real jobs", "command": "colltune-bench ompicolltune", "notes": ["a note"],
    "skipped": [], "findings": [{ "what": "O3: whole time of Tuned [0] over the default's", "value": 1.07, "low": 1.06,
    "high": 1.08, "met": false, "target": { "bound": "at most", "limit": 1.05 }, "verdict": "MISSED" }] }"#;

/// What a validation wrote of one row, in a version of its JSON.
fn validated(row: &str, schema: u32) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        r#"{{ "schema": {schema}, "row": "{row}", "version": "{version}",
            "command": "colltune-bench validate --machine db --row {row}", "place": "here", "source": "measured",
            "steps": 20, "fit_steps": 10, "repetitions": 5,
            "rows": [{{ "deck": "sedov-512", "policy": "lpt", "measured_s": [2.0], "emulated_s": 3.0, "error": 0.5,
                "noise": 0.01 }}],
            "validated": [{{ "id": "{row}", "what": "what {row} claims", "found": 0.5, "holds": false }}] }}"#
    )
}

#[test]
fn verdicts_are_those_of_the_studies_json_and_of_real_jobs() {
    let folder = folder();
    let out = folder.path().join("evidence");
    let written = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("written");
        file
    };
    let measured = written("ompicolltune.json", MEASURED);
    let first = written("first.json", &validated("V1", 6));
    let second = written("second.json", &validated("V2", 6));
    let output = bench(&[
        "evidence",
        "--quick",
        "--only",
        "art",
        "--measured",
        path(&measured),
        "--validated",
        path(&second),
        path(&first),
        "-o",
        path(&out),
    ]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(out.join("evidence.md")).expect("the file");
    let json = std::fs::read_to_string(out.join("emulate-study-art.json")).expect("beside it");
    let study: Value = serde_json::from_str(&json).expect("JSON");
    let findings = study["findings"].as_array().expect("findings");
    let mut said: Vec<(String, String)> = findings
        .iter()
        .map(|finding| {
            let word = |key: &str| finding[key].as_str().expect("a word").to_owned();
            (word("what"), word("verdict").replace('_', " "))
        })
        .collect();
    assert!(said.len() >= 8);
    let of_jobs = "whole time of Tuned [0] over the default's";
    // The paper's figure is of the first row of the validation alone.
    let fig_6 = "fig. 6: sedov-512 under lpt, time loop in s";
    let of_jobs = [of_jobs, fig_6, "what V1 claims", "what V2 claims"];
    said.extend(of_jobs.map(|what| (what.to_owned(), "not reproduced".to_owned())));
    assert_eq!(rows(&text), said);
    assert!(text.contains("real jobs; from a full run"));
    for row in ["V1", "V2"] {
        let command = format!("`colltune-bench validate --machine db --row {row}`");
        assert!(text.contains(&command), "{command}");
    }
    let left: Vec<_> = std::fs::read_dir(&out).expect("a folder").collect();
    assert_eq!(left.len(), 2, "nothing half-written is left: {left:?}");
}

#[test]
fn a_validation_of_another_version_is_named_before_anything_runs() {
    let folder = folder();
    let out = folder.path().join("evidence");
    let old = folder.path().join("old.json");
    std::fs::write(&old, validated("V1", 4)).expect("written");
    let line = ["evidence", "--quick", "--only", "art"];
    let files = ["--validated", path(&old), "-o", path(&out)];
    let output = bench(&[line.as_slice(), &files].concat());
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains(path(&old)) && text.contains("version 4"),
        "{text}"
    );
    assert!(!out.exists());
}

#[test]
fn a_study_that_nobody_has_and_a_folder_that_cannot_be_made_are_named() {
    let folder = folder();
    let output = bench(&["evidence", "--only", "arts"]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("arts") && text.contains("cplx"), "{text}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let below = file.join("evidence");
    let output = bench(&["evidence", "--quick", "--only", "art", "-o", path(&below)]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(path(&below)), "{text}");
}
