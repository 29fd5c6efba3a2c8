//! Figures 3, 4 and 5 of `colltune report` by real runs, beside what `query` says: how probabilities moved, what a
//! generation predicted and later runs measured, and whole runs.

use std::path::Path;
use std::process::Command;

use colltune_tests::{
    Mpi, colltune as command, folder, is_long, is_readable_in_a_browser, is_valid_html, job,
    on_a_library,
};
use serde_json::Value;

/// What the command prints.
fn colltune(arguments: &[&str], db: &Path) -> String {
    let mut command = Command::new(command());
    command.env_remove("COLLTUNE_DB").args(arguments);
    let output = command.arg("--db").arg(db).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(arguments: &[&str], db: &Path) -> Value {
    serde_json::from_str(&colltune(arguments, db)).expect("JSON")
}

/// As many as a box of whole runs needs.
const RUNS: u64 = 5;
/// So often it is trained until something but the default is predicted.
const BATCHES_MAX: u64 = 4;

fn batch(mpi: Mpi, db: &Path, n_ranks: u32, mode: &str) {
    for _ in 0..RUNS {
        let job = job(n_ranks).mpi(mpi).preload().db(db).mode(mode);
        let job = job.env("COLLTUNE_LEDGER", "1");
        job.run("frequent", &["400", "10"])
            .succeeds()
            .prints("ok\n");
    }
}

fn list<'a>(of: &'a Value, name: &str) -> &'a Vec<Value> {
    of[name]
        .as_array()
        .unwrap_or_else(|| panic!("{name}: {of}"))
}

fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("{name}: {of}"))
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * other.abs().max(1.0)
}

/// The curves of a panel, as places in its picture: x, y, x, y ...
fn curves(panel: &str) -> Vec<Vec<[f64; 2]>> {
    let paths = panel.split("<path class=\"series").skip(1);
    let points = |path: &str| -> Vec<[f64; 2]> {
        let (_, rest) = path.split_once(" d=\"M").expect("a path");
        let (points, _) = rest.split_once('"').expect("an end");
        let point = |point: &str| {
            let (x, y) = point.split_once(' ').expect("two numbers");
            [x, y].map(|number| number.parse().expect("a number"))
        };
        points.split('L').map(point).collect()
    };
    paths.map(points).collect()
}

/// Count, runs and times of a line are those of the calls that `query` finds.
fn agrees_with_query(db: &Path, panel: &Value, line: &Value) {
    let text = |of: &Value, name: &str| of[name].as_str().expect("text").to_owned();
    let percents: [usize; 4] = [10, 50, 90, 99];
    let quantiles =
        percents.map(|percent| format!("quantile(mean_time_ns, 0.{percent}) AS p{percent}"));
    let sql = format!(
        "SELECT count(*) AS calls, count(DISTINCT job) AS runs, median(mean_time_ns) AS median_ns, {} FROM calls
         WHERE collective = '{}' AND message_bytes = {} AND nodes = {} AND ppn = {} AND n_ranks = {} AND variant = '{}'",
        quantiles.join(", "), text(panel, "collective"), panel["bytes"], panel["nodes"], panel["ppn"], panel["n_ranks"],
        text(line, "variant")
    );
    let row = &json(&["query", "--json", &sql], db)[0];
    assert_eq!(
        (&row["calls"], &row["runs"]),
        (&line["calls"], &line["runs"]),
        "{sql}"
    );
    assert!(
        same(number(row, "median_ns"), number(line, "median_ns")),
        "{row} {line}"
    );
    for percent in percents {
        let shown = line["percentiles_ns"][percent].as_f64().expect("a time");
        let asked = number(row, &format!("p{percent}"));
        assert!(same(asked, shown), "{percent} %: {row} {shown}");
    }
}

/// Of each line the probabilities of the trainings; the first one is that before any.
fn probabilities_are_those_of_query(db: &Path, histories: &Value) {
    let panels = list(histories, "panels");
    assert!(!panels.is_empty(), "{histories}");
    let sql = "SELECT collective, bytes_lo, nodes_lo, ppn_lo, variant, generation, probability FROM variants";
    let rows = json(&["query", "--json", sql], db);
    let rows = rows.as_array().expect("rows");
    for panel in panels {
        let cell = &panel["cell"];
        let is_of_cell = |row: &&Value| {
            let begins = |name: &str| row[format!("{name}_lo")] == cell[name][0];
            row["collective"] == cell["collective"]
                && ["bytes", "nodes", "ppn"].into_iter().all(begins)
        };
        let of_cell: Vec<&Value> = rows.iter().filter(is_of_cell).collect();
        for line in list(panel, "lines") {
            for (generation, shown) in (1..).zip(list(line, "probabilities").iter().skip(1)) {
                // A variant that was given no chance has no row.
                let row = of_cell.iter().find(|row| {
                    row["variant"] == line["variant"] && row["generation"] == generation
                });
                let asked = row.map_or(0.0, |row| number(row, "probability"));
                assert_eq!(
                    shown.as_f64(),
                    Some(asked),
                    "generation {generation}: {cell} {}",
                    line["variant"]
                );
            }
        }
    }
}

