//! Packages, and what a build for another machine or another MPI library needs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use colltune_tests::{
    Mpi, colltune, copy_to_run, folder, job, program, runs_long, skip, target_folder, traces, wheel,
};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(top())
        .env("COLLTUNE_TARGET_DIR", target_folder())
        .output();
    output.unwrap_or_else(|error| panic!("failed to start {program}: {error}"))
}

fn printed(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn is_there(program: &str) -> bool {
    run("sh", &["-c", &format!("command -v {program}")])
        .status
        .success()
}

/// The newest version of the C library's symbols that a file asks for, as (2, 34).
fn glibc(file: &Path) -> (u32, u32) {
    let table = printed("readelf", &["--version-info", "--wide", text(file)]);
    let versions = table.split("Name: GLIBC_").skip(1).filter_map(|rest| {
        let number = rest.split_whitespace().next()?;
        let mut parts = number.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    });
    versions.max().expect("it asks for the C library")
}

/// What administrators.md states, in the line of a table that begins so.
fn stated(what: &str) -> (u32, u32) {
    let page = std::fs::read_to_string(top().join("docs/book/src/administrators.md")).unwrap();
    let line = page
        .lines()
        .find(|line| line.starts_with(&format!("| {what} |")));
    let number = line
        .and_then(|line| line.split("glibc ").nth(1))
        .expect(what);
    let number = number.split(' ').next().expect(what);
    let (major, minor) = number.split_once('.').expect(what);
    (major.parse().expect(what), minor.parse().expect(what))
}

#[test]
fn no_file_needs_a_newer_c_library_than_is_stated() {
    let command = stated("the command");
    assert!(glibc(&colltune()) <= command, "{:?}", glibc(&colltune()));
    let manifest = std::fs::read_to_string(top().join("src/cli/Cargo.toml")).unwrap();
    let depends = format!("libc6 (>= {}.{})", command.0, command.1);
    assert!(manifest.contains(&depends), "Debian's package: {depends}");
    let mut n_files = 0;
    for mpi in ["openmpi", "mpich", "mpi_abi"] {
        for name in ["libcolltune.so", "colltune-amr", "colltune-mpibench"] {
            let file = target_folder().join(mpi).join(name);
            if file.exists() {
                let needs = glibc(&file);
                assert!(
                    needs <= stated("shim and programs"),
                    "{mpi}/{name}: {needs:?}"
                );
                n_files += 1;
            }
        }
    }
    assert!(n_files > 0, "`make build` makes them");
}

#[test]
fn a_compiler_wrapper_tells_of_which_library_it_is() {
    let mut wrappers = vec![
        ("mpicc.openmpi".to_owned(), "openmpi"),
        ("mpicc.mpich".to_owned(), "mpich"),
    ];
    match wheel("mpich-5") {
        Ok(prefix) => {
            for (name, abi) in [("mpicc", "mpich"), ("mpicc_abi", "mpi_abi")] {
                wrappers.push((text(&prefix.join("bin").join(name)).to_owned(), abi));
            }
        }
        Err(reason) => eprintln!("without the package of PyPI: {reason}"),
    }
    for (wrapper, abi) in wrappers.iter().filter(|(wrapper, _)| is_there(wrapper)) {
        assert_eq!(
            printed("scripts/mpi-build", &["--abi", wrapper]).trim(),
            *abi
        );
        let checked = run("scripts/setup", &[wrapper]);
        assert!(checked.status.success(), "{checked:?}");
    }
    let none = run("scripts/mpi-build", &["--abi", "cc"]);
    assert!(!none.status.success(), "{none:?}");
    let missing = run("scripts/setup", &["/no/such/mpicc"]);
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(
        !missing.status.success() && said.contains("/no/such/mpicc is missing"),
        "{said}"
    );
}

/// Runs a job as nobody with the command and the shim below a folder that is not theirs.
fn tunes_for_nobody(prefix: &Path) {
    let scratch = folder();
    let db = scratch.path().join("db");
    let copy = scratch.path().join("program");
    copy_to_run(&program(Mpi::OpenMpi, "left"), &copy);
    printed("chmod", &["-R", "a+rwX", text(scratch.path())]);
    printed("chmod", &["-R", "a+rX,go-w", text(prefix)]);
    let words = [
        text(&prefix.join("bin/colltune")),
        "run",
        "--db",
        text(&db),
        "--",
    ]
    .map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(nobody) = job(2).mpi(Mpi::OpenMpi).prefix(&words).as_nobody() else {
        return;
    };
    let outcome = nobody.run(text(&copy), &[]);
    outcome.succeeds().prints("ok\n").is_silent();
    assert_eq!(traces(&db).len(), 2);
}

/// The command's package of that kind in target/package; for C there may be another beside it.
fn made(kind: &str) -> PathBuf {
    let entries = std::fs::read_dir(top().join("target/package")).expect("the folder");
    let mut files = entries.map(|entry| entry.expect("an entry").path());
    let is_one = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(&format!(".{kind}")) && !name.contains("placement")
    };
    files.find(is_one).expect("a package was made")
}

