//! The Parquet files of one group of ranks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use colltune_files::publish::Draft;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use thiserror::Error;

use super::rows::{Column, NONE, Rows, Table};

/// Why telemetry could not be written: the file and the reason.
#[derive(Debug, Error)]
#[error("failed to write telemetry to {path}: {reason}")]
pub struct TelemetryError {
    pub path: PathBuf,
    pub reason: String,
}

/// Writes `NAME.GGGG.parquet` for each table that is asked for.
///
/// A file has a hidden name, `.NAME.unfinished`, until [`Writer::finish`] moves it to its place: a Parquet file without
/// its end cannot be read.
pub struct Writer {
    tables: Vec<(Table, TableFile)>,
    names: RunNames,
}

/// The names that rows have by their numbers.
#[derive(Clone, Debug, Default)]
pub struct RunNames {
    pub hosts: Vec<String>,
    /// Levers with their arms.
    pub levers: Vec<(String, Vec<String>)>,
}

impl RunNames {
    /// The name of a host or a lever, or of an arm of the lever whose number stands before it.
    fn find(&self, column: Column, before: u64, word: u64) -> &str {
        let lever = |number: u64| self.levers.get(number as usize);
        let name = match column {
            Column::Host(_) => self.hosts.get(word as usize),
            Column::Lever(_) => lever(word).map(|(name, _)| name),
            _ => lever(before).and_then(|(_, arms)| arms.get(word as usize)),
        };
        name.map_or("", String::as_str)
    }
}

struct TableFile {
    path: PathBuf,
    /// While it is open. A file that was not finished is no telemetry, and goes.
    open: Option<(Draft, SerializedFileWriter<File>)>,
}

impl Writer {
    /// Creates the files of a group of ranks; the folder must exist. `names` are what rows have numbers of,
    /// `about` what is known of the run, which stands as pairs of keys and values in each file.
    ///
    /// Errors: `TelemetryError`.
    pub fn create(
        folder: &Path,
        group: usize,
        tables: &[Table],
        names: RunNames,
        about: &[KeyValue],
    ) -> Result<Writer, TelemetryError> {
        let create = |&table: &Table| {
            let path = folder.join(format!("{}.{group:04}.parquet", table.name()));
            Ok((table, TableFile::create(path, &schema(table), about)?))
        };
        let tables = tables.iter().map(create).collect::<Result<_, _>>()?;
        Ok(Writer { tables, names })
    }

    /// Writes rows as one row group of each file. A few thousand at a time compress best.
    ///
    /// Errors: `TelemetryError`, such as a full disk.
    pub fn push(&mut self, rows: &Rows) -> Result<(), TelemetryError> {
        for (table, file) in &mut self.tables {
            file.push(rows.of(*table).len(), |group| {
                write(group, *table, rows, &self.names)
            })?;
        }
        Ok(())
    }

    /// Ends the files and moves them to their places.
    ///
    /// Errors: `TelemetryError`.
    pub fn finish(mut self) -> Result<(), TelemetryError> {
        let mut files = self.tables.iter_mut();
        files.try_for_each(|(_, file)| file.finish())
    }
}

/// The table's columns in the language of Parquet.
fn schema(table: Table) -> String {
    let columns = table.columns().iter().map(|column| {
        let name = column.name();
        match column {
            Column::Long(_) => format!("REQUIRED INT64 {name} (INTEGER(64, false));"),
            Column::Int(_) => format!("REQUIRED INT32 {name} (INTEGER(32, false));"),
            Column::OrNone(_) => format!("REQUIRED INT32 {name} (INTEGER(32, true));"),
            Column::Byte(_) => format!("REQUIRED INT32 {name} (INTEGER(8, false));"),
            Column::Name(..) | Column::Host(_) | Column::Lever(_) | Column::Arm(_) => {
                format!("REQUIRED BYTE_ARRAY {name} (UTF8);")
            }
        }
    });
    let columns: Vec<String> = columns.collect();
    format!("message {} {{ {} }}", table.name(), columns.join(" "))
}

impl TableFile {
    fn create(
        path: PathBuf,
        schema: &str,
        about: &[KeyValue],
    ) -> Result<TableFile, TelemetryError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("colltune-amr {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(about.to_vec()))
            .build();
        let opened = parse_message_type(schema).and_then(|schema| {
            let (draft, file) = Draft::create(&path)?;
            let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties));
            Ok((draft, writer?))
        });
        let mut table = TableFile { path, open: None };
        table.open = Some(opened.map_err(|error| table.failed(&error.to_string()))?);
        Ok(table)
    }

    fn push(
        &mut self,
        n_rows: usize,
        write: impl FnOnce(&mut SerializedRowGroupWriter<'_, File>) -> Result<(), ParquetError>,
    ) -> Result<(), TelemetryError> {
        let Some((_, writer)) = self.open.as_mut().filter(|_| n_rows > 0) else {
            return Ok(());
        };
        let written = writer.next_row_group().and_then(|mut group| {
            write(&mut group)?;
            group.close().map(|_| ())
        });
        written.map_err(|error| self.failed(&error.to_string()))
    }

    fn finish(&mut self) -> Result<(), TelemetryError> {
        let Some((draft, writer)) = self.open.take() else {
            return Ok(());
        };
        let ended = writer
            .into_inner()
            .map_err(|error| self.failed(&error.to_string()))?;
        draft
            .publish(&ended)
            .map_err(|error| self.failed(&error.to_string()))
    }

    fn failed(&self, reason: &str) -> TelemetryError {
        TelemetryError {
            path: self.path.clone(),
            reason: reason.to_owned(),
        }
    }
}

