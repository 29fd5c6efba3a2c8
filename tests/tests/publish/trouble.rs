//! What goes wrong is said in one sentence with the remedy, and jobs run untuned.

use std::process::Command;

use colltune_tests::{colltune, on_a_library, program};

use super::{FIRST, SECOND, Site, target_folder};

/// The model of a version.
fn model(site: &Site, version: &str) -> std::path::PathBuf {
    let library = site.mpi.library().to_string();
    let version = site.path().join("versions").join(version);
    version
        .join(library)
        .join("generations/000001/probabilities.json")
}

on_a_library! {
    fn a_site_folder_of_no_use_leaves_jobs_untuned_with_a_sentence(mpi: Mpi) {
        let site = Site::published(mpi);
        let whole = std::fs::read_to_string(site.path().join("site.json")).unwrap();
        let of_site = [
            ("{\"schema\": 1, \"curr", "is damaged"),
            ("{\"schema\": 9, \"current\": 1}", "version 9, this colltune reads 1"),
            ("{\"schema\": 1, \"current\": 0}", "nothing is published there yet"),
            // A canary, and nothing that the other jobs could keep to.
            ("{\"schema\":1,\"current\":0,\"canary\":{\"version\":1,\"share\":0.0}}", "nothing is published"),
            ("{\"schema\": 1, \"current\": 7}", "--rollback"),
        ];
        for (text, said) in of_site {
            site.write("site.json", text);
            site.runs_untuned(site.job(), &["site", said]);
        }
        site.write("site.json", &whole);
        site.runs(site.job(), FIRST);
    }

    fn a_version_of_no_use_names_the_rollback(mpi: Mpi) {
        let site = Site::published(mpi);
        site.publish(SECOND, &[]);
        let model = model(&site, "000002");
        let whole = std::fs::read_to_string(&model).unwrap();
        let other = whole.replace("\"schema\":1", "\"schema\":99").replace("\"schema\":2", "\"schema\":99");
        let rollback = format!("`colltune publish {} --rollback`", site.path().display());
        for text in [&other, &whole[..whole.len() / 2], ""] {
            std::fs::write(&model, text).unwrap();
            site.runs_untuned(site.job(), &["probabilities.json", &rollback]);
        }
        std::fs::remove_file(&model).unwrap();
        assert!(Command::new("mkfifo").arg(&model).status().unwrap().success());
        site.runs_untuned(site.job(), &["it is a pipe", &rollback]);
        site.tells(&["--rollback"]);
        site.runs(site.job(), FIRST);
        // Settings of a newer colltune.
        site.write("versions/000001/colltune.toml", "watch_more = 1\n");
        site.runs_untuned(site.job(), &["unknown key \"watch_more\""]);
        let refused = site.command(&["--rollback", "--to", "2"]).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("it is a pipe"), "{said}");
    }

    fn a_site_folder_that_is_not_there_leaves_jobs_untuned(mpi: Mpi) {
        let site = Site::published(mpi);
        let gone = site.path().with_extension("gone");
        std::fs::rename(site.path(), &gone).unwrap();
        site.runs_untuned(site.job(), &["failed to open the database", "site"]);
    }

    fn run_status_and_doctor_say_where_tables_come_from(mpi: Mpi) {
        let site = Site::published(mpi);
        let path = site.path();
        let path = path.to_string_lossy();
        let tells = |arguments: &[&str]| {
            let mut command = Command::new("timeout");
            command.args(["-k", "5", "120"]).arg(colltune()).args(arguments);
            command.env("COLLTUNE_LIB", target_folder()).env_remove("COLLTUNE_DB").env_remove("COLLTUNE_MODE");
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            let output = command.envs(mpi.variables()).output().unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (output.status.success(), text(&output.stdout) + &text(&output.stderr))
        };
        let in_force = format!("{path}: version 1 is in force");
        let (works, said) = tells(&["status", "--db", &path]);
        assert!(works && said.contains(&in_force) && said.contains(FIRST), "{said}");
        let (_, said) = tells(&["status", "--db", &path, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(json["site"]["in_force"], 1);
        let (_, said) = tells(&["doctor", "--no-self-test", "--db", &path]);
        assert!(said.contains(&format!("ok    site folder {in_force}")), "{said}");
        let program = program(mpi, "frequent");
        let launcher = mpi.launcher();
        let job = [launcher.as_ref(), "-n", "2", program.to_str().unwrap(), "60", "1"];
        let run = |options: &[&str]| tells(&[&["run", "--db", &path], options, &["--"], &job].concat());
        let (works, said) = run(&[]);
        assert!(works && said.contains("ok\n"), "{said}");
        assert!(!site.path().join("incoming").exists());
        let (works, said) = run(&["--mode", "explore"]);
        assert!(!works && said.contains("is a site folder, which jobs only read"), "{said}");
        for command in ["train", "calibrate"] {
            let (works, said) = tells(&[command, "--db", &path]);
            assert!(!works && !site.path().join("incoming").exists(), "{command}: {said}");
        }
        let (works, said) = tells(&["train", "--db", &path]);
        assert!(!works && said.contains("is a site folder") && said.contains("versions/000001"), "{said}");
        site.tells(&["--off", "--reason", "maintenance"]);
        let (_, said) = tells(&["doctor", "--no-self-test", "--db", &path]);
        assert!(said.contains("warn  site folder") && said.contains("untuned: maintenance"), "{said}");
        let (works, said) = run(&[]);
        assert!(works && said.contains("ok\n") && said.contains("runs untuned"), "{said}");
        assert!(!run(&["--strict"]).0);
    }

    fn what_is_asked_for_wrongly_is_answered_with_the_way(mpi: Mpi) {
        let site = Site::new(mpi);
        let refused = |options: &[&str]| {
            let output = site.command(options).output().unwrap();
            assert!(!output.status.success(), "{options:?}");
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        assert_eq!(refused(&[]).0, Some(2));
        assert!(refused(&["--list"]).1.contains("there is no such folder"));
        assert_eq!(refused(&["--promote", "--rollback"]).0, Some(2));
        assert!(refused(&["--db", "/nowhere"]).1.contains("no such folder"));
        site.publish(FIRST, &[]);
        assert!(refused(&["--promote"]).1.contains("no version is on trial"));
        assert!(refused(&["--rollback"]).1.contains("no version before 1"));
        let said = site.tells(&["--list"]);
        assert!(said.contains("in force") && said.contains("generation 1"), "{said}");
    }
}
