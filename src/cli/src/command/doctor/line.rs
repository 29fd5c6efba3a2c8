//! A line that starts a job: whether it can be tuned. It is read, not started.

use std::ffi::OsString;

use colltune_core::library::Abi;

use super::findings::Findings;
use crate::command::run::{libraries, mismatch, read_line};

/// Whether a line can be read and its programs' library is known; the user may name it.
pub fn check(report: &mut Findings, words: &[OsString], told: Option<Abi>) {
    let outcome = read_line(words).and_then(|line| Ok((libraries(&line, told)?, line)));
    let (abis, line) = match outcome {
        Err(error) => {
            return report.fail(
                format_args!("line: failed to {error:#}"),
                "write the line as in `colltune run -- mpirun -n 2 ./solver`",
            );
        }
        Ok(found) => found,
    };
    if abis.is_empty() {
        report.warn(
            "line: it starts no program",
            "write the program behind the launcher's options",
        );
    }
    if let Some(mismatch) = mismatch(&line, &abis) {
        report.warn(
            format_args!("line: {mismatch}"),
            "run `colltune run` on the line, whose ranks say whether they found each other",
        );
    }
    for (abi, context) in abis.iter().zip(&line.contexts) {
        let program = line.words[context.program].display();
        match abi {
            Some(abi) => report.ok(format!("line: {program} runs on {}", abi.name())),
            None => report.warn(
                format_args!("line: found no MPI library in {program}, so it would run untuned"),
                "if it loads MPI later on, say which, as in `colltune run --mpi openmpi`",
            ),
        }
    }
}
