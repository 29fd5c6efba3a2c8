//! A folder of telemetry: `TABLE.GGGG.parquet`, read by column, as much of it as can be read.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::{Range, RangeInclusive};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use colltune_files::Links;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

use crate::FolderError;

/// The version of recordings that is understood, and the key of a file's footer under which it says its own.
const RECORDING: u64 = 1;
const RECORDING_KEY: &str = "colltune-amr.recording";

/// A folder whose files are read when an analysis asks for them.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    files: Vec<PathBuf>,
    warnings: RefCell<Vec<String>>,
}

/// Columns of a table in the order in which they were asked for, those of text last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    pub numbers: Vec<Vec<i64>>,
    /// Of each word there is one in a file.
    pub texts: Vec<Vec<Arc<str>>>,
}

/// What an analysis needs of a table.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub table: &'static str,
    pub numbers: &'static [&'static str],
    pub texts: &'static [&'static str],
    /// What to do where there is none.
    pub hint: &'static str,
}

impl Folder {
    /// Errors: no such folder, or one without telemetry.
    pub fn open(path: &Path) -> Result<Folder, FolderError> {
        let unreadable = |error: std::io::Error| FolderError::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            if file.extension().is_some_and(|end| end == "parquet") {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(FolderError::Missing {
                folder: path.to_owned(),
                table: "windows",
                hint: "there is no telemetry; record some with `colltune-amr --telemetry FOLDER`, or messages of any \
                       program with `colltune run --messages FOLDER`, whose ranks write in MPI_Finalize",
            });
        }
        Ok(Folder {
            path: path.to_owned(),
            files,
            warnings: RefCell::default(),
        })
    }

    /// What was left out so far, and why.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }

    pub fn warn(&self, warning: String) {
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Whether there are files of the table.
    pub fn has(&self, table: &str) -> bool {
        self.files_of(table).next().is_some()
    }

    fn files_of<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a PathBuf> {
        self.files.iter().filter(move |file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let group = name
                .strip_prefix(table)
                .and_then(|rest| rest.strip_prefix('.'));
            group.is_some_and(|group| group.trim_end_matches(".parquet").parse::<u32>().is_ok())
        })
    }

    /// Reads columns of all files of a table; a file that cannot be read is left out with a warning.
    ///
    /// Errors: there is none, or none can be read.
    pub fn read(&self, wanted: &Wanted) -> Result<Columns, FolderError> {
        self.read_steps(wanted, &(0..=u64::MAX))
    }

    /// The same without row groups that hold none of these steps; those that hold some are read whole.
    pub fn read_steps(
        &self,
        wanted: &Wanted,
        steps: &RangeInclusive<u64>,
    ) -> Result<Columns, FolderError> {
        let mut all = Columns {
            numbers: vec![Vec::new(); wanted.numbers.len()],
            texts: vec![Vec::new(); wanted.texts.len()],
        };
        let (mut n_read, mut first_failure) = (0, None);
        for file in self.files_of(wanted.table) {
            match read_file(file, wanted, steps) {
                Ok((version, columns)) => {
                    if version > RECORDING {
                        self.warn(format!(
                            "{} was written by a later colltune-amr: it has version {version} of recordings, and this \
                             colltune reads version {RECORDING}, so numbers may mean something else",
                            self.path.display()
                        ));
                    }
                    n_read += 1;
                    let pairs = all.numbers.iter_mut().zip(columns.numbers);
                    pairs.for_each(|(to, from)| to.extend(from));
                    let pairs = all.texts.iter_mut().zip(columns.texts);
                    pairs.for_each(|(to, from)| to.extend(from));
                }
                Err(reason) => {
                    self.warn(format!("{} is left out: {reason}", file.display()));
                    first_failure.get_or_insert((file.clone(), reason));
                }
            }
        }
        match first_failure {
            _ if n_read > 0 => Ok(all),
            Some((path, reason)) => Err(FolderError::Unreadable { path, reason }),
            None => Err(FolderError::Missing {
                folder: self.path.clone(),
                table: wanted.table,
                hint: wanted.hint,
            }),
        }
    }

    /// What an analysis finds. Files may hold any numbers, and sums of them may be larger than any number: that is no
    /// answer.
    ///
    /// Errors: those of the analysis; `Nonsense`.
    pub fn analysed<T>(
        &self,
        analysis: impl FnOnce() -> Result<T, FolderError>,
    ) -> Result<T, FolderError> {
        catch_unwind(AssertUnwindSafe(analysis)).unwrap_or_else(|_| {
            Err(FolderError::Nonsense {
                folder: self.path.clone(),
            })
        })
    }

    /// As [`Folder::read`], and nothing where there is none.
    pub fn read_if_there(&self, wanted: &Wanted) -> Option<Columns> {
        match self.has(wanted.table) {
            true => self.read(wanted).ok(),
            false => None,
        }
    }
}

/// The version of the recording, and the columns. A file may hold anything, on which the reader of Parquet may panic.
fn read_file(
    path: &Path,
    wanted: &Wanted,
    steps: &RangeInclusive<u64>,
) -> Result<(u64, Columns), String> {
    catch_unwind(AssertUnwindSafe(|| columns_of(path, wanted, steps)))
        .unwrap_or_else(|_| Err("it is damaged".into()))
}

