use super::*;
use colltune_core::calibration::Calibration;
use colltune_core::collective::Collective;
use colltune_core::settings::Shown;

#[test]
fn a_new_database_has_settings_that_read_back_as_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::create_or_open(folder.path().join("new/db")).unwrap();
    let text = fs::read_to_string(db.settings_path()).unwrap();
    let settings = Settings::from_toml(&text).unwrap();
    assert_eq!(
        Settings {
            machine: None,
            ..settings
        },
        Settings::default()
    );
    // Without the comment signs it is the same: what the comments say is true.
    let example = |line: &str| {
        let key = line
            .split_once(" = ")
            .and_then(|(key, _)| settings::find(key));
        key.is_some_and(|key| matches!(key.shown, Shown::Example(_)))
    };
    let active: String = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix('#')
                .filter(|rest| !rest.starts_with(' '))
                .or((!line.starts_with('#')).then_some(line))
        })
        .filter(|line| !example(line))
        .map(|line| format!("{line}\n"))
        .collect();
    let settings = Settings::from_toml(&active).unwrap();
    let mut usual = Settings::default();
    usual.space.blocks.sort_by_key(|block| block.collective);
    assert_eq!(
        Settings {
            machine: None,
            ..settings
        },
        usual
    );
}

#[test]
fn settings_that_exist_are_left_alone_and_a_missing_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("colltune.toml"), "machine = \"hydra\"\n").unwrap();
    let db = Database::create_or_open(folder.path()).unwrap();
    assert_eq!(db.machine(&db.settings().unwrap()), "hydra");
    let error = Database::open(folder.path().join("nowhere"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn settings_that_a_link_names_are_neither_replaced_nor_guessed_while_they_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("colltune.toml");
    std::os::unix::fs::symlink("elsewhere.toml", &link).unwrap();
    let db = Database::create_or_open(folder.path()).unwrap();
    assert!(fs::read_link(&link).is_ok(), "the link is somebody's");
    let error = db.settings().unwrap_err().to_string();
    assert!(error.contains("colltune.toml"), "{error}");
    fs::write(
        folder.path().join("elsewhere.toml"),
        "machine = \"hydra\"\n",
    )
    .unwrap();
    assert_eq!(db.machine(&db.settings().unwrap()), "hydra");
}

#[test]
fn a_folder_of_other_things_is_neither_made_a_database_nor_changed_as_one() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("quarantine")).unwrap();
    fs::write(home.path().join("quarantine/thesis.tex"), "all of it").unwrap();
    for opened in [
        Database::create_or_open(home.path()),
        Database::open_to_change(home.path()),
    ] {
        let error = opened.unwrap_err().to_string();
        assert!(error.contains("name a new or an empty folder"), "{error}");
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    // A new home.
    fs::remove_dir_all(home.path().join("quarantine")).unwrap();
    fs::write(home.path().join(".bashrc"), "").unwrap();
    assert!(Database::create_or_open(home.path()).is_err());
    // What file systems put into every folder does not count.
    let empty = tempfile::tempdir().unwrap();
    fs::create_dir(empty.path().join("lost+found")).unwrap();
    fs::create_dir(empty.path().join(".snapshot")).unwrap();
    Database::create_or_open(empty.path()).unwrap();
    Database::open_to_change(empty.path()).unwrap();
}

#[test]
fn a_database_without_settings_is_one_by_its_traces_or_by_what_was_learned() {
    for has in ["incoming", "openmpi-4.1.4"] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(has)).unwrap();
        fs::write(folder.path().join("notes"), "whose runs these are").unwrap();
        Database::open_to_change(folder.path()).unwrap();
        Database::create_or_open(folder.path()).unwrap();
    }
}

#[test]
fn what_a_calibration_finds_is_read_whole_and_without_ratios_what_an_earlier_version_found() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::create_or_open(folder.path().join("db")).unwrap();
    let library: Library = "openmpi-4.1.4".parse().unwrap();
    let calibration = Calibration {
        schema: colltune_core::calibration::SCHEMA,
        library: library.to_string(),
        machine: "hydra".to_owned(),
        nodes: 1,
        ppn: 2,
        reduce_per_byte_ns: 0.1,
        copy_per_byte_ns: 0.1,
        loaded_per_byte_ns: None,
        inside: None,
        between: None,
        cores: None,
    };
    let text = "[[space]]\ncollective = \"allreduce\"\nbytes = [0, 64, \"inf\"]\n\
         nodes = [1, 4, \"inf\"]\nppn = [1, \"inf\"]\n";
    let mut settings = Settings::from_toml(text).unwrap();
    let blocks = &mut settings.space.blocks;
    blocks.retain(|block| block.collective == Collective::Allreduce);
    let found = db.calibrate(library, &calibration, &settings, "").unwrap();
    let read = || db.settings().unwrap().simulated.remove(&library);
    assert_eq!(read().as_ref(), Some(&found));
    fs::write(db.ratios(library), "{}").unwrap();
    let without = read().expect("what is hopeless is still known");
    assert_eq!(without.to_json(), found.to_json());
    assert_ne!(without, found);
    fs::remove_file(db.ratios(library)).unwrap();
    assert_eq!(read(), Some(without));
}

#[test]
fn only_library_keys_are_libraries() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "openmpi-4.1.4",
        "mpich-4.0.2",
        "incoming",
        "openmpi",
        "openmpi-4.1",
        "openmpi-4.1.4@ucx",
        "openmpi-4.1.4@",
    ] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let db = Database::open(folder.path()).unwrap();
    let libraries: Vec<_> = db
        .libraries()
        .unwrap()
        .iter()
        .map(Library::to_string)
        .collect();
    assert_eq!(libraries, ["openmpi-4.1.4", "mpich-4.0.2"]);
    let keys: Vec<_> = db.keys().unwrap().iter().map(DataKey::to_string).collect();
    assert_eq!(keys, ["openmpi-4.1.4", "openmpi-4.1.4@ucx", "mpich-4.0.2"]);
}
