//! The book, `docs/book`: what of it is made of the code, and how a page is read.
//!
//! `COLLTUNE_BLESS=1 cargo test --release -p colltune-book --test made` writes what is made of the code anew. The other
//! tests ask whether links, includes, pictures and commands are what they should be.
#![forbid(unsafe_code)]

mod source;

pub mod formats;
pub mod settings;

pub mod markdown;

use std::path::{Path, PathBuf};

use mdbook_driver::MDBook;

/// The repository.
pub fn top() -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    top.canonicalize().expect("it is built there")
}

/// Builds the book's pages in a folder.
///
/// Errors: mdBook's, in words.
pub fn build(folder: &Path) -> Result<(), String> {
    let said = |error| format!("{error:#}");
    let mut book = MDBook::load(top().join("docs/book")).map_err(said)?;
    book.config.build.build_dir = folder.to_owned();
    book.build().map_err(said)
}

pub fn pages_folder() -> PathBuf {
    top().join("docs/book/src")
}

/// A page's text as it stands in the file.
pub fn page(name: &str) -> String {
    let path = pages_folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of all pages, `SUMMARY.md` included.
pub fn pages() -> Vec<String> {
    let paths = files(&pages_folder(), "md").into_iter();
    let names = paths.map(|path| path.file_name().expect("a file").to_owned());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// The files of a folder whose names end so, by name.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == ending))
        .collect();
    found.sort();
    found
}

/// The sessions that pages include.
pub fn sessions() -> Vec<PathBuf> {
    files(&top().join("examples/steps"), "session")
}

/// The pictures that pages include.
pub fn pictures() -> Vec<PathBuf> {
    files(&pages_folder().join("pictures"), "svg")
}
