//! Looking into a site folder, as rank 0 of a job and the command do.

use std::io;
use std::path::{Path, PathBuf};

use colltune_core::site::{self, SiteState};

use crate::{SETTINGS_BYTES_MAX, read_text};

/// How much of what a person wrote about a switch is handed on.
const REASON_CHARACTERS_MAX: usize = 200;

/// Whether a folder is one.
pub fn is_site(folder: &Path) -> bool {
    folder.join(site::FILE).symlink_metadata().is_ok()
}

/// What it says is in force.
///
/// Errors: a sentence that reads after "failed to".
pub fn state(folder: &Path) -> Result<SiteState, String> {
    let file = folder.join(site::FILE);
    let named = |error: &dyn std::fmt::Display| format!("read {}: {error}", file.display());
    let text = read_text(&file, SETTINGS_BYTES_MAX).map_err(|error| named(&error))?;
    SiteState::from_json(&text).map_err(|error| named(&error))
}

/// Where a version lies.
pub fn version(folder: &Path, number: u64) -> PathBuf {
    let versions = folder.join(site::VERSIONS);
    versions.join(site::folder_of(number))
}

/// What a look at the switch found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    On,
    /// With what a person wrote into it.
    Off(String),
    /// There is no site folder any more, or none that can be looked into.
    Gone(String),
}

/// Looks at the switch.
pub fn look(folder: &Path) -> Look {
    let off = folder.join(site::OFF);
    match off.symlink_metadata() {
        Ok(_) => Look::Off(reason(&off)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match folder.join(site::FILE).symlink_metadata() {
                Ok(_) => Look::On,
                Err(error) => Look::Gone(error.to_string()),
            }
        }
        Err(error) => Look::Gone(error.to_string()),
    }
}

/// Its first line, where it has one that can be read; whatever has the name is a switch.
fn reason(off: &Path) -> String {
    let text = read_text(off, SETTINGS_BYTES_MAX).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default().trim();
    let plain = line.chars().filter(|one| !one.is_control());
    plain.take(REASON_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_called_off_switches_off_and_a_folder_that_is_gone_is_told() {
        let temporary = tempfile::tempdir().unwrap();
        let site = temporary.path().join("site");
        assert!(!is_site(&site));
        assert!(matches!(look(&site), Look::Gone(_)));
        std::fs::create_dir(&site).unwrap();
        assert!(matches!(look(&site), Look::Gone(_)), "no site yet");
        std::fs::write(site.join("site.json"), SiteState::default().to_json()).unwrap();
        assert!(is_site(&site));
        assert_eq!(
            (state(&site), look(&site)),
            (Ok(SiteState::default()), Look::On)
        );
        let off = site.join("OFF");
        std::fs::write(&off, "it\u{7} hangs \nsecond line\n").unwrap();
        assert_eq!(look(&site), Look::Off("it hangs".to_owned()));
        std::fs::remove_file(&off).unwrap();
        // What cannot be read is a switch, too, and nothing is waited for.
        for target in ["/dev/zero", "/nowhere"] {
            std::os::unix::fs::symlink(target, &off).unwrap();
            assert_eq!(look(&site), Look::Off(String::new()));
            std::fs::remove_file(&off).unwrap();
        }
        std::fs::create_dir(&off).unwrap();
        assert_eq!(look(&site), Look::Off(String::new()));
        std::fs::remove_dir(&off).unwrap();
        std::fs::write(site.join("site.json"), "{\"sch").unwrap();
        let problem = state(&site).unwrap_err();
        assert!(
            problem.contains("site.json") && problem.contains("damaged"),
            "{problem}"
        );
    }
}
