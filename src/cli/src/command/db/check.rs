//! `colltune db check`: what is wrong with a database, and the remedy.

use colltune_db::manage::check::{Finding, Level, check};

use super::at::At;
use crate::command::train::counted;
use colltune_output::failure::Stopped;

#[derive(clap::Args, Debug)]
pub struct Looking {
    #[command(flatten)]
    at: At,
}

impl Looking {
    pub fn run(&self) -> anyhow::Result<()> {
        let checked = check(&self.at.open()?)?;
        self.at.tell(&checked, &[], || {
            let line = |one: &Finding| {
                let level = match one.level {
                    Level::Fine => "ok",
                    Level::Note => "note",
                    Level::Fault => "fault",
                };
                format!("{level:5} {}\n", one.says)
            };
            checked.findings.iter().map(line).collect()
        })?;
        let is_fault = |one: &&Finding| matches!(one.level, Level::Fault);
        match checked.findings.iter().filter(is_fault).count() {
            0 => Ok(()),
            n_faults => Err(Stopped {
                message: format!(
                    "{} has {}",
                    self.at.db.display(),
                    counted(n_faults as u64, "fault")
                ),
                code: 1,
            }
            .into()),
        }
    }
}
