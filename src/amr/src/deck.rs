//! Decks: the options of a run as a TOML file.
//!
//! A key is an option's name without its dashes, so whatever the command line knows a deck knows too; flags are `true`
//! or `false`, options of several numbers lists. Objects are tables, with their type by number or by name and one number where all three axes agree:
//!
//! ```toml
//! num_refine = 4
//! hilbert = true
//!
//! [[object]]
//! type = "spheroid"   # or 2
//! centre = [-0.5, 0.5, 0.5]
//! move = [0.05, 0, 0]
//! size = 0.25
//! ```
//! `--deck FILE` puts the deck's options before those of the command line, which therefore win; its objects come in
//! addition. A name without a dot or slash is one of the decks that the program carries ([`BUILT_IN`]).

use clap::{ArgAction, CommandFactory as _, Parser as _};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::object::Object;
use crate::options::Options;

mod object_table;
mod problem;

pub use problem::{DeckError, Reason};
use problem::{Problem, nearest};

/// The decks that the program carries, by name.
pub const BUILT_IN: &[(&str, &str)] = &[
    (
        "ompicolltune",
        include_str!("../../../examples/amr/decks/ompicolltune.toml"),
    ),
    (
        "expanding-sphere",
        include_str!("../../../examples/amr/decks/expanding-sphere.toml"),
    ),
    (
        "moving-sphere",
        include_str!("../../../examples/amr/decks/moving-sphere.toml"),
    ),
    (
        "four-spheres",
        include_str!("../../../examples/amr/decks/four-spheres.toml"),
    ),
    (
        "sphere-hits-block",
        include_str!("../../../examples/amr/decks/sphere-hits-block.toml"),
    ),
    (
        "sedov-512",
        include_str!("../../../examples/amr/decks/sedov-512.toml"),
    ),
    (
        "sedov-1024",
        include_str!("../../../examples/amr/decks/sedov-1024.toml"),
    ),
    (
        "sedov-2048",
        include_str!("../../../examples/amr/decks/sedov-2048.toml"),
    ),
    (
        "sedov-4096",
        include_str!("../../../examples/amr/decks/sedov-4096.toml"),
    ),
    (
        "blast-512",
        include_str!("../../../examples/amr/decks/blast-512.toml"),
    ),
    (
        "blast-1024",
        include_str!("../../../examples/amr/decks/blast-1024.toml"),
    ),
    (
        "blast-2048",
        include_str!("../../../examples/amr/decks/blast-2048.toml"),
    ),
    (
        "blast-4096",
        include_str!("../../../examples/amr/decks/blast-4096.toml"),
    ),
];

/// The command line's words that a deck stands for, values after their options.
///
/// Errors: `DeckError` for the first problem in the deck: not TOML, an unknown key, a value that the option of that
///         name refuses. Options that contradict each other are found by whoever reads all the words.
pub fn arguments(text: &str, file: &str) -> Result<Vec<String>, DeckError> {
    words(text).map_err(|(place, reason)| {
        let line = 1 + text[..place.start.min(text.len())].matches('\n').count();
        DeckError {
            file: file.to_owned(),
            line,
            reason,
        }
    })
}

/// A deck that the program carries.
pub fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, text)| *text)
}

/// Replaces every `--deck NAME` of a command line, its program's name first, by the deck's words, before all others.
///
/// Errors: text for a deck that does not exist or cannot be read, or [`DeckError`].
pub fn expand(line: impl IntoIterator<Item = String>) -> Result<Vec<String>, String> {
    let mut line = line.into_iter();
    let mut expanded: Vec<String> = line.next().into_iter().collect();
    let mut rest = Vec::new();
    while let Some(word) = line.next() {
        let name = match word.strip_prefix("--deck") {
            Some("") => line
                .next()
                .ok_or("--deck takes the name of a deck or of a file")?,
            Some(value) if value.starts_with('=') => value[1..].to_owned(),
            _ => {
                rest.push(word);
                continue;
            }
        };
        expanded.extend(read(&name)?);
    }
    expanded.extend(rest);
    Ok(expanded)
}

fn read(name: &str) -> Result<Vec<String>, String> {
    if let Some(text) = built_in(name) {
        return arguments(text, name).map_err(|error| error.to_string());
    }
    if !name.contains(['.', '/']) {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "no deck is called {name}; there are {}, and files",
            names.join(", ")
        ));
    }
    let text = std::fs::read_to_string(name)
        .map_err(|error| format!("cannot read the deck {name}: {error}"))?;
    arguments(&text, name).map_err(|error| error.to_string())
}

