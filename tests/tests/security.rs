//! The threat model is no more than what tests show.

use std::path::Path;

/// Whether a folder holds a test of that name.
fn is_test(folder: &Path, name: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        if path.is_dir() {
            return is_test(&path, name);
        }
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let text = || std::fs::read_to_string(&path).unwrap_or_default();
        is_rust && text().contains(&format!("fn {name}("))
    })
}

#[test]
fn every_line_of_the_threat_model_names_a_test_that_is_there() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(top.join("SECURITY.md")).expect("it is there");
    let (_, threats) = text.split_once("## Threats").expect("it lists threats");
    let threats = threats.split("\n## ").next().unwrap_or("");
    let rows = threats.lines().filter(|line| line.starts_with("| "));
    let rows: Vec<&str> = rows.filter(|line| !line.contains("| shown by |")).collect();
    assert!(rows.len() > 10, "{}", rows.len());
    for row in rows {
        let shown = row
            .trim_end_matches(" |")
            .rsplit(" | ")
            .next()
            .unwrap_or("");
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            let folders = ["tuning-db", "tests", "src", "shim"];
            let found = folders
                .iter()
                .any(|folder| is_test(&top.join(folder), name));
            assert!(found, "there is no test {name}: {row}");
        }
    }
}