#[test]
fn debians_package_tunes_jobs_of_a_user_who_cannot_write_there() {
    if !runs_long() {
        return;
    }
    printed("scripts/package", &["deb"]);
    let package = made("deb");
    let root = folder();
    printed("dpkg-deb", &["-x", text(&package), text(root.path())]);
    tunes_for_nobody(&root.path().join("usr"));
    if !is_there("lintian") {
        return skip("lintian is missing").unwrap_or(());
    }
    let said = run("lintian", &["--allow-root", text(&package)]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    // It is of no Debian archive, so that no bug asks for it.
    let faults = said
        .lines()
        .filter(|line| !line.contains("initial-upload-closes-no-bugs"));
    assert_eq!(faults.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn the_rpm_package_tunes_jobs_of_a_user_who_cannot_write_there() {
    if !runs_long() {
        return;
    }
    if !is_there("rpmbuild") {
        return skip("rpmbuild is missing").unwrap_or(());
    }
    printed("scripts/package", &["rpm"]);
    let package = made("rpm");
    let root = folder();
    let unpack = format!(
        "cd {} && rpm2cpio {} | cpio -idm --quiet",
        text(root.path()),
        text(&package)
    );
    printed("sh", &["-c", &unpack]);
    tunes_for_nobody(&root.path().join("usr"));
    if !is_there("rpmlint") {
        return skip("rpmlint is missing").unwrap_or(());
    }
    let said = run("rpmlint", &[text(&package), "packaging/colltune.spec"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    // Whoever publishes it signs it and names himself; groups are of old; the command looks for lib beside its bin.
    let stated = [
        "no-signature",
        "no-packager-tag",
        "no-group-tag",
        "hardcoded-library-path",
    ];
    let faults = said.lines().filter(|line| line.contains(": E: "));
    let other = faults.filter(|line| !stated.iter().any(|known| line.contains(known)));
    assert_eq!(other.collect::<Vec<_>>(), Vec::<&str>::new());
}

/// From nothing to its first output is what a newcomer waits for.
#[test]
fn the_demo_builds_the_command_and_one_mpi_librarys_programs_and_nothing_else() {
    let built = |arguments: &[&str]| -> Vec<String> {
        let plan = printed("make", &[&["--dry-run"], arguments].concat());
        let lines = plan.lines().filter(|line| {
            line.contains("cargo build")
                || line.contains("scripts/mpi-build") && !line.contains("for ")
        });
        lines
            .map(|line| line.split_whitespace().next_back().unwrap_or("").to_owned())
            .collect()
    };
    for demo in ["demo", "demo-cg"] {
        assert_eq!(built(&[demo]), ["colltune", "mpicc.openmpi"], "{demo}");
        let named = format!("MPICC={}", "/opt/a/bin/mpicc /opt/b/bin/mpicc");
        assert_eq!(
            built(&[demo, &named]),
            ["colltune", "/opt/a/bin/mpicc"],
            "{demo}"
        );
    }
}

#[test]
fn every_recipe_is_of_the_version_that_is_built() {
    let version = env!("CARGO_PKG_VERSION");
    let packaging = top().join("packaging");
    let names = |file: &str, line: &str| {
        let text = std::fs::read_to_string(packaging.join(file)).expect(file);
        assert!(
            text.lines().any(|one| one.trim() == line),
            "{file} lacks {line}"
        );
    };
    names("colltune.spec", &format!("Version:        {version}"));
    names(
        "spack/packages/colltune/package.py",
        &format!("version(\"{version}\")"),
    );
    let easybuild = std::fs::read_dir(packaging.join("easybuild")).expect("recipes");
    let recipes = easybuild.map(|file| {
        file.expect("a recipe")
            .file_name()
            .into_string()
            .expect("UTF-8")
    });
    for recipe in recipes {
        assert!(
            recipe.starts_with(&format!("colltune-{version}-")),
            "{recipe}"
        );
        names(
            &format!("easybuild/{recipe}"),
            &format!("version = '{version}'"),
        );
    }
}

#[test]
fn who_names_a_file_that_is_not_xgboost_is_told_what_would_be() {
    let db = folder();
    std::fs::write(db.path().join("colltune.toml"), "predictor = \"xgboost\"\n").expect("ours");
    let doctor = Command::new(colltune())
        .args(["doctor", "--no-self-test", "--db", text(db.path())])
        .env("COLLTUNE_XGBOOST", "/no/such/libxgboost.so")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(
        said.contains("/no/such/libxgboost.so") && said.contains("libxgboost0"),
        "{said}"
    );
}
