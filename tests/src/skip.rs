//! Tests that do not run here are counted, with the reason.

use std::io::Write;

/// Says why a test does not run: on stderr, and as a line of the file `COLLTUNE_SKIP_LOG` if that
/// is set. Returns `None`, so that a test can end with it.
pub fn skip<T>(reason: &str) -> Option<T> {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("skipped: {test}: {reason}\n");
    eprint!("{line}");
    if let Some(file) = std::env::var_os("COLLTUNE_SKIP_LOG") {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file);
        log.and_then(|mut log| log.write_all(line.as_bytes()))
            .unwrap_or_else(|error| {
                panic!(
                    "failed to count a skipped test in {}: {error}",
                    file.display()
                )
            });
    }
    None
}

/// Whether this is a run of the long suites (`make conformance`). Where it is not, a test that is too
/// long for every day is counted as skipped.
pub fn runs_long() -> bool {
    is_long() || skip("takes long: COLLTUNE_LONG=1 runs it").unwrap_or(false)
}

/// Whether `COLLTUNE_LONG=1` asks for the long form of a test that has a short one.
pub fn is_long() -> bool {
    std::env::var_os("COLLTUNE_LONG").is_some_and(|value| value == "1")
}