fn write(
    group: &mut SerializedRowGroupWriter<'_, File>,
    table: Table,
    rows: &Rows,
    run: &RunNames,
) -> Result<(), ParquetError> {
    for (place, column) in table.columns().iter().enumerate() {
        let words = rows.of(table).map(|row| row[place]);
        match column {
            Column::Long(_) => self::column::<Int64Type>(group, words.map(|word| word as i64)),
            Column::Int(_) | Column::Byte(_) => {
                self::column::<Int32Type>(group, words.map(|word| word as i32))
            }
            Column::OrNone(_) => {
                let or_none = |word| if word == NONE { -1 } else { word as i32 };
                self::column::<Int32Type>(group, words.map(or_none))
            }
            Column::Name(_, names) => {
                let name = |word: u64| ByteArray::from(names[word as usize]);
                self::column::<ByteArrayType>(group, words.map(name))
            }
            Column::Host(_) | Column::Lever(_) | Column::Arm(_) => {
                let rows = rows.of(table);
                let name = |row: &[u64]| run.find(*column, row[place - 1], row[place]);
                self::column::<ByteArrayType>(group, rows.map(|row| ByteArray::from(name(row))))
            }
        }?;
    }
    Ok(())
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("too many columns".to_owned()))?;
    let values: Vec<T::T> = values.collect();
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;

    use super::*;
    use crate::telemetry::rows::Phase;
    use crate::telemetry::rows::tests::sample;

    fn written(folder: &Path, tables: &[Table]) -> Vec<String> {
        let names = RunNames {
            hosts: vec!["here".to_owned()],
            levers: ["one", "two"]
                .map(|name| (name.to_owned(), vec![format!("{name}'s")]))
                .into(),
        };
        let mut writer = Writer::create(folder, 3, tables, names, &[]).expect("created");
        for step in 0..4 {
            writer.push(&sample(step, 1)).expect("written");
        }
        writer.push(&Rows::default()).expect("nothing to write");
        writer.finish().expect("finished");
        let names = std::fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("a file").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn written_rows_are_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = written(folder.path(), &Table::ALL);
        let mut expected = Table::NAMES.map(|name| format!("{name}.0003.parquet"));
        expected.sort_unstable();
        assert_eq!(names, expected);
        let open = |name: &str| {
            let file = File::open(folder.path().join(name)).expect("there");
            SerializedFileReader::new(file).expect("a parquet file")
        };
        let phases = open("phases.0003.parquet");
        let rows: Vec<_> = phases
            .get_row_iter(None)
            .expect("rows")
            .map(|row| row.expect("a row"))
            .collect();
        assert_eq!(rows.len(), 4 * Phase::ALL.len());
        let row = &rows[Phase::ALL.len() + Phase::Wait as usize];
        let columns = (
            row.get_ulong(0).ok(),
            row.get_uint(1).ok(),
            row.get_ulong(3).ok(),
        );
        assert_eq!(columns, (Some(1), Some(1), Some(40)));
        assert_eq!(row.get_string(2).expect("a phase"), "wait");
        let blocks = open("blocks.0003.parquet");
        let row = blocks
            .get_row_iter(None)
            .expect("rows")
            .next()
            .expect("one")
            .expect("a row");
        assert_eq!(row.get_ulong(2).expect("a block"), u64::MAX - 1);
        let row = open("rounds.0003.parquet")
            .into_iter()
            .next()
            .expect("one")
            .expect("a row");
        assert_eq!(row.get_int(8).expect("nobody"), -1);
        let row = open("ranks.0003.parquet")
            .into_iter()
            .next()
            .expect("one")
            .expect("a row");
        assert_eq!(row.get_string(2).expect("a host"), "here");
        let row = open("epochs.0003.parquet")
            .into_iter()
            .next()
            .expect("one")
            .expect("a row");
        let names = [2, 3].map(|place| row.get_string(place).expect("a name").as_str());
        assert_eq!(names, ["two", "two's"]);
    }

    #[test]
    fn only_tables_that_are_asked_for_are_written() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(
            written(folder.path(), &[Table::Phases, Table::Messages]),
            ["messages.0003.parquet", "phases.0003.parquet"]
        );
    }

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::create(folder.path(), 0, &Table::ALL, RunNames::default(), &[])
            .expect("created");
        writer.push(&sample(0, 0)).expect("written");
        drop(writer);
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            0
        );
    }

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(
            "/dev/full",
            folder.path().join(".phases.0000.parquet.unfinished"),
        )
        .expect("a link");
        let writer = Writer::create(folder.path(), 0, &[Table::Phases], RunNames::default(), &[]);
        let writer = writer.and_then(|mut writer| {
            writer.push(&sample(0, 0))?;
            writer.finish()
        });
        let error = writer.expect_err("a full disk").to_string();
        assert!(
            error.contains("phases.0000.parquet") && error.contains("No space left"),
            "{error}"
        );
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            0
        );
    }
}
