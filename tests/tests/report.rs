//! `colltune report` on databases that real runs made: the page, and its numbers beside those of `status --json`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use colltune_tests::{
    colltune as command, folder, is_readable_in_a_browser, is_valid_html, job, on_a_library,
};
use serde_json::Value;

const BYTES_MAX: usize = 3 << 20;

fn colltune(arguments: &[&str]) -> Output {
    let mut command = Command::new(command());
    command.env_remove("COLLTUNE_DB");
    command.args(arguments).output().expect("it starts")
}

fn succeeds(arguments: &[&str]) -> String {
    let output = colltune(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&succeeds(arguments)).expect("JSON")
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("a name in UTF-8")
}

/// The page, and what it says as JSON.
fn report(db: &Path, more: &[&str]) -> (String, Value) {
    let file = db.join("report.html");
    let with = |first: &[&str]| -> Vec<String> {
        let all = ["report", "--db", path(db)].into_iter();
        let all = all.chain(first.iter().copied()).chain(more.iter().copied());
        all.map(str::to_owned).collect()
    };
    let run = |all: Vec<String>| succeeds(&all.iter().map(String::as_str).collect::<Vec<_>>());
    run(with(&["-o", path(&file)]));
    let page = std::fs::read_to_string(&file).expect("the page");
    let said = serde_json::from_str(&run(with(&["--json"]))).expect("JSON");
    (page, said)
}

