//! What `tune` and `compare` are told of the jobs that they run.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::value_parser;
use colltune_core::settings::LearnerKind;
use colltune_launch::trial::{Interrupt, Trials, Tuner};
use colltune_output::parse::library_name;

use crate::comparison;

#[derive(clap::Args, Debug)]
pub struct TrialArgs {
    /// Go on with the comparison, up to 100 runs on each side, until half the width of the ratio's interval is at most so
    /// much, as in 1%
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub until: Option<f64>,
    /// Run the bare program so many times first, for what it reads to be in memory; these runs do not count
    #[arg(long, value_name = "N", default_value = "0", value_parser = value_parser!(u16).range(..=1000))]
    warmup: u16,
    /// A shell's line that runs before each job, as in 'rm -rf output'; its time does not count
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<OsString>,
    /// End a job that takes longer, as in 10min, and this command with it
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
            timeout: self.timeout,
            shows_output: self.show_output,
            interrupt,
            scratch: scratch.to_owned(),
            said: Default::default(),
            whole_times: Default::default(),
        }
    }

    /// The runs before those that count.
    ///
    /// Errors: the first one that does not end well.
    pub fn warm_up(&self, trials: &mut Trials) -> anyhow::Result<()> {
        (1..=self.warmup)
            .try_for_each(|number| comparison::warmed_up(trials, (number, self.warmup)))
    }
}

/// Reads `1%` as 0.01.
fn share(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .map(|number| number.trim().parse::<f64>());
    match number {
        Some(Ok(percent)) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
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
            assert_eq!(share(text), Ok(value), "{text}");
        }
        for text in ["1", "0%", "-1%", "101%", "nan%", "inf%", "%", "one%", ""] {
            assert!(share(text).unwrap_err().contains("as in 1%"), "{text}");
        }
    }
}
