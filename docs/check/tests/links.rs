//! Links, includes and names of files lead somewhere.

use std::path::{Path, PathBuf};

use colltune_book::markdown::Markdown;
use colltune_book::{page, pages, pages_folder, pictures, top};

/// The documents of the repository outside of the book, beside those of [`FOLDERS`].
const DOCUMENTS: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "KNOWN-ISSUES.md",
    "ROADMAP.md",
    "examples/amr/README.md",
    "examples/steps/README.md",
];

/// Folders whose files are all documents.
const FOLDERS: [&str; 2] = ["docs/design", "docs/results"];

fn documents() -> Vec<PathBuf> {
    let files = FOLDERS.iter().flat_map(|folder| {
        let entries = std::fs::read_dir(top().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path())
    });
    let pages = files.filter(|file| file.extension().is_some_and(|one| one == "md"));
    DOCUMENTS
        .iter()
        .map(|name| top().join(name))
        .chain(pages)
        .collect()
}

fn read(path: &Path) -> Markdown {
    let text = std::fs::read_to_string(path);
    Markdown::of(&text.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Why a link of a document leads nowhere.
fn fault(link: &str, document: &Path) -> Option<String> {
    if ["https://", "http://", "mailto:"]
        .iter()
        .any(|other| link.starts_with(other))
    {
        return None;
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let path = match file {
        "" => document.to_owned(),
        _ => document.with_file_name("").join(file),
    };
    if !path.exists() {
        return Some(format!("there is no {file}"));
    }
    let is_known = heading.is_empty() || read(&path).headings.iter().any(|one| one == heading);
    (!is_known).then(|| format!("{file} has no heading #{heading}"))
}

#[test]
fn every_link_leads_somewhere() {
    let book = pages().into_iter().map(|name| pages_folder().join(name));
    let mut faults = Vec::new();
    for document in book.chain(documents()) {
        for link in read(&document).links {
            let why = fault(&link, &document);
            faults.extend(why.map(|why| format!("{}: {link}: {why}", document.display())));
        }
    }
    assert_eq!(faults, [""; 0]);
}

/// In the built book there is nothing of the repository beside it.
#[test]
fn pages_link_to_pages_alone() {
    for name in pages() {
        for link in Markdown::of(&page(&name)).links {
            let leads_out = link.starts_with("..") || link.starts_with('/');
            assert!(!leads_out, "{name}: {link}");
        }
    }
}

#[test]
fn the_summary_has_every_page_once() {
    let mut listed = Markdown::of(&page("SUMMARY.md")).links;
    listed.sort();
    let mut there = pages();
    there.retain(|name| name != "SUMMARY.md");
    assert_eq!(listed, there);
}

#[test]
fn what_is_included_is_there_and_every_picture_is_shown() {
    let mut shown = Vec::new();
    for name in pages() {
        let read = Markdown::of(&page(&name));
        for file in &read.includes {
            let there = pages_folder().join(file).exists();
            assert!(there, "{name}: there is no {file}");
        }
        shown.extend(read.links);
    }
    for path in pictures() {
        let name = path.file_name().expect("a name").to_string_lossy();
        let link = format!("pictures/{name}");
        assert!(shown.contains(&link), "{name} is on no page");
    }
}

/// Words in the type of code that begin as a path of the repository does.
#[test]
fn files_of_the_repository_that_are_named_are_there() {
    let entries = std::fs::read_dir(top()).expect("the repository");
    let names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name != "target")
        .collect();
    let others = DOCUMENTS[..7].iter().map(|name| top().join(name));
    let book = pages().into_iter().map(|name| pages_folder().join(name));
    let mut faults = Vec::new();
    for document in book.chain(others) {
        for span in read(&document).spans {
            let first = span.split('/').next().unwrap_or_default();
            let is_path = span.contains('/') || span.ends_with(".md");
            let is_ours = names.iter().any(|name| name == first) || span.ends_with(".md");
            let is_one = !span.contains([' ', '*', '<', '{', '$']);
            if is_path && is_ours && is_one && !top().join(&span).exists() {
                faults.push(format!("{}: {span}", document.display()));
            }
        }
    }
    assert_eq!(faults, [""; 0]);
}
