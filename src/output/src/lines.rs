//! What the lines of all programs are held to: each program's tests say that they have no faults.

use clap::{Arg, Command};

// Files and folders, numbers, times, texts, names in a database, and what has parameters of its own.
const OPEN: &str = "0..1 A..B 2|3 BLOCKS BYTES CELLS CHOICES COMMAND DIR DIR|DECK|shell:DECK|octree:SEED F,E,C FACTOR FILE FILE|DB|NAME FOLDER GAIN GIB \
                    GROUP HOST JOB KEY N NAME=ARM,... NAME=ARM,ARM,... NODE:FACTOR NxP OPTIONS OUTDIR PERCENT POLICY RANKS \
                    RANKS:SPEED REASON RECORDING SEED SHAPE SHARE SITE SIZES SPEC SQL STEP STEPS T,T TEXT TIME USER VARIANT VARIANTS WHEN X [RANKS:]BYTES \
                    calls:DIR";
// By what they are called where they have no better word.
const NAMED: [&str; 5] = ["quarantined", "label", "deck", "policy", "policies"];

/// The faults of a program's line: closed sets of values that help does not list, lines of a help's end that are
/// wrapped, and subcommands without `--json` beside those in `without_json`.
pub fn faults(command: Command, without_json: &[&str]) -> Vec<String> {
    command.clone().debug_assert();
    let mut faults = Vec::new();
    all(&command, "", &mut |line, argument| {
        if is_unlisted(argument) {
            faults.push(format!(
                "{line}: {}: no values are listed",
                argument.get_id()
            ));
        }
    });
    wrapped(&command, command.get_name(), &mut faults);
    let mut without = Vec::new();
    for one in command.get_subcommands() {
        match one.has_subcommands() {
            true => (one.get_subcommands()).for_each(|below| {
                look_for_json(
                    below,
                    format!("{} {}", one.get_name(), below.get_name()),
                    &mut without,
                );
            }),
            false => look_for_json(one, one.get_name().to_owned(), &mut without),
        }
    }
    without.retain(|line| !without_json.contains(&line.as_str()));
    faults.extend(without.iter().map(|line| format!("{line}: no --json")));
    faults
}

/// Every argument with the line that it is of.
pub fn all(command: &Command, line: &str, look: &mut dyn FnMut(&str, &Arg)) {
    let line = format!("{line} {}", command.get_name()).trim().to_owned();
    for argument in command.get_arguments() {
        look(&line, argument);
    }
    for below in command.get_subcommands() {
        all(below, &line, look);
    }
}

/// Whether it takes a value of a closed set that neither help nor shells list.
fn is_unlisted(argument: &Arg) -> bool {
    let is_open = |name: &str| OPEN.split(' ').any(|open| open == name) || name == "mpirun ...";
    let names: Vec<&str> = argument
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(AsRef::as_ref)
        .collect();
    let is_open = !names.is_empty() && names.iter().all(|name| is_open(name))
        || NAMED.contains(&argument.get_id().as_str());
    argument.get_action().takes_values() && !is_open && argument.get_possible_values().is_empty()
}

/// Where there is no terminal clap wraps at 100 columns, and leaves what is left of a longer line on one of its own.
fn wrapped(command: &Command, name: &str, faults: &mut Vec<String>) {
    let end = command.get_after_help().map(ToString::to_string);
    // Lines that are to be entered stay as they are.
    let lines = end.iter().flat_map(|text| text.lines());
    let lines = lines.filter(|line| !line.starts_with("  colltune"));
    faults.extend(
        lines
            .filter(|line| line.chars().count() > 100)
            .map(|line| format!("{name}: wrapped: {line}")),
    );
    for below in command.get_subcommands() {
        wrapped(below, &format!("{name} {}", below.get_name()), faults);
    }
}

/// A program can read whatever a person can.
fn look_for_json(command: &Command, line: String, without: &mut Vec<String>) {
    if !(command.get_arguments()).any(|argument| argument.get_id() == "json") {
        without.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_fault_is_found() {
        let bad = Command::new("p")
            .after_help("x".repeat(101))
            .subcommand(Command::new("a").arg(Arg::new("kind").long("kind")));
        let found = faults(bad.clone(), &[]);
        let kinds = ["p a: kind: no values", "p: wrapped: x", "a: no --json"];
        assert_eq!(found.len(), kinds.len(), "{found:?}");
        for (kind, fault) in kinds.iter().zip(&found) {
            assert!(fault.starts_with(kind), "{found:?}");
        }
        assert_eq!(faults(bad, &["a"]).len(), 2);
    }
}
