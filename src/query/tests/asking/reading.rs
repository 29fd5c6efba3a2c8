//! Files of telemetry: what is answered.

use std::fs::File;
use std::sync::Arc;

use colltune_query::open;
use parquet::data_type::{BoolType, ByteArrayType, DataType, FloatType, Int32Type, Int64Type};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::made::{csv, of_telemetry, rows};

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
fn comparisons_are_those_of_sqlite() {
    let (_folder, engine) = of_telemetry();
    let count = |condition: &str| {
        let sql = format!("SELECT count(*) FROM phases WHERE {condition}");
        rows(&engine, &sql).remove(0)
    };
    assert_eq!(count("phase = 'WAIT' COLLATE NOCASE"), "64");
    assert_eq!(count("step = '5'"), "8");
    assert_eq!(count("time_ns > 5000"), "0");
    assert_eq!(count("step >= 4 AND step < 12 AND rank > 1"), "32");
    let joined = |on: &str| {
        let sql = format!("SELECT count(*) FROM messages m CROSS JOIN phases p WHERE {on}");
        rows(&engine, &sql)
    };
    let found = joined("p.step = m.step AND p.rank = m.rank");
    assert_eq!(found, joined("p.step + 0 = m.step AND p.rank + 0 = m.rank"));
    let natural = rows(&engine, "SELECT count(*) FROM messages NATURAL JOIN phases");
    assert_eq!(found, natural);
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

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<T>()
        .write_batch(values, levels, None)
        .unwrap();
    column.close().unwrap();
}

#[test]
fn plain_types_of_all_row_groups_are_read_and_unsigned_numbers_stay_apart() {
    let schema = "message types {
        REQUIRED INT32 rank (INTEGER(32, false));
        REQUIRED INT64 block (INTEGER(64, false));
        REQUIRED BOOLEAN refined;
        REQUIRED FLOAT cost;
        OPTIONAL INT64 partner;
        OPTIONAL BYTE_ARRAY word (UTF8);
        REQUIRED group inner { REQUIRED INT32 left_out; }
    }";
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("types.parquet")).unwrap();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    for first in [1, 3] {
        let mut group = writer.next_row_group().unwrap();
        put::<Int32Type>(&mut group, &[first, -1], None);
        put::<Int64Type>(&mut group, &[first.into(), -2], None);
        put::<BoolType>(&mut group, &[true, false], None);
        put::<FloatType>(&mut group, &[0.5, -0.25], None);
        put::<Int64Type>(&mut group, &[7], Some(&[0, 1]));
        put::<ByteArrayType>(&mut group, &["a".into()], Some(&[1, 0]));
        put::<Int32Type>(&mut group, &[1, 2], None);
        group.close().unwrap();
    }
    writer.close().unwrap();
    let engine = open(None, &[folder.path().to_owned()]).unwrap();
    let all = "SELECT rank, block, refined, cost, partner, word FROM types";
    assert_eq!(
        rows(&engine, all),
        [
            "1,1,1,0.5,,a",
            "4294967295,-2,0,-0.25,7,",
            "3,3,1,0.5,,a",
            "4294967295,-2,0,-0.25,7,"
        ]
    );
    assert_eq!(rows(&engine, "SELECT sum(block < 0) FROM types"), ["2"]);
}
