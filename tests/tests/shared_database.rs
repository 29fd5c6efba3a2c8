//! A database that a group shares, with real jobs of real users: what they leave can be learned from, whatever their
//! umask is, and nothing that another member does hurts a job or loses a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use colltune_core::record::{Header, Record};
use colltune_tests::{
    Job, Mpi, colltune, folder, job, on_each_library, open_to_all, program, read_trace, skip,
    traces,
};

const GROUP: u32 = 20_100;
/// Who made the database, and trains.
const ALICE: u32 = 20_001;
const BOB: u32 = 20_002;
const MALLORY: u32 = 20_003;

fn is_root() -> bool {
    rustix::process::geteuid().is_root() || skip("needs root, to play other users").unwrap_or(false)
}

/// Runs a command as a member of the group.
fn command(user: u32, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.uid(user).gid(GROUP).current_dir("/");
    command.env_remove("COLLTUNE_DB").env("HOME", "/tmp");
    command
}

thread_local! {
    /// What other users run: the build may lie where they cannot look.
    static OPEN: tempfile::TempDir = {
        let folder = folder();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        folder
    };
}

/// A copy of a file that everybody can run.
fn open(file: &Path) -> PathBuf {
    OPEN.with(|folder| {
        let [copy] = open_to_all([file], folder.path());
        copy
    })
}

fn says(output: &Output) -> String {
    let (out, error) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(error)
}

