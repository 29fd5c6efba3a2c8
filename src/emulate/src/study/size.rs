//! How large a study shall be.

/// How large a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Full,
    /// A small one, to see that it runs.
    Quick,
}
