//! Messages to the person who runs the job: on stderr, never on stdout, each one line.

/// Prints one line. The caller sees to it that one rank alone says it, and once.
pub fn say(text: &str) {
    use std::io::Write;
    // Written in one piece, so that the lines of several programs do not mix.
    let line = format!("colltune: {}\n", text.replace('\n', " "));
    let _ = crate::quiet::quietly(|| std::io::stderr().write_all(line.as_bytes()));
}
