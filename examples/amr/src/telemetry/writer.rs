//! The Parquet files of one group of ranks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use thiserror::Error;

use super::rows::{BlockRow, MessageRow, PhaseRow, Rows};

const PHASES: &str = "message phases {
    REQUIRED INT64 step (INTEGER(64, false));
    REQUIRED INT32 rank (INTEGER(32, false));
    REQUIRED BYTE_ARRAY phase (UTF8);
    REQUIRED INT64 time_ns (INTEGER(64, false));
}";

const MESSAGES: &str = "message messages {
    REQUIRED INT64 step (INTEGER(64, false));
    REQUIRED INT32 rank (INTEGER(32, false));
    REQUIRED BYTE_ARRAY kind (UTF8);
    REQUIRED INT64 messages (INTEGER(64, false));
    REQUIRED INT64 bytes (INTEGER(64, false));
}";

const BLOCKS: &str = "message blocks {
    REQUIRED INT64 step (INTEGER(64, false));
    REQUIRED INT32 rank (INTEGER(32, false));
    REQUIRED INT64 block (INTEGER(64, false));
    REQUIRED INT32 level (INTEGER(8, false));
    REQUIRED INT64 compute_ns (INTEGER(64, false));
}";

/// Why telemetry could not be written: the file and the reason.
#[derive(Debug, Error)]
#[error("failed to write telemetry to {path}: {reason}")]
pub struct TelemetryError {
    pub path: PathBuf,
    pub reason: String,
}

/// Writes `phases.GGGG.parquet`, `messages.GGGG.parquet` and, when blocks are asked for, `blocks.GGGG.parquet`.
///
/// A file has a hidden name, `.NAME.unfinished`, until [`Writer::finish`] moves it to its place: a Parquet file without
/// its end cannot be read.
pub struct Writer {
    phases: Table,
    messages: Table,
    blocks: Option<Table>,
}

/// Whether rows of blocks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    Ranks,
    Blocks,
}

struct Table {
    path: PathBuf,
    unfinished: PathBuf,
    writer: Option<SerializedFileWriter<File>>,
}

impl Writer {
    /// Creates the files of a group of ranks; the folder must exist.
    ///
    /// Errors: `TelemetryError`.
    pub fn create(folder: &Path, group: usize, detail: Detail) -> Result<Writer, TelemetryError> {
        let table = |name: &str, schema| {
            Table::create(folder.join(format!("{name}.{group:04}.parquet")), schema)
        };
        let blocks = match detail {
            Detail::Ranks => None,
            Detail::Blocks => Some(table("blocks", BLOCKS)?),
        };
        Ok(Writer {
            phases: table("phases", PHASES)?,
            messages: table("messages", MESSAGES)?,
            blocks,
        })
    }

    /// Writes rows as one row group of each file. A few thousand at a time compress best.
    ///
    /// Errors: `TelemetryError`, such as a full disk.
    pub fn push(&mut self, rows: &Rows) -> Result<(), TelemetryError> {
        self.phases
            .push(rows.phases.len(), |group| phases(group, &rows.phases))?;
        self.messages
            .push(rows.messages.len(), |group| messages(group, &rows.messages))?;
        match &mut self.blocks {
            Some(table) => table.push(rows.blocks.len(), |group| blocks(group, &rows.blocks)),
            None => Ok(()),
        }
    }

    /// Ends the files and moves them to their places.
    ///
    /// Errors: `TelemetryError`.
    pub fn finish(mut self) -> Result<(), TelemetryError> {
        self.phases.finish()?;
        self.messages.finish()?;
        self.blocks.iter_mut().try_for_each(Table::finish)
    }
}

impl Table {
    fn create(path: PathBuf, schema: &str) -> Result<Table, TelemetryError> {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let unfinished = path.with_file_name(format!(".{name}.unfinished"));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("colltune-amr {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = parse_message_type(schema).and_then(|schema| {
            SerializedFileWriter::new(
                File::create(&unfinished)?,
                Arc::new(schema),
                Arc::new(properties),
            )
        });
        let mut table = Table {
            path,
            unfinished,
            writer: None,
        };
        table.writer = Some(writer.map_err(|error| table.failed(&error.to_string()))?);
        Ok(table)
    }

    fn push(
        &mut self,
        n_rows: usize,
        write: impl FnOnce(&mut SerializedRowGroupWriter<'_, File>) -> Result<(), ParquetError>,
    ) -> Result<(), TelemetryError> {
        let Some(writer) = self.writer.as_mut().filter(|_| n_rows > 0) else {
            return Ok(());
        };
        let written = writer.next_row_group().and_then(|mut group| {
            write(&mut group)?;
            group.close().map(|_| ())
        });
        written.map_err(|error| self.failed(&error.to_string()))
    }

    fn finish(&mut self) -> Result<(), TelemetryError> {
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        let ended = writer
            .into_inner()
            .map_err(|error| self.failed(&error.to_string()))?;
        let moved = ended
            .sync_all()
            .and_then(|()| std::fs::rename(&self.unfinished, &self.path));
        moved.map_err(|error| self.failed(&error.to_string()))
    }

    fn failed(&self, reason: &str) -> TelemetryError {
        TelemetryError {
            path: self.path.clone(),
            reason: reason.to_owned(),
        }
    }
}

