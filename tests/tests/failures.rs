//! When things are wrong: the program's output and exit code are its own, and one message says what
//! happened.

use std::fs;
use std::process::Command;

use colltune_core::model::Model;
use colltune_core::settings::Settings;
use colltune_tests::{
    Job, Mpi, colltune, folder, job, on_a_library, on_each_library, open_to_all, target_folder,
    traces,
};

/// Runs a program; the shim must give exactly one message with these parts.
#[track_caller]
fn warns(job: Job, parts: &[&str]) {
    // Not an exit code of its own: Open MPI's launcher sleeps for two seconds after one.
    let outcome = job.run("ends", &["exit", "0"]);
    outcome.succeeds().prints("sum 2\n").says(parts);
}

fn tuned(mpi: Mpi) -> Job {
    job(2).mpi(mpi).preload()
}

/// A database whose generation 1 is in force, with this text as its probabilities.
fn database(mpi: Mpi, probabilities: &str) -> tempfile::TempDir {
    let db = folder();
    let generation = db
        .path()
        .join(mpi.library().to_string())
        .join("generations/000001");
    fs::create_dir_all(&generation).unwrap();
    fs::write(generation.join("probabilities.json"), probabilities).unwrap();
    fs::write(
        db.path().join(mpi.library().to_string()).join("CURRENT"),
        "000001\n",
    )
    .unwrap();
    db
}

fn good_model(mpi: Mpi) -> String {
    Model {
        generation: 1,
        ..Model::initial(&Settings::default(), mpi.library(), "test")
    }
    .to_json()
}