/// Walks through a page: every tag is closed in its order, nothing comes from outside, every mark has a title.
fn is_sound(page: &str) {
    assert!(page.len() <= BYTES_MAX, "{} bytes", page.len());
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    for outside in [
        "<script", "<link", "src=", "http:", "https:", "url(", "@import", "onload",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    let mut open: Vec<&str> = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for part in page.split('<').skip(2) {
        let (tag, _) = part.split_once('>').expect("a whole tag");
        let name = tag.split([' ', '/']).next().unwrap_or("");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "closed in order: {tag}"),
            None if name == "meta" => {}
            None => {
                *counts.entry(name).or_default() += 1;
                open.push(name);
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    let count = |name| counts.get(name).copied().unwrap_or(0);
    assert_eq!((count("h1"), count("main")), (1, 1));
    assert_eq!(
        count("caption"),
        count("table"),
        "each table says what it is"
    );
    let named = page.matches("<svg role=\"img\" aria-label=\"").count();
    let hidden = page.matches("aria-hidden=\"true\"").count();
    assert_eq!(named + hidden, count("svg"), "each picture has a name");
}

fn close(one: &Value, other: f64) -> bool {
    one.as_f64()
        .is_some_and(|one| (one - other).abs() <= 1e-9 * other.abs().max(1.0))
}

on_a_library! {
    fn a_page_of_real_runs_says_what_status_and_the_ledger_say(mpi: Mpi) {
        let db = folder();
        let run = |mode: &str, label: &str, arguments: &[&str]| {
            let job = job(2).mpi(mpi).preload().db(db.path()).mode(mode).env("COLLTUNE_LEDGER", "1");
            job.env("COLLTUNE_LABEL", label).run("frequent", arguments).succeeds().prints("ok\n").is_silent();
        };
        for _ in 0..5 { run("off", "", &["200", "10"]); }
        for _ in 0..2 {
            for _ in 0..5 { run("explore", "", &["200", "10"]); }
            for ranks in [3, 4] {
                let job = job(ranks).mpi(mpi).preload().db(db.path()).mode("explore").env("COLLTUNE_LEDGER", "1");
                job.run("frequent", &["2000", "10"]).succeeds().prints("ok\n");
            }
            succeeds(&["train", "--db", path(db.path())]);
            // One generation is enough for a page.
            let (page, said) = report(db.path(), &[]);
            is_sound(&page);
            assert_eq!((page.contains("NaN"), said["warnings"].as_array().map(Vec::len)), (false, Some(0)), "{}", said["warnings"]);
        }
        run("exploit", "<b>\"night\" & 'day'</b>", &["200", "10"]);
        // One that dies.
        let died = job(2).mpi(mpi).preload().db(db.path()).mode("explore").run("ends", &["abort", "3"]);
        died.ends();

        let (page, said) = report(db.path(), &[]);
        is_sound(&page);
        let status = json(&["status", "--db", path(db.path()), "--json"]);
        let cells = status["cells"].as_array().expect("cells");
        let head = &said["head"];
        assert_eq!((&head["library"], &head["generation"], &head["machine"]), (&status["library"], &status["generation"], &status["machine"]));
        let measured: Vec<&Value> = cells.iter().filter(|cell| cell["source"] == "measured").collect();
        assert_eq!(head["cells_measured"], measured.len());
        assert_eq!(head["cells_tuned"], measured.iter().filter(|cell| cell["best"] != "default").count());
        let number = |cell: &Value, name: &str| cell[name].as_f64().expect("a number");
        let weights: f64 = measured.iter().map(|cell| number(cell, "time_share")).sum();
        let logs: f64 = measured.iter().map(|cell| number(cell, "time_share") * number(cell, "gain").ln()).sum();
        assert!(close(&head["gain"], (logs / weights).exp()), "{head}");
        assert!(head["cells_predicted"].as_u64() > Some(0), "{head}");
        // Cell by cell the same, predicted ones, too.
        let shown = said["cells"]["shown"].as_array().expect("cells");
        assert_eq!(shown.len(), cells.len());
        assert!(cells.iter().all(|cell| shown.contains(cell)));
        // The ledger: every run of every mode, and the one that died.
        let modes = serde_json::json!({"explore": 15, "exploit": 1, "off": 5});
        assert_eq!((&head["runs"]["by_mode"], &head["runs"]["without_end"]), (&modes, &1.into()));
        assert_eq!((&head["learned_runs"], &status["ledger"]["jobs"]), (&14.into(), &20.into()));
        let program = &said["programs"][0];
        assert_eq!((&program["name"], &program["runs"]), (&"frequent".into(), &20.into()));
        assert!(close(&program["node_hours"], number(&status["ledger"], "node_hours")));
        let parts = program["parts"].as_array().expect("parts");
        let shares: f64 = parts.iter().map(|part| number(part, "share")).sum();
        assert!((shares - number(program, "in_collectives")).abs() < 1e-6, "{program}");
        parts_are_those_of_query(db.path(), parts);
        // What ran: as many calls as were learned from.
        let ran = program["cells"].as_array().expect("cells");
        let calls: u64 = ran.iter().filter_map(|cell| cell["calls"].as_u64()).sum();
        assert_eq!(head["calls"], calls);
        for cell in ran {
            let shares: f64 = cell["variants"].as_array().expect("variants").iter().map(|one| number(one, "share")).sum();
            assert!((shares - 1.0).abs() < 1e-9, "{cell}");
        }
        // Whole runs: five of the default, and of both generations; the label stands apart.
        let panels = said["whole_runs"]["panels"].as_array().expect("panels");
        let [panel] = &panels[..] else { panic!("one panel: {panels:?}") };
        let boxes: Vec<_> = panel["boxes"].as_array().expect("boxes").iter()
            .map(|one| (one["kind"].as_str().unwrap_or(""), one["generation"].as_u64(), one["runs"].as_u64().unwrap_or(0))).collect();
        assert_eq!(boxes, [("default", None, 5), ("tuned", Some(0), 5), ("tuned", Some(1), 5)]);
        assert!(page.contains("Tuned [1]") && page.contains("n = 5"));
        assert_eq!(said["whole_runs"]["without_end"], 1);
        assert_eq!(said["histories"]["generations"].as_array().map(Vec::len), Some(3));
        assert_eq!(said["warnings"].as_array().map(Vec::len), Some(0));
        // Names are words, not HTML.
        assert!(!page.contains("<b>\"night\"") && page.contains("&lt;b&gt;&quot;night&quot; &amp; 'day'&lt;/b&gt;"));
        for (name, value) in [("--collective", "bcast"), ("--label", "night"), ("--shape", "1x2"), ("--bytes", "8,64KiB")] {
            let (page, said) = report(db.path(), &[name, value]);
            is_sound(&page);
            let of_bcast = |cell: &Value| cell["collective"] == "bcast";
            assert!(name != "--collective" || said["cells"]["shown"].as_array().expect("cells").iter().all(of_bcast));
        }
        report(db.path(), &[]);
        let file = db.path().join("report.html");
        is_valid_html(&file);
        is_readable_in_a_browser(&file);
        // A layout that is held out is judged, though other layouts have measured its cells, too.
        let (page, said) = report(db.path(), &["--holdout", "1x3"]);
        is_sound(&page);
        assert!(said["unseen"]["cells"].as_u64() >= Some(1), "{}", said["unseen"]);
        let panels = said["unseen"]["panels"].as_array().expect("panels");
        assert!(panels.iter().all(|panel| panel["ppn"] == 3));
        is_valid_html(&file);
        is_readable_in_a_browser(&file);
        a_damaged_database_is_shown_as_far_as_it_goes(db.path());
    }
}

/// Where the time of the one program went, the largest part first.
fn parts_are_those_of_query(db: &Path, parts: &[Value]) {
    let sql = "SELECT collective, message_bytes AS bytes, sum(calls) AS calls,
                      sum(seconds) / (SELECT sum(wall_s) FROM runs WHERE exit = 'finalized') AS share,
                      sum(calls * tuned_share) / sum(calls) AS tuned
               FROM run_collectives GROUP BY collective, message_bytes ORDER BY share DESC";
    let rows = json(&["query", "--db", path(db), "--json", sql]);
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), parts.len(), "{rows:?} {parts:?}");
    for (row, part) in rows.iter().zip(parts) {
        for name in ["collective", "bytes", "calls"] {
            assert_eq!(row[name], part[name], "{row} {part}");
        }
        for name in ["share", "tuned"] {
            let shown = part[name].as_f64().expect("a share");
            assert!(close(&row[name], shown), "{name}: {row} {part}");
        }
    }
}

