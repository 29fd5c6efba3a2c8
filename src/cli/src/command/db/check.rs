//! `colltune db check`: what is wrong with a database, and the way out.

use anyhow::bail;
use colltune_db::manage::check::{Finding, Level, check};

use super::at::At;

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
        match checked.has_faults() {
            true => bail!("find {} without faults", self.at.db.display()),
            false => Ok(()),
        }
    }
}
