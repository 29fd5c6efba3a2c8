//! Jobs of the helper program, which measure: what they write is read when they have ended.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};

use super::compare::interrupted;
use crate::trial::{Ended, Interrupt, watched};

/// How much of what a job prints is read: of its answer, and of what it complains of.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
const COMPLAINT_BYTES_MAX: u64 = 16 << 10;

/// Runs the job, which takes seconds unless it hangs; what it wrote to standard output.
///
/// Errors: a job that fails, with the start of what it said; `Stopped` by a signal.
pub fn answer(
    command: &mut Command,
    limit: Duration,
    interrupt: &Interrupt,
) -> anyhow::Result<String> {
    // Files, for pipes that a job leaves open would be waited for.
    let file = || tempfile::tempfile().context("make a temporary file for the job's output");
    let (mut answer, mut said) = (file()?, file()?);
    let passed = |file: &File| file.try_clone().context("pass the job's output on");
    let (stdout, stderr) = (passed(&answer)?, passed(&said)?);
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let ended = watched(command, Some(limit), interrupt, &mut || ());
    let (_, status) = ended.map_err(|ended| match ended {
        Ended::Interrupted(signal) => interrupted(signal),
        Ended::NotStarted(error) => error,
        other => anyhow!("finish the job that measures: {other}"),
    })?;
    if !status.success() {
        let said = start_of(&mut said, COMPLAINT_BYTES_MAX);
        bail!("finish the job ({status}):\n{}", said.trim());
    }
    Ok(start_of(&mut answer, ANSWER_BYTES_MAX))
}

fn start_of(file: &mut File, bytes_max: u64) -> String {
    let mut bytes = Vec::new();
    let _ = file.seek(SeekFrom::Start(0));
    let _ = file.take(bytes_max).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
