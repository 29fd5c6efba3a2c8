//! What is installed: `colltune`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    colltune_command::colltune()
}
