//! What a member of a shared database can try against whoever trains: each is a line of SECURITY.md.

mod actors;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use actors::*;
use colltune_db::test_support::LIBRARY;
use colltune_db::{TrainOptions, train};

/// The name that this process gives to unfinished work on `name`.
fn unfinished(name: &str) -> String {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    format!(".unfinished-{host}-{}-0-{name}", std::process::id())
}

#[test]
fn a_lock_that_is_a_link_is_not_written_through_and_stops_nobody() {
    if !can_play() {
        return;
    }
    let (_folder, db) = open_to_all();
    let precious = Precious::new();
    records(&db, BOB, "good");
    let target = precious.path();
    does(
        &db,
        MALLORY,
        &format!("ln -s '{}' train.lock", target.display()),
    );
    assert_eq!(trained(&db).ingest.records, 600);
    precious.is_intact();
    // The same by another name of the file itself, where the system lets users make one.
    fs::remove_file(db.lock_path()).unwrap();
    fs::hard_link(&target, db.lock_path()).unwrap();
    records(&db, BOB, "better");
    assert_eq!(trained(&db).ingest.records, 600);
    precious.is_intact();
    // And by a pipe.
    fs::remove_file(db.lock_path()).unwrap();
    does(&db, MALLORY, "mkfifo train.lock");
    records(&db, BOB, "best");
    assert_eq!(trained(&db).ingest.records, 600);
}

#[test]
fn a_reason_is_not_written_through_a_link() {
    if !can_play() {
        return;
    }
    let (_folder, db) = open_to_all();
    let precious = Precious::new();
    records(&db, BOB, "good");
    let target = precious.path();
    does(
        &db,
        MALLORY,
        &format!(
            "mkdir -p quarantine; chmod 2777 quarantine; echo x > incoming/evil.trace; \
             ln -s '{}' quarantine/evil.trace.reason",
            target.display()
        ),
    );
    assert_eq!(trained(&db).ingest.records, 600);
    precious.is_intact();
}

#[test]
fn a_folder_that_is_a_link_is_not_written_into() {
    if !can_play() {
        return;
    }
    for name in ["quarantine", "runs", "openmpi-4.1.4", "tune"] {
        let (_folder, db) = open_to_all();
        let precious = Precious::new();
        records(&db, BOB, "good");
        put(&db, BOB, "evil.trace", b"x");
        put(&db, BOB, "job.run", RUN.as_bytes());
        let target = precious.folder().display().to_string();
        does(&db, MALLORY, &format!("ln -s '{target}' {name}"));
        let _ = train(&db, TrainOptions::default(), &|_| {});
        precious.is_intact();
    }
}

const RUN: &str = concat!(
    r#"{"schema":1,"job":"job","program":"solver","mode":"explore","library":"openmpi-4.1.4","#,
    r#""machine":"testing","generation":0,"ranks":8,"nodes":4,"started_unix_ms":0,"wall_s":1.0,"#,
    r#""collectives_s":{"mean":0.5,"max":0.5},"calls":9,"passed":0,"tuned_share":0.0,"by_collective":[],"#,
    r#""waiting_share":null,"best_possible_gain":1.0,"refused":[]}"#,
    "\n"
);

#[test]
fn unfinished_work_is_not_written_through_a_link() {
    if !can_play() {
        return;
    }
    let (_folder, db) = open_to_all();
    records(&db, BOB, "first");
    put(&db, BOB, "job.run", RUN.as_bytes());
    trained(&db);
    let precious = Precious::new();
    let target = precious.path();
    let library = db.library(LIBRARY);
    // Whatever a training publishes here, by the names that it would take; a generation is a folder.
    let mut places = vec![(library.clone(), "CURRENT".to_owned())];
    places.push((db.generations(LIBRARY), "000002".to_owned()));
    for (folder, name) in places {
        std::os::unix::fs::symlink(&target, folder.join(unfinished(&name))).unwrap();
    }
    records(&db, BOB, "second");
    // Taken away at the start of a training; put back while it runs, at each of its steps.
    let report = train(&db, TrainOptions::default(), &|_| {
        for (folder, name) in [(&library, "CURRENT"), (&db.generations(LIBRARY), "000002")] {
            let _ = std::os::unix::fs::symlink(&target, folder.join(unfinished(name)));
        }
    })
    .unwrap();
    assert_eq!(report.libraries[0].generation, 2);
    precious.is_intact();
}

