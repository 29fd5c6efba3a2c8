//! `colltune-lab telemetry` on what real runs of the mini-app recorded.

use std::path::Path;
use std::process::{Command, Output};

use colltune_tests::{Mpi, colltune_lab as command, folder, job, on_each_library};
use serde_json::Value;

/// A blast wave with two levels of refinement.
const BLAST: &str = "--physics euler --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 2 --refine_freq 5 \
    --refine_buffer 0 --sedov_centre .3 .4 .2 --checksum_freq 2 --cost level";

/// Stencils with a sweep for each axis.
const BY_AXIS: &str = "--nx 4 --ny 4 --nz 4 --num_vars 4 --comm_vars 2 --npx 2 --npy 2 --npz 2 --num_refine 1 \
    --stages_per_ts 4 --refine_freq 4 --checksum_freq 2 --stencil 27 \
    --object 2 0 .2 .3 .4 .05 .04 .02 .15 .15 .15 0 0 0";

fn record(mpi: Mpi, n_ranks: u32, line: &str, to: &Path) {
    let line = format!(
        "{line} --telemetry {} --telemetry_blocks --telemetry_rounds",
        to.display()
    );
    let words: Vec<&str> = line.split_whitespace().collect();
    let app = mpi.mini_app();
    let outcome = job(n_ranks).mpi(mpi).run(&app.to_string_lossy(), &words);
    outcome.succeeds();
}

fn ask(question: &str, folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.args(["telemetry", question]).arg(folder).args(more);
    command.output().expect("it starts")
}

