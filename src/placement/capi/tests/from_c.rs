//! A C program compiled against the header, linked with both libraries, finds what Rust finds.

use std::path::{Path, PathBuf};
use std::process::Command;

use placement::{Graph, Limits, Link, Machine, Mesh, Octant, Policy, Problem, place};

/// Builds the libraries beside this test and tells where they are.
///
/// Cargo does not build a library of these kinds for an integration test by itself.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--package",
        "colltune-placement-c",
        "--target-dir",
    ]);
    cargo
        .arg(profile.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success());
    profile.to_owned()
}

fn compile(compiler: &str, library: &[&str], libraries: &Path, name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let language = if compiler == "cc" {
        ["-std=c99", "-xc"]
    } else {
        ["-std=c++17", "-xc++"]
    };
    let mut command = Command::new(compiler);
    command.args(language).args(["-Wall", "-Wextra", "-Werror"]);
    if compiler == "cc" {
        // The macro sets the first member, as C programs do; the rest is zero.
        command.args(["-Wno-missing-field-initializers", "-pedantic"]);
    }
    command
        .arg(here.join("tests/from_c.c"))
        .args(["-xnone", "-I"])
        .arg(here.join("include"));
    command.arg("-L").arg(libraries).arg("-o").arg(&program);
    command.args(library).args(["-lm", "-lpthread", "-ldl"]);
    assert!(command.status().unwrap().success(), "{command:?}");
    program
}

fn run(program: &Path, libraries: &Path) -> String {
    let output = Command::new(program)
        .env("LD_LIBRARY_PATH", libraries)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn c_finds_the_same_owners_as_rust_through_either_library() {
    let libraries = libraries();
    let archive = libraries.join("libcolltune_placement.a");
    let shared = compile("cc", &["-lcolltune_placement"], &libraries, "from_c_shared");
    let fixed = compile(
        "cc",
        &[archive.to_str().unwrap()],
        &libraries,
        "from_c_static",
    );
    let printed = run(&shared, &libraries);
    assert_eq!(printed, run(&fixed, Path::new("/nonexistent")));

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
    assert!(printed.lines().count() >= 8, "{printed}");
    for line in printed.lines() {
        let (name, hash) = line.split_once(' ').unwrap();
        let placement = place(&name.parse::<Policy>().unwrap(), &problem).unwrap();
        assert_eq!(format!("{:016x}", placement.hash()), hash, "{name}");
    }
}
