//! A database that a group shares: who may do what, whatever the users' umasks are.

mod actors;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use actors::*;
use colltune_db::manage::check::check;
use colltune_db::manage::init::init;
use colltune_db::manage::list::{self, State, Wanted};
use colltune_db::manage::remove::{self, Keep};
use colltune_db::runs;
use colltune_db::share::{Shared, Trainers};
use colltune_db::test_support::{LIBRARY, Run};
use colltune_db::{Database, Generation, TrainOptions, train};
use tempfile::{TempDir, tempdir};

/// What a user does in a process of his own; run by the tests below.
#[test]
fn helper_that_acts() {
    let Some(folder) = std::env::var_os("COLLTUNE_TEST_DB") else {
        return;
    };
    let act = std::env::var("SHARED_DATABASE_ACT").unwrap();
    let folder = PathBuf::from(folder);
    let mut warnings = Vec::new();
    let done = match act.as_str() {
        "train" => Database::open(&folder)
            .and_then(|db| train(&db, TrainOptions::default(), &|_| {}))
            .map(|report| {
                println!("REPORT {}", report.ingest.records);
                warnings = report.ingest.warnings;
            }),
        members => init(
            &folder,
            Some(Shared {
                group: GROUP,
                trainers: match members {
                    "init members" => Trainers::Members,
                    _ => Trainers::Owner,
                },
            }),
            &mut warnings,
        )
        .map(|_| ()),
    };
    for warning in warnings {
        println!("WARNING {warning}");
    }
    if let Err(error) = done {
        println!("ERROR failed to {error}");
        std::process::exit(1);
    }
    std::process::exit(0);
}

/// This program where any user can run it.
fn program() -> &'static Path {
    static PLACE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PLACE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = folder.path().join("test");
        // Another process writes it: what this one has open for writing is for a moment open in every child that
        // another test starts, and cannot be run then.
        let copied = Command::new("cp")
            .arg(std::env::current_exe().unwrap())
            .arg(&path)
            .status();
        assert!(copied.unwrap().success());
        (folder, path)
    });
    path
}

/// Acts as a user whose umask lets no other user see anything.
fn acts(folder: &Path, user: u32, act: &str) -> Output {
    Command::new("sh")
        .args(["-c", "umask 077; exec \"$0\" \"$@\""])
        .arg(program())
        .args(["--exact", "helper_that_acts", "--nocapture"])
        .env("COLLTUNE_TEST_DB", folder)
        .env("SHARED_DATABASE_ACT", act)
        .current_dir("/")
        .uid(user)
        .gid(if user == 0 { 0 } else { GROUP })
        .output()
        .unwrap()
}

/// Trains as a user and returns the records that were taken, and what was warned of.
fn trains(db: &Database, user: u32) -> (u64, Vec<String>) {
    let output = acts(db.root(), user, "train");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let of = |word: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    (of("REPORT ")[0].parse().unwrap(), of("WARNING "))
}

/// A database that alice has made for the group.
fn shared(act: &str) -> (TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(ALICE), Some(GROUP)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let place = folder.path().join("db");
    let output = acts(&place, ALICE, act);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let db = Database::open(&place).unwrap();
    let toml = db.settings_path();
    let text = fs::read_to_string(&toml).unwrap();
    fs::write(toml, text.replace("machine = ", "machine = \"testing\" # ")).unwrap();
    (folder, db)
}

fn faults(db: &Database) -> Vec<String> {
    let checked = check(db).unwrap();
    let faults = checked.findings.into_iter();
    faults
        .filter(|one| one.level == colltune_db::manage::check::Level::Fault)
        .map(|one| one.says)
        .collect()
}

