//! The MPI library that a job runs on, and the key that keeps its data apart from other libraries'.

use std::fmt;
use std::str::FromStr;

use bincode::{Decode, Encode};
use thiserror::Error;

use crate::named::named;

named! {
    /// A binary interface: one build of the shim serves every library that shares it. Its name is the folder below
    /// `target/` and the `--mpi` argument of `colltune run`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Abi {
        OpenMpi = "openmpi",
        Mpich = "mpich",
        /// The one that MPI 5 standardises (`libmpi_abi`); any library may offer it beside its own.
        Standard = "mpi_abi",
    }
}

impl Abi {
    /// Those that every build makes; the standard one needs a compiler wrapper that few systems have.
    pub const COMMON: [Abi; 2] = [Abi::OpenMpi, Abi::Mpich];

    /// Whether the build for this interface serves programs on `product`.
    pub const fn serves(self, product: Product) -> bool {
        match self {
            Abi::Standard => true,
            Abi::OpenMpi => matches!(product, Product::OpenMpi),
            Abi::Mpich => matches!(
                product,
                Product::Mpich | Product::Intel | Product::Cray | Product::Mvapich
            ),
        }
    }
}

named! {
    /// Whose library it is: what decides which algorithms there are, whatever the binary interface. Its name is the first
    /// word of its database keys.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
    pub enum Product {
        OpenMpi = "openmpi",
        Mpich = "mpich",
        Intel = "intel",
        /// Cray MPICH and MVAPICH derive from MPICH, and choose among their own collective algorithms, whose names
        /// are unknown here: they are tuned with ours alone.
        Cray = "cray",
        Mvapich = "mvapich",
    }
}

impl Product {
    /// The newest major version that is known here. A newer one may pass arguments in another way, or have functions
    /// without wrappers, so nothing is tuned on it; newer minor versions have been served well.
    pub const fn newest_major(self) -> u16 {
        match self {
            // Open MPI 6 passes the buffers of mpi_f08 as descriptors, and has functions with large counts.
            Product::OpenMpi | Product::Mpich => 5,
            // A year, which has stood since 2021.
            Product::Intel => 2021,
            Product::Cray => 9,
            Product::Mvapich => 4,
        }
    }

    /// Its name as its makers write it.
    pub const fn title(self) -> &'static str {
        match self {
            Product::OpenMpi => "Open MPI",
            Product::Mpich => "MPICH",
            Product::Intel => "Intel MPI",
            Product::Cray => "Cray MPICH",
            Product::Mvapich => "MVAPICH",
        }
    }
}

/// An MPI library and its version; displays as its database key, `openmpi-4.1.4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Library {
    pub product: Product,
    /// Major, minor, patch.
    pub version: (u16, u16, u16),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LibraryError {
    #[error(
        "recognise the MPI library {0:?} (known: Open MPI, MPICH, Intel MPI, Cray MPICH, MVAPICH)"
    )]
    Unknown(String),
    #[error(
        "tune {} {}.{}: this colltune knows it up to version {}; a newer colltune may know it",
        .0.product.title(), .0.version.0, .0.version.1, .0.product.newest_major()
    )]
    TooNew(Library),
    #[error("read a version number out of {0:?}")]
    NoVersion(String),
    #[error(
        "read the library key {0:?} (it looks like openmpi-4.1.4, mpich-4.0.2 or intel-2021.17.0)"
    )]
    Key(String),
}

impl Library {
    /// Reads the text that `MPI_Get_library_version` returns.
    ///
    /// Errors: `Unknown` for another library, `NoVersion` where no `a.b[.c]` follows its name.
    pub fn from_version_text(text: &str) -> Result<Library, LibraryError> {
        // HPC-X calls itself Open MPI and ParaStation MPI names the MPICH that it is; both have its algorithms.
        let known = [
            ("Open MPI v", Product::OpenMpi),
            ("MPICH Version:", Product::Mpich),
            ("Intel(R) MPI Library", Product::Intel),
            ("CRAY MPICH version", Product::Cray),
            ("MVAPICH Version", Product::Mvapich),
            ("MVAPICH2 Version", Product::Mvapich),
            ("MVAPICH2-X Version", Product::Mvapich),
            ("MVAPICH2-GDR Version", Product::Mvapich),
            ("MVAPICH-Plus Version", Product::Mvapich),
        ];
        let Some((product, rest)) = known
            .into_iter()
            .find_map(|(mark, product)| text.split_once(mark).map(|(_, rest)| (product, rest)))
        else {
            return Err(LibraryError::Unknown(text.chars().take(60).collect()));
        };
        let version = version_at_start(rest.trim_start_matches([' ', '\t', ':']))
            .ok_or_else(|| LibraryError::NoVersion(text.chars().take(60).collect()))?;
        Ok(Library { product, version })
    }

