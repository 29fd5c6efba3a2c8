//! Sites of synthetic databases.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use colltune_core::site::SiteState;
use tempfile::{TempDir, tempdir};

use super::*;
use crate::database::{Database, DbError};
use crate::generation::Generation;
use crate::test_support::{LIBRARY, Run};
use crate::train::{TrainOptions, train};
use crate::write::interruption;

/// A database in which something was learned.
fn trained() -> (TempDir, Database) {
    let folder = tempdir().unwrap();
    let db = Database::create_or_open(folder.path().join("db")).unwrap();
    fs::write(db.settings_path(), "machine = \"testing\"\n").unwrap();
    learn(&db, "first");
    (folder, db)
}

fn learn(db: &Database, job: &str) {
    let run = Run {
        calls: 200,
        ..Run::new(job, 1)
    };
    run.write(&db.incoming()).unwrap();
    train(db, TrainOptions::default(), &|_| {}).unwrap();
}

fn tables() -> Tables {
    Tables {
        key: LIBRARY.into(),
        files: vec![("rules.conf", "# none\n".to_owned())],
    }
}

fn published(folder: &TempDir, db: &Database) -> SiteFolder {
    let (site, version) = publish(&path(folder), db, &[tables()], ForJobs::All).unwrap();
    assert_eq!(version, 1);
    site
}

fn path(folder: &TempDir) -> PathBuf {
    folder.path().join("site")
}

fn in_force(site: &SiteFolder) -> (u64, Option<u64>) {
    let state = site.state().unwrap();
    (state.current, state.canary.map(|canary| canary.version))
}

fn says(result: Result<impl std::fmt::Debug, DbError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_version_is_a_database_that_says_what_the_other_one_said() {
    let (folder, db) = trained();
    let site = published(&folder, &db);
    let version = colltune_files::site::version(site.path(), 1);
    let copy = Database::open(&version).unwrap();
    let [one, other] = [&db, &copy].map(|db| Generation::load(db, LIBRARY).unwrap());
    assert_eq!(one, other);
    assert_eq!(copy.settings().unwrap().machine.as_deref(), Some("testing"));
    let rules = version.join("tables").join(LIBRARY.to_string());
    assert_eq!(
        fs::read_to_string(rules.join("rules.conf")).unwrap(),
        "# none\n"
    );
    let about = site.about(1).unwrap();
    assert_eq!((about.version, about.database), (1, db.root().to_owned()));
    assert!(about.libraries[0].tables && about.libraries[0].generation == 1);
    // What the site is made of is no database, and nothing makes it one.
    let error = says(Database::create_or_open(site.path()));
    assert!(
        error.contains("site folder") && error.contains("versions/000001"),
        "{error}"
    );
    assert!(Database::open(site.path()).is_err() && !site.path().join("incoming").exists());
}

#[test]
fn versions_are_tried_promoted_and_taken_back() {
    let (folder, db) = trained();
    let site = published(&folder, &db);
    let canary = |share| {
        publish(site.path(), &db, &[], ForJobs::Share(share))
            .unwrap()
            .1
    };
    assert_eq!(canary(0.05), 2);
    assert_eq!(in_force(&site), (1, Some(2)));
    let listed = site.versions().unwrap();
    assert_eq!(listed[1].canary, Some(0.05));
    assert!(listed[0].in_force && !listed[1].in_force);
    site.promote().unwrap();
    assert_eq!(in_force(&site), (2, None));
    assert!(says(site.promote()).contains("no version is on trial"));
    // A trial ends, and its number is not given out again.
    assert_eq!(canary(0.5), 3);
    site.roll_back(None).unwrap();
    assert_eq!(in_force(&site), (2, None));
    assert_eq!(canary(0.5), 4);
    site.roll_back(Some(3)).unwrap();
    assert_eq!(in_force(&site), (3, None));
    site.roll_back(None).unwrap();
    site.roll_back(None).unwrap();
    assert_eq!(in_force(&site), (1, None));
    assert!(says(site.roll_back(None)).contains("no version before 1"));
    assert!(says(site.roll_back(Some(7))).contains("no version 7"));
}

#[test]
fn a_first_version_cannot_be_tried_by_some_and_nothing_learned_is_not_published() {
    let (folder, db) = trained();
    let first = publish(&path(&folder), &db, &[], ForJobs::Share(0.05));
    assert!(says(first).contains("without --canary"));
    assert_eq!(
        SiteFolder::open(&path(&folder)).unwrap().state().unwrap(),
        SiteState::default()
    );
    let empty = Database::create_or_open(folder.path().join("empty")).unwrap();
    let error = says(publish(
        &folder.path().join("other"),
        &empty,
        &[],
        ForJobs::All,
    ));
    assert!(error.contains("colltune train"), "{error}");
    assert!(!folder.path().join("other").exists());
    let error = says(SiteFolder::open(&folder.path().join("nowhere")));
    assert!(error.contains("no such folder"), "{error}");
}

#[test]
fn the_switch_says_why_and_is_turned_on_again() {
    let (folder, db) = trained();
    let site = published(&folder, &db);
    assert_eq!(site.is_off(), None);
    site.switch_off("allreduce hangs\non n17").unwrap();
    assert_eq!(site.is_off().as_deref(), Some("allreduce hangson n17"));
    // Whatever is published meanwhile.
    publish(site.path(), &db, &[], ForJobs::All).unwrap();
    assert!(site.is_off().is_some());
    assert!(site.switch_on().unwrap() && !site.switch_on().unwrap());
    assert_eq!(site.is_off(), None);
}

#[test]
fn a_publisher_that_ends_anywhere_leaves_the_site_as_it_was_or_published() {
    let (folder, db) = trained();
    let site = published(&folder, &db);
    learn(&db, "second");
    let mut whole = false;
    for steps in 0.. {
        let before = site.state().unwrap();
        interruption::after(steps);
        let result = publish(site.path(), &db, &[tables()], ForJobs::All);
        interruption::after(u32::MAX);
        let now = site.state().unwrap();
        assert!(now.current >= before.current);
        site.about(now.current).unwrap();
        assert_eq!(
            site.versions()
                .unwrap()
                .iter()
                .filter(|one| one.problem.is_some())
                .count(),
            0
        );
        if result.is_ok() {
            whole = steps > 5;
            break;
        }
    }
    assert!(whole, "nothing was interrupted");
    // What a killed publisher could not take away goes with the next.
    let left = site
        .path()
        .join("versions/.unfinished-node9-1-0-000099/openmpi-4.1.4/generations");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("half"), "").unwrap();
    publish(site.path(), &db, &[], ForJobs::All).unwrap();
    assert!(!left.exists(), "{}", left.display());
}

