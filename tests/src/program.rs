//! C and C++ programs and tools of `tests/mpi/`, compiled once for each MPI library, and Fortran programs, compiled
//! where they are asked for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::library::Mpi;
use crate::skip::skip;

/// The three interfaces of Fortran, by the macro that chooses one in programs of `tests/mpi/`.
pub const FORTRAN_INTERFACES: [&str; 3] = ["MPIFH", "MODULE_MPI", "MODULE_MPI_F08"];

/// The program `tests/mpi/NAME.c`, or `NAME.cc`, built with the library's compiler.
pub fn program(mpi: Mpi, name: &str) -> PathBuf {
    build(mpi, name, name, &[])
}

/// The same as a shared library, to be preloaded.
pub fn tool(mpi: Mpi, name: &str) -> PathBuf {
    build(mpi, name, &format!("lib{name}.so"), &["-shared", "-fPIC"])
}

/// The program with the address sanitizer in it; `None` where the compiler has none.
pub fn sanitized(mpi: Mpi, name: &str) -> Option<PathBuf> {
    let compiler = Command::new(mpi.compiler())
        .arg("-print-file-name=libasan.so")
        .output();
    let found = compiler.is_ok_and(|output| output.stdout.starts_with(b"/"));
    if !found {
        return skip("the compiler has no address sanitizer");
    }
    let file = format!("{name}.asan");
    Some(build(mpi, name, &file, &["-fsanitize=address"]))
}

/// The program without unwind tables: the stack cannot be followed through its functions.
pub fn untabled(mpi: Mpi, name: &str) -> PathBuf {
    let flags = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    build(mpi, name, &format!("{name}.untabled"), &flags)
}

/// Compiles `tests/mpi/SOURCE.F90`; `None` without a compiler.
pub fn fortran(mpi: Mpi, source: &str, macros: &[String], program: &Path) -> Option<()> {
    let compiler = format!("mpifort.{}", mpi.name());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("mpi/{source}.F90"));
    // mpif.h has no interfaces, so that buffers of several types look like a mistake to the compiler.
    let flags = ["-O1", "-w", "-fallow-argument-mismatch"];
    let output = Command::new(&compiler)
        .args(flags)
        .args(macros)
        .arg("-o")
        .args([program, &source])
        .output();
    let Ok(output) = output else {
        return skip(&format!("{compiler} is not installed"));
    };
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} failed:\n{text}");
    Some(())
}

/// What makes Debian's MPICH give its core away while it waits, to be preloaded; the cluster has the same.
pub(crate) fn patience() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/mpich_patience.c");
    // Its users start other programs, too: it is linked to no MPI library.
    let command = |to: &Path| {
        let mut command = Command::new("cc");
        command.args(["-O2", "-shared", "-fPIC", "-o"]).arg(to);
        command.arg(&source).arg("-ldl");
        command
    };
    compiled(Mpi::Mpich, "mpich_patience.so", &[&source], command)
}

fn build(mpi: Mpi, name: &str, file: &str, flags: &[&str]) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("mpi");
    let [c, plus_plus] = ["c", "cc"].map(|ending| sources.join(format!("{name}.{ending}")));
    let (source, language, libraries): (PathBuf, &[&str], &[&str]) = if c.is_file() {
        (c, &["-std=gnu11"], &[])
    } else {
        // The MPI standard dropped the bindings for C++; the compiler is C's, which takes the language from the name.
        let language = &["-std=gnu++17", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"];
        (plus_plus, language, &["-lstdc++"])
    };
    let [step, guarded, forced] =
        ["step.h", "guarded.h", "forced.h"].map(|header| source.with_file_name(header));
    let command = |to: &Path| {
        let mut command = Command::new(mpi.compiler());
        command
            .args(language)
            .args(["-O1", "-Wall", "-Wextra", "-Werror"])
            .args(flags);
        // Some programs define functions that the libraries must find in them.
        command
            .args(["-rdynamic", "-o"])
            .arg(to)
            .arg(&source)
            .args(["-lm", "-ldl", "-lpthread"])
            .args(libraries);
        command
    };
    compiled(mpi, file, &[&source, &step, &guarded, &forced], command)
}

/// The file that this command makes of the sources, where one of them is newer than it.
fn compiled(
    mpi: Mpi,
    file: &str,
    sources: &[&PathBuf],
    command: impl Fn(&Path) -> Command,
) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = output_folder().join(mpi.name());
    std::fs::create_dir_all(&folder)
        .unwrap_or_else(|error| panic!("failed to make {}: {error}", folder.display()));
    let result = folder.join(file);
    let newer =
        |written: &Path, built: SystemTime| changed(written).is_some_and(|time| time >= built);
    let is_new = |built| !sources.iter().any(|source| newer(source, built));
    if changed(&result).is_some_and(is_new) {
        return result;
    }
    // Another process may build the same: each writes its own file and puts it in place.
    let part = folder.join(format!("{file}.{}", std::process::id()));
    let mut command = command(&part);
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("failed to start {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::rename(&part, &result)
        .unwrap_or_else(|error| panic!("failed to write {}: {error}", result.display()));
    result
}

fn changed(file: &Path) -> Option<SystemTime> {
    file.metadata().ok()?.modified().ok()
}

/// Cargo's folder for what tests make (`CARGO_TARGET_TMPDIR`), found from this test's own place.
fn output_folder() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let target = own
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target
        .map_or_else(std::env::temp_dir, |target| target.join("tmp"))
        .join("mpi-programs")
}
