//! What a job runs with beside its collectives: the arm of each lever, as ranks and ledger spell it.
//!
//! A lever is a choice of the program's own. Either the line that starts it says the arm, or the program asks for one:
//! then its ranks agree ([`accord`]) on what was [`learned`], and the ledger keeps what was [`asked`].
//!
//! ```text
//! placement=cplx:50;threads=4
//! ```
//! A separator that belongs to an arm has a backslash before it, and so has a backslash.

pub mod accord;
pub mod asked;
pub mod learned;
pub mod watched;

use std::collections::BTreeMap;

/// The arm of each lever, both by name.
pub type Arms = BTreeMap<String, String>;

/// More levers than these are no tuning.
pub const LEVERS_MAX: usize = 16;

/// A text at its separators, but for those behind a backslash.
pub fn split(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let is_special = |next: &char| *next == separator || *next == '\\';
        let last = parts.last_mut().expect("it begins with one");
        match sign {
            '\\' => last.push(signs.next_if(is_special).unwrap_or('\\')),
            _ if sign == separator => parts.push(String::new()),
            _ => last.push(sign),
        }
    }
    parts
}

/// A part for [`split`].
pub fn escaped(part: &str, separator: char) -> String {
    let mut text = String::new();
    for sign in part.chars() {
        if sign == separator || sign == '\\' {
            text.push('\\');
        }
        text.push(sign);
    }
    text
}

/// The arms as a text. No lever has `=` in its name, or white space at an end of it.
pub fn spell(arms: &Arms) -> String {
    let words = arms.iter();
    let words = words.map(|(name, arm)| format!("{}={}", escaped(name, ';'), escaped(arm, ';')));
    words.collect::<Vec<_>>().join(";")
}

/// The arms that a text names; other parts are left out.
pub fn parse(text: &str) -> Arms {
    let parts = split(text, ';').into_iter();
    let arms = parts.filter_map(|part| {
        let (name, arm) = part.split_once('=')?;
        Some((name.trim().to_owned(), arm.to_owned()))
    });
    arms.take(LEVERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_read_back_as_they_were_whatever_stands_in_them() {
        for arm in ["cplx:50", "a;b", "a,b", r"\", r"\;", r"a\\b", "x=y", "{z}"] {
            let arms = Arms::from([
                ("one".to_owned(), arm.to_owned()),
                ("two".to_owned(), "2".to_owned()),
            ]);
            assert_eq!(parse(&spell(&arms)), arms, "{}", spell(&arms));
            let parts = split(&format!("{},b", escaped(arm, ',')), ',');
            assert_eq!(parts, [arm, "b"]);
        }
        let arms = |name: &str| Arms::from([(name.to_owned(), "1".to_owned())]);
        assert_eq!(parse(&spell(&arms("a;b\\"))), arms("a;b\\"));
        assert_eq!(parse(""), Arms::new());
        assert_eq!(parse("word;a=1").len(), 1);
        // A backslash before anything else is one.
        assert_eq!(split(r"C:\new,b", ','), [r"C:\new", "b"]);
    }
}
