//! A session of the book: commands behind prompts, and below each what it prints.
//!
//! ```text
//! $ colltune status --db db
//! allreduce of ... B: ...
//! ...
//! alice$ colltune train --db db
//! ```
//! `...` in a line stands for anything, a line of it alone for any lines. Lines that begin with `#` are for readers. A
//! command that goes on has `> ` before its next lines.

/// Stands for anything, or for any lines.
const ANYTHING: &str = "...";
const MORE: &str = "> ";

/// A command with what it has to print.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Before the prompt's `$`: who enters it; empty for the reader.
    pub user: String,
    pub command: String,
    pub prints: Vec<String>,
}

/// The steps of a session's text.
///
/// Panics at an output without a command: files of the repository have none.
pub fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some((user, command)) = entered(line) {
            let (user, command) = (user.to_owned(), command.to_owned());
            let prints = Vec::new();
            steps.push(Step {
                user,
                command,
                prints,
            });
            continue;
        }
        let step = steps.last_mut().expect("a command stands first");
        match line.strip_prefix(MORE) {
            Some(more) if step.prints.is_empty() => step.command += &format!("\n{more}"),
            _ => step.prints.push(line.to_owned()),
        }
    }
    steps
}

/// The user and the command behind a prompt, `$ ` or `alice$ `.
fn entered(line: &str) -> Option<(&str, &str)> {
    let (user, command) = line.split_once("$ ")?;
    let is_name = user.chars().all(|letter| letter.is_ascii_lowercase());
    is_name.then_some((user, command))
}

/// Whether these lines are what is expected.
pub fn matches(expected: &[String], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == ANYTHING => {
            (0..=printed.len()).any(|behind| matches(rest, &printed[behind..]))
        }
        Some((first, rest)) => printed
            .split_first()
            .is_some_and(|(line, others)| is_like(first, line) && matches(rest, others)),
    }
}

/// Whether a line is the pattern with anything for each `...`.
fn is_like(pattern: &str, line: &str) -> bool {
    match pattern.split_once(ANYTHING) {
        None => pattern == line,
        Some((before, behind)) => line.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.into_iter().any(|at| is_like(behind, &rest[at..]))
        }),
    }
}

#[test]
fn a_session_is_read_as_it_is_meant() {
    let text = "# said\n$ one \\\n> two\nprinted\n> not more\nbob$ three\n";
    let [first, second] = &steps(text)[..] else {
        panic!("{:?}", steps(text))
    };
    assert_eq!(first.command, "one \\\ntwo");
    assert_eq!(first.prints, ["printed", "> not more"]);
    assert_eq!((&*second.user, &*second.command), ("bob", "three"));
    assert!(second.prints.is_empty());
}

#[test]
fn dots_stand_for_anything_and_nothing_else_does() {
    let expected = ["it took ... s", "...", "end"].map(str::to_owned);
    assert!(matches(&expected, &["it took 3 s", "a", "b", "end"]));
    assert!(matches(&expected, &["it took  s", "end"]));
    for printed in [
        &["it took 3 s"][..],
        &["it took 3 s", "end", "more"],
        &["it took 3 minutes", "end"],
        &["it took 3 s, end"],
    ] {
        assert!(!matches(&expected, printed), "{printed:?}");
    }
}
