//! What stands between the user's program and its MPI library in a trial.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use colltune_core::environment;
use colltune_core::levers::{self, Arms};
use colltune_core::request::Mode;
use colltune_core::settings::LearnerKind;

use crate::levers::{Lever, filled};
use crate::nonblocking;
use crate::own;
use crate::prefix;

/// With or without the tuner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing is preloaded: what the user has without colltune.
    Bare,
    /// `colltune run` in this mode.
    Tuned(Mode),
}

/// The options of `colltune run` in every trial.
#[derive(Clone, Debug)]
pub struct Tuner {
    pub db: PathBuf,
    /// `--mpi`, where the user had to say it.
    pub mpi: Option<String>,
    /// Who learns, where that is not to be what the settings say.
    pub learner: Option<LearnerKind>,
}

impl Way {
    /// The command that starts `line` this way. A job that could only run untuned is refused.
    pub fn command(
        self,
        line: &[OsString],
        (arms, told): (&Arms, &Arms),
        tuner: &Tuner,
        summary: &Path,
    ) -> anyhow::Result<Command> {
        let mut command = match self {
            Way::Bare => {
                let line = filled(line, arms);
                let mut command = Command::new(&line[0]);
                command.args(&line[1..]);
                command.envs(nonblocking::assignments(arms));
                if let Some(users) = std::env::var_os("LD_PRELOAD") {
                    command.env("LD_PRELOAD", prefix::preload(OsStr::new(""), Some(&users)));
                }
                command
            }
            Way::Tuned(mode) => {
                let own = own::colltune()?;
                let mut command = Command::new(own);
                command.args(["run", "--strict", "--mode", mode.name(), "--db"]);
                command.arg(&tuner.db);
                if let Some(mpi) = &tuner.mpi {
                    command.args(["--mpi", mpi]);
                }
                for arm in arms {
                    command.args(["--lever", &Lever::spelt(arm)]);
                }
                command.arg("--").args(line);
                command.env(environment::SUMMARY, summary);
                if let Some(learner) = tuner.learner {
                    command.env(environment::LEARNER, learner.name());
                }
                command
            }
        };
        let steers = |name: &str| match self {
            Way::Bare => name.starts_with(environment::PREFIX),
            Way::Tuned(_) => [
                environment::DB,
                environment::MODE,
                environment::FORCE,
                environment::LOG,
                environment::LEVERS,
                environment::ARGUMENTS,
            ]
            .contains(&name),
        };
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        names.filter(|name| steers(name)).for_each(|name| {
            command.env_remove(name);
        });
        if !told.is_empty() {
            command.env(environment::LEVERS, levers::spell(told));
        }
        Ok(command)
    }
}