/// Runs `colltune` as a member; what it prints.
fn tells(user: u32, arguments: &[&str]) -> String {
    let output = command(user, open(&colltune()))
        .args(arguments)
        .output()
        .unwrap();
    let said = says(&output);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A database that alice has made for the group.
fn shared() -> (tempfile::TempDir, PathBuf) {
    let folder = folder();
    std::os::unix::fs::chown(folder.path(), Some(ALICE), Some(GROUP)).unwrap();
    let db = folder.path().join("db");
    let group = GROUP.to_string();
    let said = tells(
        ALICE,
        &["db", "init", "--shared", &group, &db.to_string_lossy()],
    );
    assert!(said.contains("members record and exploit"), "{said}");
    (folder, db)
}

/// A job of a member whose umask lets no other user see anything.
fn exploring(mpi: Mpi, user: u32, db: &Path) -> Job {
    let (uid, gid) = (format!("--reuid={user}"), format!("--regid={GROUP}"));
    let umask = "umask 077; exec \"$@\"";
    job(2)
        .mpi(mpi)
        .preload_shim(open(&mpi.shim()))
        .db(db)
        .mode("explore")
        .prefix(&[
            "setpriv",
            &uid,
            &gid,
            "--clear-groups",
            "sh",
            "-c",
            umask,
            "sh",
        ])
        .env("HOME", "/tmp")
}

fn left_in(db: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(db.join("incoming")).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

on_each_library! {
    fn what_a_job_says_is_not_written_through_a_link(mpi: Mpi) {
        for plant in ["ln -s", "ln"] {
            let (db, other) = (folder(), folder());
            fs::create_dir(db.path().join("incoming")).unwrap();
            let precious = other.path().join("file");
            fs::write(&precious, "precious\n").unwrap();
            let fault = format!(
                "for file in $COLLTUNE_DB/incoming/*.run.open; do rm $file; {plant} {} $file; done",
                precious.display()
            );
            let outcome = job(2).mpi(mpi).preload().db(db.path()).mode("explore").run("ends", &["shell", &fault]);
            outcome.succeeds().prints("sum 2\n");
            assert_eq!(fs::read_to_string(&precious).unwrap(), "precious\n", "{plant}");
        }
    }

    fn members_jobs_leave_what_the_trainer_can_read(mpi: Mpi) {
        if !is_root() {
            return;
        }
        let (_folder, db) = shared();
        let program = open(&program(mpi, "left"));
        let program = program.to_str().unwrap();
        let outcome = exploring(mpi, BOB, &db).run(program, &[]);
        outcome.succeeds().prints("ok\n").is_silent();
        let left = left_in(&db);
        assert_eq!(left.len(), 3, "{left:?}");
        for name in &left {
            let found = db.join("incoming").join(name).metadata().unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (BOB, GROUP, 0o640), "{name}");
        }
        let place = db.to_string_lossy();
        let said = tells(ALICE, &["train", "--db", &place]);
        assert!(said.contains("took 2 traces"), "{said}");
        assert_eq!(left_in(&db), BTreeSet::new());
        let said = tells(ALICE, &["db", "check", "--db", &place]);
        assert!(!said.contains("fault"), "{said}");
        // What was learned is there for the next member, who writes nothing in this mode but what the job says.
        let outcome = exploring(mpi, MALLORY, &db).mode("exploit").run(program, &[]);
        outcome.succeeds().prints("ok\n").is_silent();
        tells(MALLORY, &["status", "--db", &place]);
        let said = tells(MALLORY, &["db", "show", "--db", &place]);
        assert!(said.contains("generation 1, in force"), "{said}");
        let refused = command(MALLORY, open(&colltune())).args(["train", "--db", &place]).output().unwrap();
        assert!(!refused.status.success() && says(&refused).contains("train.lock"), "{}", says(&refused));
    }
}

/// Without the group nothing is made, and what was refused once works as soon as the group is right.
#[test]
fn a_group_that_is_not_there_or_not_its_owners_is_told_with_the_way_out() {
    if !is_root() {
        return;
    }
    let folder = folder();
    std::os::unix::fs::chown(folder.path(), Some(ALICE), Some(GROUP)).unwrap();
    let db = folder.path().join("db");
    let init = |group: &str, place: &Path| {
        let output = command(ALICE, open(&colltune()))
            .args(["db", "init", "--shared", group])
            .arg(place)
            .output()
            .unwrap();
        (output.status.code(), says(&output))
    };
    let (code, said) = init("no-such-group", &db);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("no-such-group") && said.contains("id -Gn"),
        "{said}"
    );
    assert!(!db.exists());
    let (code, said) = init("20999", &db);
    assert!(
        code == Some(1) && said.contains("must be a member"),
        "{said}"
    );
    // A folder that is there and empty, as an administrator may have made it.
    let (code, said) = init(&GROUP.to_string(), &db);
    assert!(code == Some(0) && db.join("incoming").is_dir(), "{said}");
    // A mistyped one gets not even a lock.
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("thesis.tex"), "all of it").unwrap();
    std::os::unix::fs::chown(&home, Some(ALICE), Some(GROUP)).unwrap();
    let (code, said) = init(&GROUP.to_string(), &home);
    assert!(
        code == Some(1) && said.contains("name a new or an empty folder"),
        "{said}"
    );
    let place = home.to_string_lossy().into_owned();
    for words in [&["train"][..], &["db", "prune"], &["db", "list"]] {
        let output = command(ALICE, open(&colltune()))
            .args(words)
            .args(["--db", &place])
            .output()
            .unwrap();
        let said = says(&output);
        assert!(
            !output.status.success() && said.contains("holds other things"),
            "{words:?}: {said}"
        );
    }
    assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
}

