//! The path of a call, as ARCHITECTURE has it, is the one that calls take: each function of its table is defined in the
//! file beside it, and called by what the functions above it call in the files above it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::top;

/// The functions of a file by name, with every name that is called in them. Those of macros count, too.
type Functions = BTreeMap<String, BTreeSet<String>>;

/// A row of the table: the last part of the function's name, and its file.
type Row = (String, String);

fn is_punct(token: Option<&TokenTree>, what: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == what)
}

/// Adds names that are followed by arguments, in parentheses or behind a type.
fn calls(tokens: &TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => calls(&group.stream(), found),
            TokenTree::Ident(name) => {
                let has_arguments = matches!(tokens.get(place + 1), Some(TokenTree::Group(group))
                    if group.delimiter() == Delimiter::Parenthesis);
                if has_arguments {
                    found.insert(name.to_string());
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn functions(tokens: &TokenStream, found: &mut Functions) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => functions(&group.stream(), found),
            TokenTree::Ident(word) if word == "fn" => {
                // `$name` in a macro.
                let is_variable = is_punct(tokens.get(place + 1), '$');
                let Some(TokenTree::Ident(name)) = tokens.get(place + 1 + usize::from(is_variable))
                else {
                    continue;
                };
                let sign = if is_variable { "$" } else { "" };
                let body = tokens[place..].iter().find_map(|token| match token {
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                        Some(group.stream())
                    }
                    _ => None,
                });
                let of = found.entry(format!("{sign}{name}")).or_default();
                calls(&body.unwrap_or_default(), of);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The rows of the table below the heading.
fn rows(document: &str) -> Vec<Row> {
    let section = document.split("## The path of a call").nth(1);
    let section = section.and_then(|rest| rest.split("\n## ").next());
    let row = |line: &str| {
        let mut columns = line.split('|').map(str::trim).skip(1);
        let [function, file] = [columns.next()?, columns.next()?]
            .map(|text| text.strip_prefix('`')?.strip_suffix('`'));
        let name = function?.rsplit("::").next()?;
        Some((name.to_owned(), file?.to_owned()))
    };
    section
        .unwrap_or_default()
        .lines()
        .filter_map(row)
        .collect()
}

/// What is wrong with the rows; `of` are the functions of the files.
fn faults(rows: &[Row], of: &BTreeMap<String, Functions>) -> Vec<String> {
    let mut faults = Vec::new();
    for (place, (name, file)) in rows.iter().enumerate() {
        if !of[file].contains_key(name) {
            faults.push(format!("{file} defines no {name}"));
            continue;
        }
        let above = &rows[..place];
        // What runs, of what the files above define.
        let mut reached: BTreeSet<&str> = above.iter().map(|(name, _)| &**name).collect();
        let files: BTreeSet<&str> = above.iter().map(|(_, file)| &**file).collect();
        loop {
            let before = reached.len();
            for functions in files.iter().map(|file| &of[*file]) {
                let run = functions
                    .iter()
                    .filter(|(name, _)| reached.contains(&***name));
                let called: Vec<&str> = run
                    .flat_map(|(_, calls)| calls)
                    .map(|name| &**name)
                    .collect();
                reached.extend(called);
            }
            if reached.len() == before {
                break;
            }
        }
        if place > 0 && !reached.contains(&**name) {
            faults.push(format!("nothing above calls {name} ({file})"));
        }
    }
    faults
}

#[test]
fn the_path_of_a_call_is_as_it_is_described() {
    let rows = rows(&fs::read_to_string(top().join("ARCHITECTURE.md")).unwrap());
    assert!(rows.len() > 20, "the table was not found: {rows:?}");
    let parsed = |file: &String| {
        let text =
            fs::read_to_string(top().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut found = Functions::new();
        functions(&text.parse().unwrap(), &mut found);
        (file.clone(), found)
    };
    let of = rows.iter().map(|(_, file)| parsed(file)).collect();
    assert_eq!(faults(&rows, &of), [""; 0]);
}

#[test]
fn a_function_that_is_gone_or_that_nothing_calls_is_named() {
    let parsed = |text: &str| {
        let mut found = Functions::new();
        functions(&text.parse().unwrap(), &mut found);
        found
    };
    let of = BTreeMap::from([
        (
            "a".to_owned(),
            parsed("m!(fn $f() { helper(1) }); fn helper() { b::go(2) } fn other() { lost(3) }"),
        ),
        (
            "b".to_owned(),
            parsed("impl B { fn go(&self) {} fn lost(&self) {} }"),
        ),
    ]);
    let faults = |names: &[(&str, &str)]| {
        let rows: Vec<Row> = names
            .iter()
            .map(|&(name, file)| (name.to_owned(), file.to_owned()))
            .collect();
        faults(&rows, &of)
    };
    assert_eq!(faults(&[("$f", "a"), ("go", "b")]), [""; 0]);
    assert_eq!(
        faults(&[("$f", "a"), ("lost", "b")]),
        ["nothing above calls lost (b)"]
    );
    assert_eq!(faults(&[("$f", "a"), ("gone", "b")]), ["b defines no gone"]);
    let text = "## The path of a call\n| function | file | what |\n|---|---|---|\n| `B::go` | `b` | goes |\n## Next\n| `x` | `y` | z |";
    assert_eq!(rows(text), [("go".to_owned(), "b".to_owned())]);
}
