//! Parts of pages that are made of the code, and sessions: between `<!-- made: NAME -->` and `<!-- end -->`. They stand in
//! the pages' files, so that these can be read without a build.

use colltune_book::formats::PARTS;
use colltune_book::{page, pages, pages_folder, sessions, settings, top};

const BEGINS: &str = "<!-- made: ";
const ENDS: &str = "<!-- end -->";

fn made(name: &str) -> String {
    if let Some(session) = name.strip_prefix("session ") {
        let path = top().join(format!("examples/steps/{session}.session"));
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return format!("```console\n{}\n```", text.trim_end());
    }
    let part = PARTS.iter().find(|(known, _)| *known == name);
    let (_, make) = part.unwrap_or_else(|| panic!("nothing makes {name}"));
    make()
}

/// The page with every part made anew; the names that it has.
fn renewed(text: &str) -> (String, Vec<String>) {
    let (mut renewed, mut names, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, behind)) = rest.split_once(BEGINS) {
        let (name, behind) = behind.split_once(" -->").expect("a mark ends");
        let (_, behind) = behind
            .split_once(ENDS)
            .unwrap_or_else(|| panic!("{name} has no {ENDS}"));
        let made = made(name);
        renewed += &format!(
            "{before}{BEGINS}{name} -->\n\n{}\n\n{ENDS}",
            made.trim_end()
        );
        names.push(name.to_owned());
        rest = behind;
    }
    (renewed + rest, names)
}

/// Holds a page against what it should be; writes it where `COLLTUNE_BLESS=1` asks for it.
fn is_up_to_date(name: &str, wanted: &str) {
    if std::env::var_os("COLLTUNE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(pages_folder().join(name), wanted).expect("the page can be written");
    }
    let stands = page(name);
    let differing = stands
        .lines()
        .zip(wanted.lines())
        .find(|(one, other)| one != other);
    assert!(
        stands == wanted,
        "docs/book/src/{name} is not what the code says: COLLTUNE_BLESS=1 writes it anew\n{differing:?}"
    );
}

#[test]
fn parts_that_are_made_of_the_code_are_what_it_says() {
    let mut used = Vec::new();
    for name in pages() {
        let (wanted, names) = renewed(&page(&name));
        is_up_to_date(&name, &wanted);
        used.extend(names);
    }
    let unused = PARTS
        .iter()
        .find(|(name, _)| !used.contains(&(*name).to_owned()));
    assert_eq!(unused.map(|(name, _)| name), None, "is on no page");
    for path in sessions() {
        let name = path.file_stem().expect("a name").to_string_lossy();
        assert!(
            used.contains(&format!("session {name}")),
            "{name} is on no page"
        );
    }
}

#[test]
fn the_page_of_settings_is_the_table_of_settings() {
    is_up_to_date("settings.md", &settings::page());
}

/// What `status --why` says of trainings stands on the page of causes.
#[test]
fn every_rule_of_a_training_is_on_the_page_of_causes() {
    let file = top().join("src/cli/src/command/status/why.rs");
    let source = std::fs::read_to_string(file).expect("it is there");
    let source: String = source.split_whitespace().collect();
    let rules = source.split("Why::new(\"").skip(1);
    let rules: Vec<&str> = rules.filter_map(|rest| rest.split('"').next()).collect();
    assert!(rules.contains(&"worse"), "{rules:?}");
    let page = page("troubleshooting.md");
    let missing = rules
        .iter()
        .filter(|rule| !page.contains(&format!("`{rule}`")));
    assert_eq!(missing.collect::<Vec<_>>(), [&""; 0]);
}