#[test]
fn members_record_one_trains_and_all_exploit_whatever_their_umasks_are() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init owner");
    assert_eq!(db.incoming().metadata().unwrap().mode() & 0o7777, 0o3770);
    records(&db, BOB, "bobs");
    records(&db, MALLORY, "mallorys");
    assert_eq!(trains(&db, ALICE).0, 1200);
    assert_eq!(faults(&db), Vec::<String>::new());
    // Everything that a job or a person reads.
    does(
        &db,
        BOB,
        "cat colltune.toml openmpi-4.1.4/CURRENT openmpi-4.1.4/generations/000001/* \
         openmpi-4.1.4/data/* openmpi-4.1.4/evidence/* > /dev/null",
    );
    // Root helps out once, and alice goes on.
    records(&db, BOB, "second");
    assert_eq!(trains(&db, 0).0, 600);
    records(&db, BOB, "third");
    assert_eq!(trains(&db, ALICE).0, 600);
    assert_eq!(faults(&db), Vec::<String>::new());
    let generation = Generation::load(&db, LIBRARY).unwrap();
    assert_eq!(generation.meta.unwrap().runs, 4);
    // Who is no member sees nothing.
    let other = Command::new("cat")
        .arg(db.settings_path())
        .uid(20_009)
        .gid(20_999)
        .output();
    assert!(!other.unwrap().status.success());
}

#[test]
fn jobs_need_to_write_to_incoming_alone_and_members_can_nowhere_else() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init owner");
    records(&db, BOB, "bobs");
    put(&db, MALLORY, "refused.trace", b"x");
    trains(&db, ALICE);
    records(&db, BOB, "more");
    let mut folders = vec![".".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(db.root().join(&folder)).unwrap().flatten() {
            if entry.path().is_dir() && entry.file_name() != "incoming" {
                let name = entry.file_name().into_string().unwrap();
                folders.push(format!("{folder}/{name}"));
            }
        }
        let done = shell(&db, MALLORY, &format!("touch '{folder}/new'"));
        assert!(!done.status.success(), "mallory writes to {folder}");
    }
    for script in [
        "rm incoming/more.0.trace",
        "mv incoming/more.0.trace incoming/other",
        "echo >> incoming/more.0.trace",
        "echo > colltune.toml",
        "rm train.lock",
        "ln -sf /dev/null train.lock",
        "rmdir incoming",
    ] {
        let done = shell(&db, MALLORY, script);
        assert!(!done.status.success(), "mallory: {script}");
    }
}

#[test]
fn a_member_cannot_hold_the_lock_of_who_trains() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init owner");
    records(&db, BOB, "bobs");
    trains(&db, ALICE);
    let held = shell(&db, MALLORY, "flock -n train.lock true");
    assert!(!held.status.success());
    records(&db, BOB, "more");
    assert_eq!(trains(&db, ALICE).0, 600);
}

#[test]
fn a_trace_that_its_user_keeps_to_himself_is_left_and_told_and_taken_once_it_can_be_read() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init owner");
    records(&db, BOB, "closed");
    records(&db, BOB, "open");
    does(&db, BOB, "chmod 600 incoming/closed.*");
    let (taken, warnings) = trains(&db, ALICE);
    assert_eq!(taken, 600);
    assert!(
        warnings.len() == 1 && warnings[0].contains("2 traces") && warnings[0].contains("20002"),
        "{warnings:?}"
    );
    does(&db, BOB, "chmod 640 incoming/closed.*");
    assert_eq!(trains(&db, ALICE), (600, Vec::new()));
}

#[test]
fn where_every_member_trains_one_goes_on_where_another_stopped() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init members");
    for (number, user) in [ALICE, BOB, ALICE, MALLORY, BOB].into_iter().enumerate() {
        records(&db, BOB, &format!("job{number}"));
        assert_eq!(trains(&db, user), (600, Vec::new()), "{number}");
        assert_eq!(faults(&db), Vec::<String>::new(), "{number}");
    }
    assert_eq!(Generation::load(&db, LIBRARY).unwrap().number, 5);
}

