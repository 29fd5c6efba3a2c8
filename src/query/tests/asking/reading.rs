//! Files of telemetry: what is answered, and how little is read for it.

use crate::made::{csv, of_telemetry, read_by, rows};

#[test]
fn rows_of_all_files_are_grouped_and_joined() {
    let (_folder, engine) = of_telemetry();
    assert_eq!(
        rows(
            &engine,
            "SELECT phase, count(*), min(step), max(step), max(rank), sum(time_ns) FROM phases GROUP BY phase ORDER BY 1"
        ),
        ["compute,64,0,15,3,78848", "wait,64,0,15,3,78656"]
    );
    let joined =
        "SELECT count(*), sum(m.messages) FROM phases p JOIN messages m USING (folder, step, rank)
                  WHERE p.phase = 'wait' AND m.kind = 'flux'";
    let plain = rows(
        &engine,
        "SELECT count(*), sum(messages) FROM messages WHERE kind = 'flux'",
    );
    assert_eq!(rows(&engine, joined), plain);
    let either = "SELECT count(*) FROM phases WHERE step = 3 OR rank = 1 OR step = 3.0";
    assert_eq!(rows(&engine, either), ["38"]);
    let each = "SELECT step FROM phases WHERE step IN (3, 99, 12) AND rank = 0 AND phase = 'wait' ORDER BY 1";
    assert_eq!(rows(&engine, each), ["3", "12"]);
}

#[test]
fn only_row_groups_and_columns_that_are_needed_are_read() {
    let (_folder, engine) = of_telemetry();
    let all = "SELECT sum(time_ns) FROM phases";
    assert_eq!(read_by(&engine, all), (8, 0, 8));
    // Of each of two files one group of four.
    let one = "SELECT sum(time_ns) FROM phases WHERE step = 5";
    assert_eq!(read_by(&engine, one), (2, 6, 4));
    let range = "SELECT sum(time_ns) FROM phases WHERE step >= 4 AND step < 12 AND rank > 1";
    assert_eq!(read_by(&engine, range), (2, 6, 6));
    assert_eq!(
        read_by(&engine, "SELECT 1 FROM phases WHERE time_ns > 5000"),
        (0, 8, 0)
    );
    assert_eq!(
        read_by(&engine, "SELECT 1 FROM phases WHERE phase = 'zzz'"),
        (0, 8, 0)
    );
    assert_eq!(
        read_by(&engine, "SELECT 1 FROM phases WHERE step IN (0, 15)").0,
        4
    );
    // Other comparisons leave nothing out.
    assert_eq!(
        read_by(
            &engine,
            "SELECT 1 FROM phases WHERE phase = 'WAIT' COLLATE NOCASE"
        )
        .0,
        8
    );
    assert_eq!(
        rows(
            &engine,
            "SELECT count(*) FROM phases WHERE phase = 'WAIT' COLLATE NOCASE"
        ),
        ["64"]
    );
    assert_eq!(
        rows(&engine, "SELECT count(*) FROM phases WHERE step = '5'"),
        ["8"]
    );
}

#[test]
fn a_join_reads_its_inner_side_twice_at_most() {
    let (_folder, engine) = of_telemetry();
    let joined = "SELECT sum(p.time_ns) FROM messages m CROSS JOIN phases p ON p.step = m.step AND p.rank = m.rank";
    let (read, ..) = read_by(&engine, joined);
    assert!(read <= 8 + 2 * 8, "{read} row groups");
    let less = "SELECT count(*) FROM messages m CROSS JOIN phases p ON p.step < m.step";
    let (read, ..) = read_by(&engine, less);
    assert!(read <= 8 + 2 * 8, "{read} row groups");
    // The same rows, however the join goes.
    let counts = "SELECT count(*) FROM messages m CROSS JOIN phases p WHERE p.step + 0 = m.step AND p.rank + 0 = m.rank";
    let found = "SELECT count(*) FROM messages m CROSS JOIN phases p WHERE p.step = m.step AND p.rank = m.rank";
    assert_eq!(rows(&engine, counts), rows(&engine, found));
}

#[test]
fn statistics_of_groups_and_windows() {
    let (_folder, engine) = of_telemetry();
    let numbers =
        "WITH n(x, y) AS (VALUES (1, 1), (2, 8), (4, 64), (8, 512), (NULL, 3), (100, 10.5))";
    let statistics =
        "median(x), quantile(x, 0.25), mad(x), round(stddev(x), 6), round(geomean(x), 6),
                      round(corr(x, y), 6), round(spearman(x, y), 6)";
    assert_eq!(
        rows(&engine, &format!("{numbers} SELECT {statistics} FROM n")),
        ["4,2,3,43.127717,5.7708,-0.217045,0.7"]
    );
    let none = rows(
        &engine,
        &format!("{numbers} SELECT {statistics} FROM n WHERE x > 1000"),
    );
    assert_eq!(none, [",,,,,,"]);
    let moving = "WITH n(x) AS (VALUES (1), (9), (4), (7))
                  SELECT median(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM n";
    assert_eq!(rows(&engine, moving), ["1", "2.5", "5.5", "8"]);
    assert_eq!(
        rows(&engine, "SELECT sqrt(2.25), pow(2, 10), ln(1), floor(1.5)"),
        ["1.5,1024,0,1"]
    );
    let error = csv(&engine, "SELECT median(phase) FROM phases")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a function of numbers was given Text"),
        "{error}"
    );
}
