//! `colltune-bench evidence`: the page beside the studies' own JSON.

use std::path::Path;
use std::process::{Command, Output};

use colltune_tests::{colltune_bench as command, folder, is_readable_in_a_browser, is_valid_html};
use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.args(arguments).output().expect("it starts")
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("a name in UTF-8")
}

/// What each row of the page says: its figure and its verdict.
fn rows(page: &str) -> Vec<(String, String)> {
    let text = |cell: &str| {
        let inside = cell.split_once('>').expect("a tag").1;
        let inside = inside.split('<').next().unwrap_or("");
        inside
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&")
    };
    let rows = page
        .split("<tr>")
        .filter(|row| row.contains("data-verdict="));
    rows.map(|row| {
        let cells: Vec<&str> = row.split("<td").skip(1).collect();
        let verdict = cells.iter().find(|cell| cell.contains("data-verdict="));
        (text(cells[0]), text(verdict.expect("one of them")))
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
fn verdicts_on_the_page_are_those_of_the_studies_json_and_of_real_jobs() {
    let folder = folder();
    let out = folder.path().join("page");
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
    let file = out.join("index.html");
    let page = std::fs::read_to_string(&file).expect("the page");
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    for outside in [
        "<script", "<link", "http:", "https:", "url(", "@import", "onload",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
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
    assert_eq!(rows(&page), said);
    assert!(page.contains("real jobs; from a full run"));
    for row in ["V1", "V2"] {
        let command = format!("<code>colltune-bench validate --machine db --row {row}</code>");
        assert!(page.contains(&command), "{command}");
    }
    let left: Vec<_> = std::fs::read_dir(&out).expect("a folder").collect();
    assert_eq!(left.len(), 2, "nothing half-written is left: {left:?}");
    is_valid_html(&file);
    is_readable_in_a_browser(&file);
}

#[test]
fn a_validation_of_another_version_is_named_before_anything_runs() {
    let folder = folder();
    let out = folder.path().join("page");
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
    let below = file.join("page");
    let output = bench(&["evidence", "--quick", "--only", "art", "-o", path(&below)]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(path(&below)), "{text}");
}
