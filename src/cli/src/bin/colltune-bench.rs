//! What is not installed: the benches of who works on colltune.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    colltune_command::colltune_bench()
}
