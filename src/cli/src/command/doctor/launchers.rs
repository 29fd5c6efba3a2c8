//! Launchers of jobs: which are in PATH, and whether they start jobs of this user's.

use std::ffi::{OsStr, OsString};

use colltune_core::library::{Abi, Library};

use super::findings::Findings;
use colltune_launch::library::{Launcher, of_launcher};
use colltune_launch::needs;

/// What lets root start jobs of Open MPI: both variables, or the launcher's option `--allow-run-as-root`.
pub const ALLOW_ROOT: [&str; 2] = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];

const ALLOW_ROOT_OPTION: &str = "--allow-run-as-root";

/// The launchers in PATH, one per library; `line` may allow what the environment does not.
pub fn check(report: &mut Findings, line: &[OsString]) -> Vec<(Abi, OsString)> {
    let line_allows = line.iter().any(|word| word == ALLOW_ROOT_OPTION);
    let mut found: Vec<(Abi, OsString)> = Vec::new();
    for name in [
        "mpirun",
        "mpiexec",
        "mpirun.openmpi",
        "mpirun.mpich",
        "mpiexec.hydra",
        "srun",
    ] {
        if needs::in_path(OsStr::new(name)).is_none() {
            continue;
        }
        let launcher = of_launcher(OsStr::new(name));
        let abi = launcher.abi();
        let Launcher { library, text, .. } = launcher;
        match abi {
            Some(abi) if found.iter().all(|(known, _)| *known != abi) => {
                let version = library.map_or(text, |library| library.to_string());
                report.ok(format!("{name}: starts jobs of {}, {version}", abi.name()));
                if let Some(Err(error)) = library.map(Library::known) {
                    report.warn(
                        format_args!("{name}: failed to {error}"),
                        "jobs on it run untuned; install a newer colltune, or load a version that is known",
                    );
                }
                if abi == Abi::OpenMpi && refuses_root() && !line_allows {
                    report.fail(
                        format_args!("{name}: Open MPI's launcher starts no job of root's"),
                        format_args!(
                            "`export {}`",
                            ALLOW_ROOT.map(|name| format!("{name}=1")).join(" ")
                        ),
                    );
                }
                found.push((abi, name.into()));
            }
            Some(_) => {}
            None => report.ok(format!(
                "{name}: {text} (the program tells the MPI library)"
            )),
        }
    }
    if found.is_empty() {
        report.fail(
            "no launcher of Open MPI, MPICH or Intel MPI in PATH",
            "load the site's MPI module, or `apt-get install openmpi-bin` or mpich",
        );
    }
    found
}

/// Whether this is root, and nothing in the environment allows it to start jobs of Open MPI.
fn refuses_root() -> bool {
    let allowed = |name: &&str| std::env::var_os(name).is_some_and(|value| value == "1");
    rustix::process::geteuid().is_root() && !ALLOW_ROOT.iter().all(allowed)
}
