//! The MPI library that a job runs on, and the key that keeps its data apart from other libraries'.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A binary interface: one build of the shim serves every library that shares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Abi {
    OpenMpi,
    Mpich,
}

impl Abi {
    pub const ALL: [Abi; 2] = [Abi::OpenMpi, Abi::Mpich];

    /// The folder below `target/` and the `--mpi` argument: `openmpi`, `mpich`.
    pub const fn name(self) -> &'static str {
        match self {
            Abi::OpenMpi => "openmpi",
            Abi::Mpich => "mpich",
        }
    }

    pub fn from_name(name: &str) -> Option<Abi> {
        Self::ALL.into_iter().find(|abi| abi.name() == name)
    }
}

/// An MPI library and its version; displays as its database key, `openmpi-4.1.4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Library {
    pub abi: Abi,
    /// Major, minor, patch.
    pub version: (u16, u16, u16),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LibraryError {
    #[error("recognise the MPI library {0:?} (known: Open MPI, MPICH)")]
    Unknown(String),
    #[error("read a version number out of {0:?}")]
    NoVersion(String),
    #[error("read the library key {0:?} (it looks like openmpi-4.1.4 or mpich-4.0.2)")]
    Key(String),
}

impl Library {
    /// Reads the text that `MPI_Get_library_version` returns.
    ///
    /// Errors: `Unknown` for another library, `NoVersion` where no `a.b[.c]` follows its name.
    pub fn from_version_text(text: &str) -> Result<Library, LibraryError> {
        let known = [("Open MPI v", Abi::OpenMpi), ("MPICH Version:", Abi::Mpich)];
        let Some((abi, rest)) = known
            .into_iter()
            .find_map(|(mark, abi)| text.split_once(mark).map(|(_, rest)| (abi, rest)))
        else {
            return Err(LibraryError::Unknown(text.chars().take(60).collect()));
        };
        let version = version_at_start(rest.trim_start())
            .ok_or_else(|| LibraryError::NoVersion(text.chars().take(60).collect()))?;
        Ok(Library { abi, version })
    }
}

/// Reads `4.1.4` off the start of a text; a missing patch number counts as 0.
fn version_at_start(text: &str) -> Option<(u16, u16, u16)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let mut parts = text[..end]
        .split('.')
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().ok());
    let major = parts.next()??;
    let minor = parts.next()??;
    let patch = parts.next().unwrap_or(Some(0))?;
    Some((major, minor, patch))
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.version;
        write!(f, "{}-{major}.{minor}.{patch}", self.abi.name())
    }
}

impl FromStr for Library {
    type Err = LibraryError;

    fn from_str(key: &str) -> Result<Library, LibraryError> {
        let bad = || LibraryError::Key(key.to_owned());
        let (name, version) = key.split_once('-').ok_or_else(bad)?;
        let abi = Abi::from_name(name).ok_or_else(bad)?;
        let version = version_at_start(version).ok_or_else(bad)?;
        let library = Library { abi, version };
        if library.to_string() == key {
            Ok(library)
        } else {
            Err(bad())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_texts_of_the_libraries_give_their_keys() {
        let texts = [
            (
                "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022",
                "openmpi-4.1.4",
            ),
            ("Open MPI v5.0.11rc1, package: x", "openmpi-5.0.11"),
            (
                "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7",
                "mpich-4.0.2",
            ),
            (
                "MPICH Version:      4.3\nMPICH Release date: x",
                "mpich-4.3.0",
            ),
        ];
        for (text, key) in texts {
            let library = Library::from_version_text(text).unwrap();
            assert_eq!(library.to_string(), key);
            assert_eq!(key.parse::<Library>().unwrap(), library);
        }
    }

    #[test]
    fn foreign_texts_and_keys_are_refused() {
        assert!(matches!(
            Library::from_version_text("Intel(R) MPI Library 2021.17"),
            Err(LibraryError::Unknown(_))
        ));
        assert!(matches!(
            Library::from_version_text("Open MPI vX"),
            Err(LibraryError::NoVersion(_))
        ));
        for key in [
            "openmpi",
            "openmpi-4",
            "lam-7.1.4",
            "openmpi-4.1.4-x",
            "openmpi-../..",
            "openmpi-99999999.1.1",
        ] {
            assert!(key.parse::<Library>().is_err(), "{key}");
        }
    }
}
