//! Programs in C, C++ and Fortran, compiled as their users would, find the owners that Rust finds.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod common;

use colltune_tests::skip;
use common::libraries;
use placement::policy::TABLE;
use placement::{Graph, Limits, Link, Machine, Mesh, Octant, Policy, Problem, place};

/// Every policy of the table with arguments that it takes, but for those that need a feature, with which the
/// libraries of these callers are not built.
fn policies() -> Vec<String> {
    let rows = TABLE
        .iter()
        .filter(|row| !["graphlb", "ilp"].contains(&row.name));
    let names = rows.flat_map(|row| {
        let examples = row.syntax.examples().iter();
        examples.map(move |example| format!("{}{example}", row.name))
    });
    // An argument that binds, of these eight blocks on four ranks.
    names
        .chain(["contiguous-optimal:max=2".to_owned()])
        .collect()
}

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Compiles and links; `None`, and counted as skipped, where the compiler is not installed.
fn compile(
    compiler: &str,
    flags: &[&str],
    sources: &[&str],
    library: &[&str],
    name: &str,
) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(name);
    let mut command = Command::new(compiler);
    command
        .args(flags)
        .args(sources.iter().map(|source| here(source)));
    command
        .arg("-I")
        .arg(here("include"))
        .arg("-L")
        .arg(libraries());
    command
        .args(library)
        .args(["-lm", "-lpthread", "-ldl", "-o"])
        .arg(&program);
    // A Fortran module lands in the working directory.
    match command.current_dir(folder).status() {
        Ok(status) => assert!(status.success(), "{command:?}"),
        Err(_) => return skip(&format!("{compiler} is not installed")),
    }
    Some(program)
}

/// Runs a program with one line for each policy on its standard input; what it prints.
fn run(program: &Path, libraries: &Path) -> String {
    let mut child = Command::new(program)
        .env("LD_LIBRARY_PATH", libraries)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = policies()
        .iter()
        .map(|policy| format!("{policy}\n"))
        .collect();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}: {}",
        program.display(),
        output.status
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What the programs of all languages have to print: each policy with the hash of its owners.
fn expected() -> String {
    let costs = [3.0, 1.0, 1.0, 1.0, 2.0, 2.0, 4.0, 2.0];
    let octants: Vec<Octant> = Octant::ROOT.children(3).collect();
    let graph = Graph {
        offsets: &[0, 1, 2, 3, 4, 5, 6, 7, 7],
        neighbours: &[1, 2, 3, 4, 5, 6, 7],
        bytes: &[9; 7],
    };
    let link = |latency| Link {
        latency,
        per_byte: 0.0,
    };
    let mesh = Mesh {
        dimensions: 3,
        root_level: 0,
        octants: &octants,
    };
    let limits = Limits {
        blocks_per_rank: None,
        bytes_per_block: 100,
    };
    let machine = Machine {
        same_node: link(1e-3),
        remote: link(1e-2),
    };
    let problem = Problem::new(&costs, 4)
        .and_then(|p| p.with_ranks_per_node(2))
        .and_then(|p| p.with_mesh(mesh))
        .and_then(|p| p.with_graph(graph))
        .and_then(|p| p.with_owners(&[0; 8]))
        .and_then(|p| p.with_limits(limits))
        .and_then(|p| p.with_machine(machine))
        .unwrap();
    let line = |name: &str| {
        let placement = place(&name.parse::<Policy>().unwrap(), &problem).unwrap();
        format!("{name} {:016X}\n", placement.hash())
    };
    policies().iter().map(|name| line(name)).collect()
}

const C: [&str; 6] = [
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-Wno-missing-field-initializers",
];

#[test]
fn c_finds_the_same_owners_as_rust_through_either_library() {
    let archive = libraries().join("libcolltune_placement.a");
    for (library, name, at_run_time) in [
        ("-lcolltune_placement", "from_c_shared", libraries()),
        (
            archive.to_str().unwrap(),
            "from_c_static",
            Path::new("/nonexistent"),
        ),
    ] {
        let Some(program) = compile("cc", &C, &["tests/from_c.c"], &[library], name) else {
            return;
        };
        assert_eq!(
            run(&program, at_run_time).to_uppercase(),
            expected().to_uppercase()
        );
    }
}

#[test]
fn cpp_finds_the_same_owners_as_rust() {
    let flags = [
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-missing-field-initializers",
    ];
    let library = ["-lcolltune_placement"];
    if let Some(program) = compile("g++", &flags, &["tests/from_cpp.cpp"], &library, "from_cpp") {
        assert_eq!(
            run(&program, libraries()).to_uppercase(),
            expected().to_uppercase()
        );
    }
}

#[test]
fn fortran_finds_the_same_owners_as_rust() {
    let sources = ["include/colltune_placement.f90", "tests/from_fortran.f90"];
    let (flags, library) = (["-std=f2018", "-Wall"], ["-lcolltune_placement"]);
    if let Some(program) = compile("gfortran", &flags, &sources, &library, "from_fortran") {
        assert_eq!(
            run(&program, libraries()).to_uppercase(),
            expected().to_uppercase()
        );
    }
}
