//! mdBook builds the book, where it is installed.

use std::path::PathBuf;
use std::process::Command;

use colltune_book::{pages, top};
use colltune_tests::{folder, skip};

/// In PATH, or where `make book` has built it.
fn mdbook() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe().expect("a test has a file");
    let built = own.ancestors().map(|folder| folder.join("mdbook/bin"));
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).chain(built).collect();
    let mut files = folders.into_iter().map(|folder| folder.join("mdbook"));
    files.find(|file| file.is_file())
}

#[test]
fn mdbook_builds_it_and_warns_of_nothing() {
    let Some(mdbook) = mdbook() else {
        return skip("mdbook is not installed: `make book` builds it").unwrap_or(());
    };
    let built = folder();
    let output = Command::new("timeout")
        .arg("120")
        .arg(mdbook)
        .args(["build", "--dest-dir"])
        .arg(built.path())
        .arg(top().join("docs/book"))
        .output()
        .expect("timeout starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let complains = ["WARN", "ERROR"].iter().any(|word| said.contains(word));
    assert!(output.status.success() && !complains, "{said}");
    for page in pages().iter().filter(|page| *page != "SUMMARY.md") {
        let html = std::fs::read_to_string(built.path().join(page).with_extension("html"));
        let html = html.unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(!html.contains("{{#"), "{page} shows what it should include");
    }
}