#[test]
fn a_database_that_is_there_becomes_a_groups() {
    if !can_play() {
        return;
    }
    let (_folder, db) = private();
    records_of(&db, 0, &small("before"));
    trained(&db);
    fs::write(db.incoming().join("b.0.trace.open"), "").unwrap();
    let closed = shell(&db, BOB, "touch incoming/mine");
    assert!(!closed.status.success());
    let group = Shared {
        group: GROUP,
        trainers: Trainers::Owner,
    };
    let precious = Precious::new();
    std::os::unix::fs::symlink(precious.path(), db.root().join("note")).unwrap();
    // A hard link, so that nothing but its other name shows what it is.
    fs::hard_link(precious.path(), db.root().join("paper")).unwrap();
    fs::create_dir_all(db.root().join("1/2/3/4/5")).unwrap();
    let mut warnings = Vec::new();
    init(db.root(), Some(group), &mut warnings).unwrap();
    warnings.sort();
    let said = ["too deep", "symbolic link", "other names"];
    assert_eq!(warnings.len(), said.len(), "{warnings:?}");
    for (warning, part) in warnings.iter().zip(said) {
        assert!(warning.contains(part), "{warnings:?}");
    }
    precious.is_intact();
    fs::remove_dir_all(db.root().join("1")).unwrap();
    fs::remove_file(db.root().join("paper")).unwrap();
    let mode = precious.path().metadata().unwrap();
    assert_eq!((mode.mode() & 0o777, mode.gid()), (0o600, 0));
    fs::remove_file(db.root().join("note")).unwrap();
    assert_eq!(faults(&db), Vec::<String>::new());
    records(&db, BOB, "after");
    assert_eq!(trained(&db).libraries[0].runs, 2);
    does(&db, BOB, "cat openmpi-4.1.4/CURRENT");
    // Another user's cannot be taken.
    let output = acts(db.root(), BOB, "init owner");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success() && said.contains("it is user 0's, who alone can do that"),
        "{said}"
    );
}

/// The state of each run, by job and owner.
fn states(db: &Database) -> Vec<(String, Option<u32>, State)> {
    let runs = list::runs(db, &Wanted::default(), &mut Vec::new()).unwrap();
    let mut states: Vec<_> = runs
        .into_iter()
        .map(|run| (run.job, run.owner, run.state))
        .collect();
    states.sort_by(|a, b| a.0.cmp(&b.0));
    states
}

fn of(owner: u32) -> Wanted {
    Wanted {
        owners: [owner].into(),
        ..Wanted::default()
    }
}

#[test]
fn whose_a_trace_is_its_file_says_and_two_users_jobs_of_one_name_are_two_runs() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init owner");
    // Mallory is there before bob, with his job's name, and with a rank that he does not have.
    let forged = Run {
        recording_ranks: 4,
        calls: 300,
        ..Run::new("bobs", 77)
    };
    for (rank, bytes) in forged.traces().into_iter().skip(2) {
        put(&db, MALLORY, &format!("bobs.{rank}.trace"), &bytes);
    }
    assert_eq!(trains(&db, ALICE).0, 600);
    records(&db, BOB, "bobs");
    assert_eq!(trains(&db, ALICE), (600, Vec::new()));
    let runs = list::runs(&db, &of(BOB), &mut Vec::new()).unwrap();
    assert_eq!((runs.len(), runs[0].records), (1, 600), "{runs:?}");
    assert_eq!((runs[0].ranks, runs[0].nodes, runs[0].ppn), (8, 4, 2));
    assert_eq!(runs[0].host, "node0");
    assert_eq!(runs[0].job, format!("bobs@{BOB}"));
    let forged = list::runs(&db, &of(MALLORY), &mut Vec::new()).unwrap();
    assert_eq!((forged.len(), forged[0].records), (1, 600), "{forged:?}");
    let host = Wanted {
        hosts: ["nowhere".to_owned()].into(),
        ..Wanted::default()
    };
    assert_eq!(list::runs(&db, &host, &mut Vec::new()).unwrap(), []);
}