fn columns_of(
    path: &Path,
    wanted: &Wanted,
    steps: &RangeInclusive<u64>,
) -> Result<(u64, Columns), String> {
    let file = colltune_files::open(path, Links::Follow).map_err(|error| error.to_string())?;
    let reader = SerializedFileReader::new(file).map_err(|error| {
        format!("{error}; it is cut off or damaged, as files of a run that was killed are")
    })?;
    let metadata = reader.metadata().file_metadata();
    let schema = metadata.schema_descr();
    let said = metadata.key_value_metadata().into_iter().flatten();
    let version = said
        .filter(|pair| pair.key == RECORDING_KEY)
        .find_map(|pair| pair.value.as_ref()?.parse().ok());
    let place = |name: &&str| {
        let mut columns = schema.columns().iter();
        columns
            .position(|column| column.name() == *name)
            .ok_or_else(|| {
                let writer = metadata.created_by().unwrap_or("an unknown program");
                format!("it has no column {name}: another version wrote it ({writer})")
            })
    };
    let numbers: Vec<usize> = wanted.numbers.iter().map(place).collect::<Result<_, _>>()?;
    let texts: Vec<usize> = wanted.texts.iter().map(place).collect::<Result<_, _>>()?;
    let mut columns = Columns {
        numbers: vec![Vec::new(); numbers.len()],
        texts: vec![Vec::new(); texts.len()],
    };
    let mut words = HashSet::new();
    let step = schema.columns().iter().position(|c| c.name() == "step");
    for group in 0..reader.num_row_groups() {
        let of_group = reader.metadata().row_group(group);
        if step.is_some_and(|step| has_none_of(steps, of_group.column(step))) {
            continue;
        }
        let read = || -> Result<(), ParquetError> {
            let group = reader.get_row_group(group)?;
            for (&place, to) in numbers.iter().zip(&mut columns.numbers) {
                numbers_of(&*group, place, to)?;
            }
            for (&place, to) in texts.iter().zip(&mut columns.texts) {
                texts_of(&*group, place, (to, &mut words))?;
            }
            Ok(())
        };
        let mut read = read;
        read().map_err(|error| format!("row group {group}: {error}"))?;
    }
    for (name, values) in wanted.numbers.iter().zip(&columns.numbers) {
        let possible = possible(name);
        if let Some(odd) = values.iter().find(|value| !possible.contains(*value)) {
            return Err(format!(
                "its column {name} holds {odd}: it is damaged, or another program wrote it"
            ));
        }
    }
    Ok((version.unwrap_or(0), columns))
}

/// Whether a row group says of its column of steps that none of these is in it.
fn has_none_of(steps: &RangeInclusive<u64>, column: &ColumnChunkMetaData) -> bool {
    let Some(Statistics::Int64(of_steps)) = column.statistics() else {
        return false;
    };
    let ends = of_steps.min_opt().zip(of_steps.max_opt());
    ends.is_some_and(|(&min, &max)| {
        let (min, max) = (min as u64, max as u64);
        min <= max && (max < *steps.start() || min > *steps.end())
    })
}

/// More ranks than any machine has: there are tables of all.
const RANKS_MOST: i64 = 1 << 24;

/// What a column of numbers can hold.
fn possible(name: &str) -> Range<i64> {
    match name {
        "rank" | "partner" => 0..RANKS_MOST,
        // -1 stands for no rank.
        "last_from" => -1..RANKS_MOST,
        // Numbers of blocks use all bits.
        "block" => i64::MIN..i64::MAX,
        _ if name.ends_with("_ns") || name.contains("step") || name == "bytes" => 0..i64::MAX,
        _ => 0..i64::from(u32::MAX),
    }
}

fn numbers_of(
    group: &dyn RowGroupReader,
    place: usize,
    to: &mut Vec<i64>,
) -> Result<(), ParquetError> {
    let n_rows = group.metadata().num_rows() as usize;
    match group.get_column_reader(place)? {
        ColumnReader::Int64ColumnReader(column) => to.extend(values(column, n_rows)?),
        ColumnReader::Int32ColumnReader(column) => {
            to.extend(values(column, n_rows)?.into_iter().map(i64::from));
        }
        _ => {
            return Err(ParquetError::General(format!(
                "column {place} is no number"
            )));
        }
    }
    Ok(())
}

fn texts_of(
    group: &dyn RowGroupReader,
    place: usize,
    (to, words): (&mut Vec<Arc<str>>, &mut HashSet<Arc<str>>),
) -> Result<(), ParquetError> {
    let n_rows = group.metadata().num_rows() as usize;
    let ColumnReader::ByteArrayColumnReader(column) = group.get_column_reader(place)? else {
        return Err(ParquetError::General(format!("column {place} is no text")));
    };
    let text = |bytes: ByteArray| {
        let text = String::from_utf8_lossy(bytes.data());
        if let Some(known) = words.get(&*text) {
            return known.clone();
        }
        let word: Arc<str> = text.into();
        words.insert(word.clone());
        word
    };
    to.extend(values(column, n_rows)?.into_iter().map(text));
    Ok(())
}

fn values<T: DataType>(
    mut column: ColumnReaderImpl<T>,
    n_rows: usize,
) -> Result<Vec<T::T>, ParquetError> {
    let mut values = Vec::new();
    while values.len() < n_rows {
        let (_, n_read, _) = column.read_records(n_rows - values.len(), None, None, &mut values)?;
        if n_read == 0 {
            return Err(ParquetError::General(
                "it has fewer values than rows".into(),
            ));
        }
    }
    Ok(values)
}