fn words(text: &str) -> Result<Vec<String>, Problem> {
    let table = DeTable::parse(text).map_err(|error| {
        (
            error.span().unwrap_or(0..0),
            Reason::NotToml(error.message().to_owned()),
        )
    })?;
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut words = Vec::new();
    for (key, value) in entries {
        match key.get_ref().as_ref() {
            "object" => words.extend(objects(value)?),
            _ => words.extend(option(key, value)?),
        }
    }
    Ok(words)
}

fn option(
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<Vec<String>, Problem> {
    let name = key.get_ref().as_ref();
    let command = Options::command();
    let known = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(name));
    let Some(known) = known.filter(|_| name != "deck") else {
        let names = command
            .get_arguments()
            .filter_map(|argument| argument.get_long());
        let hint = nearest(name, names)
            .map(|near| format!(" (did you mean `{near}`?)"))
            .unwrap_or_default();
        return Err((
            key.span(),
            Reason::UnknownKey {
                key: name.to_owned(),
                hint,
            },
        ));
    };
    let wrong = |takes| {
        let given = value.get_ref().type_str();
        (
            value.span(),
            Reason::WrongKind {
                key: name.to_owned(),
                takes,
                given,
            },
        )
    };
    let words = match value.get_ref() {
        DeValue::Boolean(set) if matches!(known.get_action(), ArgAction::SetTrue) => match set {
            true => vec![format!("--{name}")],
            false => return Ok(Vec::new()),
        },
        _ if matches!(known.get_action(), ArgAction::SetTrue) => {
            return Err(wrong("true or false"));
        }
        DeValue::Array(numbers) if known.get_num_args().is_some_and(|n| n.min_values() > 1) => {
            let numbers = numbers.iter().map(|number| scalar(number.get_ref()));
            let numbers: Option<Vec<String>> = numbers.collect();
            let numbers = numbers.ok_or_else(|| wrong("a list of numbers"))?;
            std::iter::once(format!("--{name}"))
                .chain(numbers)
                .collect()
        }
        one => vec![
            format!("--{name}"),
            scalar(one).ok_or_else(|| wrong("a number or a text"))?,
        ],
    };
    // The option itself knows what it accepts.
    Options::try_parse_from(std::iter::once("deck".to_owned()).chain(words.clone())).map_err(
        |error| {
            let text = error.to_string();
            let problem = text
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned();
            (
                value.span(),
                Reason::Refused {
                    key: name.to_owned(),
                    problem,
                },
            )
        },
    )?;
    Ok(words)
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

fn objects(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Problem> {
    let wrong = |span, given| {
        (
            span,
            Reason::WrongKind {
                key: "object".to_owned(),
                takes: "tables: write [[object]]",
                given,
            },
        )
    };
    let DeValue::Array(tables) = value.get_ref() else {
        return Err(wrong(value.span(), value.get_ref().type_str()));
    };
    let mut words = Vec::new();
    for table in tables {
        let DeValue::Table(entries) = table.get_ref() else {
            return Err(wrong(table.span(), table.get_ref().type_str()));
        };
        let numbers = object_table::numbers(entries, table.span())?;
        let object = Object::from_arguments(&numbers)
            .map_err(|error| (table.span(), Reason::Object(error)))?;
        words.push("--object".to_owned());
        words.extend(object.arguments().iter().map(f64::to_string));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        arguments(text, "my.toml")
            .expect_err("a wrong deck")
            .to_string()
    }

    #[test]
    fn keys_become_options_and_tables_objects_in_their_order() {
        let text = "# a deck\nnum_refine = 4\nhilbert = true\npermute = false\ntime = 2.5\n\n\
                    [[object]]\ntype = \"solid cylinder y\"\nbounce = \"centre\"\ncentre = [0.5, -1, 2e-1]\nsize = 0.25\n\
                    [[object]]\ntype = 2\ncentre = 0.5\nsize = [0.1, 0.2, 0.3]\ngrowth = 0.01\nmove = [1, 2, 3]\n";
        let expected = "--num_refine 4 --hilbert --time 2.5 --object 23 1 0.5 -1 0.2 0 0 0 0.25 0.25 0.25 0 0 0 \
                        --object 2 0 0.5 0.5 0.5 1 2 3 0.1 0.2 0.3 0.01 0.01 0.01";
        assert_eq!(
            arguments(text, "my.toml").expect("a deck").join(" "),
            expected
        );
    }

    #[test]
    fn options_of_several_numbers_are_lists() {
        let text = "domain = [-1, -2, -1.5, 1, 2, 1.5]\nsedov_centre = [0, 0.5, -1]\n";
        assert_eq!(
            arguments(text, "my.toml").expect("a deck").join(" "),
            "--domain -1 -2 -1.5 1 2 1.5 --sedov_centre 0 0.5 -1"
        );
        assert!(error("sedov_centre = [1, 2]").starts_with("my.toml:1: `sedov_centre`: "));
        assert_eq!(
            error("domain = [1, true]"),
            "my.toml:1: `domain` takes a list of numbers, not array"
        );
        assert_eq!(
            error("nx = [4, 4]"),
            "my.toml:1: `nx` takes a number or a text, not array"
        );
    }

    #[test]
    fn errors_name_file_line_and_key() {
        assert_eq!(
            error("nx = 8\n\nnum_refien = 4"),
            "my.toml:3: unknown key `num_refien` (did you mean `num_refine`?)"
        );
        assert_eq!(error("zebra = 1"), "my.toml:1: unknown key `zebra`");
        assert_eq!(
            error("nx = 8\nhilbert = 1"),
            "my.toml:2: `hilbert` takes true or false, not integer"
        );
        assert_eq!(
            error("nx = true"),
            "my.toml:1: `nx` takes a number or a text, not boolean"
        );
        let refused = error("\nnx = 2.5");
        assert!(
            refused.starts_with("my.toml:2: `nx`: invalid value '2.5'"),
            "{refused}"
        );
        assert!(
            error("nx = 8\nnx = 9").starts_with("my.toml:2: duplicate key"),
            "{}",
            error("nx = 8\nnx = 9")
        );
        assert!(
            error("nx = 8\nny =").starts_with("my.toml:2: "),
            "{}",
            error("nx = 8\nny =")
        );
        assert_eq!(
            error("object = 3"),
            "my.toml:1: `object` takes tables: write [[object]], not integer"
        );
    }

    #[test]
    fn errors_in_objects_name_their_line_and_key() {
        let object = |text: &str| {
            error(&format!(
                "nx = 8\n[[object]]\ntype = 2\ncentre = 0.5\nsize = 1\n{text}"
            ))
        };
        assert_eq!(object("colour = 1"), "my.toml:6: unknown key `colour`");
        assert_eq!(
            object("mov = 1"),
            "my.toml:6: unknown key `mov` (did you mean `move`?)"
        );
        assert_eq!(
            object("move = [1, 2]"),
            "my.toml:6: `move` takes a number or three, not array"
        );
        assert!(object("bounce = 7").contains("object bounce 7 does not exist"));
        assert_eq!(
            error("[[object]]\ntype = 2\nsize = 1"),
            "my.toml:1: the object has no `centre`"
        );
        let unknown = error("[[object]]\ntype = \"cube\"\ncentre = 0\nsize = 1");
        assert!(
            unknown.starts_with("my.toml:2: `type`: \"cube\" is none of rectangle, spheroid"),
            "{unknown}"
        );
    }

    #[test]
    fn every_deck_that_the_program_carries_is_a_run() {
        for (name, _) in BUILT_IN {
            let line = ["colltune-amr", "--deck", name].map(str::to_owned);
            let words = expand(line).unwrap_or_else(|error| panic!("{error}"));
            crate::options::parse(words)
                .unwrap_or_else(|refusal| panic!("{name}: {}", refusal.text));
        }
    }

    #[test]
    fn the_command_line_wins_over_the_deck() {
        let line = [
            "colltune-amr",
            "--num_tsteps",
            "3",
            "--deck=expanding-sphere",
            "--nx",
            "4",
        ]
        .map(str::to_owned);
        let options = crate::options::parse(expand(line).expect("a deck")).expect("a run");
        assert_eq!(
            (options.num_tsteps, options.nx, options.num_refine),
            (Some(3), 4, 4)
        );
        assert_eq!(options.object.len(), 14);
    }

    #[test]
    fn decks_that_do_not_exist_are_named() {
        let missing =
            |name: &str| expand(["x", "--deck", name].map(str::to_owned)).expect_err("no deck");
        assert!(missing("sedvo").starts_with("no deck is called sedvo; there are ompicolltune, "));
        assert!(missing("no/such.toml").starts_with("cannot read the deck no/such.toml: "));
        assert!(expand(["x", "--deck"].map(str::to_owned)).is_err());
    }
}