#[test]
fn a_trace_that_claims_more_than_its_owner_may_is_refused_with_the_reason() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init owner");
    let rules = format!(
        "[default]\nranks_max = 8\nnodes_max = 4\n[owner.{BOB}]\nranks_max = 64\nnodes_max = 32\n\
         [owner.20004]\ntrust = false\n"
    );
    fs::write(db.owners(), rules).unwrap();
    let large = |job: &str| Run {
        nodes: 200,
        ppn: 128,
        ..small(job)
    };
    let wide = |job: &str| Run {
        nodes: 32,
        ppn: 2,
        ..small(job)
    };
    records_of(&db, MALLORY, &large("forged"));
    records_of(&db, MALLORY, &wide("wide"));
    records_of(&db, MALLORY, &small("honest"));
    records_of(&db, BOB, &wide("bobs"));
    records_of(&db, 20_004, &small("untrusted"));
    assert_eq!(trains(&db, ALICE).0, 1200);
    let refused = list::refused(&db).unwrap();
    let reasons: Vec<&str> = refused.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons.len(), 6, "{refused:?}");
    assert!(reasons[0].contains("25600 ranks") && reasons[0].contains("owners.toml"));
    assert!(reasons[2].contains("not trusted"), "{reasons:?}");
    assert_eq!(refused[0].owner, Some(MALLORY));
    // The limit was too narrow: what it refused is looked at again.
    fs::write(db.owners(), format!("[owner.{MALLORY}]\nranks_max = 64\n")).unwrap();
    let restored = remove::restore_refused(&db, &["wide.0.trace".to_owned()]).unwrap();
    assert_eq!(restored, ["wide.0.trace"]);
    assert_eq!(trains(&db, ALICE).0, 300);
    assert_eq!(list::refused(&db).unwrap().len(), 5);
    // A file that cannot be understood stops a training: it may say whom not to trust.
    fs::write(db.owners(), "[owner").unwrap();
    let output = acts(db.root(), ALICE, "train");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("owners.toml"), "{said}");
}

#[test]
fn a_folder_that_is_no_database_is_not_opened_for_a_group() {
    let home = tempdir().unwrap();
    fs::create_dir(home.path().join("incoming")).unwrap();
    let secret = home.path().join("secret");
    fs::write(&secret, "mine").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let before = home.path().metadata().unwrap();
    let shared = Shared {
        group: before.gid(),
        trainers: Trainers::Owner,
    };
    let error = init(home.path(), Some(shared), &mut Vec::new())
        .unwrap_err()
        .to_string();
    assert!(error.contains("name a new or an empty folder"), "{error}");
    let modes = [home.path(), &secret].map(|path| path.metadata().unwrap().mode() & 0o7777);
    assert_eq!(modes, [before.mode() & 0o7777, 0o600]);
    assert_eq!(
        fs::read_dir(home.path()).unwrap().count(),
        2,
        "nothing was made there"
    );
}

/// Jobs that were merged have communicators of more ranks than either.
#[test]
fn records_of_more_ranks_than_the_job_has_are_taken_where_their_owner_may_have_so_many() {
    let run = || Run {
        spoil: Some(|call, record| {
            if call % 3 == 0 {
                record.n_ranks = 4096;
                (record.nodes, record.ppn) = (64, 64);
            }
        }),
        ..small("wider")
    };
    let (_folder, db) = private();
    run().write(&db.incoming()).unwrap();
    let report = trained(&db).ingest;
    assert_eq!((report.records, report.quarantined.len()), (600, 0));
    let (_folder, db) = private();
    fs::write(db.owners(), "[default]\nranks_max = 4000\n").unwrap();
    run().write(&db.incoming()).unwrap();
    let report = trained(&db).ingest;
    assert_eq!(report.records, 0);
    assert!(
        report.quarantined[0].1.contains("it claims 4096 ranks"),
        "{report:?}"
    );
}

/// What a job of 4 nodes says at its end.
fn account(job: &str, ranks: u64, wall_s: &str) -> String {
    format!(
        r#"{{"schema":1,"job":"{job}","program":"solver","mode":"explore","library":"openmpi-4.1.4","machine":"testing",
        "generation":0,"ranks":{ranks},"nodes":4,"started_unix_ms":0,"wall_s":{wall_s},"collectives_s":{{"mean":0.5,
        "max":0.5}},"calls":9,"passed":0,"tuned_share":0.0,"by_collective":[],"waiting_share":null,
        "best_possible_gain":1.0,"refused":[]}}"#
    )
    .replace('\n', "")
}