on_each_library! {
    fn one_rank_cannot_be_calibrated_and_leaves_no_calibration(mpi: Mpi) {
        // Whatever stands before the launcher, here `nice`, stays there.
        for before in [&[][..], &["nice", "-n", "1"]] {
            let db = folder();
            let output = Command::new(colltune())
                .args(["calibrate", "--db"])
                .arg(db.path())
                .arg("--")
                .args(before)
                .args([&mpi.launcher(), "-n", "1"])
                .env("COLLTUNE_LIB", target_folder())
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .output()
                .expect("colltune starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("start two or more"), "{said}");
            let file = db.path().join(mpi.library().to_string()).join("calibration.toml");
            assert!(!file.exists(), "{}", file.display());
        }
    }

    fn a_good_generation_is_used_in_silence(mpi: Mpi) {
        let db = database(mpi, &good_model(mpi));
        let outcome = tuned(mpi).db(db.path()).run("ends", &["exit", "0"]);
        outcome.succeeds().prints("sum 2\n").is_silent();
        assert_eq!(traces(db.path())[0].header.generation, 1);
    }

    fn a_database_that_cannot_be_opened_is_named(mpi: Mpi) {
        let scratch = folder();
        let missing = scratch.path().join("nowhere");
        warns(tuned(mpi).db(&missing), &["failed to open the database", missing.to_str().unwrap(), "untuned"]);
        assert!(!missing.exists());
        let file = scratch.path().join("file");
        fs::write(&file, "").unwrap();
        warns(tuned(mpi).db(&file), &["failed to open the database", "not a folder"]);
    }

    fn files_that_cannot_be_read_are_named(mpi: Mpi) {
        let db = folder();
        fs::create_dir(db.path().join("colltune.toml")).unwrap();
        warns(tuned(mpi).db(db.path()), &["failed to read", "colltune.toml"]);
        let db = database(mpi, "");
        let file = db.path().join(mpi.library().to_string()).join("generations/000001/probabilities.json");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        warns(tuned(mpi).db(db.path()), &["failed to read", "probabilities.json"]);
    }

    fn a_database_whose_name_is_no_text_is_named(mpi: Mpi) {
        use std::os::unix::ffi::OsStrExt;
        let db = folder();
        let db = db.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
        fs::create_dir(&db).unwrap();
        warns(tuned(mpi).env("COLLTUNE_DB", db), &["COLLTUNE_DB", "UTF-8"]);
    }

    fn a_database_without_permission_is_named(mpi: Mpi) {
        use std::os::unix::fs::PermissionsExt;
        let db = folder();
        fs::set_permissions(db.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(db.path().join("colltune.toml"), "").unwrap();
        let shared = folder();
        let [shim, program] = open_to_all([&mpi.shim(), &colltune_tests::program(mpi, "ends")], shared.path());
        let Some(job) = job(2).mpi(mpi).preload_shim(shim).db(db.path()).as_nobody() else { return };
        let outcome = job.run(program.to_str().unwrap(), &["exit", "3"]);
        outcome.exits(3).prints("sum 2\n").says(&["failed to", "Permission denied", "untuned"]);
    }

    fn a_mode_that_needs_a_database_says_so(mpi: Mpi) {
        warns(tuned(mpi).mode("record"), &["COLLTUNE_MODE=record", "COLLTUNE_DB"]);
    }

    fn a_variant_that_cannot_apply_says_so_once(mpi: Mpi) {
        // On one node and two ranks neither has what it needs; calls run default.
        let force = if mpi == Mpi::OpenMpi { "allreduce=native:ring" } else { "allreduce=native:smp" };
        warns(tuned(mpi).force(force), &[force, "but needs"]);
    }

    fn the_build_for_another_library_stands_aside(mpi: Mpi) {
        let Some(other) = mpi.other().installed() else { return };
        let db = folder();
        warns(job(2).mpi(mpi).preload_shim(other.shim()).db(db.path()), &["untuned", &mpi.library().to_string()]);
        let outcome = job(2).mpi(mpi).preload_shim(other.shim()).run("collectives", &["1"]);
        outcome.succeeds().prints("ok\n").is_silent();
    }

    fn abort_and_exit_codes_pass_through(mpi: Mpi) {
        for arguments in [["abort", "5"], ["exit", "3"], ["exit", "0"]] {
            let db = folder();
            let bare = job(2).mpi(mpi).run("ends", &arguments);
            let tuned = tuned(mpi).db(db.path()).seed(1).run("ends", &arguments);
            tuned.exits(bare.code.unwrap_or(-1)).claim(tuned.messages().is_empty(), "the shim has a message");
            // What a launcher still forwards of an aborted job is its own affair.
            if arguments[0] != "abort" {
                tuned.prints(&bare.stdout);
            }
        }
    }
}

on_a_library! {
    /// A pipe has no process at its other end, a device may have no end.
    fn files_that_are_none_are_neither_waited_for_nor_read(mpi: Mpi) {
        let generation = "generations/000001/probabilities.json";
        let library = mpi.library().to_string();
        for place in ["colltune.toml".to_owned(), format!("{library}/CURRENT"), format!("{library}/{generation}")] {
            let db = database(mpi, &good_model(mpi));
            let file = db.path().join(&place);
            let _ = fs::remove_file(&file);
            assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
            warns(tuned(mpi).db(db.path()), &["failed to read", &place, "a pipe", "untuned"]);
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
            warns(tuned(mpi).db(db.path()), &["failed to read", &place, "a device", "untuned"]);
        }
    }

    fn a_broken_generation_is_named(mpi: Mpi) {
        let good = good_model(mpi);
        let other = mpi.other().library().to_string();
        for (text, parts) in [
            (good[..good.len() / 2].to_owned(), &["read the model", "probabilities.json"][..]),
            (String::new(), &["read the model"]),
            (good.replace("\"schema\":1", "\"schema\":99"), &["version 99"]),
            (good.replacen(&mpi.library().to_string(), &other, 1), &["was learned for", &other]),
            (good.replacen("\"probability\":", "\"probability\":7", 1), &["use the model, cell"]),
        ] {
            warns(tuned(mpi).db(database(mpi, &text).path()), parts);
        }
    }

    fn a_current_that_points_nowhere_is_named(mpi: Mpi) {
        for (current, parts) in [("000007\n", &["000007"][..]), ("../../etc\n", &["CURRENT", "not the number of a generation"]), ("", &["CURRENT"])] {
            let db = database(mpi, &good_model(mpi));
            fs::write(db.path().join(mpi.library().to_string()).join("CURRENT"), current).unwrap();
            warns(tuned(mpi).db(db.path()), parts);
        }
    }

    fn unknown_values_are_named_with_the_allowed_ones(mpi: Mpi) {
        let db = folder();
        let tuned = || tuned(mpi).db(db.path());
        warns(tuned().mode("exploid"), &["\"exploid\"", "explore, exploit, tables, record, off", "COLLTUNE_MODE"]);
        warns(tuned().force("allreduce=native:rink"), &["native:rink", "nearest of its", "`colltune variants` lists all", "COLLTUNE_FORCE"]);
        warns(tuned().force("allreduse=default"), &["\"allreduse\"", "allreduce, bcast", "COLLTUNE_FORCE"]);
        warns(tuned().force("allreduce"), &["\"allreduce\"", "COLLECTIVE=VARIANT"]);
        warns(tuned().env("COLLTUNE_LOG", "message:/tmp"), &["\"message:/tmp\"", "calls:DIR", "COLLTUNE_LOG"]);
        warns(tuned().env("COLLTUNE_SEED", "abc"), &["COLLTUNE_SEED", "abc", "whole number"]);
        warns(tuned().env("COLLTUNE_REPRODUCIBLE", "maybe"), &["COLLTUNE_REPRODUCIBLE", "\"off\", \"run\", \"strict\""]);
        warns(tuned().env("COLLTUNE_HANDSHAKE_TIMEOUT", "soon"), &["COLLTUNE_HANDSHAKE_TIMEOUT", "soon"]);
        warns(tuned().log("/proc/nowhere"), &["call log", "/proc/nowhere"]);
    }

    fn a_bad_settings_file_is_named_with_its_line(mpi: Mpi) {
        for (text, parts) in [
            ("# fine\nexplore_total = 7\n", &["line 2", "explore_total", "7"][..]),
            ("recods_per_run = 1\n", &["line 1", "recods_per_run"]),
            ("\n\n= 3\n", &["line 3"]),
            ("[[space]]\ncollective = \"bcast\"\nbytes = [0, 8, 4, \"inf\"]\n", &["line 3", "4"]),
        ] {
            let db = folder();
            fs::write(db.path().join("colltune.toml"), text).unwrap();
            warns(tuned(mpi).db(db.path()), parts);
        }
    }
}
