//! The sessions of the book, `examples/steps/*.session`, run as they stand there.

mod session;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use colltune_tests::{
    Mpi, colltune, colltune_lab, copy_to_run, folder, is_root, job, on_each_library, skip,
    target_folder,
};
use session::{Step, matches, steps};

/// A session takes seconds; beside other work more.
const DEADLINE: Duration = Duration::from_secs(300);
/// Before the number of a step, and before its exit code.
const BEGINS: char = '\x1e';
const ENDS: char = '\x1f';
/// The users of sessions with several: names and numbers, and their group.
const USERS: [(&str, u32); 2] = [("alice", 20_001), ("bob", 20_002)];
const GROUP: (&str, u32) = ("hpc", 20_100);

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What `make install` would have put somewhere, and the library's own commands, in a folder of this session's.
struct Installed(tempfile::TempDir);

impl Installed {
    fn new(mpi: Mpi) -> Installed {
        let root = folder();
        let at = |path: &str| root.path().join(path);
        for made in ["bin", "work", "lib"] {
            fs::create_dir(at(made)).expect("the folder is new");
        }
        open(&colltune(), &at("bin/colltune"));
        open(&colltune_lab(), &at("bin/colltune-lab"));
        open(&mpi.mini_app(), &at("bin/colltune-amr"));
        // Looked at once: whether it is as new as the sources.
        mpi.shim();
        for library in Mpi::ALL {
            let (from, to) = (
                target_folder().join(library.name()),
                at("lib").join(library.name()),
            );
            fs::create_dir(&to).expect("the folder is new");
            for file in ["libcolltune.so", "colltune-mpibench"] {
                if from.join(file).is_file() {
                    open(&from.join(file), &to.join(file));
                }
            }
        }
        let link = |file: &Path, name: &str| {
            std::os::unix::fs::symlink(file, at("bin").join(name)).expect("the folder is new");
        };
        let launcher = in_path(&mpi.launcher());
        link(&launcher, "mpirun");
        link(&in_path(&mpi.compiler()), "mpicc");
        // Hydra looks for it beside its own name.
        let proxy = launcher.with_file_name("hydra_pmi_proxy");
        if proxy.is_file() {
            link(&proxy, "hydra_pmi_proxy");
        }
        for program in [
            "examples/poisson-cg/poisson_cg.c",
            "examples/steps/forgets.c",
            "examples/steps/asks.c",
            "include/colltune.h",
        ] {
            let from = top().join(program);
            let name = from.file_name().expect("a file");
            fs::copy(&from, at("work").join(name)).expect("a source of ours");
        }
        Installed(root)
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// Another name of a file that other users can reach; a copy where that cannot be.
fn open(file: &Path, to: &Path) {
    if fs::hard_link(file, to).is_err() {
        copy_to_run(file, to);
    }
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).expect("the file is ours");
}

fn in_path(name: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let files = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let found = files.into_iter().find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{name} was found before"))
}

/// The session as a script for bash: its commands in one shell, each between marks, with its exit code.
fn script(steps: &[Step]) -> String {
    let mut text = String::from("exec 2>&1 </dev/null\n");
    for (number, step) in steps.iter().enumerate() {
        let command = match USERS.iter().find(|(name, _)| *name == step.user) {
            None => step.command.clone(),
            Some((_, user)) => format!(
                "setpriv --reuid={user} --regid={} --clear-groups env HOME=/tmp bash -c {}",
                GROUP.1,
                quoted(&step.command)
            ),
        };
        text += &format!("printf '{BEGINS}{number}\\n'\n{command}\nprintf '{ENDS}%d\\n' $?\n");
    }
    text
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What each step printed, with its exit code. A step without an end is the last one.
fn parts(printed: &str) -> Vec<(Vec<&str>, Option<i32>)> {
    let parts = printed.split(BEGINS).skip(1).map(|part| {
        let (said, code) = part.split_once(ENDS).unwrap_or((part, ""));
        let (_, said) = said.split_once('\n').unwrap_or_default();
        (said.lines().collect(), code.trim().parse().ok())
    });
    parts.collect()
}

/// Runs a session in a new folder.
fn run(mpi: Mpi, name: &str) {
    let file = top().join(format!("examples/steps/{name}.session"));
    let text = fs::read_to_string(&file).expect("a session of ours");
    let steps = steps(&text);
    let installed = Installed::new(mpi);
    let has_users = steps.iter().any(|step| !step.user.is_empty());
    let mut lines = vec!["setsid", "--wait", "bash", "-c"];
    let mut before = String::new();
    if has_users {
        if !can_play_others() {
            return;
        }
        before = accounts(&installed);
        lines.splice(0..0, ["unshare", "-m"]);
    }
    let script = format!("{before}cd {}\n{}", installed.at("work"), script(&steps));
    lines.push(&script);
    let path = std::env::var("PATH").unwrap_or_default();
    let outcome = job(2)
        .mpi(mpi)
        .deadline(DEADLINE)
        .env("PATH", format!("{}:{path}", installed.at("bin")))
        .env("COLLTUNE_LIB", installed.at("lib"))
        // Two ranks have to run on one core, too, and root may.
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .run_command(&lines);
    outcome.ends();
    check(&file, &steps, &parts(&outcome.stdout), &outcome.stdout);
}

fn check(file: &Path, steps: &[Step], parts: &[(Vec<&str>, Option<i32>)], whole: &str) {
    for (step, (printed, code)) in steps.iter().zip(parts) {
        let shown = printed.join("\n");
        let place = format!("{}: {}\n", file.display(), step.command);
        assert_eq!(*code, Some(0), "{place}{shown}");
        let expected = step.prints.join("\n");
        assert!(
            matches(&step.prints, printed),
            "{place}expected:\n{expected}\nprinted:\n{shown}"
        );
    }
    assert_eq!(parts.len(), steps.len(), "{}: {whole}", file.display());
}

fn can_play_others() -> bool {
    let works = std::process::Command::new("unshare")
        .args(["-m", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    (is_root() && works) || skip("needs root, to play two users").unwrap_or(false)
}

/// Gives the session accounts that this machine does not have; other processes do not see them.
fn accounts(installed: &Installed) -> String {
    let work = installed.at("work");
    fs::set_permissions(&work, fs::Permissions::from_mode(0o777)).expect("the folder is ours");
    let (group, number) = GROUP;
    let users = USERS.map(|(name, user)| format!("{name}:x:{user}:{number}::/tmp:/bin/sh\n"));
    let mut text = String::from("set -e\n");
    let groups = format!("{group}:x:{number}:\n");
    for (file, more) in [("passwd", users.concat()), ("group", groups)] {
        let known = fs::read_to_string(format!("/etc/{file}")).unwrap_or_default();
        let copy = installed.at(file);
        fs::write(&copy, format!("{}\n{more}", known.trim_end())).expect("the folder is ours");
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).expect("the file is ours");
        text += &format!("mount --bind {copy} /etc/{file}\n");
    }
    text + "set +e\n"
}

on_each_library! {
    fn a_first_tuning(mpi: Mpi) {
        run(mpi, "first-tuning");
    }

    fn a_look_at_what_was_recorded(mpi: Mpi) {
        run(mpi, "look");
    }

    fn two_users_share_a_database(mpi: Mpi) {
        run(mpi, "shared");
    }

    fn a_hang_is_explained(mpi: Mpi) {
        run(mpi, "hang");
    }

    fn a_program_asks(mpi: Mpi) {
        run(mpi, "asks");
    }

    fn blocks_are_placed(mpi: Mpi) {
        run(mpi, "blocks");
    }
}

#[test]
fn tables_for_open_mpi() {
    if let Some(mpi) = Mpi::OpenMpi.installed() {
        run(mpi, "tables-openmpi");
    }
}

#[test]
fn tables_for_mpich() {
    if let Some(mpi) = Mpi::Mpich.installed() {
        run(mpi, "tables-mpich");
    }
}

#[test]
fn every_session_is_run() {
    let own = fs::read_to_string(top().join("tests/tests/steps/main.rs")).expect("this file");
    let entries = fs::read_dir(top().join("examples/steps")).expect("the sessions");
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|end| end == "session") {
            let name = path.file_stem().expect("a name").to_string_lossy();
            assert!(own.contains(&format!("\"{name}\");")), "{name} is not run");
        }
    }
}