#[test]
fn an_account_is_believed_as_far_as_its_owner_is_and_of_the_job_that_it_is_called_after() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init owner");
    let rules =
        "[default]\nranks_max = 8\n[owner.20004]\ntrust = false\n[owner.20005]\nnodes_max = 3\n";
    fs::write(db.owners(), rules).unwrap();
    let says = |user: u32, name: &str, account: &str| {
        put(&db, user, &format!("{name}.run"), account.as_bytes());
    };
    says(BOB, "bobs", &account("bobs", 8, "3600.0"));
    says(MALLORY, "another", &account("bobs", 8, "1.0"));
    says(MALLORY, "long", &account("long", 8, "1e300"));
    says(MALLORY, "wide", &account("wide", 9, "1.0"));
    says(20_004, "untrusted", &account("untrusted", 8, "1.0"));
    says(20_005, "scattered", &account("scattered", 8, "1.0"));
    says(MALLORY, "\u{1b}[2J", &account("\\u001b[2J", 8, "1.0"));
    let known = |warnings: &mut Vec<String>| -> Vec<(String, f64)> {
        let runs = runs::all(&db, warnings);
        runs.into_iter().map(|run| (run.job, run.wall_s)).collect()
    };
    let bobs = [("bobs".to_owned(), 3600.0)];
    let mut told = Vec::new();
    assert_eq!(known(&mut told), bobs);
    assert_eq!(told.len(), 6, "{told:?}");
    let is_plain = |line: &String| !line.contains(char::is_control);
    assert!(told.iter().all(is_plain), "{told:?}");
    trains(&db, ALICE);
    told.clear();
    assert_eq!((known(&mut told), told), (bobs.to_vec(), Vec::new()));
    let refused = list::refused(&db).unwrap();
    let reasons: Vec<(&str, &str)> = refused
        .iter()
        .map(|one| (one.name.as_str(), one.reason.as_str()))
        .collect();
    let expected = [
        ("\u{1b}[2J.run", "cannot be shown"),
        ("another.run", "another job"),
        ("long.run", "impossible"),
        ("scattered.run", "4 nodes"),
        ("untrusted.run", "not trusted"),
        ("wide.run", "9 ranks"),
    ];
    assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
    for ((name, reason), (called, part)) in reasons.iter().zip(expected) {
        assert!(*name == called && reason.contains(part), "{reasons:?}");
    }
}

#[test]
fn one_users_data_are_dropped_restored_and_weighed() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init owner");
    for job in ["a", "b", "c"] {
        records(&db, BOB, &format!("bob-{job}"));
        records(&db, MALLORY, &format!("mallory-{job}"));
    }
    trains(&db, ALICE);
    let runs = |db: &Database| Generation::load(db, LIBRARY).unwrap().meta.unwrap().runs;
    assert_eq!(runs(&db), 6);
    let dropped = remove::drop_runs(&db, &of(MALLORY), &mut Vec::new()).unwrap();
    assert_eq!(dropped.len(), 3);
    trains(&db, ALICE);
    assert_eq!(runs(&db), 3);
    // What comes back is known, and still dropped.
    records(&db, MALLORY, "mallory-a");
    assert_eq!(trains(&db, ALICE).0, 0);
    let one = Wanted {
        jobs: ["mallory-b".to_owned()].into(),
        ..Wanted::default()
    };
    let restored = remove::restore_runs(&db, &one, &mut Vec::new()).unwrap();
    assert_eq!((restored.len(), restored[0].state), (1, State::Counts));
    trains(&db, ALICE);
    assert_eq!(runs(&db), 4);
    // For good, and nothing else with them.
    let keep = Keep {
        generations: 1,
        quarantine: Duration::ZERO,
    };
    let pruned = remove::prune(&db, keep).unwrap();
    assert_eq!((pruned.runs, pruned.generations), (2, 2), "{pruned:?}");
    let left: Vec<String> = states(&db).into_iter().map(|(job, ..)| job).collect();
    assert_eq!(left, ["bob-a", "bob-b", "bob-c", "mallory-b"]);
    let mut raw: Vec<String> = held(&db).into_iter().map(|held| held.job).collect();
    raw.dedup();
    assert_eq!(raw, ["bob-a", "bob-b", "bob-c", "mallory-b"]);
    assert_eq!(faults(&db), Vec::<String>::new());
    assert!(!trained(&db).libraries[0].published, "nothing is new");
    // A weight leaves out a share of an owner's runs, none of another's.
    fs::write(db.owners(), format!("[owner.{BOB}]\nweight = 0\n")).unwrap();
    trains(&db, ALICE);
    assert_eq!(runs(&db), 1);
    let of_bob = states(&db)
        .into_iter()
        .filter(|(_, owner, _)| *owner == Some(BOB));
    assert!(
        of_bob
            .map(|(.., state)| state)
            .all(|state| state == State::LeftOut)
    );
}

