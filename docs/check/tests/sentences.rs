//! What the page of faults says that colltune says, the sources say.

use std::path::Path;

use colltune_book::markdown::Markdown;
use colltune_book::{page, top};

const OMITTED: &str = "...";

/// All sources below a folder, with texts that go on behind a line's end in one piece.
fn sources(folder: &Path, found: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder of ours") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source of ours");
            let mut pieces = text.split("\\\n");
            found.extend(pieces.next());
            pieces.for_each(|piece| *found += piece.trim_start());
        }
    }
}

#[test]
fn sentences_of_the_shim_and_the_command_are_quoted_as_they_are() {
    let mut text = String::new();
    for folder in [
        "shim/src",
        "src/cli/src",
        "src/launch/src",
        "src/output/src",
        "src/core/src",
        "tuning-db/src",
    ] {
        sources(&top().join(folder), &mut text);
    }
    let read = Markdown::of(&page("troubleshooting.md"));
    let quoted = read.spans.iter().filter(|span| span.contains(OMITTED));
    let mut n_parts = 0;
    for span in quoted.filter(|span| !span.starts_with("colltune ")) {
        let parts = span
            .split(OMITTED)
            .map(|part| part.trim().trim_matches(';'));
        for part in parts.map(str::trim).filter(|part| part.len() > 6) {
            assert!(text.contains(part), "nobody says {part:?}");
            n_parts += 1;
        }
    }
    assert!(n_parts >= 4, "{n_parts}");
}
