//! The MPI libraries that tests run with: their compilers, launchers and builds of the shim.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use colltune_core::library::{Abi, Library};

use crate::skip::skip;

/// An MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mpi {
    OpenMpi,
    Mpich,
}

impl Mpi {
    pub const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

    pub const fn abi(self) -> Abi {
        match self {
            Mpi::OpenMpi => Abi::OpenMpi,
            Mpi::Mpich => Abi::Mpich,
        }
    }

    pub const fn other(self) -> Mpi {
        match self {
            Mpi::OpenMpi => Mpi::Mpich,
            Mpi::Mpich => Mpi::OpenMpi,
        }
    }

    /// The folder below `target/`: `openmpi`, `mpich`.
    pub const fn name(self) -> &'static str {
        self.abi().name()
    }

    pub fn compiler(self) -> String {
        format!("mpicc.{}", self.name())
    }

    pub fn launcher(self) -> String {
        format!("mpirun.{}", self.name())
    }

    /// The library if it is installed; otherwise the test counts as skipped.
    pub fn installed(self) -> Option<Mpi> {
        let missing = [self.compiler(), self.launcher()]
            .into_iter()
            .find(|tool| !runs(tool));
        match missing {
            None => Some(self),
            Some(tool) => skip(&format!("{} is not installed: no {tool}", self.name())),
        }
    }

    /// The most ranks that a test may use: MPICH spins without yielding.
    pub const fn ranks_max(self) -> u32 {
        match self {
            Mpi::OpenMpi => 4,
            Mpi::Mpich => 3,
        }
    }

    /// The library with its version, as the launcher tells it.
    pub fn library(self) -> Library {
        static FOUND: [OnceLock<Library>; 2] = [const { OnceLock::new() }; 2];
        *FOUND[self as usize].get_or_init(|| {
            let output = Command::new(self.launcher())
                .arg("--version")
                .output()
                .expect("the launcher starts");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            // `mpirun.openmpi (OpenRTE) 4.1.4`, `mpirun (Open MPI) 5.0.3`, `HYDRA build details: Version: 4.0.2`
            let mark = match self {
                Mpi::OpenMpi => ") ",
                Mpi::Mpich => "Version:",
            };
            let version = text
                .split_once(mark)
                .map_or("", |(_, rest)| rest.trim_start());
            let prefix = match self {
                Mpi::OpenMpi => "Open MPI v",
                Mpi::Mpich => "MPICH Version:",
            };
            Library::from_version_text(&format!("{prefix}{version}"))
                .unwrap_or_else(|error| panic!("failed to {error} in {text:?}"))
        })
    }

    /// The shim that serves this library.
    pub fn shim(self) -> PathBuf {
        self.built("libcolltune.so")
    }

    /// The mini-app on this library.
    pub fn mini_app(self) -> PathBuf {
        self.built("colltune-amr")
    }

    fn built(self, file: &str) -> PathBuf {
        let file = target_folder().join(self.name()).join(file);
        assert!(
            file.is_file(),
            "{} is missing: run `make build` first",
            file.display()
        );
        file
    }
}

fn runs(tool: &str) -> bool {
    Command::new(tool)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// The folder with the builds for each library: `COLLTUNE_TARGET_DIR`, else the first `target`
/// above this crate that holds one.
fn target_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("COLLTUNE_TARGET_DIR") {
        return folder.into();
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let holds_one = |folder: &PathBuf| {
        Mpi::ALL
            .iter()
            .any(|mpi| folder.join(mpi.name()).join("libcolltune.so").is_file())
    };
    here.ancestors()
        .map(|folder| folder.join("target"))
        .find(holds_one)
        .unwrap_or_else(|| here.join("../target"))
}
