//! Compiles `constants.c` by the compiler wrapper MPICC, and tells the linker which libraries the wrapper links.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src/constants.c");
    for variable in [
        "MPICC",
        "MPI_PKG_CONFIG",
        "CRAY_MPICH_DIR",
        "MPI_HEADER_SUM",
    ] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let is_mpich = match ["openmpi", "mpich"].map(has_feature) {
        [true, false] => false,
        [false, true] => true,
        _ => panic!("exactly one of the features openmpi and mpich says of which library MPICC is"),
    };
    let library = build_probe_mpi::probe().unwrap_or_else(|errors| {
        let errors: Vec<_> = errors.iter().map(|error| error.to_string()).collect();
        panic!("no MPI library: {}", errors.join("; "))
    });
    let mut c = cc::Build::new();
    c.file("src/constants.c").includes(&library.include_paths);
    c.define("HANDLES_ARE_NUMBERS", if is_mpich { "1" } else { "0" });
    if let Some(mpicc) = &library.mpicc {
        c.compiler(mpicc);
    }
    c.compile("colltune_mpi_constants");
    for folder in &library.lib_paths {
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
    for name in &library.libs {
        println!("cargo:rustc-link-lib={name}");
    }
    if let Some(mpicc) = &library.mpicc {
        println!("cargo:linker_words={}", linker_words(mpicc).join(" "));
    }
}

/// What the wrapper itself tells the linker: where programs find the library when they start, among others.
fn linker_words(mpicc: &str) -> Vec<String> {
    let output = Command::new(mpicc).arg("-show").output();
    let text =
        String::from_utf8_lossy(&output.expect("it was probed just now").stdout).into_owned();
    let mut words = text.split_whitespace();
    let mut result = Vec::new();
    while let Some(word) = words.next() {
        if word.starts_with("-Wl,") {
            result.push(word.to_owned());
        } else if word == "-Xlinker" {
            result.extend(words.next().map(|word| format!("-Wl,{word}")));
        }
    }
    result
}

fn has_feature(name: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase())).is_some()
}
