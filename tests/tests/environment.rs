//! The variables of the environment: code, scripts and documents name those of one list and no others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use colltune_core::environment::{PREFIX, Reader, SetBy, VARIABLES, is_known};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What is written by hand, in all folders but those of builds and of version control.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        let built = ["target", ".git"].iter().any(|other| name == *other);
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !built {
            texts(&path, found);
        } else if kind.is_file() && name != "Cargo.lock" {
            found.push(path);
        }
    }
}

/// The variables that a text names: not the constants of `colltune_placement.h`, and not beginnings of names.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.match_indices(PREFIX).map(|(at, _)| {
        let rest = &text[at..];
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    });
    ends.filter(|name| *name != PREFIX && !name.starts_with("COLLTUNE_PLACEMENT_"))
}

#[test]
fn no_variable_is_named_that_the_list_does_not_have() {
    // An argument of a script, and what tests mistype.
    let others = [
        "COLLTUNE_AMR",
        "COLLTUNE_EXPLORE_TOTL",
        "COLLTUNE_HANDSHAK",
        "COLLTUNE_MOED",
        "COLLTUNE_SOMETHING_ELSE",
    ];
    let (root, mut files) = (root(), Vec::new());
    texts(&root, &mut files);
    let mut seen = BTreeMap::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        let file = file.strip_prefix(&root).unwrap().to_owned();
        if file == Path::new("tests/tests/environment.rs") {
            continue;
        }
        for name in named(&text) {
            let known = is_known(name) || others.contains(&name);
            assert!(known, "{}: {name}", file.display());
            *seen.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    for one in VARIABLES {
        assert!(
            seen[one.name] > 1,
            "{} is on the list and nowhere else",
            one.name
        );
    }
}

#[test]
fn the_documents_say_what_each_variable_takes() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let readers = |readers: &[Reader]| {
        let names = readers.iter().map(|reader| match reader {
            Reader::Job => "shim",
            Reader::Command => "command",
            Reader::Tables => "tables",
            Reader::Development => "development",
        });
        names.collect::<Vec<_>>().join(", ")
    };
    for one in VARIABLES.iter().filter(|one| one.set_by == SetBy::User) {
        let row = format!(
            "| `{}` | {} | {} |",
            one.name,
            one.takes,
            readers(one.read_by)
        );
        assert!(text.contains(&row), "ARCHITECTURE.md has no row\n{row}");
    }
}