#[test]
fn whatever_members_put_into_incoming_good_traces_are_taken() {
    if !can_play() {
        return;
    }
    let (_folder, db) = open_to_all();
    let precious = Precious::new();
    records(&db, BOB, "good");
    let long = "a".repeat(252);
    let target = precious.path();
    does(
        &db,
        MALLORY,
        &format!(
            "cd incoming; mkfifo pipe.0.trace pipe.run; mkdir folder.0.trace folder.run; touch {long}; \
             truncate -s 1T sparse.0.trace; truncate -s 1T sparse.run; ln -s /dev/zero endless.0.trace; \
             ln -s /dev/zero endless.run; ln -s '{0}' link.0.trace; ln -s '{0}' link.run; \
             ln -s . loop.0.trace; touch \"$(printf 'a\\nb').0.trace\"; echo x > '.unfinished-x'",
            target.display()
        ),
    );
    let zeros = rustix::fs::makedev(1, 5);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        db.incoming().join("device.0.trace"),
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::Mode::from_raw_mode(0o666),
        zeros,
    )
    .unwrap();
    fs::write(
        db.incoming()
            .join(std::ffi::OsStr::from_bytes(b"\xff.0.trace")),
        "x",
    )
    .unwrap();
    let report = trained(&db);
    assert_eq!(report.ingest.records, 600);
    precious.is_intact();
    // Names are as long as the system allows, so the reason has a shorter one.
    let left = names(&db.incoming());
    assert!(!left.contains(&long), "{left:?}");
    let told = report.ingest.quarantined.len() + report.ingest.warnings.len();
    assert!(told >= 8, "{report:?}");
    // Nothing is said a second time of what has been put away.
    records(&db, BOB, "more");
    let again = trained(&db).ingest;
    assert_eq!((again.records, again.quarantined.len()), (600, 0));
}

#[test]
fn a_trace_that_is_another_name_of_somebodys_file_is_not_taken() {
    if !can_play() {
        return;
    }
    let (folder, db) = open_to_all();
    records(&db, BOB, "bobs");
    let kept = folder.path().join("bobs-own");
    fs::rename(db.incoming().join("bobs.0.trace"), &kept).unwrap();
    fs::hard_link(&kept, db.incoming().join("bobs.0.trace")).unwrap();
    let report = trained(&db).ingest;
    assert_eq!(report.records, 300, "{report:?}");
    assert!(
        report.quarantined[0].1.contains("other names"),
        "{report:?}"
    );
    assert!(kept.exists());
}

#[test]
fn an_account_that_is_another_name_of_somebodys_file_is_not_taken() {
    if !can_play() {
        return;
    }
    let (folder, db) = open_to_all();
    put(&db, BOB, "job.run", RUN.as_bytes());
    let kept = folder.path().join("bobs-own");
    fs::hard_link(db.incoming().join("job.run"), &kept).unwrap();
    let mut told = Vec::new();
    assert_eq!(colltune_db::runs::all(&db, &mut told), []);
    assert!(
        told.len() == 1 && told[0].contains("another name"),
        "{told:?}"
    );
    trained(&db);
    assert!(kept.exists() && db.incoming().join("job.run").exists());
    // Once it has one name it is as good as any.
    fs::remove_file(&kept).unwrap();
    trained(&db);
    assert_eq!(colltune_db::runs::all(&db, &mut told).len(), 1);
    assert!(!db.incoming().join("job.run").exists());
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|found| found.is_symlink())
}

#[test]
fn what_a_training_replaces_is_replaced_itself_and_not_what_it_points_to() {
    if !can_play() {
        return;
    }
    let (_folder, db) = open_to_all();
    records(&db, BOB, "first");
    trained(&db);
    let precious = Precious::new();
    fs::remove_file(db.current(LIBRARY)).unwrap();
    std::os::unix::fs::symlink(precious.path(), db.current(LIBRARY)).unwrap();
    records(&db, BOB, "second");
    trained(&db);
    precious.is_intact();
    assert!(!is_link(&db.current(LIBRARY)));
}
