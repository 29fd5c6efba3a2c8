//! The `colltune` command.
fn main() {}