#[test]
fn whoever_may_read_the_site_may_read_all_of_it_whatever_the_umask() {
    let (folder, db) = trained();
    let modes = |site: &Path| {
        let mut all = Vec::new();
        let mut folders = vec![site.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let mode = path.metadata().unwrap().permissions().mode() & 0o777;
                if path.is_dir() {
                    folders.push(path.clone());
                }
                if !path.ends_with("publish.lock") {
                    all.push((path.is_dir(), mode));
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    };
    // Their modes are not the umask's, which all tests share.
    for (of_site, expected) in [
        (0o755, [0o644, 0o755]),
        (0o750, [0o640, 0o750]),
        (0o700, [0o600, 0o700]),
    ] {
        let site = folder.path().join(format!("{of_site:o}"));
        fs::create_dir(&site).unwrap();
        fs::set_permissions(&site, fs::Permissions::from_mode(of_site)).unwrap();
        let (made, _) = publish(&site, &db, &[tables()], ForJobs::All).unwrap();
        made.switch_off("").unwrap();
        made.write_module(&["colltune"], "openmpi.lua", "").unwrap();
        assert_eq!(modes(&site), [(false, expected[0]), (true, expected[1])]);
    }
}

#[test]
fn a_folder_of_other_things_or_that_everybody_writes_to_is_refused() {
    let (folder, db) = trained();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("thesis.tex"), "").unwrap();
    let error = says(publish(&home, &db, &[], ForJobs::All));
    assert!(error.contains("holds other things"), "{error}");
    assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
    let site = published(&folder, &db);
    fs::set_permissions(site.path(), fs::Permissions::from_mode(0o777)).unwrap();
    for error in [
        says(publish(site.path(), &db, &[], ForJobs::All)),
        says(site.roll_back(None)),
        says(site.switch_off("")),
    ] {
        assert!(error.contains("chmod o-w"), "{error}");
    }
}

#[test]
fn nothing_is_published_through_a_link() {
    let (folder, db) = trained();
    let site = published(&folder, &db);
    let (precious, inner) = (folder.path().join("precious"), folder.path().join("inner"));
    fs::write(&precious, "precious").unwrap();
    fs::create_dir(&inner).unwrap();
    let link = |target: &Path, name: &str| {
        let name = site.path().join(name);
        let _ = fs::remove_file(&name);
        std::os::unix::fs::symlink(target, name).unwrap();
    };
    for name in ["site.json", "OFF", "publish.lock"] {
        link(&precious, name);
    }
    assert!(says(site.state()).contains("a symbolic link"));
    site.switch_off("").unwrap();
    assert!(
        site.path()
            .join("OFF")
            .symlink_metadata()
            .unwrap()
            .is_file()
    );
    fs::remove_dir_all(site.path().join("versions")).unwrap();
    link(&inner, "versions");
    link(&inner, "modulefiles");
    fs::remove_file(site.path().join("site.json")).unwrap();
    fs::write(
        site.path().join("site.json"),
        SiteState::default().to_json(),
    )
    .unwrap();
    assert!(says(publish(site.path(), &db, &[], ForJobs::All)).contains("a symbolic link"));
    assert!(says(site.write_module(&[], "x", "")).contains("a symbolic link"));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_used_is_told_and_not_put_in_force() {
    let (folder, db) = trained();
    let site = published(&folder, &db);
    let publish = || publish(site.path(), &db, &[], ForJobs::All).unwrap().1;
    assert_eq!((publish(), publish()), (2, 3));
    let about = site.path().join("versions/000002/about.json");
    let text = fs::read_to_string(&about).unwrap();
    fs::write(&about, text.replace("\"schema\": 1", "\"schema\": 9")).unwrap();
    let error = says(site.roll_back(Some(2)));
    assert!(error.contains("publish anew"), "{error}");
    let model = site
        .path()
        .join("versions/000001")
        .join(LIBRARY.to_string());
    fs::write(model.join("generations/000001/probabilities.json"), "{").unwrap();
    assert!(site.roll_back(Some(1)).is_err());
    let problems: Vec<bool> = site
        .versions()
        .unwrap()
        .iter()
        .map(|one| one.problem.is_some())
        .collect();
    assert_eq!(
        (problems, in_force(&site)),
        (vec![true, true, false], (3, None))
    );
    // A damaged site.json is written anew.
    fs::write(site.path().join("site.json"), "{\"sch").unwrap();
    assert!(says(site.versions()).contains("damaged"));
    assert_eq!(publish(), 4);
    assert_eq!(in_force(&site), (4, None));
    fs::write(site.path().join("site.json"), "{\"schema\": 9}").unwrap();
    let other = super::publish(site.path(), &db, &[], ForJobs::All);
    assert!(says(other).contains("version 9"));
}
