//! The path of a call, as ARCHITECTURE has it, is the one that calls take: each function of its table is defined in the
//! file beside it, and called from the first one on through what the files above define.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::top;

/// The functions of a file by name, with what is called in them: a name alone, and behind its module, its type or a dot.
/// Those of macros count, too.
type Functions = BTreeMap<String, BTreeSet<String>>;

/// A row of the table: the function, behind its module or type where it is in one, and its file.
type Row = (String, String);

fn punct(token: Option<&TokenTree>) -> Option<char> {
    match token {
        Some(TokenTree::Punct(punct)) => Some(punct.as_char()),
        _ => None,
    }
}

/// Adds names that arguments in parentheses follow.
fn calls(tokens: &TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            calls(&group.stream(), found);
        }
        let (TokenTree::Ident(name), Some(TokenTree::Group(arguments))) =
            (token, tokens.get(place + 1))
        else {
            continue;
        };
        if arguments.delimiter() != Delimiter::Parenthesis {
            continue;
        }
        found.insert(name.to_string());
        let before = |n: usize| place.checked_sub(n).and_then(|place| tokens.get(place));
        match (punct(before(1)), punct(before(2)), before(3)) {
            (Some('.'), ..) => drop(found.insert(format!(".{name}"))),
            (Some(':'), Some(':'), Some(TokenTree::Ident(of))) => {
                found.insert(format!("{of}::{name}"));
            }
            _ => {}
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
                let is_variable = punct(tokens.get(place + 1)) == Some('$');
                let name = tokens.get(place + 1 + usize::from(is_variable));
                let Some(TokenTree::Ident(name)) = name else {
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

/// The rows of the table below the heading, or the first that is none.
fn rows(document: &str) -> Result<Vec<Row>, String> {
    let section = document.split("## The path of a call").nth(1);
    let section = section.and_then(|rest| rest.split("\n## ").next());
    let lines = section.unwrap_or_default().lines();
    let table = lines.filter(|line| line.starts_with('|')).skip(2);
    let row = |line: &str| {
        let mut columns = line.split('|').map(str::trim).skip(1);
        let mut code = || {
            columns
                .next()?
                .strip_prefix('`')?
                .strip_suffix('`')
                .map(str::to_owned)
        };
        Some((code()?, code()?))
    };
    table
        .map(|line| row(line).ok_or_else(|| line.to_owned()))
        .collect()
}

/// The name without its module or type.
fn last(function: &str) -> &str {
    function.rsplit("::").next().unwrap_or(function)
}

/// Whether a call is one of this function. Methods are called behind a dot, or behind `Self`.
fn is_called(function: &str, calls: &BTreeSet<String>) -> bool {
    let name = last(function);
    match function.rsplit_once("::") {
        None => calls.contains(name),
        Some((of, _)) if of.starts_with(char::is_lowercase) => calls.contains(function),
        Some(_) => {
            let method = [format!(".{name}"), format!("Self::{name}")];
            calls.contains(function) || method.iter().any(|one| calls.contains(one))
        }
    }
}

/// What is wrong with the rows; `of` are the functions of the files.
fn faults(rows: &[Row], of: &BTreeMap<String, Functions>) -> Vec<String> {
    let mut faults = Vec::new();
    // What runs, of what the files so far define, and what that calls.
    let mut reached: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut files: BTreeSet<&str> = BTreeSet::new();
    let mut called: BTreeSet<String> = BTreeSet::new();
    for (place, (function, file)) in rows.iter().enumerate() {
        let name = last(function);
        if !of[file].contains_key(name) {
            faults.push(format!("{file} defines no {function}"));
            continue;
        }
        if place > 0 && !is_called(function, &called) {
            faults.push(format!("nothing above calls {function} ({file})"));
        }
        files.insert(file);
        reached.insert((file, name));
        loop {
            let before = (reached.len(), called.len());
            for (file, name) in reached.clone() {
                called.extend(of[file][name].iter().cloned());
            }
            for file in &files {
                let run = of[*file].keys().filter(|name| called.contains(*name));
                reached.extend(run.map(|name| (*file, &**name)));
            }
            if (reached.len(), called.len()) == before {
                break;
            }
        }
    }
    faults
}

fn parsed(text: &str) -> Functions {
    let mut found = Functions::new();
    functions(&text.parse().expect("it is Rust"), &mut found);
    found
}

#[test]
fn the_path_of_a_call_is_as_it_is_described() {
    let document = fs::read_to_string(top().join("ARCHITECTURE.md")).unwrap();
    let rows = rows(&document).unwrap_or_else(|line| panic!("not a function and a file: {line}"));
    assert!(rows.len() > 20, "the table was not found: {rows:?}");
    let read = |file: &String| {
        let text = fs::read_to_string(top().join(file));
        let text = text.unwrap_or_else(|error| panic!("{file}: {error}"));
        (file.clone(), parsed(&text))
    };
    let of = rows.iter().map(|(_, file)| read(file)).collect();
    assert_eq!(faults(&rows, &of), [""; 0]);
}

#[test]
fn a_function_that_is_gone_or_that_nothing_calls_is_named() {
    let of = BTreeMap::from([
        (
            "a".to_owned(),
            parsed("m!(fn $f() { helper(1) }); fn helper() { b::go(2) } fn other() { lost(3) }"),
        ),
        (
            "b".to_owned(),
            parsed("fn go() { one.end() } fn lost() {} impl B { fn end() { c::go() } }"),
        ),
        ("c".to_owned(), parsed("fn go() {}")),
    ]);
    let faults = |names: &[(&str, &str)]| {
        let owned = |&(name, file): &(&str, &str)| (name.to_owned(), file.to_owned());
        faults(&names.iter().map(owned).collect::<Vec<Row>>(), &of)
    };
    let right = [("$f", "a"), ("b::go", "b"), ("B::end", "b"), ("c::go", "c")];
    assert_eq!(faults(&right), [""; 0]);
    assert_eq!(
        faults(&[("$f", "a"), ("b::lost", "b")]),
        ["nothing above calls b::lost (b)"]
    );
    // Another function of that name is called.
    assert_eq!(
        faults(&[("$f", "a"), ("c::go", "c")]),
        ["nothing above calls c::go (c)"]
    );
    assert_eq!(faults(&[("$f", "a"), ("gone", "b")]), ["b defines no gone"]);
    let head = "## The path of a call\n| function | file | what |\n|---|---|---|\n";
    let row = ("B::go".to_owned(), "b".to_owned());
    let text = format!("{head}| `B::go` | `b` | goes |\n## Next\n| `x` | `y` | z |");
    assert_eq!(rows(&text), Ok(vec![row]));
    let text = format!("{head}| B::go | `b` | goes |\n");
    assert_eq!(rows(&text), Err("| B::go | `b` | goes |".to_owned()));
}
