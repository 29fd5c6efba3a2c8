//! Every line of `colltune`, `colltune-lab` and `colltune-bench` on a page or in a session is one: its subcommand and its
//! options are in the help.

use std::collections::BTreeMap;
use std::process::Command;

use colltune_book::markdown::Markdown;
use colltune_book::{files, page, pages, sessions, top};
use colltune_tests::{colltune, colltune_bench, colltune_lab};

/// The lines that enter something, of all pages and sessions, of README and its like and of the design's pages, with
/// where they stand.
fn lines() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let beside = [
        "README.md",
        "CONTRIBUTING.md",
        "KNOWN-ISSUES.md",
        "ARCHITECTURE.md",
    ];
    let beside = beside.iter().map(|name| top().join(name));
    let beside = beside.chain(files(&top().join("docs/design"), "md"));
    let beside = beside.map(|path| {
        let text = std::fs::read_to_string(&path).expect("a page of ours");
        (path.display().to_string(), text)
    });
    let of_book = pages().into_iter().map(|name| (name.clone(), page(&name)));
    for (name, text) in of_book.chain(beside) {
        let read = Markdown::of(&text);
        let blocks = read.blocks.iter().filter(|(language, _)| language == "sh");
        let blocks = blocks.map(|(_, code)| code.replace("\\\n", ""));
        for text in blocks.chain(read.spans.iter().cloned()) {
            lines.extend(text.lines().map(|line| (name.clone(), line.to_owned())));
        }
    }
    for path in sessions() {
        let text = std::fs::read_to_string(&path).expect("a session of ours");
        let text = text.replace("\\\n> ", "");
        let name = path.display().to_string();
        lines.extend(text.lines().map(|line| (name.clone(), line.to_owned())));
    }
    lines
}

/// Subcommands, behind the program, and options of each program of ours in a line, up to what it starts.
fn used(line: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let mut found = Vec::new();
    let words: Vec<&str> = line.split_whitespace().collect();
    for (at, program) in words
        .iter()
        .enumerate()
        .filter(|(_, word)| ["colltune", "colltune-lab", "colltune-bench"].contains(word))
    {
        let behind: Vec<&str> = words[at + 1..]
            .iter()
            .copied()
            .take_while(|word| !["--", "#", "|", "&&", ";", "&", "then"].contains(word))
            .collect();
        let is_name = |word: &&&str| {
            word.chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '-')
                && !word.starts_with('-')
        };
        let names = std::iter::once(program).chain(behind.iter().take_while(is_name));
        let names = names.map(|word| (*word).to_owned());
        let options = behind.iter().filter(|word| word.starts_with("--"));
        let options = options.map(|word| {
            let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            word[..end.unwrap_or(word.len())].to_owned()
        });
        found.push((names.collect(), options.collect()));
    }
    found
}

/// What `PROGRAM NAMES --help` says.
fn help(names: &[String]) -> Option<String> {
    let program = match names[0].as_str() {
        "colltune-lab" => colltune_lab(),
        "colltune-bench" => colltune_bench(),
        _ => colltune(),
    };
    let output = Command::new(program)
        .args(&names[1..])
        .arg("--help")
        .output()
        .expect("colltune starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

#[test]
fn commands_and_options_that_are_named_are_there() {
    let mut helps: BTreeMap<Vec<String>, Option<String>> = BTreeMap::new();
    let mut faults = Vec::new();
    let mut n_commands = 0;
    for (place, line) in lines() {
        for (names, options) in used(&line) {
            // `colltune db list`, and of `colltune-lab telemetry summary FOLDER` no more than the program and two.
            let names = &names[..names.len().min(3)];
            if names[0] == "colltune" && names.len() == 1 {
                continue;
            }
            let mut of = |names: &[String]| {
                let entry = helps.entry(names.to_vec());
                entry.or_insert_with(|| help(names)).clone()
            };
            let takes_one = |text: &String| !text.contains("\nCommands:\n");
            let found = of(names).or_else(|| of(&names[..names.len() - 1]).filter(takes_one));
            let Some(text) = found else {
                faults.push(format!("{place}: {line}: no such subcommand"));
                continue;
            };
            n_commands += 1;
            for option in options {
                let is_one = text.split([' ', '\n', ',', '[']).any(|word| word == option);
                if !is_one {
                    faults.push(format!("{place}: {line}: no {option}"));
                }
            }
        }
    }
    assert_eq!(faults, [""; 0]);
    assert!(n_commands > 40, "{n_commands}");
}
