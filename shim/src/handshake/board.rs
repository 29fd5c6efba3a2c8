//! Where ranks publish what others look up: by the launcher, so that the program never sees it.

/// A launcher's service that keeps short texts under names.
pub trait Board {
    /// Whether it took the text. It holds no spaces but those that [`Board::lookup`] gives back.
    fn publish(&self, what: &str, text: &str) -> bool;

    /// What rank `publisher` published, if it has.
    fn lookup(&self, publisher: u32, what: &str) -> Option<String>;

    /// Takes back what this rank published, where that is possible.
    fn withdraw(&self, what: &str, text: &str);
}

/// A text as services take it: MPICH's launcher and PMI-1 cut a value at the first space or line end.
pub fn without_spaces(text: &str, length_max: usize) -> String {
    text.chars()
        .filter(|c| c.is_ascii() && !c.is_ascii_control())
        .map(|c| if c == ' ' { '~' } else { c })
        .take(length_max)
        .collect()
}

/// The text that [`without_spaces`] was given.
pub fn with_spaces(text: &str) -> String {
    text.replace('~', " ")
}
