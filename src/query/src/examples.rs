//! Ten queries to begin with. They are standard SQL but for the functions in [`crate::schema`].

/// All of them, to be read: each with its question and what is asked, as a comment.
pub const TEXT: &str = include_str!("examples.sql");

/// One by one.
pub fn all() -> impl Iterator<Item = &'static str> {
    TEXT.split(";\n")
        .map(str::trim)
        .filter(|one| !one.is_empty())
}