/// A generation less, half a Parquet file, and a ledger with half a line.
fn a_damaged_database_is_shown_as_far_as_it_goes(db: &Path) {
    let library = std::fs::read_dir(db)
        .expect("it can be read")
        .map(|entry| entry.expect("it can be read").path())
        .find(|path| path.join("generations").is_dir())
        .expect("a library");
    let cut = |folder: &Path| {
        let file = std::fs::read_dir(folder)
            .expect("it is there")
            .map(|entry| entry.expect("it can be read").path())
            .find(|path| path.extension().is_some_and(|end| end == "parquet"))
            .expect("a file");
        let bytes = std::fs::read(&file).expect("it can be read");
        std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("it can be written");
    };
    std::fs::remove_dir_all(library.join("generations/000001")).expect("it is there");
    cut(&library.join("evidence"));
    cut(&db.join("runs"));
    std::fs::write(db.join("incoming/half.run"), "{\"schema\":1,").expect("it can be written");
    let (page, said) = report(db, &[]);
    is_sound(&page);
    let warnings = said["warnings"].as_array().expect("warnings");
    for name in ["evidence", "runs", "half.run"] {
        let is_named = |one: &Value| one.as_str().is_some_and(|text| text.contains(name));
        assert!(warnings.iter().any(is_named), "{name}: {warnings:?}");
    }
    assert!(page.contains("What is missing here") && page.contains("left out"));
    let marks = said["histories"]["generations"].as_array().expect("marks");
    assert_eq!((marks.len(), &marks[1]["runs"]), (3, &Value::Null));
    assert!(page.contains("missing"));
    // What is in force cannot be read: the rest is shown.
    std::fs::write(library.join("generations/000002/cells.json"), "{").expect("it can be written");
    let (page, said) = report(db, &[]);
    is_sound(&page);
    assert!(page.contains("cells.json") && said["head"]["generation"] == 0);
}

#[test]
fn an_empty_database_has_a_page_that_says_what_to_do() {
    let db = folder();
    let (page, said) = report(db.path(), &[]);
    is_sound(&page);
    assert!(page.contains("Nothing was learned yet") && page.contains("--mode off"));
    is_valid_html(&db.path().join("report.html"));
    is_readable_in_a_browser(&db.path().join("report.html"));
    assert_eq!(
        (&said["head"]["library"], &said["head"]["runs"]["all"]),
        (&Value::Null, &0.into())
    );
}

#[test]
fn what_is_known_of_levers_has_a_picture_that_can_be_read() {
    let db = folder();
    let known = r#"{"schema":2,"levers":[{"program":"<b>app</b>","library":"openmpi-4.1.4","lever":"order","class":8,"nodes":1,
        "ppn":2,"ranks":2,"best":"rows","epochs":60,"is_settled":true,"arms":[{"name":"columns","probability":0.1,
        "gain":[1.0,1.0,1.0]},{"name":"rows","probability":0.9,"gain":[2.5,2.25,2.75]}]}]}"#;
    std::fs::write(db.path().join("levers.json"), known).expect("it can be written");
    let (page, said) = report(db.path(), &[]);
    is_sound(&page);
    let known: Value = serde_json::from_str(known).expect("JSON");
    assert_eq!(said["levers"], known["levers"]);
    is_valid_html(&db.path().join("report.html"));
    is_readable_in_a_browser(&db.path().join("report.html"));
}

#[test]
fn what_is_not_there_is_told_in_a_sentence() {
    let db = folder();
    let fails = |arguments: &[&str], code: i32, says: &str| {
        let output = colltune(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), text.contains(says)),
            (Some(code), true),
            "{arguments:?}: {text}"
        );
    };
    let (db, none) = (path(db.path()), "/no/such/folder");
    fails(&["report", "--db", none], 1, "there is no such folder");
    fails(
        &["report", "--db", db, "--library", "openmpi-4.1.4"],
        2,
        "it holds no library yet",
    );
    fails(&["report", "--db", db, "--shape", "4"], 2, "4x2");
    fails(&["report", "--db", db, "--bytes", "many"], 2, "64KiB");
    fails(
        &["report", "--db", db, "-o", "/no/such/folder/report.html"],
        1,
        "write /no/such/folder",
    );
}
