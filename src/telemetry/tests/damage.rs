//! Telemetry of runs that were killed, of full disks, of other versions and of unknown origin: every question has an
//! answer or a sentence that says what is wrong.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use colltune_telemetry::folder::Wanted;
use colltune_telemetry::rows::{BLOCKS, PARTNERS, PHASES, RANKS, ROUNDS, WINDOWS};
use colltune_telemetry::{Folder, health, matrix, noise, path, rows, summary};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

const RANKS_MADE: i64 = 4;
const STEPS: i64 = 24;
const TABLES: [Wanted; 6] = [WINDOWS, ROUNDS, BLOCKS, RANKS, PHASES, PARTNERS];

/// A number of a row: of what is counted the rank, the step or the partner, else some time.
fn number(column: &str, [step, rank, row]: [i64; 3]) -> i64 {
    let begin = step * 1_000_000;
    match column {
        "step" | "first_step" | "last_step" => step,
        "rank" => rank,
        "partner" | "last_from" => (rank + 1) % RANKS_MADE,
        "block" => row,
        "window" | "round" | "iterations" | "level" | "clock" | "core" => 0,
        "node" => rank / 2,
        "rounds" | "messages" => 1,
        "begin_ns" => begin,
        "posted_ns" => begin + 1_000,
        "served_ns" => begin + 2_000,
        "last_ns" => begin + 300_000,
        "done_ns" => begin + 310_000,
        "arrive_ns" => begin + 800_000 + 20_000 * rank,
        "leave_ns" => begin + 900_000,
        "bytes" => 4_096,
        _ => 1_000 + 100 * rank + step,
    }
}

fn word(column: &str, rank: i64) -> String {
    match column {
        "collective" => "allreduce".to_owned(),
        "phase" => "compute".to_owned(),
        "class" => "plain".to_owned(),
        "kind" => "ghost".to_owned(),
        _ => format!("<b>node{}</b>", rank / 2),
    }
}

/// Writes a table; `number` may say something else of each column than what is plausible.
fn write(
    folder: &Path,
    table: &Wanted,
    version: &str,
    mut number: impl FnMut(&str, [i64; 3]) -> i64,
) {
    let mut schema = format!("message {} {{\n", table.table);
    let declared = |kind: &str, name: &str| format!("REQUIRED {kind} {name};\n");
    let numbers = table.numbers.iter().map(|name| declared("INT64", name));
    let texts = (table.texts.iter()).map(|name| declared("BYTE_ARRAY", &format!("{name} (UTF8)")));
    schema.extend(numbers.chain(texts));
    let schema = Arc::new(parse_message_type(&(schema + "}")).expect("a schema"));
    let said = KeyValue::new("colltune-amr.recording".to_owned(), version.to_owned());
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![said]));
    let file = folder.join(format!("{}.0000.parquet", table.table));
    let file = std::fs::File::create(file).expect("a file");
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties.build())).expect("a writer");
    let mut group = writer.next_row_group().expect("a group");
    let rows = (0..STEPS).flat_map(|step| (0..RANKS_MADE).map(move |rank| [step, rank]));
    let rows: Vec<[i64; 3]> = (0..)
        .zip(rows)
        .map(|(row, [step, rank])| [step, rank, row])
        .collect();
    for name in table.numbers {
        let values: Vec<i64> = rows.iter().map(|row| number(name, *row)).collect();
        let mut column = group.next_column().expect("a column").expect("one more");
        let typed = column.typed::<Int64Type>();
        typed.write_batch(&values, None, None).expect("written");
        column.close().expect("closed");
    }
    for name in table.texts {
        let values = rows.iter().map(|row| word(name, row[1]));
        let values: Vec<ByteArray> = values.map(|text| text.as_str().into()).collect();
        let mut column = group.next_column().expect("a column").expect("one more");
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&values, None, None).expect("written");
        column.close().expect("closed");
    }
    group.close().expect("closed");
    writer.close().expect("closed");
}

fn made(version: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for table in &TABLES {
        write(folder.path(), table, version, number);
    }
    folder
}