fn json(question: &str, folder: &Path) -> Value {
    let output = ask(question, folder, &["--json"]);
    assert!(output.status.success(), "{question}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn whole(share: &Value) -> i64 {
    let parts = ["work", "other", "wait", "sync", "call"];
    parts
        .iter()
        .map(|part| share[part].as_i64().expect("nanoseconds"))
        .sum()
}

/// How it fails: exit code 1, and a message.
fn complaint(question: &str, folder: &Path) -> String {
    let output = ask(question, folder, &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

on_each_library! {
    fn times_of_ranks_add_up_to_the_time_of_the_run_and_every_path_obeys_the_theorem(mpi: Mpi) {
        for line in [BLAST, BY_AXIS] {
            let place = folder();
            record(mpi, 6, &format!("{line} --num_tsteps 12"), place.path());
            let summary = json("summary", place.path());
            let ranks = summary["ranks"].as_array().expect("ranks");
            assert_eq!(
                (ranks.len(), summary["steps"].as_array().map(Vec::len)),
                (6, Some(12))
            );
            // Its own recordings are understood.
            assert_eq!(summary["warnings"], Value::Array(Vec::new()), "{line}");
            let sum: i64 = ranks.iter().map(whole).sum();
            assert_eq!(sum, whole(&summary["total"]), "{line}");
            assert!(ranks.iter().all(|rank| whole(rank) > 0), "{ranks:?}");
            let names: Vec<&str> = summary["phases"]
                .as_array()
                .expect("phases")
                .iter()
                .filter_map(|p| p["phase"].as_str())
                .collect();
            assert!(
                names.contains(&"compute") && names.contains(&"sum"),
                "{names:?}"
            );
            assert!(
                summary["levels"]
                    .as_array()
                    .is_some_and(|levels| levels.len() >= 2),
                "{summary}"
            );
            let paths = json("path", place.path());
            assert_eq!(
                paths["violations"],
                Value::Array(Vec::new()),
                "{mpi:?}, {line}"
            );
            let counted: u64 = paths["histogram"]
                .as_array()
                .expect("counts")
                .iter()
                .filter_map(Value::as_u64)
                .sum();
            assert_eq!(
                (counted, &paths["windows"]),
                (
                    summary["windows"].as_u64().expect("a number"),
                    &paths["windows"]
                )
            );
            assert_eq!(paths["windows"].as_u64(), Some(counted));
            let noise = json("noise", place.path());
            assert!(noise["verdict"]["text"].is_string(), "{noise}");
        }
    }

    fn a_rank_that_is_made_slow_leads_the_paths_and_is_the_one_that_is_named(mpi: Mpi) {
        let place = folder();
        record(
            mpi,
            4,
            &format!("{BLAST} --num_tsteps 16 --slow 2:60"),
            place.path(),
        );
        let paths = json("path", place.path());
        // By time on the paths, as the command lists them: where ranks take turns on cores, whose part of a short window
        // is the last one is chance.
        assert_eq!(paths["ranks"][0]["rank"], 2, "{mpi:?}: {}", paths["ranks"]);
        let health = json("health", place.path());
        let verdicts = health["verdicts"].as_array().expect("verdicts");
        assert!(
            verdicts
                .iter()
                .any(|verdict| verdict["ranks"] == serde_json::json!([2])),
            "{mpi:?}: {health}"
        );
        let steps = ask("path", place.path(), &["--steps", "3..7", "--json"]);
        let few: Value = serde_json::from_slice(&steps.stdout).expect("JSON");
        assert!(few["windows"].as_u64() < paths["windows"].as_u64());
    }

    fn a_matrix_counts_what_was_sent_and_its_picture_and_table_say_the_same(mpi: Mpi) {
        let place = folder();
        record(mpi, 4, &format!("{BLAST} --num_tsteps 10"), place.path());
        let [svg, csv] = ["m.svg", "m.csv"].map(|name| place.path().join(name));
        let files = [
            "--svg",
            svg.to_str().expect("UTF-8"),
            "--csv",
            csv.to_str().expect("UTF-8"),
        ];
        assert!(ask("matrix", place.path(), &files).status.success());
        let matrix = json("matrix", place.path());
        let cells = matrix["cells"].as_array().expect("cells");
        let table = std::fs::read_to_string(&csv).expect("a table");
        assert_eq!(table.lines().count(), 1 + cells.len());
        let picture = std::fs::read_to_string(&svg).expect("a picture");
        assert!(
            picture.starts_with("<svg")
                && picture.matches("bytes a step</title>").count() == cells.len()
        );
        // Whom a rank gives ghosts to gives it some back.
        let ghosts = ask(
            "matrix",
            place.path(),
            &["--kind", "ghost", "--step", "1", "--json"],
        );
        let ghosts: Value = serde_json::from_slice(&ghosts.stdout).expect("JSON");
        let pairs: std::collections::BTreeSet<(u64, u64)> = ghosts["cells"]
            .as_array()
            .expect("cells")
            .iter()
            .map(|cell| {
                (
                    cell["from"].as_u64().expect("a rank"),
                    cell["to"].as_u64().expect("a rank"),
                )
            })
            .collect();
        assert!(
            !pairs.is_empty() && pairs.iter().all(|&(from, to)| pairs.contains(&(to, from))),
            "{pairs:?}"
        );
    }

    fn what_is_missing_or_damaged_is_named_and_what_can_be_shown_is_shown(mpi: Mpi) {
        let place = folder();
        assert!(complaint("summary", place.path()).contains("--telemetry FOLDER"));
        record(
            mpi,
            4,
            &format!("{BLAST} --num_tsteps 12 --telemetry_group 2"),
            place.path(),
        );
        // Half of the ranks' windows are cut off, as by a full disk.
        let damaged = place.path().join("windows.0001.parquet");
        let bytes = std::fs::read(&damaged).expect("a file");
        std::fs::write(&damaged, &bytes[..bytes.len() / 2]).expect("written");
        let output = ask("summary", place.path(), &[]);
        let warned = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && warned.contains("windows.0001.parquet is left out"),
            "{output:?}"
        );
        std::fs::remove_file(place.path().join("blocks.0000.parquet")).expect("removed");
        std::fs::remove_file(place.path().join("blocks.0001.parquet")).expect("removed");
        assert!(complaint("health", place.path()).contains("--telemetry_blocks"));
        // Phases instead of windows: columns are missing.
        let phases = place.path().join("phases.0000.parquet");
        std::fs::remove_file(&damaged).expect("removed");
        std::fs::copy(phases, place.path().join("windows.0000.parquet")).expect("copied");
        let said = complaint("path", place.path());
        assert!(
            said.contains("no column window") && said.contains("another version"),
            "{said}"
        );
    }

    fn one_rank_has_nobody_to_wait_for_and_nobody_to_be_compared_with(mpi: Mpi) {
        let place = folder();
        record(mpi, 1, &format!("{BLAST} --num_tsteps 10"), place.path());
        let summary = json("summary", place.path());
        assert_eq!(summary["total"]["sync"], 0, "{summary}");
        assert_eq!(
            json("path", place.path())["histogram"]
                .as_array()
                .map(Vec::len),
            Some(1)
        );
        assert!(complaint("health", place.path()).contains("compared with each other"));
        assert!(complaint("matrix", place.path()).contains("no rank gave another one anything"));
    }
}
