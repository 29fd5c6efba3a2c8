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

use clap::{CommandFactory as _, Parser as _};
use serde::Deserialize;
use toml::Value;

use crate::options::Options;
use object_table::ObjectTable;

mod object_table;

macro_rules! beside_the_program {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../examples/amr/decks/", $name, ".toml")))),*]
    };
}

/// The decks that the program carries, by name.
pub const BUILT_IN: &[(&str, &str)] = beside_the_program! {
    "ompicolltune"
    "expanding-sphere"
    "moving-sphere"
    "four-spheres"
    "sphere-hits-block"
    "sedov-512"
    "sedov-1024"
    "sedov-2048"
    "sedov-4096"
    "blast-512"
    "blast-1024"
    "blast-2048"
    "blast-4096"
};

/// A deck as TOML holds it.
#[derive(Deserialize)]
struct DeckFile {
    #[serde(default)]
    object: Vec<ObjectTable>,
    #[serde(flatten)]
    options: toml::Table,
}

/// The command line's words that a deck stands for.
///
/// Errors: text for a deck that is not TOML, and for options that are refused, alone or beside each other.
pub fn arguments(text: &str, file: &str) -> Result<Vec<String>, String> {
    let refused = |what: String| {
        let what = what.trim_end();
        let what = what.strip_prefix("error: ").unwrap_or(what);
        format!("deck {file}: {what}")
    };
    let deck: DeckFile = toml::from_str(text).map_err(|error| refused(error.to_string()))?;
    if deck.options.contains_key("deck") {
        return Err(refused("a deck holds no other".to_owned()));
    }
    let options = deck.options.iter();
    let mut words: Vec<String> = options
        .flat_map(|(key, value)| option(key, value))
        .collect();
    for object in &deck.object {
        words.push("--object".to_owned());
        words.extend(object.numbers().map(|number| number.to_string()));
    }
    let line = std::iter::once("colltune-amr").chain(words.iter().map(String::as_str));
    let wrong = deck.options.iter().find(|(key, value)| {
        let is_flag = |one: &clap::Arg| {
            one.get_long() == Some(key.as_str()) && !one.get_action().takes_values()
        };
        **value == Value::Boolean(false) && !Options::command().get_arguments().any(is_flag)
    });
    if let Some((key, _)) = wrong {
        return Err(refused(format!("{key} is no flag that can be false")));
    }
    Options::try_parse_from(line).map_err(|error| refused(error.to_string()))?;
    Ok(words)
}

/// A value stands beside its option, so that a flag that gets one is named.
fn option(key: &str, value: &Value) -> Vec<String> {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        Value::Boolean(false) => Vec::new(),
        Value::Boolean(true) => vec![format!("--{key}")],
        Value::Array(values) => {
            let option = std::iter::once(format!("--{key}"));
            option.chain(values.iter().map(word)).collect()
        }
        value => vec![format!("--{key}={}", word(value))],
    }
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
/// Errors: text for a deck that does not exist or cannot be read, or that of [`arguments`].
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
        return arguments(text, name);
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
    arguments(&text, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        arguments(text, "my.toml").expect_err("a wrong deck")
    }

    /// Whether the error says all of this.
    #[track_caller]
    fn says(text: &str, parts: &[&str]) {
        let error = error(text);
        assert!(error.starts_with("deck my.toml: "), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }

    #[test]
    fn keys_become_options_and_tables_objects_in_their_order() {
        let text = "# a deck\nhilbert = true\nnum_refine = 4\npermute = false\ntime = 2.5\n\n\
                    [[object]]\ntype = \"solid cylinder y\"\nbounce = \"centre\"\ncentre = [0.5, -1, 2e-1]\nsize = 0.25\n\
                    [[object]]\ntype = 2\ncentre = 0.5\nsize = [0.1, 0.2, 0.3]\ngrowth = 0.01\nmove = [1, 2, 3]\n";
        let expected = "--hilbert --num_refine=4 --time=2.5 --object 23 1 0.5 -1 0.2 0 0 0 0.25 0.25 0.25 0 0 0 \
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
        says("sedov_centre = [1, 2]", &["'--sedov_centre ", "2 were"]);
        says("domain = 3", &["'--domain "]);
        says("nx = [4, 5]", &["unexpected argument '5'"]);
    }

    #[test]
    fn errors_name_deck_and_option() {
        let known = "tip: a similar argument exists: '--num_refine'";
        says(
            "nx = 8\n\nnum_refien = 4",
            &["unexpected argument '--num_refien'", known],
        );
        says("hilbert = 1", &["unexpected value '1' for '--hilbert'"]);
        says("nx = false", &["nx is no flag"]);
        says("nx = true", &["a value is required for '--nx <NX>'"]);
        says("nx = 2.5", &["invalid value '2.5' for '--nx <NX>'"]);
        says("telemetry_rounds = true", &["--telemetry <FOLDER>"]);
        says("nx = 8\nnx = 9", &["line 2", "duplicate key"]);
        says("nx = 8\nny =", &["line 2"]);
        says("object = 3", &["line 1", "object = 3"]);
        says("deck = \"sedov-512\"", &["holds no other"]);
        assert!(!error("nx = 2.5").contains("error: "));
    }

    #[test]
    fn errors_in_objects_name_their_line_and_key() {
        let object = "nx = 8\n[[object]]\ntype = 2\ncentre = 0.5\nsize = 1\n";
        says(
            &format!("{object}colour = 1"),
            &["line 6", "unknown field `colour`"],
        );
        says(
            &format!("{object}move = [1, 2]"),
            &["line 6", "move = [1, 2]", "a number or three"],
        );
        says(
            &format!("{object}bounce = true"),
            &["line 6", "a number or a name"],
        );
        says(
            "[[object]]\ntype = 2\nsize = 1",
            &["line 1", "missing field `centre`"],
        );
        says(
            "[[object]]\ntype = \"cube\"\ncentre = 0\nsize = 1",
            &["line 2", "\"cube\" is none of rectangle, spheroid"],
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
