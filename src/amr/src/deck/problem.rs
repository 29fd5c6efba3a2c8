//! What can be wrong with a deck, and the name that was meant.

use std::ops::Range;

use thiserror::Error;

use crate::object::ObjectError;

/// What is wrong with a deck, and where: the message begins with file and line.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{file}:{line}: {reason}")]
pub struct DeckError {
    pub file: String,
    pub line: usize,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum Reason {
    #[error("{0}")]
    NotToml(String),
    #[error("unknown key `{key}`{hint}")]
    UnknownKey { key: String, hint: String },
    #[error("`{key}` takes {takes}, not {given}")]
    WrongKind {
        key: String,
        takes: &'static str,
        given: &'static str,
    },
    #[error("`{key}`: {problem}")]
    Refused { key: String, problem: String },
    #[error("{0}")]
    Object(ObjectError),
    #[error("the object has no `{0}`")]
    Missing(&'static str),
}

/// A problem before its line is known: where in the text it is.
pub(super) type Problem = (Range<usize>, Reason);

/// The name that differs least, where that is little.
pub(super) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, near) = names
        .into_iter()
        .map(|other| (edits(name, other), other))
        .min()?;
    (distance <= 1 + name.len() / 4).then_some(near)
}

/// Insertions, deletions and replacements that turn one text into the other (Levenshtein 1966).
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
