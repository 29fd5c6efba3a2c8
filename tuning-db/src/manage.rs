//! What a person does with a database: makes it one for a group, looks at it, and takes back what went wrong.

pub mod check;
pub mod init;
pub mod list;
pub mod remove;
