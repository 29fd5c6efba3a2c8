//! What `make install` puts below a prefix, and what shells and `man` know of the command.

use std::path::Path;
use std::process::{Command, Output};

use colltune_tests::{
    colltune, copy_to_run, folder, job, on_each_library, program, target_folder, traces,
};

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn command(arguments: &[&str]) -> Output {
    let mut line = Command::new(colltune());
    line.args(arguments).output().expect("colltune starts")
}

/// Lets everybody read a folder, as below a prefix.
fn open(folder: &Path) {
    let done = Command::new("chmod")
        .args(["-R", "a+rX"])
        .arg(folder)
        .status();
    assert!(done.expect("chmod starts").success());
}

/// Installs both libraries' files below an empty root folder.
fn install(root: &Path, options: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/install");
    let done = Command::new(script)
        .args(options)
        .env("DESTDIR", root)
        .env("PREFIX", "/opt/colltune")
        .env("COLLTUNE_TARGET_DIR", target_folder())
        .output()
        .expect("the script starts");
    assert!(done.status.success(), "{done:?}");
}

on_each_library! {
    fn what_is_installed_tunes_the_jobs_of_a_user_who_cannot_write_there(mpi: Mpi) {
        let (root, scratch) = (folder(), folder());
        install(root.path(), &[]);
        open(root.path());
        let prefix = root.path().join("opt/colltune");
        let db = scratch.path().join("db");
        let started = [text(&prefix.join("bin/colltune")), "run", "--db", text(&db), "--"].map(str::to_owned);
        let program = program(mpi, "left");
        let copy = scratch.path().join("program");
        copy_to_run(&program, &copy);
        open(scratch.path());
        let everybody = Command::new("chmod").arg("a+rwx").arg(scratch.path()).status();
        assert!(everybody.expect("chmod starts").success());
        let words: Vec<&str> = started.iter().map(String::as_str).collect();
        let Some(nobody) = job(2).mpi(mpi).prefix(&words).as_nobody() else { return };
        let outcome = nobody.run(text(&copy), &[]);
        outcome.succeeds().prints("ok\n").is_silent();
        assert_eq!(traces(&db).len(), 2);
    }
}

fn sections(file: &Path) -> String {
    let output = Command::new("readelf")
        .args(["--sections", "--wide"])
        .arg(file)
        .output();
    String::from_utf8_lossy(&output.expect("readelf starts").stdout).into_owned()
}

#[test]
fn what_is_installed_is_stripped_and_has_no_program_of_developers() {
    let root = folder();
    install(root.path(), &[]);
    let prefix = root.path().join("opt/colltune");
    let programs = std::fs::read_dir(prefix.join("bin")).expect("programs");
    let programs = programs.flatten().map(|one| one.file_name());
    let programs: std::collections::BTreeSet<_> = programs.collect();
    assert_eq!(
        programs,
        ["colltune", "colltune-lab"].map(Into::into).into()
    );
    for file in [
        "bin/colltune",
        "bin/colltune-lab",
        "lib/colltune/openmpi/libcolltune.so",
        "lib/colltune/openmpi/libcolltune_messages.so",
    ] {
        let sections = sections(&prefix.join(file));
        assert!(sections.contains(".dynsym"), "{file}: {sections}");
        for part in [".debug_info", ".debug_line", ".symtab"] {
            assert!(!sections.contains(part), "{file}: {sections}");
        }
    }
    assert!(!prefix.join("lib/colltune/openmpi/.debug").exists());
}

#[test]
fn what_is_installed_has_its_debug_information_elsewhere() {
    let root = folder();
    install(root.path(), &["--debug"]);
    let library = root.path().join("opt/colltune/lib/colltune/openmpi");
    let shim = sections(&library.join("libcolltune.so"));
    assert!(
        !shim.contains(".debug_info") && shim.contains(".gnu_debuglink"),
        "{shim}"
    );
    assert!(
        shim.contains(".note.colltune"),
        "what it is made of stays in it: {shim}"
    );
    assert!(sections(&library.join(".debug/libcolltune.so.debug")).contains(".debug_info"));
}

#[test]
fn a_shell_completes_and_the_manual_has_every_subcommand() {
    let help = command(&["--help"]);
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let listed = help
        .split("Commands:")
        .nth(1)
        .expect("a list of subcommands");
    let listed = listed
        .split("Options:")
        .next()
        .expect("options behind it")
        .lines();
    let names: Vec<&str> = listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(
        names.contains(&"tune") && names.contains(&"manual"),
        "{names:?}"
    );
    let script = command(&["completions", "bash"]).stdout;
    let place = folder();
    let file = place.path().join("colltune");
    std::fs::write(&file, script).expect("written");
    // What bash offers for `colltune tu` and for an option of that.
    let asks = "source $1; for words in 'colltune tu' 'colltune tune --bud'; do COMP_WORDS=($words); \
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _colltune colltune \"${COMP_WORDS[-1]}\" x; echo ${COMPREPLY[@]}; done";
    let offered = Command::new("bash")
        .args(["-c", asks, "bash", text(&file)])
        .output();
    let offered = offered.expect("bash starts");
    assert_eq!(
        String::from_utf8_lossy(&offered.stdout),
        "tune\n--budget\n",
        "{offered:?}"
    );
    let pages = place.path().join("share/man1");
    let written = command(&["manual", text(&pages)]);
    assert!(written.status.success(), "{written:?}");
    for name in names.iter().filter(|name| **name != "help") {
        let page = std::fs::read_to_string(pages.join(format!("colltune-{name}.1"))).expect(name);
        assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
}
