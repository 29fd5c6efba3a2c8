//! What the user says of the jobs that `tune` and `compare` run.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::value_parser;
use colltune_core::settings::LearnerKind;
use colltune_launch::trial::{Interrupt, Trials, Tuner};
use colltune_output::parse::library_name;
use colltune_output::progress;
use colltune_statistics::Interval;

use crate::comparison::Until;

#[derive(clap::Args, Debug)]
pub struct TrialArgs {
    /// Add pairs after those of -n, up to 100 in all, until the 95 % interval is within PERCENT of the ratio on either side, as
    /// in 1%; with levers that of both beside neither
    #[arg(long, value_name = "PERCENT", value_parser = until)]
    pub until: Option<Until>,
    /// Run the bare program so many times first; these runs are not timed, and count nowhere
    #[arg(long, value_name = "N", default_value = "0", value_parser = value_parser!(u16).range(..=1000))]
    warmup: u16,
    /// A line for `sh -c` before each job, as in 'rm -rf output', with the job's arms in place of {NAME} and no input; its
    /// time does not count, and where it fails so does this command
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<OsString>,
    /// End a job, or what prepares it, that takes longer, as in 10min, and this command with it
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
    /// Pass on what the program prints, to standard error
    #[arg(long)]
    show_output: bool,
    /// The MPI library, where program and launcher do not tell
    #[arg(long, value_parser = library_name(), value_name = "LIBRARY")]
    pub mpi: Option<String>,
}

impl TrialArgs {
    /// The trials of a line in a database. `scratch` is a folder in which ranks on every node can write.
    pub fn trials(
        &self,
        line: &[OsString],
        (db, learner): (&Path, Option<LearnerKind>),
        scratch: &Path,
        interrupt: Interrupt,
    ) -> Trials {
        Trials {
            line: line.to_vec(),
            arms: Default::default(),
            told: Default::default(),
            tuner: Tuner {
                db: db.to_owned(),
                mpi: self.mpi.clone(),
                learner,
            },
            prepare: self.prepare.clone(),
            prepare_s: 0.0,
            warmups: self.warmup,
            warmed_up: 0,
            timeout: self.timeout,
            shows_output: self.show_output,
            interrupt,
            scratch: scratch.to_owned(),
            said: Default::default(),
            whole_times: Default::default(),
        }
    }

    /// Says of a comparison that ended before its ratio was known as well as was asked for.
    pub fn tell_missed(&self, n: usize, ratio: Option<Interval>) {
        let missed = self.until.and_then(|until| until.missed(n, ratio));
        missed.iter().for_each(|sentence| progress::tell(sentence));
    }
}

/// Reads `1%` as 0.01.
fn until(text: &str) -> Result<Until, String> {
    let number = text
        .strip_suffix('%')
        .map(|number| number.trim().parse::<f64>());
    match number {
        Some(Ok(percent)) if percent > 0.0 && percent <= 100.0 => Ok(Until(percent / 100.0)),
        _ => {
            Err("it is a part of the ratio in percent, above 0 and up to 100, as in 1%".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_written_in_percent() {
        for (text, value) in [("1%", 0.01), ("0.5 %", 0.005), ("100%", 1.0)] {
            assert_eq!(until(text), Ok(Until(value)), "{text}");
        }
        for text in ["1", "0%", "-1%", "101%", "nan%", "inf%", "%", "one%", ""] {
            assert!(until(text).unwrap_err().contains("as in 1%"), "{text}");
        }
    }
}
