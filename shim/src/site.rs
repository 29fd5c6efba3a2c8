//! What a job takes of a site folder. Rank 0 alone reads it, and hands on what it found.

use std::path::{Path, PathBuf};

use colltune_core::request::Mode;
use colltune_core::site::{self, Rollout};
use colltune_files::site::{Look, is_site, look, state, version};

/// The version that the job takes.
pub struct Version {
    /// What `exploit` reads of a database.
    pub folder: PathBuf,
    pub site: PathBuf,
    rollout: Rollout,
}

impl Version {
    /// The remedy where the version is of no use.
    pub fn remedy(&self) -> String {
        let site = self.site.display();
        match self.rollout {
            Rollout::InForce => {
                format!("`colltune publish {site} --rollback` puts the one before in force")
            }
            Rollout::Canary => {
                format!("it is on trial, and `colltune publish {site} --rollback` ends that")
            }
        }
    }
}

/// The version of a site folder that the job takes; `None` where the folder is no site's. `job` is what the job is
/// called where no batch system has a name for it.
///
/// Errors: a sentence that says why the job runs untuned.
pub fn find(folder: &Path, job: &str) -> Result<Option<Version>, String> {
    if !is_site(folder) {
        return Ok(None);
    }
    let site = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    if let Look::Off(reason) = look(&site) {
        return Err(format!(
            "{}; collectives run untuned",
            is_off(&site, &reason)
        ));
    }
    let named = site::job_name(|name| std::env::var(name).ok());
    let found = state(&site).and_then(|state| {
        let taken = state.version_of(named.as_deref().unwrap_or(job));
        taken.map_err(|problem| format!("use the site folder {}: {problem}", site.display()))
    });
    let taken = found.map_err(|problem| format!("failed to {problem}; collectives run untuned"))?;
    Ok(Some(Version {
        folder: version(&site, taken.version),
        rollout: taken.rollout,
        site,
    }))
}

/// Says that the switch is turned off, and why.
pub fn is_off(site: &Path, reason: &str) -> String {
    let off = site.join(site::OFF);
    let reason = match reason {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    format!("{} is there{reason}", off.display())
}

/// What is done in a job that asks for a mode, or for none, and can only read.
pub fn mode(asked: Option<Mode>, warnings: &mut Vec<String>) -> Mode {
    match asked {
        None | Some(Mode::Exploit) => Mode::Exploit,
        Some(Mode::Tables) => Mode::Tables,
        Some(Mode::Off) => Mode::Off,
        Some(Mode::Explore) => {
            warnings.push(
                "COLLTUNE_MODE=explore needs a database, and COLLTUNE_DB names a site folder, which jobs only read; \
                 the mode is exploit"
                    .to_owned(),
            );
            Mode::Exploit
        }
        Some(Mode::Record) => {
            warnings.push(
                "COLLTUNE_MODE=record needs a database, and COLLTUNE_DB names a site folder, which jobs only read; \
                 nothing is recorded, and collectives run untuned"
                    .to_owned(),
            );
            Mode::Off
        }
    }
}
