//! The tree stays within what CONTRIBUTING allows: lines of each folder, and how many files are long.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A file with more lines is long: a room that has grown too big.
const LONG: usize = 500;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All Rust files below `folder` with their numbers of lines, build folders and hidden ones left out.
fn lines_below(folder: &Path, found: &mut BTreeMap<PathBuf, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_symlink() || name == "target" || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            lines_below(&path, found);
        } else if name.ends_with(".rs") {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            found.insert(path.strip_prefix(top()).unwrap().to_owned(), lines);
        }
    }
}

fn all_lines() -> BTreeMap<PathBuf, usize> {
    let mut found = BTreeMap::new();
    lines_below(&top(), &mut found);
    found
}

/// The rows of the table below "## Budgets": what stands in backquotes, and the first number.
fn budgets() -> Vec<(Vec<String>, usize)> {
    let text = fs::read_to_string(top().join("CONTRIBUTING.md")).unwrap();
    let (_, section) = text
        .split_once("\n## Budgets\n")
        .expect("a section Budgets");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let names = cells[0].split('`').skip(1).step_by(2);
        let number = cells[1].trim().replace(',', "");
        let lines = number
            .parse()
            .unwrap_or_else(|_| panic!("no number of lines: {row}"));
        (names.map(str::to_owned).collect(), lines)
    })
    .collect()
}

/// What outgrew its row, what is in no row or in two; and how many files are long.
fn faults(
    files: &BTreeMap<PathBuf, usize>,
    budgets: &[(Vec<String>, usize)],
    long_allowed: usize,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (folders, budget) in budgets {
        let lines: usize = files
            .iter()
            .filter(|(path, _)| folders.iter().any(|folder| path.starts_with(folder)))
            .map(|(_, lines)| lines)
            .sum();
        if lines > *budget {
            faults.push(format!(
                "{}: {lines} lines, the budget is {budget}: delete something, or say in the commit why it is raised",
                folders.join(", ")
            ));
        }
    }
    for path in files.keys() {
        let rows = budgets
            .iter()
            .filter(|(folders, _)| folders.iter().any(|folder| path.starts_with(folder)))
            .count();
        if rows != 1 {
            faults.push(format!("{} is in {rows} rows", path.display()));
        }
    }
    let long = files.values().filter(|lines| **lines > LONG).count();
    if long > long_allowed {
        faults.push(format!(
            "{long} files have over {LONG} lines, {long_allowed} are allowed"
        ));
    }
    faults
}

/// Long files there may be: this number gets smaller, never larger.
const LONG_FILES: usize = 26;

#[test]
fn every_folder_keeps_to_its_budget_of_lines() {
    let budgets = budgets();
    assert!(budgets.len() > 5, "the table was not found");
    assert_eq!(faults(&all_lines(), &budgets, LONG_FILES), [""; 0]);
}

#[test]
fn what_outgrows_its_budget_or_has_none_is_named() {
    let files = BTreeMap::from([
        (PathBuf::from("src/a/lib.rs"), 501),
        (PathBuf::from("src/b/lib.rs"), 3),
    ]);
    let row = |lines| vec![(vec!["src/a".to_owned()], lines)];
    let found = faults(&files, &row(500), 0);
    assert!(found[0].starts_with("src/a: 501 lines"), "{found:?}");
    assert_eq!(found[1], "src/b/lib.rs is in 0 rows");
    assert!(found[2].starts_with("1 files have over 500 lines"));
    assert_eq!(faults(&files, &row(501), 1), ["src/b/lib.rs is in 0 rows"]);
}