    /// The same library where it can be tuned.
    ///
    /// Errors: `TooNew` for a major version that is not known yet.
    pub fn known(self) -> Result<Library, LibraryError> {
        match self.version.0 <= self.product.newest_major() {
            true => Ok(self),
            false => Err(LibraryError::TooNew(self)),
        }
    }

    /// Whether it is at least of this major and minor version.
    pub fn is_at_least(&self, (major, minor): (u16, u16)) -> bool {
        (self.version.0, self.version.1) >= (major, minor)
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
        write!(f, "{}-{major}.{minor}.{patch}", self.product.name())
    }
}

impl FromStr for Library {
    type Err = LibraryError;

    fn from_str(key: &str) -> Result<Library, LibraryError> {
        let bad = || LibraryError::Key(key.to_owned());
        let (name, version) = key.split_once('-').ok_or_else(bad)?;
        let product = Product::from_name(name).ok_or_else(bad)?;
        let version = version_at_start(version).ok_or_else(bad)?;
        let library = Library { product, version };
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
            (
                "Intel(R) MPI Library 2021.19.0 for Linux* OS\n",
                "intel-2021.19.0",
            ),
            (
                "MPI VERSION    : CRAY MPICH version 8.1.26.7 (ANL base 3.4a2)\n\
                 MPI BUILD INFO : Wed Apr 19 13:37 2023 (git hash f0bb5de)\n",
                "cray-8.1.26",
            ),
            (
                "MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date : Wed March 02 22:00:00 EST 2022\n\
                 MVAPICH2 Device       :\tch3:mrail\n",
                "mvapich-2.3.7",
            ),
            (
                "MVAPICH Version:      3.0\nMVAPICH Release date: 12/23/2023\nMVAPICH ABI:          13:12:1\n\
                 MVAPICH Device:       ch4:ofi\n",
                "mvapich-3.0.0",
            ),
            // HPC-X 2.18.
            (
                "Open MPI v4.1.7a1, package: Open MPI root@hpc-kernel-03 Distribution, ident: 4.1.7a1, repo rev: \
                 v4.1.5-115-g41ba5192d2, Unreleased developer copy",
                "openmpi-4.1.7",
            ),
            // ParaStation MPI: MPICH on another device.
            (
                "MPICH Version:      4.1.1\nMPICH Release date: Mon Mar  6 14:14:15 CST 2023\nMPICH Device:       ch3:psp\n",
                "mpich-4.1.1",
            ),
        ];
        for (text, key) in texts {
            let library = Library::from_version_text(text).unwrap();
            assert_eq!(library.to_string(), key);
            assert_eq!(key.parse::<Library>().unwrap(), library);
        }
    }

    #[test]
    fn newer_minor_versions_are_known_and_newer_major_versions_are_not() {
        let known = |key: &str| key.parse::<Library>().unwrap().known();
        for key in [
            "openmpi-3.1.6",
            "openmpi-4.1.4",
            "openmpi-5.9.0",
            "mpich-3.4.3",
            "mpich-5.1.0",
            "intel-2019.9.0",
            "intel-2021.99.0",
            "cray-8.1.26",
            "cray-9.0.0",
            "mvapich-2.3.7",
            "mvapich-4.1.0",
        ] {
            assert_eq!(known(key).unwrap().to_string(), key);
        }
        for key in [
            "openmpi-6.0.0",
            "mpich-6.0.0",
            "intel-2022.1.0",
            "cray-10.0.0",
            "mvapich-5.0.0",
        ] {
            assert!(matches!(known(key), Err(LibraryError::TooNew(_))), "{key}");
        }
        assert_eq!(
            known("openmpi-6.0.0").unwrap_err().to_string(),
            "tune Open MPI 6.0: this colltune knows it up to version 5; a newer colltune may know it"
        );
    }

    #[test]
    fn foreign_texts_and_keys_are_refused() {
        assert!(matches!(
            Library::from_version_text("LAM/MPI 7.1.4"),
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
            "mpi_abi-5.0.2",
            "openmpi-4.1.4-x",
            "openmpi-../..",
            "openmpi-99999999.1.1",
        ] {
            assert!(key.parse::<Library>().is_err(), "{key}");
        }
    }
}