/// A file that was not finished is no telemetry.
impl Drop for Table {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.unfinished);
    }
}

fn phases(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[PhaseRow],
) -> Result<(), ParquetError> {
    long(group, rows.iter().map(|row| row.step))?;
    int(group, rows.iter().map(|row| row.rank))?;
    text(group, rows.iter().map(|row| row.phase.name()))?;
    long(group, rows.iter().map(|row| row.time_ns))
}

fn messages(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[MessageRow],
) -> Result<(), ParquetError> {
    long(group, rows.iter().map(|row| row.step))?;
    int(group, rows.iter().map(|row| row.rank))?;
    text(group, rows.iter().map(|row| row.kind.name()))?;
    long(group, rows.iter().map(|row| row.messages))?;
    long(group, rows.iter().map(|row| row.bytes))
}

fn blocks(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[BlockRow],
) -> Result<(), ParquetError> {
    long(group, rows.iter().map(|row| row.step))?;
    int(group, rows.iter().map(|row| row.rank))?;
    long(group, rows.iter().map(|row| row.block))?;
    int(group, rows.iter().map(|row| u32::from(row.level)))?;
    long(group, rows.iter().map(|row| row.compute_ns))
}

fn long(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = u64>,
) -> Result<(), ParquetError> {
    column::<Int64Type>(group, values.map(|value| value as i64).collect())
}

fn int(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = u32>,
) -> Result<(), ParquetError> {
    column::<Int32Type>(group, values.map(|value| value as i32).collect())
}

fn text(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = &'static str>,
) -> Result<(), ParquetError> {
    column::<ByteArrayType>(group, values.map(ByteArray::from).collect())
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: Vec<T::T>,
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("too many columns".to_owned()))?;
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;

    use super::*;
    use crate::telemetry::rows::tests::sample;

    fn written(folder: &Path, detail: Detail) -> Vec<String> {
        let mut writer = Writer::create(folder, 3, detail).expect("created");
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
        let names = written(folder.path(), Detail::Blocks);
        assert_eq!(
            names,
            [
                "blocks.0003.parquet",
                "messages.0003.parquet",
                "phases.0003.parquet"
            ]
        );
        let open = |name: &str| {
            let file = File::open(folder.path().join(name)).expect("there");
            SerializedFileReader::new(file).expect("a parquet file")
        };
        let phases = open(&names[2]);
        let rows: Vec<_> = phases
            .get_row_iter(None)
            .expect("rows")
            .map(|row| row.expect("a row"))
            .collect();
        assert_eq!(rows.len(), 4 * 9);
        let row = &rows[9 + 2];
        let columns = (
            row.get_ulong(0).ok(),
            row.get_uint(1).ok(),
            row.get_ulong(3).ok(),
        );
        assert_eq!(columns, (Some(1), Some(1), Some(30)));
        assert_eq!(row.get_string(2).expect("a phase"), "wait");
        let blocks = open(&names[0]);
        let row = blocks
            .get_row_iter(None)
            .expect("rows")
            .next()
            .expect("one")
            .expect("a row");
        assert_eq!(row.get_ulong(2).expect("a block"), u64::MAX - 1);
        assert_eq!(open(&names[1]).metadata().file_metadata().num_rows(), 4 * 9);
    }

    #[test]
    fn blocks_are_written_on_request_only() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(
            written(folder.path(), Detail::Ranks),
            ["messages.0003.parquet", "phases.0003.parquet"]
        );
    }

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = Writer::create(folder.path(), 0, Detail::Blocks).expect("created");
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
        let writer = Writer::create(folder.path(), 0, Detail::Ranks).and_then(|mut writer| {
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
