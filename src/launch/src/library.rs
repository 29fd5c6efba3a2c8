//! Which MPI library a launcher belongs to, for programs whose files do not tell: scripts, Python.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use colltune_core::library::{Abi, Library, Product};
use colltune_files::{Links, read_part};

use super::{elf, needs};

/// The version that the catalogue of a library was written from.
pub const fn reference(product: Product) -> Library {
    let version = match product {
        Product::OpenMpi => (4, 1, 4),
        Product::Mpich => (4, 0, 2),
        Product::Intel => (2021, 19, 0),
        Product::Cray => (8, 1, 0),
        Product::Mvapich => (3, 0, 0),
    };
    Library { product, version }
}

/// The library whose own binary interface this is; the standard one is MPICH's from 5.0 on.
pub const fn of_abi(abi: Abi) -> Library {
    match abi {
        Abi::OpenMpi => reference(Product::OpenMpi),
        Abi::Mpich => reference(Product::Mpich),
        Abi::Standard => Library {
            product: Product::Mpich,
            version: (5, 0, 0),
        },
    }
}

/// What a launcher says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    pub product: Option<Product>,
    pub library: Option<Library>,
    /// The first line of `--version`.
    pub text: String,
}

impl Launcher {
    /// The binary interface that programs of its library have unless they chose the standard one.
    pub fn abi(&self) -> Option<Abi> {
        abi_of(self.product?)
    }
}

/// The binary interface that programs of a library have unless they chose the standard one.
pub fn abi_of(product: Product) -> Option<Abi> {
    Abi::COMMON.into_iter().find(|abi| abi.serves(product))
}

/// Whose programs have a binary interface, as users call it.
pub const fn abi_title(abi: Abi) -> &'static str {
    match abi {
        Abi::OpenMpi => "Open MPI",
        Abi::Mpich => "MPICH or one that derives from it",
        Abi::Standard => "the standard binary interface",
    }
}

/// The only product whose libraries have this binary interface; `None` where several do.
pub fn only_product(abi: Abi) -> Option<Product> {
    let mut served = Product::ALL
        .into_iter()
        .filter(|product| abi.serves(*product));
    served.next().filter(|_| served.next().is_none())
}

/// A Hydra that is longer has to be asked. MPICH's has 300 to 800 KiB, Intel's several MiB.
const HYDRA_BYTES_MAX: usize = 1 << 20;

/// Whose library a launcher belongs to, as far as its file shows that: to ask it takes longer than all else before a
/// job. `None` for scripts, and for Intel's, which has to be asked for its version, too.
pub fn seen_in_file(launcher: &OsStr) -> Option<Product> {
    let path = needs::resolve(launcher, None)?;
    let needed = elf::read(&path)?.needed;
    let runtimes = ["libopen-rte.so", "libopen-pal.so", "libprrte.so"];
    if needed
        .iter()
        .any(|name| runtimes.iter().any(|stem| name.starts_with(stem)))
    {
        return Some(Product::OpenMpi);
    }
    let file = colltune_files::open(&path, Links::Follow).ok()?;
    let bytes = read_part(&file, 0, HYDRA_BYTES_MAX).ok()?;
    let is_whole = bytes.len() < HYDRA_BYTES_MAX;
    (is_whole && is_mpichs_hydra(&bytes)).then_some(Product::Mpich)
}

/// By the strings that a program prints.
fn is_mpichs_hydra(bytes: &[u8]) -> bool {
    let prints = |text: &str| {
        bytes
            .split(|byte| *byte == 0)
            .any(|string| string.starts_with(text.as_bytes()))
    };
    prints("HYDRA build details") && !prints("Intel(R) MPI Library")
}

/// Asks `launcher --version`, with `LD_PRELOAD` removed. A launcher that says nothing within
/// 10 s is ended. Looks at the file's name first where that tells the library.
pub fn of_launcher(launcher: &OsStr) -> Launcher {
    let text = version_text(launcher).unwrap_or_default();
    let library = library_in(&text);
    let by_name = || needs::resolve(launcher, None).and_then(|file| product_of_name(&file));
    let product = library.map(|library| library.product).or_else(by_name);
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("")
        .to_owned();
    Launcher {
        product,
        library,
        text: first,
    }
}

fn product_of_name(file: &Path) -> Option<Product> {
    let file = file.canonicalize().ok()?;
    let name = file.file_name()?.to_str()?;
    match name {
        _ if name.contains("openmpi") || name.contains("orterun") || name.contains("prterun") => {
            Some(Product::OpenMpi)
        }
        _ if name.contains("hydra") || name.contains("mpich") => Some(Product::Mpich),
        _ => None,
    }
}

/// Reads `mpirun (Open MPI) 4.1.4`, Hydra's `Version: 4.0.2`, and Intel's Hydra.
fn library_in(text: &str) -> Option<Library> {
    let version_after = |mark: &str, name: &str| {
        let rest = text.split_once(mark)?.1.trim_start();
        let version = rest.split_whitespace().next()?;
        Library::from_version_text(&format!("{name}{version}")).ok()
    };
    version_after("(Open MPI)", "Open MPI v")
        .or_else(|| version_after("(OpenRTE)", "Open MPI v"))
        .or_else(|| {
            text.contains("HYDRA")
                .then(|| version_after("Version:", "MPICH Version:"))
                .flatten()
        })
        .or_else(|| {
            text.contains("Intel(R) MPI Library")
                .then(|| version_after(", Version", "Intel(R) MPI Library "))
                .flatten()
        })
}

fn version_text(launcher: &OsStr) -> Option<String> {
    let mut child = Command::new(launcher)
        .arg("--version")
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        // The job begins that much later at the most.
        std::thread::sleep(Duration::from_micros(500));
    }
    let output = child.wait_with_output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hydra_is_known_by_what_it_prints() {
        let file = |texts: &[&str]| texts.join("\0").into_bytes();
        let version = "    Version:                                 %s\n";
        assert!(is_mpichs_hydra(&file(&[
            "ELF",
            "HYDRA build details:\n",
            version
        ])));
        assert!(!is_mpichs_hydra(&file(&[
            "ELF",
            "Intel(R) MPI Library for Linux* OS, Version %s Build %s\n",
            "HYDRA build details:\n",
            version
        ])));
        assert!(!is_mpichs_hydra(&file(&["ELF", "slurm 23.02", version])));
    }

    #[test]
    fn nobody_but_open_mpi_has_its_binary_interface() {
        assert_eq!(only_product(Abi::OpenMpi), Some(Product::OpenMpi));
        assert_eq!(only_product(Abi::Mpich), None);
        assert_eq!(only_product(Abi::Standard), None);
    }

    #[test]
    fn version_texts_of_launchers_give_the_library() {
        for (text, key) in [
            (
                "mpirun (Open MPI) 4.1.4\n\nReport bugs to x\n",
                "openmpi-4.1.4",
            ),
            ("mpirun.openmpi (OpenRTE) 4.1.4\n", "openmpi-4.1.4"),
            ("mpirun (Open MPI) 5.0.11rc1\n", "openmpi-5.0.11"),
            (
                "HYDRA build details:\n    Version:      4.0.2\n    Release Date: x\n",
                "mpich-4.0.2",
            ),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.19.0 Build 20260929 (id: 1821d9b)\n",
                "intel-2021.19.0",
            ),
        ] {
            assert_eq!(library_in(text).unwrap().to_string(), key);
        }
        assert_eq!(library_in("slurm 23.02\nVersion: 4.0.2"), None);
    }
}
