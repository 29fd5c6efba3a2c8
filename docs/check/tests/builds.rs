//! mdBook builds the book.

use colltune_book::{build, pages};

#[test]
fn mdbook_builds_every_page_with_what_it_includes() {
    let built = colltune_tests::folder();
    build(built.path()).expect("a book");
    for page in pages().iter().filter(|page| *page != "SUMMARY.md") {
        let html = std::fs::read_to_string(built.path().join(page).with_extension("html"));
        let html = html.unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(!html.contains("{{#"), "{page} shows what it should include");
    }
}
