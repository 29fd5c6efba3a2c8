//! Jobs of the helper program, which measure: what they write is read when they have ended.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use colltune_core::algorithm::simulate::Link;
use colltune_core::calibration::{Calibration, SCHEMA};
use colltune_core::library::Abi;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::shim;
use crate::trial::{Ended, Interrupt, interrupted, watched};

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

/// The line of JSON that the helper's rank 0 printed: launchers may put words of their own before and behind it.
pub fn answer_in<T: DeserializeOwned>(text: &str) -> Option<T> {
    text.lines().find_map(|line| {
        let (begin, end) = (line.find('{')?, line.rfind('}')?);
        serde_json::from_str(line.get(begin..=end)?).ok()
    })
}

/// The program of one MPI library that jobs run.
pub fn helper(abi: Abi) -> anyhow::Result<PathBuf> {
    let file = shim::file(abi)?.with_file_name("colltune-mpibench");
    if !file.is_file() {
        bail!("find {}: `make build` builds it", file.display());
    }
    Ok(file)
}

/// Reads the helper's answer.
pub fn calibration(measured: &Value, machine: String) -> anyhow::Result<Calibration> {
    let number = |of: &Value, name: &str| {
        let number = of[name].as_f64();
        number.with_context(|| format!("read what colltune-mpibench measured: it has no {name}"))
    };
    let link = |of: &Value| -> anyhow::Result<Option<Link>> {
        if of.is_null() {
            return Ok(None);
        }
        Ok(Some(Link {
            latency_ns: number(of, "latency_ns")?,
            overhead_ns: number(of, "overhead_ns")?,
            gap_ns: number(of, "gap_ns")?,
            per_byte_ns: number(of, "per_byte_ns")?,
            // No message is so long that it asks first.
            rendezvous_bytes: of["rendezvous_bytes"].as_f64().unwrap_or(f64::INFINITY),
            burst_bytes: number(of, "burst_bytes")?,
        }))
    };
    let calibration = Calibration {
        schema: SCHEMA,
        library: measured["library"].as_str().unwrap_or("").to_owned(),
        machine,
        nodes: number(measured, "nodes")? as u32,
        ppn: number(measured, "ppn")? as u32,
        reduce_per_byte_ns: number(measured, "reduce_per_byte_ns")?,
        copy_per_byte_ns: number(measured, "copy_per_byte_ns")?,
        loaded_per_byte_ns: measured["loaded_per_byte_ns"].as_f64(),
        inside: link(&measured["inside"])?,
        between: link(&measured["between"])?,
        cores: serde_json::from_value(measured["cores"].clone())
            .context("read what colltune-mpibench measured of cores")?,
    };
    calibration.check()?;
    Ok(calibration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helpers_answer_becomes_a_calibration_and_what_is_missing_is_named() {
        let text = r#"{"library":"openmpi-4.1.4","n_ranks":2,"ppn":2,"nodes":1,"mode":"calibrate",
            "reduce_per_byte_ns":0.2,"copy_per_byte_ns":0.1,"loaded_per_byte_ns":null,"between":null,"cores":{"per_node":1,"turn_ns":900},"inside":{"latency_ns":300,
            "overhead_ns":90.5,"gap_ns":100,"per_byte_ns":0.15,"burst_bytes":0,"rendezvous_bytes":null,"one_way_ns":[]}}"#;
        let read = calibration(&serde_json::from_str(text).unwrap(), "here".to_owned()).unwrap();
        assert_eq!(read.inside.unwrap().rendezvous_bytes, f64::INFINITY);
        assert_eq!(
            (read.inside.unwrap().overhead_ns, read.between),
            (90.5, None)
        );
        assert_eq!(read.cores.unwrap().turn_ns, 900.0);
        assert_eq!(Calibration::from_toml(&read.to_toml()), Ok(read));
        let less = text.replace("\"gap_ns\":100,", "");
        let error = calibration(&serde_json::from_str(&less).unwrap(), String::new());
        assert!(error.unwrap_err().to_string().contains("gap_ns"));
        let wrong = text.replace("300", "-300");
        assert!(calibration(&serde_json::from_str(&wrong).unwrap(), String::new()).is_err());
    }
}