#[test]
fn an_earlier_generation_is_put_in_force_again() {
    let (_folder, db) = private();
    for job in ["a", "b", "c"] {
        small(job).write(&db.incoming()).unwrap();
        trained(&db);
    }
    let key = LIBRARY.into();
    assert_eq!(remove::roll_back(&db, &key, None).unwrap(), (3, 2));
    assert_eq!(Generation::load(&db, LIBRARY).unwrap().number, 2);
    assert_eq!(remove::roll_back(&db, &key, Some(1)).unwrap(), (2, 1));
    let error = remove::roll_back(&db, &key, None).unwrap_err().to_string();
    assert!(error.contains("none before 1"), "{error}");
    assert!(remove::roll_back(&db, &key, Some(9)).is_err());
    assert_eq!(Generation::load(&db, LIBRARY).unwrap().number, 1);
    // What was rolled back to is never pruned, and numbers are not used again.
    let keep = Keep {
        generations: 0,
        quarantine: Duration::ZERO,
    };
    assert_eq!(remove::prune(&db, keep).unwrap().generations, 1);
    assert_eq!(Generation::load(&db, LIBRARY).unwrap().number, 1);
    small("d").write(&db.incoming()).unwrap();
    assert_eq!(trained(&db).libraries[0].generation, 4);
}

#[test]
fn what_others_left_in_quarantine_stops_no_pruning() {
    if !can_play() {
        return;
    }
    let (_folder, db) = shared("init owner");
    put(&db, MALLORY, "a.trace", b"x");
    does(
        &db,
        MALLORY,
        "mkdir -m 700 incoming/folder.trace; mkfifo -m 600 incoming/pipe.trace",
    );
    let (taken, _) = trains(&db, ALICE);
    assert_eq!(taken, 0);
    let keep = Keep {
        generations: 1,
        quarantine: Duration::ZERO,
    };
    let pruned = remove::prune(&db, keep).unwrap();
    assert!(pruned.quarantined >= 2, "{pruned:?}");
    records(&db, BOB, "bobs");
    assert_eq!(trains(&db, ALICE).0, 600);
}

#[test]
fn a_check_says_what_is_wrong_and_the_way_out() {
    let (_folder, db) = private();
    small("a").write(&db.incoming()).unwrap();
    trained(&db);
    small("b").write(&db.incoming()).unwrap();
    trained(&db);
    assert_eq!(faults(&db), Vec::<String>::new());
    let model = db.generations(LIBRARY).join("000002/probabilities.json");
    fs::write(&model, "{").unwrap();
    let found = faults(&db);
    assert!(
        found.len() == 1 && found[0].contains("rollback --to 1"),
        "{found:?}"
    );
    fs::set_permissions(db.root(), fs::Permissions::from_mode(0o777)).unwrap();
    let found = faults(&db);
    assert!(
        found.iter().any(|one| one.contains("init --shared")),
        "{found:?}"
    );
}
