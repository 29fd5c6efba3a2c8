//! What `scripts/install-placement` puts below a prefix is found by pkg-config and by CMake.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use colltune_tests::{folder, skip};
use common::libraries;

const PROGRAM: &str = r#"#include <colltune_placement.h>
#include <stdio.h>
int main(void) {
    double costs[6] = {3, 1, 1, 1, 2, 2};
    uint32_t owners[6];
    colltune_placement_problem problem = COLLTUNE_PLACEMENT_PROBLEM;
    problem.blocks = 6, problem.costs = costs, problem.ranks = 2;
    if (colltune_placement_place("contiguous-optimal", &problem, owners, 6, NULL)) return 1;
    printf("%u%u%u%u%u%u %u\n", owners[0], owners[1], owners[2], owners[3], owners[4], owners[5],
           colltune_placement_version());
    return 0;
}
"#;

/// Installs below an empty folder, whose prefix is what a program sees.
fn installed(prefix: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/install-placement");
    let done = Command::new(script)
        .env("PREFIX", prefix)
        .env_remove("DESTDIR")
        .env("COLLTUNE_TARGET_DIR", with_release())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// A folder whose `release` has the libraries, whatever profile this test was built in.
fn with_release() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("to-install");
    let release = place.join("release");
    std::fs::create_dir_all(&release).unwrap();
    for library in ["libcolltune_placement.so", "libcolltune_placement.a"] {
        std::fs::copy(libraries().join(library), release.join(library)).unwrap();
    }
    place
}

fn prints_the_owners(program: &Path, prefix: &Path) {
    let mut run = Command::new("timeout");
    run.arg("60")
        .arg(program)
        .env("LD_LIBRARY_PATH", prefix.join("lib"));
    let output = run.output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "000111 200\n",
        "{output:?}"
    );
}

#[test]
fn pkg_config_and_cmake_find_what_was_installed() {
    let place = folder();
    let prefix = place.path().join("usr");
    installed(&prefix);
    // Who was linked to it asks for a name that later versions may leave to it.
    let soname = "libcolltune_placement.so.0";
    let library = prefix.join("lib").join(soname);
    assert!(library.symlink_metadata().unwrap().is_file());
    let link = prefix.join("lib/libcolltune_placement.so");
    assert_eq!(std::fs::read_link(link).unwrap(), Path::new(soname));
    let header = Command::new("readelf").arg("-d").arg(&library).output();
    let header = String::from_utf8(header.unwrap().stdout).unwrap();
    assert!(header.contains(&format!("soname: [{soname}]")), "{header}");
    let source = place.path().join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let asked = Command::new("pkg-config")
        .args(["--cflags", "--libs", "colltune_placement"])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .output();
    let Ok(asked) = asked else {
        return skip("pkg-config is not installed").unwrap_or(());
    };
    assert!(asked.status.success(), "{asked:?}");
    let flags = String::from_utf8(asked.stdout).unwrap();
    let program = place.path().join("by-pkg-config");
    let compiled = Command::new("cc")
        .arg(&source)
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program)
        .status();
    assert!(compiled.unwrap().success(), "{flags}");
    prints_the_owners(&program, &prefix);

    let lists = "cmake_minimum_required(VERSION 3.13)\nproject(user C)\n\
        find_package(colltune_placement 0.2 REQUIRED)\nadd_executable(user program.c)\n\
        target_link_libraries(user colltune_placement::colltune_placement)\n";
    std::fs::write(place.path().join("CMakeLists.txt"), lists).unwrap();
    let cmake = |arguments: &[&str]| {
        let mut line = Command::new("cmake");
        line.args(arguments).current_dir(place.path()).output()
    };
    let prefix_path = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    let Ok(configured) = cmake(&["-S", ".", "-B", "build", &prefix_path]) else {
        return skip("CMake is not installed").unwrap_or(());
    };
    assert!(configured.status.success(), "{configured:?}");
    let built = cmake(&["--build", "build"]).unwrap();
    assert!(built.status.success(), "{built:?}");
    prints_the_owners(&place.path().join("build/user"), &prefix);
}