#[test]
fn who_may_not_open_anothers_database_learns_how_it_is_shared() {
    if !is_root() {
        return;
    }
    let folder = folder();
    std::os::unix::fs::chown(folder.path(), Some(ALICE), Some(GROUP)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let db = folder.path().join("db");
    let place = db.to_string_lossy();
    tells(ALICE, &["db", "init", &place]);
    fs::set_permissions(&db, fs::Permissions::from_mode(0o700)).unwrap();
    let output = command(BOB, open(&colltune()))
        .args(["status", "--db", &place])
        .output()
        .unwrap();
    let said = says(&output);
    assert!(
        !output.status.success() && said.contains("colltune db init --shared GROUP DIR"),
        "{said}"
    );
}

const USERS: u32 = 50;
const JOBS_OF_EACH: u32 = 4;

/// A real trace under another job's name.
fn renamed(header: &Header, records: &[Record], job: &str) -> Vec<u8> {
    let header = Header {
        job: job.to_owned(),
        ..header.clone()
    };
    let mut bytes = header.to_bytes();
    for record in records {
        bytes.extend(record.to_bytes());
    }
    bytes
}

/// Puts a user's drafts into `incoming/` as the shim does: made under another name, then renamed.
fn writer(user: u32, drafts: &Path, db: &Path) -> Child {
    let script = "umask 077; for draft in \"$0\"/*.trace; do name=$(basename \"$draft\"); \
                  install -m 640 \"$draft\" \"$1/incoming/$name.open\" && \
                  mv \"$1/incoming/$name.open\" \"$1/incoming/$name\" || exit 1; done";
    let mut command = command(user, "sh");
    command.args(["-c", script]).args([drafts, db]);
    command.spawn().unwrap()
}

#[test]
fn of_200_jobs_of_50_users_into_one_database_that_trains_nothing_is_lost_and_nothing_good_is_refused()
 {
    if !is_root() {
        return;
    }
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    // Real traces of real jobs, each of which stands for many.
    let recorded = folder();
    for _ in 0..3 {
        let outcome = job(2)
            .mpi(mpi)
            .preload()
            .db(recorded.path())
            .mode("explore")
            .run("left", &[]);
        outcome.succeeds().prints("ok\n");
    }
    let mut by_job: BTreeMap<String, Vec<(Header, Vec<Record>)>> = BTreeMap::new();
    for trace in traces(recorded.path()) {
        let of_job = by_job.entry(trace.header.job.clone()).or_default();
        of_job.push((trace.header, trace.records));
    }
    let real: Vec<_> = by_job.into_values().collect();
    assert_eq!(real.len(), 3);

    let (_folder, db) = shared();
    let drafts = folder();
    let mut expected: BTreeMap<String, (u32, u64)> = BTreeMap::new();
    for user in 0..USERS {
        let (uid, of_user) = (30_000 + user, drafts.path().join(user.to_string()));
        fs::create_dir(&of_user).unwrap();
        for number in 0..JOBS_OF_EACH {
            let name = format!("job-{user}-{number}");
            let mut records = 0;
            for (header, all) in &real[(user + number) as usize % real.len()] {
                let path = of_user.join(format!("{name}.{}.trace", header.rank));
                fs::write(&path, renamed(header, all, &name)).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
                assert_eq!(read_trace(&path).records.len(), all.len());
                records += all.len() as u64;
            }
            expected.insert(name, (uid, records));
        }
    }

    // Ten users at a time write while alice trains again and again, and one of them attacks.
    let mischief = "cd \"$0/incoming\"; umask 0; mkfifo pipe.0.trace; mkdir folder.1.trace; truncate -s 1T huge.2.trace; \
                    ln -s /dev/zero endless.3.trace; echo x > noise.4.trace; touch closed.5.trace; chmod 0 closed.5.trace";
    let done = command(MALLORY, "sh")
        .args(["-c", mischief])
        .arg(&db)
        .status();
    assert!(done.unwrap().success());
    let place = db.to_string_lossy().into_owned();
    let mut trainings = 0;
    let mut waiting: Vec<u32> = (0..USERS).collect();
    while !waiting.is_empty() {
        let now: Vec<u32> = waiting.drain(..waiting.len().min(10)).collect();
        let children: Vec<Child> = now
            .iter()
            .map(|user| writer(30_000 + user, &drafts.path().join(user.to_string()), &db))
            .collect();
        tells(ALICE, &["train", "--db", &place]);
        trainings += 1;
        for mut child in children {
            assert!(child.wait().unwrap().success(), "a writer failed");
        }
    }
    tells(ALICE, &["train", "--db", &place]);
    assert!(trainings >= 5);

    let listed = tells(ALICE, &["db", "list", "--db", &place, "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let found: BTreeMap<String, (u32, u64)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            let number = |name: &str| run[name].as_u64().unwrap();
            assert_eq!(run["state"], "counts");
            let job = run["job"].as_str().unwrap().to_owned();
            (job, (number("owner") as u32, number("records")))
        })
        .collect();
    assert_eq!(found, expected);
    let refused = tells(
        ALICE,
        &["db", "show", "--db", &place, "--quarantine", "--json"],
    );
    let refused: serde_json::Value = serde_json::from_str(&refused).unwrap();
    let owners = refused.as_array().unwrap().iter();
    let owners: BTreeSet<u64> = owners.map(|one| one["owner"].as_u64().unwrap()).collect();
    assert_eq!(owners, [u64::from(MALLORY)].into());
    let left: BTreeSet<String> = left_in(&db);
    assert!(
        left.iter().all(|name| !name.starts_with("job-")),
        "{left:?}"
    );
}