/// Asks everything: what is said, or what went wrong.
fn ask(folder: &Path) -> Vec<Result<String, String>> {
    let open = || Folder::open(folder).map_err(|error| error.to_string());
    let all = 0..=u64::MAX;
    let answer = |found: Result<String, colltune_telemetry::FolderError>| {
        found.map_err(|error| error.to_string())
    };
    let mut answers = Vec::new();
    for question in 0..5 {
        answers.push(open().and_then(|folder| {
            answer(match question {
                0 => summary::summary(&folder).map(|found| found.text()),
                1 => path::paths(&folder, &all).map(|found| {
                    let picture = found.longest.as_ref().map(path::svg);
                    found.text() + &picture.unwrap_or_default()
                }),
                2 => health::health(&folder).map(|found| found.text()),
                3 => noise::noise(&folder).map(|found| found.text()),
                _ => matrix::matrix(&folder, matrix::Freight::All, None)
                    .map(|found| found.text() + &matrix::svg(&found) + &found.csv()),
            })
            .map(|text| text + &folder.warnings().join("\n"))
        }));
    }
    answers
}

#[test]
fn whole_telemetry_answers_every_question() {
    for answer in ask(made("1").path()) {
        let text = answer.expect("an answer");
        assert!(
            !text.contains("NaN") && !text.contains("left out"),
            "{text}"
        );
    }
}

/// Words are few, and rows are many.
#[test]
fn rows_share_their_words() {
    let folder = made("1");
    let folder = Folder::open(folder.path()).expect("telemetry");
    let windows = rows::windows(&folder, &(0..=u64::MAX)).expect("windows");
    assert_eq!(windows.len() as i64, STEPS * RANKS_MADE);
    let words = windows.iter().map(|window| window.collective.as_ptr());
    assert_eq!(words.collect::<BTreeSet<_>>().len(), 1);
    let places = rows::places(&folder);
    let words = places.iter().map(|place| place.host.as_ptr());
    assert_eq!(words.collect::<BTreeSet<_>>().len() as i64, RANKS_MADE / 2);
}

/// Every file in turn ends in the middle, as where the disk was full or the job was killed.
#[test]
fn a_file_that_is_cut_off_is_named_in_the_answer_or_in_the_complaint() {
    for table in &TABLES {
        let folder = made("1");
        let name = format!("{}.0000.parquet", table.table);
        let file = folder.path().join(&name);
        let bytes = std::fs::read(&file).expect("a file");
        std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("written");
        let answers = ask(folder.path());
        let told = answers.iter().filter(|answer| {
            let (Ok(text) | Err(text)) = answer;
            text.contains(&name)
        });
        assert!(told.count() > 0, "{name}: {answers:?}");
        let shown = answers.iter().filter(|answer| answer.is_ok()).count();
        assert!(shown >= 1, "{name}: {answers:?}");
    }
}

/// A later colltune may mean something else by the same names.
#[test]
fn recordings_of_a_later_version_are_told_and_shown_as_far_as_they_are_understood() {
    for answer in ask(made("9").path()) {
        let text = answer.expect("an answer");
        assert!(text.contains("version 9"), "{text}");
        assert_eq!(text.matches("version 9").count(), 1, "said once: {text}");
    }
}

#[test]
fn no_damage_ends_in_a_panic() {
    let folder = made("1");
    let mut random = StdRng::seed_from_u64(17);
    for table in &TABLES {
        let file = folder.path().join(format!("{}.0000.parquet", table.table));
        let whole = std::fs::read(&file).expect("a file");
        for round in 0..60 {
            let mut bytes = whole.clone();
            for _ in 0..=round % 3 {
                let place = random.random_range(0..bytes.len());
                bytes[place] = random.random();
            }
            std::fs::write(&file, &bytes).expect("written");
            ask(folder.path());
        }
        std::fs::write(&file, &whole).expect("written");
    }
}

/// The file is whole, and what stands in it is nonsense: no time is lost over it, and nothing panics.
#[test]
fn numbers_that_make_no_sense_end_in_an_answer_or_a_complaint() {
    const ODD: [i64; 7] = [0, -1, 1, i64::MAX, i64::MIN, 1 << 40, 7];
    // Possible each, and too large for any sum.
    const LARGE: [i64; 2] = [i64::MAX - 7, 1 << 40];
    let folder = made("1");
    let mut random = StdRng::seed_from_u64(18);
    for table in &TABLES {
        for odd in table.numbers {
            for (share, values) in [(0.1, &ODD[..]), (1.0, &ODD), (0.5, &LARGE)] {
                write(folder.path(), table, "1", |name, row| {
                    match name == *odd && random.random_bool(share) {
                        true => values[random.random_range(0..values.len())],
                        false => number(name, row),
                    }
                });
                for answer in ask(folder.path()) {
                    let (Ok(text) | Err(text)) = answer;
                    assert!(text.len() < 1 << 20, "{odd}: {} bytes", text.len());
                }
            }
        }
        write(folder.path(), table, "1", number);
    }
}