/// The boxes of the layout that ran with and without the tuner.
fn whole_runs_are_those_of_query(db: &Path, whole_runs: &Value) {
    let panels = list(whole_runs, "panels");
    let [panel] = &panels[..] else {
        panic!("one panel: {whole_runs}");
    };
    let boxes = list(panel, "boxes");
    assert_eq!((&panel["ppn"], boxes.len()), (&3.into(), 2), "{panel}");
    for (one, mode) in boxes.iter().zip(["off", "explore"]) {
        let quartiles = [0.25, 0.5, 0.75].map(|q| format!("quantile(wall_s, {q})"));
        let sql = format!(
            "SELECT count(*) AS n, {} AS low, {} AS middle, {} AS high FROM runs WHERE mode = '{mode}' AND ranks = 3",
            quartiles[0], quartiles[1], quartiles[2]
        );
        let row = &json(&["query", "--json", &sql], db)[0];
        assert_eq!(
            (&row["n"], &one["runs"]),
            (&RUNS.into(), &RUNS.into()),
            "{one}"
        );
        for (name, shown) in ["low", "middle", "high"]
            .into_iter()
            .zip(list(one, "quartiles"))
        {
            let shown = shown.as_f64().expect("seconds");
            assert!(
                (number(row, name) - shown).abs() <= 1e-9 * shown,
                "{row} {one}"
            );
        }
    }
}

/// Whether status tells of a cell of three ranks on a node that some variant is expected to be faster there.
fn prefers_something_where_it_has_no_data(status: &Value) -> bool {
    let cells = list(status, "cells").iter();
    let mut predicted = cells
        .filter(|cell| cell["ppn"] == serde_json::json!([3, 5]) && cell["source"] == "predicted");
    predicted.any(|cell| {
        let gains = list(cell, "variants").iter();
        let mut gains = gains.filter_map(|one| one["contrast"]["gain"].as_f64());
        gains.any(|gain| gain > 1.0)
    })
}

/// All curves of a picture lie on one scale of time, straight or of powers; the ends may be cut off. Says whether there was
/// enough to see that by: of a single call all percentiles are the same.
fn lie_on_one_scale(lines: &[Value], curves: &[Vec<[f64; 2]>]) -> bool {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (line, curve) in lines.iter().zip(curves) {
        let times = list(line, "percentiles_ns").iter();
        let times = times.map(|time| time.as_f64().expect("a time"));
        points.extend(times.zip(curve.iter().map(|point| point[0])));
    }
    let ends = points
        .iter()
        .fold([f64::INFINITY, 0.0], |[low, high], (_, x)| {
            [low.min(*x), high.max(*x)]
        });
    points.retain(|(_, x)| *x > ends[0] && *x < ends[1]);
    if points.len() <= 50 {
        return false;
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let off = |scale: fn(f64) -> f64| -> f64 {
        let (first, last) = (points[0], points[points.len() - 1]);
        let slope = (last.1 - first.1) / (scale(last.0) - scale(first.0));
        let off = points
            .iter()
            .map(|(time, x)| (first.1 + slope * (scale(*time) - scale(first.0)) - x).abs());
        off.fold(0.0, f64::max)
    };
    let off = [off(|time| time), off(f64::ln)];
    assert!(off.iter().any(|off| *off < 0.5), "{off:?} pixels off");
    true
}

on_a_library! {
    fn figures_of_cells_that_were_predicted_first_and_measured_later_say_what_query_says(mpi: Mpi) {
        let db = folder();
        let db = db.path();
        // Three and four ranks on a node are what these generations have no data of. On a busy machine it may take more
        // than one until something but the default is expected there.
        let predicted = (1..=BATCHES_MAX).find(|_| {
            batch(mpi, db, 2, "explore");
            colltune(&["train"], db);
            prefers_something_where_it_has_no_data(&json(&["status", "--json"], db))
        });
        assert!(!is_long() || predicted.is_some(), "another variant than the default is predicted somewhere");
        let predicted = predicted.unwrap_or(BATCHES_MAX);
        batch(mpi, db, 3, "off");
        batch(mpi, db, 3, "explore");
        colltune(&["train"], db);

        let said = json(&["report", "--json"], db);
        probabilities_are_those_of_query(db, &said["histories"]);
        whole_runs_are_those_of_query(db, &said["whole_runs"]);
        let unseen = &said["unseen"];
        assert!(number(unseen, "cells") >= 1.0, "{unseen}");
        let panels = list(unseen, "panels");
        let has_both = |panel: &&Value| list(panel, "lines").iter().any(|line| line["role"] == "predicted choice");
        // On a busy machine what is predicted may be the default after all in the cells that were measured.
        assert!(!is_long() || panels.iter().any(|panel| has_both(&panel)), "{unseen}");
        let file = db.join("report.html");
        colltune(&["report", "-o", &file.to_string_lossy()], db);
        let page = std::fs::read_to_string(&file).expect("the page");
        let drawn: Vec<&str> = page.split("<h4 id=\"spread-").skip(1).collect();
        assert_eq!(drawn.len(), panels.len());
        let mut on_a_scale = 0;
        for (panel, drawn) in panels.iter().zip(drawn) {
            assert_eq!((&panel["ppn"], &panel["generation"]), (&3.into(), &predicted.into()), "{panel}");
            assert!(drawn.contains(&format!("It was predicted by generation {predicted}.")), "{drawn}");
            let (lines, curves) = (list(panel, "lines"), curves(drawn));
            assert_eq!(lines[0]["role"], "default", "{panel}");
            assert_eq!(curves.len(), lines.len());
            on_a_scale += usize::from(lie_on_one_scale(lines, &curves));
            for (line, curve) in lines.iter().zip(&curves) {
                agrees_with_query(db, panel, line);
                let variant = line["variant"].as_str().expect("a name");
                assert!(drawn.contains(&format!("<th scope=\"row\">{variant}</th>")), "{variant}: {drawn}");
                // A point for each percent, from bottom to top, never back in time.
                assert_eq!(curve.len(), 100);
                assert!(curve.is_sorted_by(|one, next| one[0] <= next[0] && one[1] > next[1]), "{variant}");
            }
        }
        assert!(!is_long() || on_a_scale >= 1, "{unseen}");
        is_valid_html(&file);
        is_readable_in_a_browser(&file);
    }
}
