//! A site folder: what an administrator published for everybody's jobs, and which version of it a job takes.
//!
//! ```text
//! SITE/site.json         which version is in force, and which one a share of the jobs tries
//! SITE/OFF               while it is there jobs run untuned, running ones once ranks compare a choice
//! SITE/colltune.toml     what the site decides over the settings of every version; a person writes it
//! SITE/versions/NNNNNN/  a version: what `exploit` reads of a database, and tables for the libraries
//! SITE/modulefiles/      for Lmod and Environment Modules
//! ```
//! One file says which version is in force, and is replaced as a whole. Jobs only read.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::roster::hash_bytes;
use crate::select::mix;

/// What makes a folder a site folder.
pub const FILE: &str = "site.json";
pub const OFF: &str = "OFF";
pub const VERSIONS: &str = "versions";
/// The version of the layout of `site.json`.
pub const SCHEMA: u32 = 1;

/// The folder of a version below [`VERSIONS`].
pub fn folder_of(version: u64) -> String {
    format!("{version:06}")
}

/// `site.json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteState {
    pub schema: u32,
    /// The version in force; 0 before any. Module files look for this word.
    pub current: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// A version that a share of the jobs tries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    pub version: u64,
    pub share: f64,
}

/// The version that one job takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub version: u64,
    pub rollout: Rollout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollout {
    InForce,
    Canary,
}

/// Why a `site.json` is of no use; the messages read behind the file's name and a colon.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SiteError {
    #[error("it is damaged ({0}); `colltune publish` writes it anew")]
    Damaged(String),
    #[error(
        "its layout has version {0}, this colltune reads {SCHEMA}; use the colltune that published it, or publish \
         with this one into another folder"
    )]
    OtherSchema(u32),
    #[error("{0} is no share of the jobs from 0 to 1")]
    Share(String),
    #[error("nothing is published there yet")]
    Nothing,
}

impl Default for SiteState {
    fn default() -> SiteState {
        SiteState {
            schema: SCHEMA,
            current: 0,
            canary: None,
        }
    }
}

impl SiteState {
    /// Reads `site.json`.
    ///
    /// Errors: all but `Nothing`.
    pub fn from_json(text: &str) -> Result<SiteState, SiteError> {
        #[derive(Deserialize)]
        struct Layout {
            schema: u32,
        }
        let damaged = |error: serde_json::Error| SiteError::Damaged(error.to_string());
        // Another layout may lack what this one has.
        let Layout { schema } = serde_json::from_str(text).map_err(damaged)?;
        if schema != SCHEMA {
            return Err(SiteError::OtherSchema(schema));
        }
        let site: SiteState = serde_json::from_str(text).map_err(damaged)?;
        match site.canary {
            Some(Canary { share, .. }) if !(0.0..=1.0).contains(&share) => {
                Err(SiteError::Share(share.to_string()))
            }
            _ => Ok(site),
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and names") + "\n"
    }

    /// The version that a job takes, all its steps alike: of two jobs of one name both or none are canaries.
    ///
    /// Errors: `Nothing` before any version is in force for it.
    pub fn version_of(&self, job: &str) -> Result<Taken, SiteError> {
        let tries = |canary: &Canary| {
            // With the version, so that not the same jobs try every one.
            let hash = mix(hash_bytes(canary.version, job.as_bytes()), canary.version);
            let place = (hash >> 11) as f64 / (1u64 << 53) as f64;
            place < canary.share
        };
        let taken = match self.canary.filter(tries) {
            Some(canary) => Taken {
                version: canary.version,
                rollout: Rollout::Canary,
            },
            None => Taken {
                version: self.current,
                rollout: Rollout::InForce,
            },
        };
        match taken.version {
            0 => Err(SiteError::Nothing),
            _ => Ok(taken),
        }
    }
}

/// What batch systems call a job, whose steps are to take one version: Slurm, PBS, LSF, Flux, OAR, Grid Engine.
const JOB_NAMES: [&str; 6] = [
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "FLUX_JOB_ID",
    "OAR_JOB_ID",
    "JOB_ID",
];

/// What a job is called by whoever gave it its nodes; `None` outside of any batch system.
pub fn job_name(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let named = |name: &&str| variable(name).filter(|value| !value.is_empty());
    JOB_NAMES
        .iter()
        .find_map(|name| Some(format!("{name}={}", named(name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(current: u64, canary: Option<(u64, f64)>) -> SiteState {
        SiteState {
            current,
            canary: canary.map(|(version, share)| Canary { version, share }),
            ..SiteState::default()
        }
    }

    #[test]
    fn what_is_written_is_read_and_what_is_not_ours_is_named() {
        for site in [site(0, None), site(3, None), site(3, Some((4, 0.05)))] {
            assert_eq!(SiteState::from_json(&site.to_json()), Ok(site));
        }
        let problem = |text: &str| SiteState::from_json(text).unwrap_err().to_string();
        assert!(problem("").contains("damaged"));
        assert!(problem("{\"schema\": 1, \"curr").contains("damaged"));
        assert!(problem("{\"schema\": 7}").contains("version 7, this colltune reads 1"));
        let text = site(1, Some((2, 0.5))).to_json().replace("0.5", "50");
        assert!(problem(&text).contains("50 is no share"));
    }

    #[test]
    fn a_share_of_the_jobs_tries_a_canary_whatever_they_are_called() {
        let jobs = 100_000u64;
        for share in [0.0, 0.05, 0.5, 1.0] {
            let site = site(3, Some((4, share)));
            let tries = |job: &u64| {
                let name = format!("SLURM_JOB_ID={}", 7_000_000 + job);
                let taken = site.version_of(&name).unwrap();
                assert_eq!(
                    taken,
                    site.version_of(&name).unwrap(),
                    "one job, one version"
                );
                assert_eq!(
                    taken.version,
                    if taken.rollout == Rollout::Canary {
                        4
                    } else {
                        3
                    }
                );
                taken.rollout == Rollout::Canary
            };
            let found = (0..jobs).filter(tries).count() as f64;
            // Five standard deviations of a fair draw.
            let wide = 5.0 * (jobs as f64 * share * (1.0 - share)).sqrt();
            assert!(
                (found - share * jobs as f64).abs() <= wide,
                "{share}: {found}"
            );
        }
    }

    #[test]
    fn another_canary_is_tried_by_other_jobs() {
        let tries = |version: u64| {
            let site = site(1, Some((version, 0.5)));
            let jobs = (0..64).map(|job| site.version_of(&format!("JOB_ID={job}")).unwrap());
            jobs.map(|taken| taken.rollout).collect::<Vec<_>>()
        };
        assert_ne!(tries(4), tries(5));
    }

    #[test]
    fn before_anything_is_in_force_only_canaries_take_something() {
        assert_eq!(site(0, None).version_of("a"), Err(SiteError::Nothing));
        assert_eq!(
            site(0, Some((1, 0.0))).version_of("a"),
            Err(SiteError::Nothing)
        );
        assert_eq!(site(0, Some((1, 1.0))).version_of("a").unwrap().version, 1);
    }

    #[test]
    fn a_job_is_called_what_its_batch_system_calls_it() {
        let has = |found: &'static [(&str, &str)]| {
            job_name(move |name| {
                let known = found.iter().find(|(other, _)| *other == name);
                known.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(has(&[]), None);
        assert_eq!(has(&[("SLURM_JOB_ID", "")]), None);
        assert_eq!(
            has(&[("JOB_ID", "7"), ("PBS_JOBID", "8.hydra")]).unwrap(),
            "PBS_JOBID=8.hydra"
        );
    }
}
